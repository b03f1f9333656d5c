"""Stores at the start of a run: protection of existing files, and remains of killed runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xarray

import halocline as hc
from halocline.archive import files
from halocline.errors import InputError, RunError
from output_runs import heat
from stores import open_content


def test_nothing_is_overwritten_by_default(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    heat().run(steps=2, output=hc.Output(path, every=hc.steps(1)))
    with pytest.raises(InputError, match=r"holds output of another run\. .*--overwrite"):
        heat().run(steps=1, output=hc.Output(path))
    assert len(open_content(path)["time"]) == 3
    heat().run(steps=1, output=hc.Output(path, ["T"], overwrite=True))
    assert list(open_content(path)) == ["T"]
    # a store of another program, and a folder that is no store, are never removed
    xarray.Dataset({"a": ("x", [1.0])}).to_zarr(tmp_path / "theirs.zarr")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("all of it")
    (tmp_path / "file").write_text("")
    for other, words in (
        ("theirs.zarr", "a store of another program"),
        ("notes", "is not a store of Halocline"),
        ("file", "is not a store of Halocline"),
    ):
        with pytest.raises(InputError, match=words):
            heat().run(steps=1, output=hc.Output(tmp_path / other, overwrite=True))
    assert (tmp_path / "notes" / "thesis.txt").read_text() == "all of it"
    with pytest.raises(RunError, match="cannot be created"):
        heat().run(steps=1, output=hc.Output("/proc/none/a.zarr"))


@pytest.mark.ranks(1, 2, long=(1,))
def test_overwriting_keeps_the_output_of_this_run(shared_tmp_path: Path) -> None:
    """A restarted run keeps its output, although overwriting is allowed."""
    tmp_path = shared_tmp_path
    output = hc.Output(tmp_path / "a.zarr", every=hc.steps(1), overwrite=True)
    heat().run(steps=3, output=output)
    heat().run(steps=2, output=output, checkpoint=hc.Checkpoint(tmp_path / "checkpoints", overwrite=True))
    assert list(open_content(tmp_path / "a.zarr")["step"].values) == [0, 1, 2]
    again = heat()
    again.resume(tmp_path / "checkpoints")
    again.run(steps=2, output=output)
    again.domain.comm.barrier()
    assert list(open_content(tmp_path / "a.zarr")["step"].values) == [0, 1, 2, 3, 4]


def test_an_incompletely_created_store_can_be_overwritten(tmp_path: Path) -> None:
    """A folder with only a lock, or a group without arrays, remains of a killed run and is overwritten."""
    path = tmp_path / "a.zarr"
    path.mkdir()
    (path / ".lock").write_text("process 1 on elsewhere")
    (path / ".making-zarr.json-12345678").write_text("{")
    heat().run(steps=1, output=hc.Output(path, every=hc.steps(1)))
    assert len(open_content(path)["time"]) == 2
    group = json.loads((path / "zarr.json").read_text())
    group["consolidated_metadata"]["metadata"] = {}
    (path / "zarr.json").write_text(json.dumps(group))
    heat().run(steps=1, output=hc.Output(path, every=hc.steps(1), overwrite=True))
    assert len(open_content(path)["time"]) == 2


def test_a_partially_removed_store_can_be_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zarr"
    heat().run(steps=2, output=hc.Output(path, every=hc.steps(1)))
    with monkeypatch.context() as patch:
        patch.setattr(files.shutil, "rmtree", killed)
        with pytest.raises(SystemError):
            heat().run(steps=1, output=hc.Output(path, every=hc.steps(1), overwrite=True))
    heat().run(steps=1, output=hc.Output(path, every=hc.steps(1), overwrite=True))
    assert len(open_content(path)["time"]) == 2


def killed(*_: Any) -> None:
    raise SystemError("as if killed")


def test_a_store_with_damaged_metadata_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    sim = heat()
    sim.run(steps=2, output=hc.Output(path, every=hc.steps(1)))
    group = path / "zarr.json"
    whole = json.loads(group.read_text())
    del whole["consolidated_metadata"]
    group.write_text(json.dumps(whole))
    with pytest.raises(InputError, match="it has no consolidated metadata"):
        sim.run(steps=1, output=hc.Output(path, every=hc.steps(1)))
    group.write_text("[]")
    with pytest.raises(InputError, match="is damaged: it contains a list; expected an object"):
        sim.run(steps=1, output=hc.Output(path, every=hc.steps(1)))
