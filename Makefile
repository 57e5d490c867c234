.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
STAMP := .venv/.installed

help: ## list these commands
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## the environment alone, in .venv, with kernels compiled

$(STAMP): pyproject.toml constraints.txt scripts/setup
	@scripts/setup

kernels: setup ## compile kernels anew, after a change of them
	@$(BIN)/python -m native

java: ## make sure of Java 17 or newer
	@scripts/java

demo: setup java ## a small lake from start to answer
	@$(BIN)/windrow demo --overwrite

test: kernels java ## every suite at its small size
	@$(BIN)/pytest -n 2 --dist loadgroup -m "not long and not interop"

test-long: kernels java ## the large sizes, once and before a release
	@$(BIN)/pytest -m long

interop: setup java ## with a running QuestDB: QUESTDB_JAR=/path/to/questdb.jar
	@QUESTDB_JAR="$(QUESTDB_JAR)" $(BIN)/pytest -m interop tests/interop

check: kernels ## style, types, import levels, public names, the built wheel
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/pytest -q tests/test_house.py tests/test_public_names.py tests/wheel

wheel: setup ## the wheel, tried on each Python there is, in dist
	@scripts/wheel

format: setup ## bring the source into shape
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: setup java ## every benchmark, with its peers, at full size
	@for name in $$($(BIN)/python -m benchmarks); do $(BIN)/python -m benchmarks.$$name || exit 1; done

.PHONY: help setup kernels java demo test test-long interop check wheel format bench
