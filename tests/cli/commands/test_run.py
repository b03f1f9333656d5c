"""The command `halocline run` with a file of a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from halocline.cli.app import run
from halocline.errors import InputError
from user_files import EXACT, HEAT, SOLVE, halocline, json_result


@pytest.fixture
def heat(tmp_path: Path) -> Path:
    path = tmp_path / "heat.py"
    path.write_text(HEAT + EXACT)
    return path


# -- commands ------------------------------------------------------------------------------------------------


def test_run_returns_the_record_of_a_file(heat: Path, tmp_path: Path) -> None:
    one = json_result("run", heat, "--threads", "1", cwd=tmp_path)
    assert one["file"] == str(heat)
    record = one["run"]
    assert (record["shape"], record["order"], record["scheme"]) == ([16, 16], 4, "rk3")
    assert record["time"] == pytest.approx(0.02)
    assert record["parameters"] == {"n": 16, "kappa": 0.1, "name": "T", "late": -0.5}
    assert 0 < record["error"] < 1e-3
    assert record["ns_per_cell_step"] > 0
    two = json_result("run", heat, "--ranks", "2", "--threads", "1", cwd=tmp_path)["run"]
    assert (two["checksum"], two["steps"]) == (record["checksum"], record["steps"])
    finer = json_result("run", heat, "--n", "24", "--set", "kappa=0.2", "--check", cwd=tmp_path)
    assert finer["run"]["shape"] == [24, 24]
    assert finer["run"]["parameters"]["kappa"] == 0.2
    assert finer["checks"] == [{"name": "check", "passed": True, "about": ""}]


def test_a_check_that_fails_ends_the_command_with_1(heat: Path, tmp_path: Path) -> None:
    done = halocline("run", heat, "--set", "kappa=0.4", "--check", cwd=tmp_path)
    assert done.returncode == 1
    assert "check FAILED: kappa is large" in done.stdout
    text = heat.read_text() + '    assert sim.domain.comm.rank == 0, "seen on one rank alone"\n'
    heat.write_text(text)
    done = halocline("run", heat, "--ranks", "2", "--check", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.count("check FAILED: seen on one rank alone") == 1


def test_the_command_returns_the_status_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import sys\n\ndef check(problem):\n    sys.exit(problem)\n\nsys.exit(3)\n")
    assert halocline("run", path, "--check", cwd=tmp_path).returncode == 3
    path.write_text("import sys\n\ndef check(problem):\n    sys.exit(4)\n\nsys.exit(0)\n")
    done = halocline("run", path, "--check", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "check FAILED: the check exited with status 4\n")


def test_options_of_a_file_follow_two_dashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.py"
    path.write_text("import sys\nm = 1\nprint(sys.argv[1:], m)\n")
    words = ["--n", "4", "--set", "m=2", "--check", "--rank", "2"]
    assert run(["run", str(path), "--set", "m=3", "x", "--", *words]) == 0
    assert capsys.readouterr().out == f"{['x', *words]} 3\n"
    for line, words_of_error in (
        (["--n", "4"], "--n 4: .*a.py sets no whole number n at its top"),
        (["--set", "k=2"], "'k' is unknown"),
        (["--check"], r"--check: .*a.py has no function check\(problem\) at its top"),
        (["--rank", "2"], r"has no option --rank\. Write options of .*a.py after --\. .*--ranks"),
        (["--bogus"], r"has no option --bogus\. Write options of .*a.py after --\."),
        (["--submit", "slurm"], "has no option --submit"),
        (["-3"], "has no option -3"),
    ):
        with pytest.raises(InputError, match=words_of_error):
            run(["run", str(path), *line])
    assert capsys.readouterr().out == "", "the file has not begun"


def test_iterations_of_a_file_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "solve.py"
    path.write_text(SOLVE)
    record = json_result("run", path, "--threads", "1", cwd=tmp_path)["run"]
    assert record["scheme"] == "cg-fused"
    assert record["steps"] > 10
    assert record["time"] is None
    assert record["bytes_per_cell_step"] > 8
