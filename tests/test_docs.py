"""The documentation says what the code says, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from tests.doc_blocks import LANGUAGES, World, blocks_of

from windrow.model.invariants import INVARIANTS

ROOT = Path(__file__).parents[1]
QUESTDB = ROOT / "tests" / "data" / "golden" / "questdb-tables"
CONTRACT = ROOT / "docs" / "contract.md"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]

BLOCKS = [block for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] for block in blocks_of(page)]
NEEDS_SPARK = tuple(f"docs/{page}.md" for page in ("compaction", "quickstart", "scanning", "statistics", "streaming"))
MAKES_ITS_TABLE = ("README.md", "docs/quickstart.md")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder, with caches and settings of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("WINDROW_")]:
        monkeypatch.delenv(name)
    return tmp_path


def run_page(page, folder, spark=None):
    """Run the blocks of a page one after the other, as a reader would."""
    world = World.of(folder, spark=spark, with_table=page not in MAKES_ITS_TABLE)
    if page == "docs/quickstart.md":
        shown = World.of(mkdir(folder / "shown"))
        shown.close()
        (shown.folder / "lake").rename(folder / "windrow-demo")
    if page == "docs/questdb-migration.md":
        copy_of_questdb(folder / "questdb" / "db")
    if page == "docs/questdb.md":
        for case, table in (("format-parquet", "fmt~13"), ("o3-3-nulls", "o3~10")):
            shutil.copytree(QUESTDB / case, folder / "questdb" / "db" / table)
        shutil.copy(QUESTDB / "tables.d.0", folder / "questdb" / "db")
    try:
        for block in BLOCKS:
            if block.page == page and block.is_code and block.not_run is None:
                world.run(block)
    finally:
        world.close()


def copy_of_questdb(database):
    """A database with one table, whose partitions have no sidecars."""
    golden = ROOT / "tests/data/golden/questdb-tables/format-parquet"
    ignored = shutil.ignore_patterns("_pm", "*.pm")
    shutil.copytree(golden, database / "trades~3", copy_function=shutil.copyfile, ignore=ignored)
    (database / "trades~3" / "_name").write_bytes(len("trades").to_bytes(4, "little") + "trades".encode("utf-16-le"))


def mkdir(path):
    path.mkdir()
    return path


@pytest.mark.parametrize(
    "page", sorted({block.page for block in BLOCKS if block.is_code} - {"README.md", *NEEDS_SPARK}), ids=str
)
def test_the_blocks_of_a_page_run(page, folder):
    run_page(page, folder)


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.page == "README.md"], ids=lambda block: f"line {block.line}"
)
def test_each_block_of_the_readme_runs_by_itself(block, folder):
    world = World.of(folder, with_table=False)
    try:
        world.run(block)
    finally:
        world.close()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("page", NEEDS_SPARK)
def test_the_blocks_of_a_page_run_with_spark(page, folder, spark):
    run_page(page, folder, spark)


def test_every_block_has_a_language_and_what_is_not_run_says_why():
    assert {block.language for block in BLOCKS} <= set(LANGUAGES)
    assert {block.not_run for block in BLOCKS if block.not_run} <= {
        "it ends with Ctrl-C",
        "needs a bucket and PostgreSQL",
        "needs a QuestDB database",
        "needs a network",
        "needs a stream that does not end",
        "needs Kafka",
    }
    code = [block for block in BLOCKS if block.is_code]
    assert len([block for block in code if block.not_run]) <= len(code) / 6


def test_the_page_of_invariants_is_the_registry():
    rows = re.findall(r"^\| ([A-Z]{2}-\d) \| (.*?) \| .+? \|$", (ROOT / "docs/invariants.md").read_text(), re.MULTILINE)
    assert rows == [(each.id, each.sentence) for each in INVARIANTS.values()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def statements():
    """The rows of the contract: id, module and test, or where it stands and why."""
    rows = re.findall(r"^\| ([PCSM]-\d+) \| .+ \| (.+?) \| (.+?) \|$", CONTRACT.read_text(), re.MULTILINE)
    assert len(rows) > 100
    return rows


def test_every_module_and_test_of_the_contract_exists():
    for number, module, test in statements():
        if module in ("not yet", "to come"):
            assert test, number
            continue
        file, _, name = test.strip("`").partition("::")
        assert (ROOT / "src" / "windrow" / module.strip("`")).is_file(), f"{number}: {module}"
        assert re.search(rf"def {name}\(", (ROOT / "tests" / file).read_text()), f"{number}: {test}"


def test_the_contract_counts_its_statements():
    rows = statements()
    standing = [module if module in ("not yet", "to come") else "held" for _, module, _ in rows]
    held, not_yet, to_come = (standing.count(each) for each in ("held", "not yet", "to come"))
    head = f"{len(rows)} statements: {held} held, {not_yet} not yet, {to_come} to come."
    assert head in CONTRACT.read_text()
    assert len({number for number, _, _ in rows}) == len(rows)
    for letter, counts in zip("PCSM", design_counts(), strict=True):
        own = [stand for (number, _, _), stand in zip(rows, standing, strict=True) if number[0] == letter]
        assert counts == [len(own), *(own.count(each) for each in ("held", "not yet", "to come"))], letter


def design_counts():
    """The counts of each design, as the table at the head of the contract has them."""
    table = re.findall(r"^\| [^|]+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", CONTRACT.read_text(), re.MULTILINE)
    return [[int(count) for count in row] for row in table]


def test_every_decision_and_every_gap_is_listed():
    for folder in ("adr", "gaps"):
        index = (ROOT / "docs" / folder / "README.md").read_text()
        for page in (ROOT / "docs" / folder).glob("*.md"):
            assert page.name == "README.md" or f"({page.name})" in index


def test_the_readme_names_commands_that_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for page in PAGES:
        for name in re.findall(r"^    make ([a-z-]+)", page.read_text(), re.MULTILINE):
            assert name in targets, f"{page.name}: make {name}"
