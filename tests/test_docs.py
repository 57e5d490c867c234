"""The documentation says what the code says, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from windrow.model.invariants import INVARIANTS

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_the_page_of_invariants_is_the_registry():
    rows = re.findall(r"^\| ([A-Z]{2}-\d) \| (.*?) \| .+? \|$", (ROOT / "docs/invariants.md").read_text(), re.MULTILINE)
    assert rows == [(each.id, each.sentence) for each in INVARIANTS.values()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


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
