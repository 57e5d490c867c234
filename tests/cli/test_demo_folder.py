"""The demo takes a new folder, or its own, and leaves everything else alone."""

from __future__ import annotations

import pytest

import windrow
from windrow.cli.demo_folder import prepare_folder
from windrow.errors import AlreadyExists, StorageError


@pytest.fixture
def earlier(tmp_path):
    """The folder of an earlier demo, with a file of the user's own in it."""
    folder = tmp_path / "demo"
    prepare_folder(folder, overwrite=False)
    with windrow.connect(folder) as lake:
        lake.create_table("metrics", sort="host|timestamp/V2")
    (folder / "metrics").mkdir()
    (folder / "metrics" / "split.parquet").write_bytes(b"")
    (folder / "spark.log").write_text("words")
    (folder / "notes.txt").write_text("mine")
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_is_made_and_marked(tmp_path):
    prepare_folder(tmp_path / "a" / "b", overwrite=False)
    assert names(tmp_path / "a" / "b") == ["windrow-demo.txt"]


def test_an_empty_folder_is_taken(tmp_path):
    prepare_folder(tmp_path, overwrite=False)
    assert names(tmp_path) == ["windrow-demo.txt"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_with_anything_else_is_refused_and_left_alone(tmp_path, overwrite):
    (tmp_path / "windrow.db").write_text("mine")
    with pytest.raises(AlreadyExists, match="not empty and is no earlier demo"):
        prepare_folder(tmp_path, overwrite=overwrite)
    assert names(tmp_path) == ["windrow.db"]


def test_an_earlier_demo_is_kept_unless_it_is_to_be_overwritten(earlier):
    before = names(earlier)
    with pytest.raises(AlreadyExists, match="--overwrite"):
        prepare_folder(earlier, overwrite=False)
    assert names(earlier) == before


def test_only_what_the_demo_made_is_removed(earlier):
    prepare_folder(earlier, overwrite=True)
    assert names(earlier) == ["notes.txt", "windrow-demo.txt"]


def test_a_table_of_the_user_keeps_the_lake_alive(earlier):
    with windrow.connect(earlier) as lake:
        lake.create_table("mine", sort="host|timestamp/V2")
    before = names(earlier)
    with pytest.raises(AlreadyExists, match="did not make: mine"):
        prepare_folder(earlier, overwrite=True)
    assert names(earlier) == before


def test_what_lies_behind_a_link_is_not_removed(earlier, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (earlier / "metrics").rename(elsewhere)
    (earlier / "metrics").symlink_to(elsewhere)
    prepare_folder(earlier, overwrite=True)
    assert names(earlier) == ["notes.txt", "windrow-demo.txt"]
    assert names(elsewhere) == ["split.parquet"]


def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "demo"):
        with pytest.raises(StorageError, match="cannot be used: Not a directory"):
            prepare_folder(place, overwrite=True)
