"""Report of a study of vector lengths: time and instructions of an update."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.compile.driver import VECTOR_BITS, VECTORS
from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import Panel, draw
from halocline.study.reporting.reference import published_rows, with_notes
from halocline.study.reporting.report import Column, Contents, Group, by_layout, ordered_rows, row_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 100  # number of steps whose instructions Table 4 counts


def bits(measurement: Measurement) -> int:
    """Return the vector length of a run in bits; 0 if the compiler chose it."""
    text = measurement["environment"].get(VECTORS) or ""
    return int(text) if text in map(str, VECTOR_BITS) else 0


def amdahl(group: Group) -> float | None:
    """Return p of T(b) = (1 - p + p b₀ / b) T(b₀) by least squares; b₀ is the shortest vector length."""
    runs_with_bits = group.select(bits).members
    base = min(runs_with_bits, key=bits, default=group.first)
    reductions = [(1.0 - bits(base) / bits(m), 1.0 - q.ns(m) / q.ns(base)) for m in runs_with_bits]
    weight = sum(x * x for x, _ in reductions)
    return sum(x * y for x, y in reductions) / weight if weight else None


def _over_the_shortest(measurement: Measurement, group: Group) -> str:
    same_line = group.select(lambda m: _line(m) == _line(measurement))
    return f"{q.ns(min(same_line.members, key=bits)) / q.ns(measurement):.2f}"


def _line(measurement: Measurement) -> Any:
    return q.grid(measurement), by_layout(measurement), _compiler(measurement)


def _counted(kind: str, measurement: Measurement, group: Group) -> str:
    count = measurement.get("instructions")
    return "" if count is None else f"{1e-9 * count[kind] * measurement['cells'] * STEPS:.3g}"


def _compiler(measurement: Measurement) -> str:
    """Return the name and version of the compiler, such as "g++ 12.2.0", without the packager's text."""
    machine = measurement["machine"]
    version = re.search(r"\d+(\.\d+)+", machine["compiler_version"] or "")
    return " ".join((Path(machine["compiler"] or "unknown").name, *([version[0]] if version else [])))


def _words(measurement: Measurement) -> str:
    return f"{q.size(measurement)} on {q.layout(measurement)}, {_compiler(measurement)}"


def _tables(group: Group) -> Iterator[Table]:
    compiler = Column("compiler", lambda m, g: _compiler(m))
    without_fma = Column(
        "share of the peak\nwithout FMA", lambda m, g: q.percent(2.0 * (m["share_of_peak"] or 0.0))
    )
    columns = (
        *(Column("bits", lambda m, g: f"{bits(m)}" if bits(m) else "default"), compiler),
        *(c.LAYOUT, c.UPDATE, Column("over the\nshortest", _over_the_shortest)),
        *(Column(f"10⁹ {kind}\ninstructions", partial(_counted, kind)) for kind in ("scalar", "vector")),
        *(c.PEAK_SHARE, without_fma),
    )
    note = q.wrap_notes(
        f"Floating-point instructions of {STEPS} steps, counted in the disassembly; those of scalar loops "
        "with branches are a lower bound. The peak is that of multiply-adds on the widest vectors, half of "
        "it without them."
    )
    for size in group.split(q.grid):
        rows = ordered_rows(size, lambda m: (_line(m), bits(m)))
        note_of_size, of_paper = with_notes("vectors", size, note), published_rows("vectors", size)
        heading = q.heading(size.first)
        yield row_table(
            "Time per update", columns, rows, note=note_of_size, heading=heading, published=of_paper, left=3
        )


def _sentences(group: Group) -> Iterator[str]:
    for line in group.split(_line):
        share, line_text = amdahl(line), _words(line.first)
        if share is None:
            continue
        if 0.0 <= share <= 1.0:
            yield f"{line_text}: as by Amdahl's law with {share:.2f} of the time proportional to 1 / bits."
        else:
            yield f"{line_text}: no share by Amdahl's law: {share:.2f} of the time would follow 1 / bits."
    if any(measurement.get("instructions") is None for measurement in group.members):
        yield (
            "Instructions are not counted in all runs: this takes objdump (binutils of Debian), g++, x86-64, "
            "and a case or a file with settings."
        )


def _figure(group: Group) -> Figure | None:
    runs_with_bits = group.select(bits)
    panel = Panel(
        runs_with_bits,
        lambda m, g: q.update_seconds(m),
        "Time per update",
        "seconds per update",
        line=_line,
        label=lambda line: _words(line.first),
        x=bits,
        xlabel="bits of a vector",
        log=False,
    )
    return draw([panel] if runs_with_bits.members else [])


CONTENTS = Contents(_tables, _sentences, {"vectors.png": _figure})
