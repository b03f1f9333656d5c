"""Texts of `halocline ls`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from halocline.io.table import table_of
from halocline.words import amount, counted, one_line

Columns = dict[str, Callable[[dict[str, Any]], str]]


def _output(listing: dict[str, Any], equations: bool) -> str:
    times, steps = listing["times"], listing["steps"]
    head = [f"{listing['path']}: output of {listing['title']}, {listing['source']}"]
    if listing["history"]:
        head.append(f"{'written by':12} {listing['history']}")
    if times:
        span = f"t = {times[0]:.6g} to {times[-1]:.6g}"
        span += f", steps {steps[0]:,} to {steps[-1]:,}" if steps else ""
        head.append(f"{'times':12} {counted(len(times), 'time')}, {span}")
    elif steps and times is None:
        head.append(f"{'steps':12} {counted(len(steps), 'step')}, from {steps[0]:,} to {steps[-1]:,}")
    elif times is not None or steps is not None:
        head.append(f"{'times':12} none yet")
    head += _parameters(listing)
    columns: Columns = {
        "name": lambda array: array["name"],
        "dimensions": lambda array: ", ".join(array["dimensions"]),
        "shape": lambda array: " x ".join(map(str, array["shape"])),
        "type": lambda array: array["dtype"],
        "unit": lambda array: array["units"] or "-",
        "on disk": lambda array: amount(array["bytes"]),
    }
    return _page(listing, head, "Arrays", columns, equations)


def _checkpoint(listing: dict[str, Any], equations: bool) -> str:
    head = [
        f"{listing['path']}: checkpoint of step {listing['step']:,} (time {listing['time']:.6g})",
        f"{'written':12} {listing['made']} by Halocline {listing['version']}: "
        f"{shlex.join(listing['command'])}",
    ]
    if listing["case"]:
        head.append(f"{'case':12} {listing['case']['name']}")
    head += _parameters(listing)
    columns: Columns = {
        "name": lambda array: array["name"],
        "location": lambda array: array["location"],
        "shape": lambda array: " x ".join(map(str, array["shape"])),
        "type": lambda array: array["dtype"],
        "on disk": lambda array: amount(array["bytes"]),
    }
    return _page(listing, head, "Fields", columns, equations)


def _checkpoints(listing: dict[str, Any], equations: bool) -> str:
    columns: Columns = {
        "checkpoint": lambda checkpoint: checkpoint["name"],
        "": lambda checkpoint: (
            "newest" if checkpoint["newest"] else ("complete" if checkpoint["whole"] else "incomplete")
        ),
        "step": lambda checkpoint: "-" if checkpoint["step"] is None else f"{checkpoint['step']:,}",
        "time": lambda checkpoint: "-" if checkpoint["time"] is None else f"{checkpoint['time']:.6g}",
        "written": lambda checkpoint: checkpoint["made"] or "-",
        "on disk": lambda checkpoint: amount(checkpoint["bytes"]),
    }
    path = listing["path"]
    complete_checkpoints = [checkpoint for checkpoint in listing["checkpoints"] if checkpoint["whole"]]
    if any(checkpoint["newest"] for checkpoint in listing["checkpoints"]):
        note = f"Restart from the newest checkpoint with --resume {path}."
    elif complete_checkpoints:
        note = (
            f"{listing['problem'].partition(';')[0]}. Restart from the last complete checkpoint with "
            f"--resume {Path(path) / complete_checkpoints[-1]['name']}."
        )
    else:
        has_complete = any(checkpoint["step"] is not None for checkpoint in listing["checkpoints"])
        note = f"{listing['problem']}." if has_complete else "None of these checkpoints is complete."
    table = table_of(f"Checkpoints in {path}", listing["checkpoints"], columns, left=2, note=note)
    return table.text().rstrip()


TEXTS = {"output": _output, "checkpoint": _checkpoint, "checkpoints": _checkpoints}


def _parameters(listing: dict[str, Any]) -> list[str]:
    values = ", ".join(f"{name} = {value:g}" for name, value in listing["parameters"].items())
    return [f"{'parameters':12} {values}"] if values else []


def _page(listing: dict[str, Any], head: list[str], title: str, columns: Columns, equations: bool) -> str:
    """Return the head lines, the table of arrays, and the equations if requested."""
    arrays = [{"name": name, **array} for name, array in listing["arrays"].items()]
    lines = [*map(one_line, head), "", table_of(title, arrays, columns, left=2).text().rstrip()]
    return "\n".join(lines) + (f"\n\nEquations\n\n{listing['equations']}" if equations else "")
