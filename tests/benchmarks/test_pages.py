"""Figures are written between their own two marks of a page, and nowhere else."""

from __future__ import annotations

import pytest
from benchmarks.pages import DOCS, write_figures

PAGE = (
    "# Title\n\n<!-- figures: one -->\n\nold\n\n<!-- end -->\n\ntext\n\n<!-- figures: two -->\n\nold\n\n<!-- end -->\n"
)


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


@pytest.mark.parametrize("name", ["one", "two"])
def test_the_rest_of_the_page_stays(page, name):
    write_figures(page, name, "new")
    before, mark, after = PAGE.partition(f"<!-- figures: {name} -->\n")
    assert page.read_text() == before + mark + after.replace("old", "new", 1)


def test_a_place_without_an_end_is_refused(page):
    page.write_text(PAGE.replace("<!-- end -->", "", 1))
    before = page.read_text()
    with pytest.raises(ValueError, match="no place for figures of 'one'"):
        write_figures(page, "one", "new")
    assert page.read_text() == before


def test_every_place_of_the_documentation_has_an_end():
    for path in DOCS.rglob("*.md"):
        text = path.read_text()
        assert text.count("<!-- figures: ") == text.count("<!-- end -->") - text.count("<!-- the way of a query"), path
