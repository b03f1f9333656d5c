"""Texts of `halocline ls`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from halocline.io.table import table_of
from halocline.words import amount, counted, one_line

Columns = dict[str, Callable[[dict[str, Any]], str]]


def _output(found: dict[str, Any], equations: bool) -> str:
    times, steps = found["times"], found["steps"]
    head = [f"{found['path']}: output of {found['title']}, {found['source']}"]
    if found["history"]:
        head.append(f"{'written by':12} {found['history']}")
    if times:
        span = f"t = {times[0]:.6g} to {times[-1]:.6g}"
        span += f", steps {steps[0]:,} to {steps[-1]:,}" if steps else ""
        head.append(f"{'times':12} {counted(len(times), 'time')}, {span}")
    elif steps and times is None:
        head.append(f"{'steps':12} {len(steps):,} of them, from {steps[0]:,} to {steps[-1]:,}")
    elif times is not None or steps is not None:
        head.append(f"{'times':12} none yet")
    head += _parameters(found)
    columns: Columns = {
        "name": lambda array: array["name"],
        "dimensions": lambda array: ", ".join(array["dimensions"]),
        "shape": lambda array: " x ".join(map(str, array["shape"])),
        "type": lambda array: array["dtype"],
        "unit": lambda array: array["units"] or "-",
        "on disk": lambda array: amount(array["bytes"]),
    }
    return _page(found, head, "Arrays", columns, equations)


def _checkpoint(found: dict[str, Any], equations: bool) -> str:
    head = [
        f"{found['path']}: checkpoint of step {found['step']:,} (time {found['time']:.6g})",
        f"{'written':12} {found['made']} by Halocline {found['version']}: {shlex.join(found['command'])}",
    ]
    if found["case"]:
        head.append(f"{'case':12} {found['case']['name']}")
    head += _parameters(found)
    columns: Columns = {
        "name": lambda array: array["name"],
        "location": lambda array: array["location"],
        "shape": lambda array: " x ".join(map(str, array["shape"])),
        "type": lambda array: array["dtype"],
        "on disk": lambda array: amount(array["bytes"]),
    }
    return _page(found, head, "Fields", columns, equations)


def _checkpoints(found: dict[str, Any], equations: bool) -> str:
    columns: Columns = {
        "checkpoint": lambda each: each["name"],
        "": lambda each: "newest" if each["newest"] else ("whole" if each["whole"] else "not whole"),
        "step": lambda each: "-" if each["step"] is None else f"{each['step']:,}",
        "time": lambda each: "-" if each["time"] is None else f"{each['time']:.6g}",
        "written": lambda each: each["made"] or "-",
        "on disk": lambda each: amount(each["bytes"]),
    }
    path, whole = found["path"], [each for each in found["checkpoints"] if each["whole"]]
    if any(each["newest"] for each in found["checkpoints"]):
        note = f"Go on from the newest with --resume {path}."
    elif whole:
        note = (
            f"{found['problem'].partition(';')[0]}. Go on from the last whole one with "
            f"--resume {Path(path) / whole[-1]['name']}."
        )
    else:
        has_complete = any(each["step"] is not None for each in found["checkpoints"])
        note = f"{found['problem']}." if has_complete else "None was ever completed."
    table = table_of(f"Checkpoints in {path}", found["checkpoints"], columns, left=2, note=note)
    return table.text().rstrip()


TEXTS = {"output": _output, "checkpoint": _checkpoint, "checkpoints": _checkpoints}


def _parameters(found: dict[str, Any]) -> list[str]:
    values = ", ".join(f"{name} = {value:g}" for name, value in found["parameters"].items())
    return [f"{'parameters':12} {values}"] if values else []


def _page(found: dict[str, Any], head: list[str], title: str, columns: Columns, equations: bool) -> str:
    """Return the lines above the table of the arrays, the table, and the equations if they are asked for."""
    arrays = [{"name": name, **array} for name, array in found["arrays"].items()]
    lines = [*map(one_line, head), "", table_of(title, arrays, columns, left=2).text().rstrip()]
    return "\n".join(lines) + (f"\n\nEquations\n\n{found['equations']}" if equations else "")
