"""Measuring on a shared machine: competitors in turn, medians, ratios, and a record of where and when."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from halocline.run.machine import this_machine

RESULTS = Path(__file__).parent / "results"


def in_turn(competitors: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each competitor, measured one after the other, `repeats` times around.

    The order is turned around every other time, so that neither always follows the other.
    """
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for turn in range(repeats):
        order = list(competitors.items())
        for name, run in order if turn % 2 == 0 else reversed(order):
            times[name].append(run())
    return times


def ratio(times: Mapping[str, list[float]], ours: str, theirs: str) -> float:
    """How many times faster `ours` is: the median over pairs that ran next to each other."""
    return statistics.median(t / o for o, t in zip(times[ours], times[theirs], strict=True))


def median(times: list[float]) -> float:
    """The median of the times."""
    return statistics.median(times)


def arguments(description: str, **defaults: Any) -> argparse.Namespace:
    """Command-line options of a benchmark: --repeats, --json, and one for each default."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7, help="interleaved measurements of each competitor")
    parser.add_argument("--json", type=Path, help="write the records to this file")
    for name, value in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    return parser.parse_args()


def save(path: Path | None, rows: list[dict[str, Any]]) -> None:
    """Write records with the machine they were measured on."""
    if path is not None:
        machine = this_machine().as_dict()
        for program in ("compiler", "mpi_library"):  # where they lie says nothing to others
            machine[program] = Path(machine[program] or "").name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


def numbers(text: str) -> list[int]:
    """The numbers of a comma-separated list."""
    return [int(part) for part in text.split(",")]
