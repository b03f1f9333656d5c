"""Output of commands: writable files, and the list of written files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halocline.cli import output
from halocline.errors import InputError


def test_files_are_checked_before_any_work(tmp_path: Path) -> None:
    output.check_files(None, "-", tmp_path / "a.json", tmp_path / "b.csv")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"a\.json is the file of two options"):
        output.check_files(tmp_path / "a.json", None, tmp_path / "a.json")
    with pytest.raises(InputError, match=f"cannot write {tmp_path}: "):
        output.check_files(tmp_path)


def test_pictures_have_a_format(tmp_path: Path) -> None:
    output.check_pictures(None, tmp_path / "a.png")
    with pytest.raises(InputError, match=r"picture 'a\.txt': expected a name that ends in .*\.png"):
        output.check_pictures(Path("a.txt"))


def test_texts_go_to_files_or_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output.write(None, "nowhere")
    output.write_json(None, {})
    output.write_json(str(tmp_path / "a.json"), {"x": [1.0]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": [1.0]}
    output.write("-", "a\x1b[31mb\n")
    output.say("done")
    printed = capsys.readouterr()
    assert printed.out.endswith("b\ndone\n")
    assert "\x1b" not in printed.out
    assert printed.err == ""


def test_nonfinite_numbers_in_json_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        output.write_json(str(tmp_path / "a.json"), {"x": float("nan")})


def test_written_files_are_named_on_the_error_stream(capsys: pytest.CaptureFixture[str]) -> None:
    output.report_written([None, "-"])
    output.report_written([None, "a.json", Path("b.png"), "-"])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.strip().endswith("wrote a.json, b.png")
    assert printed.err.count("wrote") == 1
