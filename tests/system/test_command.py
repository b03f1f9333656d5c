"""The `halocline` command, in real processes on one rank and on several.

Most rejected command lines run in the process of the tests, since the start of a process takes longer.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import record_keys
from command_lines import halocline
from hang import HANG
from loops import some
from suites import cases
from terminals import on_terminal, until

ALL = [*record_keys.ALL, "machine"]


# -- results -------------------------------------------------------------------------------------------------


def test_solve_gives_the_same_bits_on_one_rank_and_three(tmp_path):
    one = halocline("solve poisson --n 48 --threads 1 --json -", tmp_path)
    assert (one.returncode, one.stderr) == (0, "")
    alone = json.loads(one.stdout)
    assert list(alone) == ALL
    assert set(record_keys.KEYS) <= set(ALL)
    assert (alone["n"], alone["converged"], alone["ranks"]) == (48, True, 1)
    three = halocline(
        "solve poisson --n 48 --ranks 3 --threads 1 --decomposition 1d-y --json new/r.json --pictures new",
        tmp_path,
    )
    assert three.returncode == 0
    assert three.stdout.count("checksum") == 1
    assert re.search(rf"^checksum +{alone['checksum']}$", three.stdout, re.MULTILINE)
    spread = json.loads((tmp_path / "new" / "r.json").read_text())
    assert list(spread) == ALL
    assert spread["ranks"] == 3
    assert (alone["overlap"], alone["overlap_why"]) == (True, "since there is one rank")
    assert re.search(r"^overlap +(on|off), (decided by measurement|not decided)", three.stdout, re.MULTILINE)
    wrong = halocline("solve poisson --n 48 --overlap perhaps", tmp_path)
    assert wrong.returncode == 2
    assert "--overlap perhaps: expected auto, on or off" in wrong.stderr
    assert (spread["iterations"], spread["checksum"]) == (alone["iterations"], alone["checksum"])
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["error.png", "r.json", "solution.png"]


def test_under_mpiexec_the_started_ranks_are_used(tmp_path):
    from halocline.run.ranks.launch import mpiexec

    before = [str(mpiexec()), "-n", "2"]
    result = halocline("solve poisson --n 16 --threads 1 --json -", tmp_path, before=before)
    assert result.returncode == 0
    assert json.loads(result.stdout)["ranks"] == 2
    wrong = halocline("solve poisson --n 16 --ranks 3", tmp_path, before=before)
    assert wrong.returncode == 2
    assert wrong.stderr.count("error:") == 1
    assert "--ranks is 3" in wrong.stderr
    helped = halocline("solve poisson --help", tmp_path, before=before)
    assert (helped.returncode, helped.stdout.count("Usage:")) == (0, 1)


def test_a_solve_stopped_by_the_limit_has_a_result(tmp_path):
    result = halocline("solve poisson --n 64 --max-iterations 3 --json r.json", tmp_path)
    assert result.returncode == 0
    assert "not converged" in result.stdout
    result = halocline("solve poisson --n 8 --max-iterations 0", tmp_path)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[2][:4] == ["iterations", "0", "not", "converged,"]
    assert [line[0] for line in lines[3:7]] == ["residual", "true", "error", "wall"]
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["converged"], record["iterations"]) == (False, 3)


def test_studies_leave_tables_and_pages(tmp_path):
    files = "--csv c.csv --html c.html --json c.json --pictures p"
    done = halocline(f"study convergence poisson --n 32,16 --threads 1 {files}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^16 +this machine .*\n32 +this machine ", done.stdout, re.MULTILINE)
    records = json.loads((tmp_path / "c.json").read_text())
    assert [r["n"] for r in records] == [16, 32]
    assert records[0]["machine"]["host"]
    assert len((tmp_path / "c.csv").read_text().splitlines()) == 3
    page = (tmp_path / "c.html").read_text()
    assert page.count("data:image/png;base64,") == 3  # solution, error, timeline
    assert (tmp_path / "p" / "error.png").is_file()
    strong = halocline("study strong poisson --n 16 --ranks 1,2 --threads 1 --html s.html", tmp_path)
    assert strong.returncode == 0, strong.stderr
    assert "all with the same bits" in strong.stdout
    assert "2 ranks" in (tmp_path / "s.html").read_text()


def test_explain_distinguishes_exchanged_and_unused_sides(tmp_path):
    result = halocline("explain orszag-tang-resistive --n 24 --ranks 2", tmp_path)
    assert result.returncode == 0
    of_halos = re.sub(r"\n {18}(?=\S)", " ", result.stdout)
    (sides,) = {
        line.strip()
        for line in of_halos.splitlines()
        if line.strip().startswith("halo of A_y: ") and "x-y-" in line
    }
    assert "copied within the rank on y-, y+; still valid on x-, x+" in sides
    assert "not exchanged" not in sides


def test_explain_prints_the_plan(tmp_path):
    result = halocline("explain poisson --n 1024 --ranks 64 --json e.json", tmp_path)
    assert result.returncode == 0
    assert "8 x 8 subdomains" in result.stdout
    assert "halo of p: 1 layer on x-, x+, y-, y+; not exchanged" in result.stdout.replace(
        "\n" + " " * 18, " "
    )
    explanation = json.loads((tmp_path / "e.json").read_text())
    assert explanation["pass"]["bytes_per_cell"] == 64
    assert explanation["bound"]["seconds_per_pass"] > 0
    code = halocline("explain poisson --n 8 --code", tmp_path)
    assert code.stdout.startswith("// Poisson in 2D")
    (tmp_path / "kernels.cpp").write_text(code.stdout)
    include = Path(__file__).parents[2] / "native" / "include"
    subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", "-march=native", f"-I{include}", tmp_path / "kernels.cpp"],
        check=True,
    )
    assert "\x1b" not in code.stdout  # no colours in a pipe


def test_doctor_lists_the_environment(tmp_path):
    result = halocline("doctor --json -", tmp_path)
    report = json.loads(result.stdout)
    states = {f["name"]: f["state"] for f in report["findings"]}
    assert result.returncode == 0
    assert report["able"] is True
    required = ("C++ compiler", "compile cache", "compiling", "native engine", "ranks", "triad a += s * b")
    assert {states[name] for name in required} == {"found"}
    assert {"CUDA", "NVRTC", "NVML", "OpenCL", "MPI with devices"} <= set(states)
    absent = {"CXX": "/nonexistent", "PATH": "/nonexistent"}
    cache = {"HALOCLINE_CACHE": str(tmp_path / "cache")}
    assert halocline("solve poisson --n 8", tmp_path, **cache).returncode == 0
    without = halocline("doctor", tmp_path, **absent, **cache)
    assert without.returncode == 0
    assert "– C++ compiler" in without.stdout
    assert "compiled code is in the cache" in without.stdout
    without = halocline("doctor", tmp_path, **absent, HALOCLINE_CACHE=str(tmp_path / "empty"))
    assert without.returncode == 1
    assert "✗ C++ compiler" in without.stdout
    assert "apt-get install g++" in without.stdout


def test_help_has_examples(tmp_path):
    """The help has examples; cli/test_options.py tests that it imports no slow module."""
    result = halocline("--help", tmp_path)
    for command in ("solve", "study", "explain", "run", "cases", "doctor"):
        assert re.search(rf"│ {command} ", result.stdout)
    solve = re.sub(r"[│\s]+", " ", halocline("solve poisson --help", tmp_path).stdout)
    for word in (
        "--method",
        "--rtol",
        "--decomposition",
        "--patch",
        "cg-fused (default)",
        "Examples",
        "mpiexec -n",
    ):
        assert word in solve
    assert halocline("--version", tmp_path).stdout.startswith("halocline ")


@pytest.mark.parametrize("ranks", [1, 2])
def test_too_large_problems_are_rejected_before_allocation(tmp_path, ranks):
    result = halocline(f"solve poisson --n 200000 --ranks {ranks}", tmp_path)
    assert result.returncode == 2
    assert re.fullmatch(
        r"halocline: error: the fields (of the 2 ranks on this node )?need 1,280\.\d GB, but only .*\n",
        result.stderr,
    )


def test_ranks_that_exceed_memory_are_not_started(tmp_path):
    result = halocline("run sound-wave --n 8 --steps 1 --ranks 10000000", tmp_path)
    assert result.returncode == 2
    assert re.fullmatch(
        r"halocline: error: 10000000 ranks take 500,000\.0 GB of memory without fields, but only "
        r"[\d.,]+ GB are available on this machine\. Start at most \d+\.\n",
        result.stderr,
    )


# -- a user's own file ---------------------------------------------------------------------------------------


def test_run_passes_arguments_and_ranks(tmp_path):
    (tmp_path / "own.py").write_text(
        "import sys\nimport helper\nimport halocline as hc\nfrom halocline.run.ranks.mpi import world\n"
        "u = hc.Grid(8, walls='node').field('u', boundary=hc.Value(0))\n"
        "s = hc.solve(lambda u: -hc.laplacian(u), u, 1.0)\n"
        "c = world()\n"
        "if c.rank == 0: print(c.size, sys.argv[1:], __name__, s.converged, s.fields.domain.threads)\n"
    )
    (tmp_path / "helper.py").touch()
    result = halocline("run own.py --ranks 2 --threads 1 -- --steps 5 x", tmp_path)
    assert (result.stdout, result.returncode) == ("2 ['--steps', '5', 'x'] __main__ True 1\n", 0), (
        result.stderr
    )


def test_a_file_may_declare_options_with_names_of_case_options(tmp_path):
    (tmp_path / "alfven-decay").write_text("import sys\nprint(sys.argv[1:])\n")
    result = halocline("run --threads 1 alfven-decay -- --n 4 --set a --every=3 --pictures", tmp_path)
    assert (result.stdout, result.returncode) == (
        "['--n', '4', '--set', 'a', '--every=3', '--pictures']\n",
        0,
    )


# -- cases ---------------------------------------------------------------------------------------------------


def test_a_case_runs_by_its_name_on_one_rank_and_two(tmp_path):
    run = "run --n 24 alfven-decay --steps 5 --threads 1 --set nu=0.2"
    files = "--every 2 --json r.json --csv r.csv --pictures p"
    one = halocline(f"{run} {files}", tmp_path)
    assert one.returncode == 0, one.stderr
    alone = json.loads((tmp_path / "r.json").read_text())
    assert (alone["cells"], alone["steps"], alone["parameters"]["nu"], alone["limiter"]) == (
        24, 5, 0.2, "viscosity",
    )  # fmt: skip
    assert [row["step"] for row in alone["series"]] == [0, 2, 4, 5]
    assert alone["series"][-1]["B_rms"] == alone["diagnostics"]["B_rms"]
    assert alone["flops_per_cell_step"] > 100
    assert alone["ns_per_cell_step"] > 0
    assert alone["machine"]["host"]
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 5
    assert {path.name for path in (tmp_path / "p").iterdir()} >= {"lnrho.png", "A_z.png"}
    assert re.search(rf"^checksum +{alone['checksum']}$", one.stdout, re.MULTILINE)
    assert re.search(r"^ +5 +[\d.]+ +[\d.]+ ", one.stdout, re.MULTILINE)
    two = halocline(f"{run} --ranks 2 --json -", tmp_path)
    assert two.returncode == 0, two.stderr
    spread = json.loads(two.stdout)
    assert (spread["ranks"], spread["checksum"]) == (2, alone["checksum"])
    assert spread["checksums"] == alone["checksums"]


def test_cases_are_listed_and_shown(tmp_path):
    listed = halocline("cases", tmp_path).stdout
    assert re.search(r"^convection +2-3 +A gas heated from below", listed, re.MULTILINE)
    page = halocline("cases helical-turbulence", tmp_path).stdout
    assert re.search(
        r"^eta +0.005 +number from 0 on +length²/time +magnetic diffusivity$", page, re.MULTILINE
    )
    assert "\n  Pencil Code, samples/helical-MHDturb: force, sigma, kmin, kmax, nu, eta\n" in page
    description = json.loads(halocline("cases helical-turbulence --json -", tmp_path).stdout)
    assert description["parameters"]["eta"] == {
        "default": 0.005,
        "unit": "length²/time",
        "about": "magnetic diffusivity",
        "least": 0.0,
        "above": None,
        "most": None,
        "below": None,
        "whole": False,
        "origin": "Pencil Code, samples/helical-MHDturb",
        "words": [],
    }


@cases("ranks", [1, 4], default=[1])
def test_errors_of_a_user_file_show_its_lines(tmp_path, ranks):
    (tmp_path / "wrong.py").write_text("import halocline as hc\n\n\ndef f():\n    return 1 / 0\n\n\nf()\n")
    result = halocline(f"run wrong.py --ranks {ranks}", tmp_path)
    assert result.returncode == 1
    assert result.stderr.splitlines()[:2] == [
        "Traceback (most recent call last):",
        '  File "wrong.py", line 8, in <module>',
    ]
    assert result.stderr.count("ZeroDivisionError") == 1
    assert 'File "wrong.py", line 5, in f' in result.stderr
    assert "halocline/" not in result.stderr
    (tmp_path / "grid.py").write_text("import halocline as hc\ngrid = hc.Grid((16, 0))\n")
    result = halocline(f"run grid.py --ranks {ranks}", tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("halocline: error: shape (16, 0)") == 1
    assert 'File "grid.py", line 2' in result.stderr


# -- wrong use: one error on the terminal, status 2 ----------------------------------------------------------


WRONG = [
    ("solve poisson --n 0", "'--n': 0; expected a whole number from 1 to 2,147,418,112"),
    ("solve poisson --n -5", "'--n': -5; expected a whole number from 1"),
    ("solve poisson --n 16 --method cgfused", "did you mean 'cg-fused'"),
    ("solve poisson --n 16 --decomposition optimial", "did you mean 'optimal'"),
    ("solve poisson --n 16 --decomposition 3d", "cuts 3 axes, but the grid has only 2"),
    ("solve poisson --n 16 --decomposition 7x1", "7 subdomains"),
    ("solve poisson --n 16 --patch 0", "patch"),
    ("solve poisson --n 16 --patch 4,4,4", "patch"),
    ("solve poisson --n 16 --patch four", "--patch four"),
    ("solve poisson --n 16 --rtol 0", "'--rtol': 0; expected a positive number"),
    ("solve poisson --n 16 --threads 0", "'--threads': 0; expected a whole number from 1 to 4,096"),
    ("solve poisson --n 16 --dim 4", "'--dim': 4; expected a whole number from 1 to 3"),
    ("solve poisson --n 16 --max-iterations -1", "'--max-iterations': -1; expected a whole number from 0"),
    ("solve poisson --n 16 --json /proc/halocline/r.json", "cannot write /proc/halocline/r.json"),
    ("run missing.py", "there is no file missing.py"),
]

WRONG_BEFORE_RANKS = [
    ("solve poisson --n sixteen", "'--n'"),
    ("solve poisson", "Missing option '--n'"),
    ("solve poisson --n 16 --bogus", "No such option: --bogus"),
    ("solve poison --n 16", "Did you mean 'poisson'"),
    ("solve poisson --n 16 --ranks 0", "'--ranks': 0; expected a whole number from 1 to 10,000,000"),
    ("study strong poisson --n 16,x", "--n 16,x"),
    ("study strong poisson --n 16 --ranks 1,0", "--ranks 1,0: a number is 0; expected a whole number from 1"),
    ("study convergence poisson --n 16,16", "twice"),
    ("study convergence poisson --n 16 --repeat 0", "'--repeat': 0; expected a whole number from 1"),
    ("explain poisson --n 16 --ranks 4 --rank 4", "rank is 4; expected a number from 0 to 3"),
    ("explain poisson --n 4 --ranks 17", "17"),
    ("run alfven-dekay", "did you mean 'alfven-decay'"),
    ("cases alfven-dekay", "did you mean 'alfven-decay'"),
    ("run alfven-decay --set nuu=1", "parameter 'nuu' is unknown (did you mean 'nu'?); known: amplitude [1]"),
    ("run alfven-decay --set nu", "--set nu: expected nu=VALUE; `halocline cases NAME` lists the parameters"),
    ("run alfven-decay --set nu=1 --set nu=2", "nu is given twice"),
    ("run alfven-decay --stepz 5", "No such option: --stepz"),
    ("run alfven-decay --n 8,x", "--n 8,x: expected positive whole numbers"),
]


def check_wrong(result: subprocess.CompletedProcess[str], words: str) -> None:
    assert result.returncode == 2
    assert result.stdout == ""
    check_text(result.stderr, words)


def check_text(error: str, words: str) -> None:
    assert words in error
    assert error.count("halocline: error:") == 1
    assert "Traceback" not in error
    assert "File " not in error


IN_PROCESSES = [*(WRONG[n] for n in (2, 5, 13)), *(WRONG_BEFORE_RANKS[n] for n in (0, 2, 13))]


@pytest.fixture
def check_line(tmp_path, monkeypatch, capfd):
    """Check a rejected line, in a separate process or by the function that the process calls."""
    from halocline.cli.main import main

    def check(line, words):
        if (line, words) in IN_PROCESSES:
            check_wrong(halocline(line, tmp_path), words)
            return
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(sys, "argv", ["halocline", *line.split()])
        capfd.readouterr()
        status = main()
        out, err = capfd.readouterr()
        check_wrong(subprocess.CompletedProcess(line, status, out, err), words)

    return check


@cases("line, words", WRONG, default=WRONG[2::3])
def test_invalid_commands_are_rejected(check_line, line, words):
    check_line(line, words)


@pytest.mark.ranks(4)
@cases("lines", [WRONG[:4], WRONG[4:]], default=[WRONG[:4]], ids=["some", "others"])
def test_invalid_options_of_ranks_are_reported_once(lines, shared_tmp_path, monkeypatch, capfd):
    """Four ranks print one message; they run all commands in turn, since a new start takes longer."""
    from halocline.cli.main import main
    from halocline.run.ranks.mpi import world

    monkeypatch.chdir(shared_tmp_path)
    for line, words in some(lines):
        monkeypatch.setattr(sys, "argv", ["halocline", *line.split(), "--ranks", "4"])
        status = main()
        out, err = capfd.readouterr()
        results = world().allgather((status, out, err))
        assert [(status, out) for status, out, _ in results] == [(2, "")] * 4, (line, results)
        check_text("".join(err for _, _, err in results), words)


@cases("line, words", [WRONG[4], WRONG[10], WRONG[13]], default=[WRONG[4]])
def test_invalid_options_with_ranks_are_rejected(tmp_path, line, words):
    check_wrong(halocline(f"{line} --ranks 4", tmp_path), words)


@cases("line, words", WRONG_BEFORE_RANKS, default=[*WRONG_BEFORE_RANKS[:3], *WRONG_BEFORE_RANKS[4::3]])
def test_invalid_words_are_rejected(check_line, line, words):
    check_line(line, words)


def test_more_ranks_than_points_are_rejected(tmp_path):
    check_wrong(halocline("solve poisson --n 1 --ranks 4", tmp_path), "cannot be cut")


@cases("ranks", [1, 4], default=[1])
def test_a_missing_compiler_without_cache_is_reported(tmp_path, ranks):
    line = f"solve poisson --n 16 --ranks {ranks}"
    empty = str(tmp_path / "empty")
    check_wrong(halocline(line, tmp_path, CXX="/nonexistent", HALOCLINE_CACHE=empty), "CXX is '/nonexistent'")
    check_wrong(halocline(line, tmp_path, HALOCLINE_CACHE="/proc/x"), "HALOCLINE_CACHE")


# -- on a terminal -------------------------------------------------------------------------------------------


@cases("ranks", [1, 2], default=[1])
def test_progress_is_shown_until_an_interrupt(tmp_path, ranks):
    line = f"solve poisson --n 700 --rtol 1e-300 --ranks {ranks} --threads 1 --json r.json"
    process, ours = on_terminal(line, tmp_path)
    try:
        output = until(ours, rb"poisson, 700 x 700 [1-9][\d,]* iterations")
        assert b"iterations" in output, output
        process.send_signal(signal.SIGINT)
        last = until(ours, rb"interrupted after [\d,]+ iterations")
        assert b"interrupted after" in last, last
        assert process.wait(HANG) == 130
        assert process.stdout.read() == b""
        assert not (tmp_path / "r.json").exists()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


# -- a killed rank -------------------------------------------------------------------------------------------
