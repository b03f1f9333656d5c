"""Listings of stores and checkpoints by `halocline ls`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from halocline.cli.app import run
from halocline.errors import InputError
from halocline.run.output.restart import newest

# -- the commands --------------------------------------------------------------------------------------------


def test_ls_shows_the_checkpoint_to_resume_from(
    stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "checkpoints"
    shutil.copytree(stores / "checkpoints", folder)
    last = max(folder.glob("step-*"))

    def listing() -> str:
        assert run(["ls", str(folder)]) == 0
        return capsys.readouterr().out

    assert f"Restart from the newest checkpoint with --resume {folder}." in listing()
    (folder / "newest.json").unlink()
    text = listing()
    assert (
        " has no newest.json, the file that names the newest checkpoint. Restart from the last complete "
        "checkpoint" in text
    )
    assert f"--resume {last}" in text
    with pytest.raises(
        InputError, match=f"complete checkpoints in the folder, the newest last: .*{last.name}$"
    ):
        newest(folder)
    (folder / "newest.json").write_text(json.dumps({"checkpoint": ""}))
    assert (
        "names '', but this folder is not a checkpoint. Restart from the last complete checkpoint"
        in listing()
    )
    (folder / "newest.json").write_text("{")
    assert "newest.json is not a JSON file of Halocline, or it is damaged. Restart" in listing()
    (folder / "newest.json").write_text(json.dumps({"checkpoint": last.name}))
    (last / "zarr.json").unlink()
    assert (
        f"names {last.name!r}, but this folder is not a checkpoint. Restart from the last complete checkpoint"
        in listing()
    )
    for file in folder.glob("step-*/zarr.json"):
        file.unlink()
    assert "None of these checkpoints is complete." in listing()


def test_ls_lists_stores_and_checkpoints(
    stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    json_file = str(tmp_path / "ls.json")
    assert run(["ls", str(stores / "2.zarr"), "--json", json_file]) == 0
    text = capsys.readouterr().out
    assert "4 times, t = 0 to 0.3, steps 0 to 3" in text
    assert " ".join(["T", "time,", "x,", "y", "4", "x", "7", "x", "5", "float64", "K"]) in " ".join(
        text.split()
    )
    assert "time, x_face, y" in text
    assert "T = " not in text
    actual = json.loads(Path(json_file).read_text())
    assert actual["kind"] == "output"
    assert actual["steps"] == [0, 1, 2, 3]
    assert actual["arrays"]["v"]["shape"] == [4, 8, 5]
    assert run(["ls", str(stores / "2.zarr"), "--equations"]) == 0
    assert "T = " in capsys.readouterr().out
    assert run(["ls", str(stores / "checkpoints")]) == 0
    text = capsys.readouterr().out
    assert text.count("step-") == 2
    assert "newest" in text
    assert "--resume" in text
    newest = max((stores / "checkpoints").glob("step-*"))
    assert run(["ls", str(newest), "--json", "-"]) == 0
    actual = json.loads(capsys.readouterr().out)
    assert (actual["kind"], actual["step"]) == ("checkpoint", 3)
    assert actual["arrays"]["T"]["location"] == "cell"
    with pytest.raises(InputError, match="no such file or folder"):
        run(["ls", str(stores / "none")])
    expected = "no Zarr store; expected the path of an output store or a checkpoint, such as"
    with pytest.raises(InputError, match=rf"{expected} \S+$"):
        run(["ls", str(stores)])
    with pytest.raises(InputError, match=rf"{expected} {re.escape(str(newest))}$"):
        run(["view", str(newest.parent), str(stores / "T.png")])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda facts: facts.pop("time"), "it lacks time"),
        (lambda facts: facts["fields"].pop("T"), "its facts differ from the stored digest"),
        (lambda facts: facts.update(time=3), ""),
        (lambda facts: facts.update(identity=[]), ""),
    ],
)
def test_ls_reports_a_damaged_checkpoint(stores: Path, change: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoints"
    shutil.copytree(stores / "checkpoints", path)
    newest = max(path.glob("step-*"))
    group = json.loads((newest / "zarr.json").read_text())
    change(group["attributes"]["halocline"])
    (newest / "zarr.json").write_text(json.dumps(group))
    with pytest.raises(InputError, match=rf"{newest.name}/zarr\.json is damaged.*{words}"):
        run(["ls", str(newest)])
    (newest / "zarr.json").write_text("[]")
    with pytest.raises(InputError, match=r"zarr\.json is damaged"):
        run(["ls", str(path)])


def test_ls_reports_a_checkpoint_with_a_missing_chunk(
    stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "checkpoints"
    shutil.copytree(stores / "checkpoints", path)
    older, last = sorted(path.glob("step-*"))
    next(last.glob("T/c.*")).unlink()
    assert run(["ls", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"{last.name} incomplete 3" in text
    assert "its chunk c.0.0 is missing. Restore the file from a copy of the store. Restart from" in text
    assert f"Restart from the last complete checkpoint with --resume {older}" in text
    next(older.glob("v/c.*")).unlink()
    assert run(["ls", str(path)]) == 0
    assert "is missing. Restore the file from a copy of the store." in " ".join(
        capsys.readouterr().out.split()
    )
