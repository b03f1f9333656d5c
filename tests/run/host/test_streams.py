"""Output of commands: it is complete, or its loss is an error."""

from __future__ import annotations

import itertools
from pathlib import Path

from shells import RUN, in_shell
from suites import cases


@cases(
    "redirection, ranks",
    itertools.product(("> /dev/full", ">&-"), (1, 2)),
    default=[("> /dev/full", 1), (">&-", 2)],
)
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


@cases(
    "line",
    ["--help", "cases", "explain poisson --n 16", "doctor", "study papers"],
    default=["--help", "cases"],
)
def test_every_command_reports_lost_output(tmp_path: Path, line: str) -> None:
    status, _, err = in_shell(f"halocline {line} > /dev/full", tmp_path)
    assert (status, err) == (
        1, "halocline: error: the output cannot be written: No space left on device\n"
    )  # fmt: skip


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
