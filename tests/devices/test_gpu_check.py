"""`make gpu-check` and the benchmarks on devices, with PoCL in place of a GPU."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hang import HANG

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

sys.path.insert(0, str(ROOT / "benchmarks"))

import gpu  # noqa: E402
import gpu_check  # noqa: E402
from gpu_check import Check  # noqa: E402

GPU = SimpleNamespace(
    interface="cuda", platform="", index=0, name="NVIDIA X1", driver="1", architecture="sm_90", memory=10**9
)


def check(seconds: float = HANG) -> Check:
    return Check(Path(sys.executable), "opencl", True, time.monotonic() + seconds)


def test_every_example_is_checked() -> None:
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert examples - gpu_check.EXAMPLES.keys() == {"gas", "hancock", "sod_exact"}


@pytest.mark.parametrize(
    ("script", "outcome", "note"),
    [
        ('print(\'noise\'); print(\'[["a", "passed", "b"]]\')', "passed", "b"),
        ("import sys; sys.exit('no such device')", "failed", "no such device"),
        ("import os; os.kill(os.getpid(), 11)", "failed", "status -11"),
        ("print('not what was expected')", "failed", "status 0"),
    ],
)
def test_a_case_without_a_valid_result_has_failed(script: str, outcome: str, note: str) -> None:
    (row,) = check().rows("bits", "heat", [sys.executable, "-c", script], HANG)
    assert (row.outcome, row.note) == (outcome, note)


@pytest.mark.parametrize("shares", [1, 3, 8])
def test_shares_partition_all_cases(shares: int) -> None:
    from gpu_cases import share_of

    names = [str(n) for n in range(21)]
    result = [name for n in range(shares) for name in share_of(names, f"{n}/{shares}")]
    assert sorted(result) == sorted(names)


def test_the_time_of_a_case_is_reported_once() -> None:
    script = 'print(\'[["a", "passed", "b"], ["c", "passed", "d"]]\')'
    first, second = check().rows("bits", "heat", [sys.executable, "-c", script], HANG)
    assert first.seconds > 0
    assert second.seconds == 0
    assert re.search(r"a +\d+\.\d s  b$", str(first))
    assert re.search(r"c +d$", str(second))
    assert str(first).index("  b") == str(second).index("  d")


def test_cases_without_remaining_time_are_missing() -> None:
    (row,) = check(1.0).rows("bits", "heat", [sys.executable, "-c", "print(1)"], HANG)
    assert (row.outcome, row.note) == ("missing", "no time was left")


def test_without_a_device_no_case_runs() -> None:
    checks = Check(Path(sys.executable), "opencl:97", True, time.monotonic() + HANG)
    groups = [(group, {row.outcome for row in rows}) for group, rows in checks.groups()]
    assert groups == [("machine", {"passed"}), ("devices", {"failed"})]


def test_ranks_with_other_bits_fail_and_other_methods_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    result = {"bits": "A", "by": "mpi"}

    def case(self: Check, group: str, name: str, *options: object, limit: float = 0) -> list[Any]:
        return [gpu_check.Row(group, result["bits"], "passed", result["by"])]

    monkeypatch.setattr(Check, "case", case)
    assert check()._ranks("A", "opencl:0", 2, "mpi", 1).outcome == "passed"
    assert check()._ranks("A", "opencl:0", 2, "colocated", 1).outcome == "missing"
    result["bits"] = "B"
    row = check()._ranks("A", "opencl:0", 2, "colocated", 1)
    assert row.outcome == "failed"
    assert row.note == "by mpi: B, but A on the processor"


def test_records_of_other_sizes_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    native = SimpleNamespace(devices=lambda interface: [GPU], why_no_devices=lambda interface: "")
    monkeypatch.setattr(gpu, "native", lambda: native)
    monkeypatch.setattr(gpu, "save", lambda file, rows, **facts: written.append(file))
    for words in (
        "--json",
        "--json --repeats 3",
        "--json --n 32",
        "--json --copy 4",
        f"--json {tmp_path}/own",
    ):
        monkeypatch.setattr(sys, "argv", ["gpu_heat.py", *words.split()])
        gpu.keep(gpu.arguments("", n=512, orders="2,4"), "gpu_heat", [], 1.0)
    result, other = (folder / "gpu_heat_nvidia_x1.json" for folder in (gpu.RESULTS, gpu.ELSEWHERE))
    assert written == [result, result, other, other, tmp_path / "own"]
    assert ROOT / "benchmarks" / "results" not in other.parents


def test_options_of_benchmarks_are_documented() -> None:
    for name in ("gpu_heat", "gpu_mhd", "gpu_cg", "gpu_exchange", "gpu_launches"):
        command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--help"]
        help_text = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True).stdout
        options = help_text.partition("options:")[2]
        assert re.findall(r"^  (--\w+) \[?[A-Z]+\]?\n(?! {10})", options, re.MULTILINE) == []


def test_a_benchmark_without_a_device_is_reported() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu_heat.py"), "--device"]
    for device, words in (
        ("opencl:97", "there is no"),
        ("cpu", "expected cuda or opencl"),
        ("gpu", "not an interface"),
    ):
        done = subprocess.run([*command, device], capture_output=True, text=True, timeout=HANG, check=False)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
        assert words in done.stderr
