"""Texts of `halocline ls`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from halocline.words import amount, counted, one_line


def _output(found: dict[str, Any], equations: bool) -> str:
    from halocline.io.table import Table

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
    rows = tuple(
        (
            name,
            ", ".join(each["dimensions"]),
            " x ".join(map(str, each["shape"])),
            each["dtype"],
            each["units"] or "-",
            amount(each["bytes"]),
        )
        for name, each in found["arrays"].items()
    )
    heads = ("name", "dimensions", "shape", "type", "unit", "on disk")
    text = "\n".join(map(one_line, head)) + "\n\n" + Table("Arrays", heads, rows, left=2).text().rstrip()
    return text + _equations(found, equations)


def _checkpoint(found: dict[str, Any], equations: bool) -> str:
    from halocline.io.table import Table

    head = [
        f"{found['path']}: checkpoint of step {found['step']:,} (time {found['time']:.6g})",
        f"{'written':12} {found['made']} by Halocline {found['version']}: {shlex.join(found['command'])}",
    ]
    if found["case"]:
        head.append(f"{'case':12} {found['case']['name']}")
    head += _parameters(found)
    rows = tuple(
        (name, each["location"], " x ".join(map(str, each["shape"])), each["dtype"], amount(each["bytes"]))
        for name, each in found["arrays"].items()
    )
    heads = ("name", "location", "shape", "type", "on disk")
    text = "\n".join(map(one_line, head)) + "\n\n" + Table("Fields", heads, rows, left=2).text().rstrip()
    return text + _equations(found, equations)


def _checkpoints(found: dict[str, Any], equations: bool) -> str:
    from halocline.io.table import Table

    rows = tuple(
        (
            each["name"],
            "newest" if each["newest"] else ("whole" if each["whole"] else "not whole"),
            "-" if each["step"] is None else f"{each['step']:,}",
            "-" if each["time"] is None else f"{each['time']:.6g}",
            each["made"] or "-",
            amount(each["bytes"]),
        )
        for each in found["checkpoints"]
    )
    heads = ("checkpoint", "", "step", "time", "written", "on disk")
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
    return Table(f"Checkpoints in {found['path']}", heads, rows, left=2, note=note).text().rstrip()


TEXTS = {"output": _output, "checkpoint": _checkpoint, "checkpoints": _checkpoints}


def _parameters(found: dict[str, Any]) -> list[str]:
    values = ", ".join(f"{name} = {value:g}" for name, value in found["parameters"].items())
    return [f"{'parameters':12} {values}"] if values else []


def _equations(found: dict[str, Any], wanted: bool) -> str:
    return f"\n\nEquations\n\n{found['equations']}" if wanted else ""
