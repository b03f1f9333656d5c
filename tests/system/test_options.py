"""Options with meaningless values: each generated line works, or ends with status 2 and one message.

Further tests have values that once crashed, hung or were accepted silently.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from suites import cases
from swept_options import SWEEP, check_sweep, run

# -- the sweep -----------------------------------------------------------------------------------------------


@cases("count", [15, 50], default=[15])
def test_command_lines_work_or_are_rejected(count: int) -> None:
    check_sweep(count, seed=1)


def test_the_option_sweep_detects_faults(tmp_path: Path) -> None:
    """The sweep reports a command that crashes, hangs, prints too much, or ends with another status."""
    sys.path.insert(0, str(SWEEP.parent))
    import sweep

    def judged(code: str, *, err: str = "", status: int = 0, late: bool = False) -> str:
        (tmp_path / ".out").write_text("")
        (tmp_path / ".err").write_text(err)
        fault = sweep.judge(("solve",), tmp_path, status, late)
        return "" if fault is None else fault.reason

    message = "halocline: error: no\n"
    assert judged("refused", err=message, status=2 << 8) == ""
    assert judged("works") == ""
    assert judged("crashed", status=11) == "killed by SIGSEGV"
    assert judged("hung", late=True).startswith("no end within")
    assert judged("raised", err="Traceback (most recent call last)", status=1 << 8) == "a traceback"
    assert judged("failed", err=message, status=1 << 8) == "status 1"
    assert judged("said twice", err=2 * message, status=2 << 8) == "status 2 and 2 messages"
    assert judged("said nothing", status=2 << 8) == "status 2 and 0 messages"
    assert judged("said an error and went on", err=message) == "status 0 and 1 messages"


# -- values that crashed, hung, were slow or were accepted ---------------------------------------------------


HUGE = str(10**20)
W = "expected a whole number from"
REFUSED = [
    ("study ablation exchange --mailboxes 3000000000", f"'--mailboxes': 3000000000; {W} 1 to 256"),
    ("bench exchange --methods rma --mailboxes 100000000", f"'--mailboxes': 100000000; {W} 1 to 256"),
    ("bench exchange --fields 1000000000", f"'--fields': 1000000000; {W} 1 to 1,024"),
    (f"bench exchange --fields {HUGE}", f"'--fields': {HUGE}; {W} 1 to 1,024"),
    (f"bench exchange --ranks {HUGE}", f"'--ranks': {HUGE}; {W} 1 to 10,000,000"),
    (f"bench exchange --mailboxes {HUGE}", f"'--mailboxes': {HUGE}; {W} 1 to 256"),
    ("solve poisson --n 20 --threads 5000", f"'--threads': 5000; {W} 1 to 4,096"),
    ("solve poisson --n 20 --subdomains-per-rank 1000003", f"1000003; {W} 1 to 4,096"),
    ("solve poisson --n 20 --subdomains-per-rank 4001", "cannot be cut into 4001 subdomains"),
    ("run sound-wave --order 10000", f"'--order': 10000; {W} 2 to 64"),
    (f"model poisson --n 64 --machine summit --nodes {HUGE}", f"{HUGE}; {W} 1 to 1,000,000"),
    ("model poisson --n 64 --machine summit --nodes 1000000", f"ranks on 1,000,000 nodes is 6000000; {W}"),
    (f"model poisson --n 64 --machine summit --ranks-per-node {HUGE}", f"{HUGE}; {W} 1 to 65,536"),
    ("model poisson --n 64 --machine stampede2-skx --methods gpu_aware", "are CPUs. Leave gpu_aware out"),
    ("explain poisson --n 64 --threads 1000000000", f"'--threads': 1000000000; {W} 1 to 4,096"),
    ("explain poisson --n 1000000000", "patches, but at most 20,000,000 can be planned"),
    ("study convergence poisson --n 16 --ranks 0", f"'--ranks': 0; {W} 1 to"),
    ("solve poisson --n 1000000000", "the fields need 32,000,000,000.0 GB, but only "),
    ("solve poisson --n 30000000", "the fields need 28,800,000.0 GB, but only "),
    ("solve poisson --n 10000000", "the fields need 3,200,000.0 GB, but only "),
    ("run mhd-benchmark --n 10000000 --steps 1", "the fields need 192,000,000,000,000.0 GB, but only "),
]


@cases("line, words", REFUSED, default=[*REFUSED[2:9], REFUSED[12], REFUSED[14], REFUSED[17]])
def test_meaningless_values_are_rejected_immediately(tmp_path: Path, line: str, words: str) -> None:
    status, out, err = run(line, tmp_path)
    assert (status, out) == (2, "")
    assert err.count("halocline: error:") == 1
    assert "Traceback" not in err
    assert words in err


@cases(
    "line, option",
    [
        ("study convergence poisson --n 8", "--pictures"),
        ("run sound-wave --steps 1", "--pictures"),
        ("solve poisson --n 8", "--json"),
        ("solve poisson --n 8", "--trace"),
    ],
    lambda case: case[1] in ("--json", "--trace"),
)
def test_a_name_must_not_be_empty(tmp_path: Path, line: str, option: str) -> None:
    status, out, err = run(line, tmp_path, option, "")
    assert (status, out) == (2, "")
    assert f"'{option}': the name is empty; expected the name of a f" in err
    assert not list(tmp_path.iterdir())


def test_too_many_threads_are_rejected(tmp_path: Path) -> None:
    most = 64 * (os.cpu_count() or 1)
    status, _, err = run(f"solve poisson --n 20 --threads {min(most + 1, 4096)}", tmp_path)
    if most >= 4096:
        pytest.skip("this machine has as many threads as the range has")
    assert status == 2
    assert f"Use at most {most}, " in err


# -- memory --------------------------------------------------------------------------------------------------
