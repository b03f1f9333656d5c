"""Check Halocline on the devices of this machine: `make gpu-check`.

The tool finds or creates a Python with Halocline (tools/gpu_python.py), and runs all checks of a device
(tools/gpu_cases.py). Kernels, cases and examples must have the bits of the processor. Other checks concern
kernel strategies, ranks on one device by each transfer method, graphs, traces, and halos between devices. The
last ones are sums, errors, NVIDIA's compute-sanitizer, and registers of kernels. If no check fails, a file in
the cache of Halocline records this, and later runs use asynchronous copies on this device. The tool needs no
network, ends within --limit seconds, and prints the checks that passed, failed, or are missing on this
machine. The exit status is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gpu_python import ROOT, Lacking, find_or_make, say

CASES = ROOT / "tools" / "gpu_cases.py"
EXAMPLES = {  # with arguments that make them small
    "heat_3d": ["24"],
    "wave_2d": ["40"],
    "gray_scott": ["64", "2000"],
    "own_operator": ["48"],
    "l_shape": ["63"],
    "channel": ["12"],
    "euler_1d": ["120"],
    "euler_2d": ["40", "0.2"],
    "sedov": ["32", "0.05"],
    "shallow_water": ["64"],
    "obstacle_flow": ["16", "0.5"],
    "acoustic": [],
    "fit_conductivity": ["32"],
}
VIEWS = {"fit_conductivity"}  # need views of fields, which OpenCL devices do not have
SPEEDS = ("million cells/s", "bandwidth")  # lines of examples that differ from run to run
SANITIZER = ("compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer")
COMPILING = 500.0  # seconds for cases that compile many kernels
SIGNS = {"passed": "✓", "failed": "✗", "missing": "–"}
MACHINE = """
import json, platform
from dataclasses import asdict
from halocline.run.host.machine import this_machine
import numpy
rows = [("Python", "passed", platform.python_version()), ("NumPy", "passed", numpy.__version__)]
machine = this_machine()
rows.append(("compiler", "passed" if machine.compiler else "missing", machine.compiler_version or "none"))
try:
    import mpi4py
    rows.append(("MPI", "passed", f"{machine.mpi_version}, mpi4py {mpi4py.__version__}"))
except ImportError as error:
    rows.append(("MPI", "missing", f"{error}: no runs on several ranks"))
try:
    from halocline.compile.nvrtc import find_nvrtc
    rows.append(("NVRTC", "passed", ".".join(map(str, find_nvrtc().version))))
except Exception as error:
    rows.append(("NVRTC", "missing", str(error).splitlines()[0]))
print(json.dumps(rows))
"""


@dataclass(frozen=True)
class Row:
    """Result of one check.

    Attributes
    ----------
    group, name : str
    outcome : {"passed", "failed", "missing"}
        "missing" means that this machine lacks a requirement, or that no time was left.
    note : str
    seconds : float
        Seconds of the process of the check; the first row of a process has them for all its rows.
    """

    group: str
    name: str
    outcome: str
    note: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        spent = f"{self.seconds:6.1f} s" if self.seconds else ""
        text = f"{SIGNS[self.outcome]} {self.group:10} {self.name:36} {spent:8}  {self.note}"
        return text if len(text) <= 160 else f"{text[:159]}…"


class Check:
    """Checks of a device with a Python, until a deadline."""

    def __init__(self, python: Path, device: str, small: bool, deadline: float) -> None:
        self.python, self.device, self.small, self.deadline = python, device, small, deadline
        self.first = device if ":" in device else f"{device}:0"

    def groups(self) -> Iterator[tuple[str, list[Row]]]:
        """Yield all groups of checks, the most important first; some run concurrently on enough cores.

        Without a device only the first groups run.
        """
        yield "machine", self.machine()
        devices = self.case("devices", "devices")
        yield "devices", devices
        if all(row.outcome == "failed" for row in devices):
            return
        workers = max(1, min(8, len(os.sched_getaffinity(0)) // 2))
        shares = 1 if self.small else workers  # of the checks that compile longest
        with ThreadPoolExecutor(workers) as pool:
            jobs = [
                ("devices", pool.submit(self.case, "devices", "reach")),
                ("devices", pool.submit(self.case, "devices", "graphs")),
                ("devices", pool.submit(self.case, "devices", "trace")),
                ("bits", pool.submit(self.case, "bits", "kernels", limit=COMPILING)),
                *(("physics", pool.submit(self.physics, f"{n}/{shares}")) for n in range(shares)),
                ("strategies", pool.submit(self.case, "strategies", "strategies", limit=COMPILING)),
                ("copies", pool.submit(self.case, "copies", "copies", limit=COMPILING)),
                ("ranks", pool.submit(self.ranks)),
                ("sums", pool.submit(self.case, "sums", "reductions")),
                ("errors", pool.submit(self.case, "errors", "memory")),
                ("kernels", pool.submit(self.case, "kernels", "resources", limit=200)),
                *(("examples", pool.submit(self.example, name)) for name in self.examples()),
                *(("sanitizer", pool.submit(self.sanitizer, tool)) for tool in ("memcheck", "racecheck")),
            ]
            for group, job in jobs:
                yield group, job.result()

    def run(
        self, command: Sequence[object], limit: float, **variables: str
    ) -> tuple[int | None, str, str, float]:
        """Return status, output, errors and seconds of a command.

        The status is None for a command that reached its limit, and the seconds are 0 if no time was left for
        it.
        """
        start_time = time.monotonic()
        limit = min(limit, self.deadline - start_time)
        if limit < 3:
            return None, "", "no time was left", 0.0
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=ROOT,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, error = process.communicate(timeout=limit)
            return process.returncode, out, error, time.monotonic() - start_time
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # together with the ranks that it has started
            process.communicate()
            return None, "", f"did not end within {limit:.0f} s", time.monotonic() - start_time

    def rows(self, group: str, name: str, command: Sequence[object], limit: float) -> list[Row]:
        """Return the rows that a case prints, or a row with the reason if it prints none."""
        status, out, error, seconds = self.run(command, limit)
        try:
            printed = json.loads(out.strip().splitlines()[-1])
            rows = [Row(group, row_name, outcome, note) for row_name, outcome, note in printed]
            return [replace(row, seconds=0.0 if n else seconds) for n, row in enumerate(rows)]
        except (IndexError, ValueError):
            outcome = "missing" if status is None and not seconds else "failed"
            return [Row(group, name, outcome, _last(error) or f"status {status}", seconds)]

    def case(self, group: str, name: str, *options: object, limit: float = 120) -> list[Row]:
        """Run a case of tools/gpu_cases.py."""
        small = ["--small"] if self.small else []
        device = self.device if name in ("devices", "reach") else self.first
        if "--device" not in options:
            options = ("--device", device, *options)
        return self.rows(group, name, [self.python, CASES, name, *options, *small], limit)

    def physics(self, share: str) -> list[Row]:
        """Run a share of the cases of Halocline."""
        command = [self.python, CASES, "physics", "--device", self.first, "--share", share]
        return self.rows("physics", f"share {share}", [*command, *["--small"] * self.small], COMPILING)

    def machine(self) -> list[Row]:
        """Report the tools of this machine."""
        result = self.rows("machine", "machine", [self.python, "-c", MACHINE], 60)
        tool = shutil.which("nvidia-smi")
        if tool:
            query = "--query-gpu=name,driver_version,memory.total,mig.mode.current"
            _, out, error, _ = self.run([tool, query, "--format=csv,noheader"], 30)
            result.append(
                Row("machine", "nvidia-smi", "passed", " | ".join((out or error).split("\n")).strip(" |"))
            )
        return result

    def ranks(self) -> list[Row]:
        """Run ranks that share the first device, by each method; several devices also have one rank each."""
        (expected,) = self.case("ranks", "ranks", "--device", "cpu")
        if expected.outcome != "passed":
            return [replace(expected, name="one process on the processor")]
        remote_methods = ("mpi", "colocated", "gpu_aware")
        settings = [(1, "peer", 2), *((n, method, 1) for n in (2, 4) for method in remote_methods)]
        if self.small:
            settings = [(1, "peer", 2), (2, "mpi", 1), (2, "colocated", 1)]
        actual = [self._ranks(expected.name, self.first, *setting) for setting in settings]
        devices = self.case("devices", "devices")
        if len(devices) > 1 and not self.small:
            several = (
                f"{self.device.partition(':')[0]}:{','.join(row.name.partition(':')[2] for row in devices)}"
            )
            actual.append(self._ranks(expected.name, several, 1, "peer", 1))
            actual += [
                self._ranks(expected.name, several, len(devices), method, 1) for method in remote_methods
            ]
        return actual

    def _ranks(self, expected: str, device: str, ranks: int, method: str, subdomains: int) -> Row:
        methods = method if method == "mpi" else f"{method},mpi"
        options = ("--device", device, "--ranks", ranks, "--methods", methods, "--each", subdomains)
        (row,) = self.case("ranks", "ranks", *options)
        bits, row = row.name, replace(row, name=f"{ranks} on {device}, {method}")
        if row.outcome != "passed":
            return row
        if bits != expected:
            return replace(
                row, outcome="failed", note=f"by {row.note}: {bits}, but {expected} on the processor"
            )
        if method not in row.note.split(","):
            return replace(row, outcome="missing", note=f"the right bits, but they went by {row.note}")
        return row

    def examples(self) -> Iterator[str]:
        """Yield the examples that are run, and report examples without arguments."""
        examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
        unknown = examples - EXAMPLES.keys() - {"gas", "hancock", "sod_exact"}
        if unknown:
            say(f"examples that are not run: {', '.join(sorted(unknown))}")
        names = [name for name in EXAMPLES if name not in VIEWS or self.device.startswith("cuda")]
        yield from names[:1] if self.small else names

    def example(self, name: str) -> list[Row]:
        """Compare the output of an example with that on the processor."""
        outputs, spent = [], 0.0
        for device in ("cpu", self.first):
            out = ROOT / "out" / "gpu-check" / f"{name}-{device.replace(':', '-')}"
            status, text, error, seconds = self.run(
                [self.python, ROOT / "examples" / f"{name}.py", *EXAMPLES[name]],
                120,
                HALOCLINE_DEVICE=device,
                HALOCLINE_OUT=str(out),
            )
            spent += seconds
            if status != 0:
                outcome = "missing" if status is None and not seconds else "failed"
                return [Row("examples", name, outcome, f"on {device}: {_last(error)}", spent)]
            outputs.append([line for line in text.splitlines() if not line.startswith(SPEEDS)])
        if outputs[0] == outputs[1]:
            return [Row("examples", name, "passed", outputs[0][-1], spent)]
        differ = next((b for a, b in zip(*outputs, strict=False) if a != b), "another number of lines")
        return [Row("examples", name, "failed", f"differs from the processor in: {differ}", spent)]

    def sanitizer(self, tool: str) -> list[Row]:
        """Run a short case under a tool of NVIDIA."""
        program = next((result for name in SANITIZER if (result := shutil.which(name))), None)
        if program is None or not self.device.startswith("cuda"):
            reason = (
                "compute-sanitizer is not installed" if self.device.startswith("cuda") else "for CUDA only"
            )
            return [Row("sanitizer", tool, "missing", reason)]
        # calls that return errors are no faults, since each result is checked; the last argument of a kernel
        # is found by a query of the next one
        command = [program, "--tool", tool, "--report-api-errors", "no"]
        command += ["--error-exitcode", "99", "--target-processes", "all"]
        command += [self.python, CASES, "short", "--device", self.first]
        status, out, error, seconds = self.run(command, 150)
        summary = [line.strip("= ") for line in out.splitlines() if "SUMMARY" in line]
        if not summary:
            outcome = "missing" if status is None and not seconds else "failed"
            return [
                Row("sanitizer", tool, outcome, _last(error) or _last(out) or f"status {status}", seconds)
            ]
        if status != 0:
            log_file = ROOT / "out" / "gpu-check" / f"{tool}.log"
            log_file.parent.mkdir(parents=True, exist_ok=True)
            log_file.write_text(out + error)
            return [
                Row("sanitizer", tool, "failed", f"{summary[-1]} (out/gpu-check/{log_file.name})", seconds)
            ]
        return [Row("sanitizer", tool, "passed", summary[-1], seconds)]


def _last(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def main() -> int:
    """Check, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda or opencl, with a number where one is meant")
    parser.add_argument("--wheels", type=Path, help="a folder with wheels of packages that are missing here")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--small", action="store_true", help="little of each, where kernels compile slowly")
    parser.add_argument("--limit", type=float, default=570.0, help="seconds for all of it")
    parser.add_argument("--commit", default="", help="what is checked, where git cannot tell")
    options = parser.parse_args()
    start_time = time.monotonic()
    rows: list[Row] = []
    try:
        python = find_or_make(options.wheels)
        python_path = str(python.relative_to(ROOT))
        rows.append(Row("machine", "build", "passed", python_path, time.monotonic() - start_time))
    except Lacking as error:
        rows.append(Row("machine", "build", "failed", str(error), time.monotonic() - start_time))
    print(rows[0] if rows[0].outcome == "passed" else f"{SIGNS['failed']} build: {rows[0].note}", flush=True)
    if rows[0].outcome == "passed":
        check = Check(python, options.device, options.small, start_time + options.limit)
        for _, result in check.groups():
            rows += result
            for row in result:
                print(row, flush=True)
        copies = [row for row in rows if row.group == "copies"]
        is_complete = bool(copies) and not options.small and options.device.startswith("cuda")
        if (
            is_complete
            and all(row.outcome == "passed" for row in copies)
            and not any(row.outcome == "failed" for row in rows)
        ):
            rows += check.case("checked", "checked")
            print(rows[-1], flush=True)
    counts = {outcome: sum(row.outcome == outcome for row in rows) for outcome in SIGNS}
    spent = time.monotonic() - start_time
    print(f"{', '.join(f'{count} {outcome}' for outcome, count in counts.items())}, in {spent:.0f} s")
    for row in rows:
        if row.outcome == "failed":
            print(f"failed: {row.group}, {row.name}: {row.note}")
    if options.json:
        record = {
            "device": options.device,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "commit": options.commit or _commit(),
            "seconds": spent,
            **counts,
            "rows": [asdict(row) for row in rows],
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return 1 if counts["failed"] else 0


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
