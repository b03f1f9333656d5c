"""Output of commands: it is complete, or its loss is an error."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from shells import RUN, in_shell


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("redirection", ["> /dev/full", ">&-"])
def test_lost_output_is_an_error(tmp_path: Path, ranks: int, redirection: str) -> None:
    status, _, err = in_shell(f"halocline {RUN} --ranks {ranks} {redirection}", tmp_path)
    assert status == 1
    assert err.count("\n") == 1
    reason = "it is closed" if redirection == ">&-" else "No space left on device"
    assert f"cannot be written: {reason}" in err


def test_lost_output_of_a_script_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("for n in range(20000): print(n)\n")
    status, _, err = in_shell("halocline run p.py > /dev/full", tmp_path)
    assert (status, err) == (
        1, "halocline: error: the output cannot be written: No space left on device\n"
    )  # fmt: skip


@pytest.mark.parametrize("line", ["--help", "cases", "explain poisson --n 16", "doctor", "study papers"])
def test_every_command_reports_lost_output(tmp_path: Path, line: str) -> None:
    status, _, err = in_shell(f"halocline {line} > /dev/full", tmp_path)
    assert (status, err) == (
        1, "halocline: error: the output cannot be written: No space left on device\n"
    )  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_closed_error_stream_loses_no_results(tmp_path: Path, ranks: int) -> None:
    status, out, _ = in_shell(f"halocline {RUN} --ranks {ranks} 2>&-", tmp_path)
    assert status == 0
    alone = out
    # the message about a file is lost, so the status reports it; the file and the output are complete
    status, out, _ = in_shell(f"halocline {RUN} --ranks {ranks} --json r.json 2>&-", tmp_path)
    assert status == 1
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["steps"] == 1
    line = re.compile(rf"^checksum +{record['checksum']}$", re.MULTILINE)
    assert line.search(alone)
    assert line.search(out)
    status, out, _ = in_shell(f"halocline {RUN} --ranks {ranks} --order 3 2>&-", tmp_path)
    assert (status, out) == (2, "")
    assert in_shell(f"halocline {RUN} --ranks {ranks} <&-", tmp_path)[0] == 0


def test_results_are_printed_before_a_failed_write_of_a_file(tmp_path: Path) -> None:
    for line in ("solve poisson --n 16", RUN, "bench exchange --n 4 --repeat 1"):
        status, out, err = in_shell(f"halocline {line} --json /dev/full", tmp_path)
        assert status == 1
        assert len(out.splitlines()) > 3, out
        assert err == "halocline: error: cannot write /dev/full: No space left on device\n"


def test_a_closed_pipe_stops_no_rank(tmp_path: Path) -> None:
    """No rank stops when the reader closes the pipe, although the ranks print more than its capacity."""
    (tmp_path / "talk.py").write_text(
        "from halocline.run.ranks.mpi import world\nworld()\nprint('x' * 4000000)\n"
        "open(f'done{world().rank}', 'w')\n"
    )
    _, out, err = in_shell("halocline run talk.py --ranks 2 | head -c 10", tmp_path)
    assert out == "x" * 10
    assert err == ""
    assert (tmp_path / "done0").exists()
    assert (tmp_path / "done1").exists()
