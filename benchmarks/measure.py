"""Measurements on a shared machine: competitors in turn, medians, ratios, and records with place and time."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from halocline.run.host.machine import this_machine

RESULTS = Path(__file__).parent / "results"
MEANINGS = {  # help texts of options
    "architectures": "architectures of CUDA devices, separated by commas",
    "axes": "the axes that are cut, in turn",
    "cases": "what is measured, separated by commas",
    "dtypes": "precisions, separated by commas",
    "fields": "how many fields",
    "fluxes": "fluxes of the scheme, separated by commas",
    "iterations": "of one measurement",
    "layouts": "forms of the layouts of fields, separated by commas",
    "kernels": "auto, tune, or one of direct, queue and planes",
    "method": "cg or cg-fused",
    "methods": "transfer methods, separated by commas",
    "n": "cells or points along each axis (of a subdomain, in exchanges)",
    "orders": "orders of differences, separated by commas",
    "peer_python": "Python with Triton, CuPy, torch and JAX; without a name this Python",
    "peers": "programs that are measured too: all, none, or names separated by commas",
    "programs": "names of programs, separated by commas",
    "passes": "of one measurement, at least",
    "radius": "layers of halo",
    "ranks": "numbers of ranks, separated by commas",
    "rounds": "runs of each process, whose median counts",
    "schemes": "time integration schemes, separated by commas",
    "short": "cells along each axis for vectors of all lengths",
    "steps": "of one measurement",
    "sweeps": "numbers of sweeps of a pass, separated by commas",
    "solve": "1: solve to the end too; 0: only measure iterations",
    "threads": "of each rank",
}


class Competitor:
    """Process that is ready to measure: each call runs it once, and returns seconds per million cells.

    The process prints "ready" and other words, and then million cells per second for each input line.

    Attributes
    ----------
    header : list of str
        The words after "ready".
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin, self.stdout = process.stdin, process.stdout
        ready, *self.header = self.stdout.readline().split() or [""]
        if ready != "ready":
            raise SystemExit(f"{process.args!r} ended before it was ready")

    def __call__(self) -> float:
        self.begin()
        return self.end()

    def begin(self) -> None:
        """Start a run without a wait."""
        print("run", file=self.stdin, flush=True)

    def end(self) -> float:
        """Wait for the end of a run that `begin` started, and return its seconds per million cells."""
        return 1.0 / float(self.stdout.readline())


def at_once(competitors: Sequence[Competitor]) -> Callable[[], float]:
    """Run several competitors concurrently and return their common seconds per million cells."""

    def run() -> float:
        for competitor_process in competitors:
            competitor_process.begin()
        return 1.0 / sum(1.0 / competitor_process.end() for competitor_process in competitors)

    return run


@contextlib.contextmanager
def competitor(*command: object, threads: int = 1, **variables: str) -> Iterator[Competitor]:
    """Start a competitor with additional environment variables. It ends with the block."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "DEVITO_LANGUAGE": "openmp",
        "OMP_PROC_BIND": "close",
        **variables,
    }
    line = [str(word) for word in command]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        result = Competitor(process)
        try:
            yield result
        finally:
            result.stdin.close()


def in_turn(competitors: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each competitor, measured in turn, `repeats` times.

    Every other round runs in the opposite order, so that no competitor always follows another one.
    """
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for turn in range(repeats):
        order = list(competitors.items())
        for name, run in order if turn % 2 == 0 else reversed(order):
            times[name].append(run())
    return times


def ratio(times: Mapping[str, list[float]], ours: str, reference: str) -> float:
    """Return the speed-up of `ours`: the median over pairs of adjacent runs."""
    return statistics.median(t / o for o, t in zip(times[ours], times[reference], strict=True))


def median(times: list[float]) -> float:
    """Return the median of the times."""
    return statistics.median(times)


def arguments(description: str, **defaults: Any) -> argparse.Namespace:
    """Return the options of the command line; see `parser`."""
    return parser(description, **defaults).parse_args()


def parser(description: str, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser of a benchmark's options: --repeats, --json, and one for each default."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    result.add_argument("--repeats", type=int, default=7, help="interleaved measurements of each competitor")
    result.add_argument("--json", type=Path, help="write the records to this file")
    for name, value in defaults.items():
        result.add_argument(
            f"--{name.replace('_', '-')}", type=type(value), default=value, help=MEANINGS.get(name)
        )
    return result


def save(path: Path | None, rows: list[dict[str, Any]], **facts: Any) -> None:
    """Write records with the machine of the measurement and further facts."""
    if path is not None:
        machine = this_machine().as_dict()
        for program in ("compiler", "mpi_library"):  # the paths of files have no meaning elsewhere
            machine[program] = Path(machine[program] or "").name
        if "commit" in facts:  # if git knows no commit, the user names it
            del machine["commit"]
        path.parent.mkdir(parents=True, exist_ok=True)
        head = json.dumps({"machine": machine, **facts}, indent=1).removesuffix("\n}")
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        path.write_text(f'{head},\n "rows": [\n{lines}\n ]\n}}\n')


def numbers(text: str) -> list[int]:
    """Return the numbers of a comma-separated list."""
    return [int(part) for part in text.split(",")]
