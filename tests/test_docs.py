"""The documentation says what the code says, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from windrow.model.invariants import INVARIANTS

ROOT = Path(__file__).parents[1]
CONTRACT = ROOT / "docs" / "contract.md"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


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
