"""Files that are complete or absent, and folders of stores."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from halocline.archive import files
from halocline.archive.files import LOCK, MAKING
from halocline.errors import InputError, RunError


def names(folder: Path) -> list[str]:
    """Return the names of all files in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("synced", [True, False])
def test_a_mapping_is_read_back_unchanged(synced: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write_json(path, {"x": np.float64(0.1), "n": 3}, synced=synced)
    files.write_json(path, {"x": 0.1, "n": np.int64(4)}, synced=synced)
    assert files.read_object(path) == {"x": 0.1, "n": 4}
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "is damaged: it contains a list; expected an object"),
        ("{", "is not a JSON file of Halocline, or it is damaged"),
        ("[" * 100_000, "is not a JSON file"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_of_another_kind_is_an_error(text: str | None, words: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=words):
        files.read_object(tmp_path / "a.json")


def test_a_failed_write_leaves_the_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(KeyError), files.atomic_file(path) as making:
        raise KeyError(making.write_text("half"))
    assert (names(tmp_path), path.read_text()) == (["a"], "old")
    with pytest.raises(RunError, match=r"a/b\.json cannot be written: "):
        files.write_json(path / "b.json", {})


def test_files_of_a_folder_appear_together(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a").write_text("old")
    (folder / "c").write_text("kept")
    with files.atomic_folder(folder) as making:
        (making / "a").write_text("new")
        (making / "b").write_text("new")
        assert names(folder) == ["a", "c"]
    assert [(folder / name).read_text() for name in names(folder)] == ["new", "new", "kept"]
    assert names(tmp_path) == ["parts", "parts/a", "parts/b", "parts/c"]
    with pytest.raises(KeyError), files.atomic_folder(tmp_path / "none"):
        raise KeyError
    assert not (tmp_path / "none").exists()


def test_paths_from_users_are_strings() -> None:
    assert files.as_path("out/heat", "path") == files.as_path(Path("out/heat"), "path") == Path("out/heat")
    for value in ("", 3, None):
        with pytest.raises(InputError, match=r"path is .*; expected a text such as 'out/heat'"):
            files.as_path(value, "path")
    files.check_text(Path("ä"))
    with pytest.raises(InputError, match="not valid UTF-8"):
        files.check_text(Path(os.fsdecode(b"\xff")))
    with pytest.raises(InputError, match="null character"):
        files.check_text(Path("a\0b"))


def test_stores_contain_only_regular_files(tmp_path: Path) -> None:
    (tmp_path / "T").mkdir()
    (tmp_path / "T" / "zarr.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "T")
    assert files.has_file(tmp_path, "T/zarr.json")
    assert not files.has_file(tmp_path, "T/c")
    assert not files.has_file(tmp_path, "none/zarr.json")
    with pytest.raises(InputError, match="link is a link; expected a folder"):
        files.has_file(tmp_path, "link/zarr.json")
    with pytest.raises(InputError, match="T is a folder; expected a file"):
        files.has_file(tmp_path, "T")
    assert files.plain_files(tmp_path / "T") == {"zarr.json": 2}
    assert files.plain_files(tmp_path) == {}


def test_folders_are_created_cleared_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert files.is_free(folder)
    files.make_folder(folder)
    for name in (LOCK, f"{MAKING}x"):
        (folder / name).touch()
    assert files.is_free(folder)
    (folder / "zarr.json").touch()
    (folder / "T").mkdir()
    assert not files.is_free(folder)
    files.clear_folder(folder, "zarr.json")
    assert names(folder) == [LOCK, "zarr.json"]
    files.remove_folder(folder, "zarr.json")
    assert not folder.exists()
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="file is a file; expected a folder"):
        files.make_folder(tmp_path / "file")
    assert not files.is_free(tmp_path / "file")
