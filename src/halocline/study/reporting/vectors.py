"""Report of a study of vector lengths: time and number of instructions of an update."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.compile.cxx import VECTOR_BITS, VECTORS
from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import Panel, draw
from halocline.study.reporting.reference import published_rows, with_notes
from halocline.study.reporting.report import Column, Contents, Group, by_layout, ordered_rows, row_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 100  # number of steps for the numbers of instructions, as in Table 4


def bits(measurement: Measurement) -> int:
    """Return the vector length of a run in bits; 0 if the compiler chose it."""
    text = measurement["environment"].get(VECTORS) or ""
    return int(text) if text in map(str, VECTOR_BITS) else 0


def amdahl(group: Group) -> float | None:
    """Return p of T(b) = (1 - p + p b₀ / b) T(b₀) by least squares, where b₀ is the shortest vector length.

    The result is None if fewer than two vector lengths were measured.
    """
    runs_with_bits = group.select(bits).members
    base = min(runs_with_bits, key=bits, default=group.first)
    reductions = [(1.0 - bits(base) / bits(m), 1.0 - q.ns(m) / q.ns(base)) for m in runs_with_bits]
    weight = sum(x * x for x, _ in reductions)
    return sum(x * y for x, y in reductions) / weight if weight else None


def _speedup_over_shortest(measurement: Measurement, group: Group) -> str:
    same_line = group.select(lambda m: _line(m) == _line(measurement))
    return f"{q.ns(min(same_line.members, key=bits)) / q.ns(measurement):.2f}"


def _line(measurement: Measurement) -> Any:
    return q.grid(measurement), by_layout(measurement), _compiler(measurement)


def _instruction_count(kind: str, measurement: Measurement, group: Group) -> str:
    count = measurement.get("instructions")
    return "" if count is None else f"{1e-9 * count[kind] * measurement['cells'] * STEPS:.3g}"


def _compiler(measurement: Measurement) -> str:
    """Return the name and version number of the compiler, such as "g++ 12.2.0"."""
    machine = measurement["machine"]
    version = re.search(r"\d+(\.\d+)+", machine["compiler_version"] or "")
    return " ".join((Path(machine["compiler"] or "unknown").name, *([version[0]] if version else [])))


def _line_text(measurement: Measurement) -> str:
    return f"{q.size(measurement)} on {q.layout(measurement)}, {_compiler(measurement)}"


def _tables(group: Group) -> Iterator[Table]:
    compiler = Column("compiler", lambda m, g: _compiler(m))
    without_fma = Column(
        "share of the peak\nwithout FMA", lambda m, g: q.percent(2.0 * (m["share_of_peak"] or 0.0))
    )
    columns = (
        *(Column("bits", lambda m, g: f"{bits(m)}" if bits(m) else "default"), compiler),
        *(c.LAYOUT, c.UPDATE, Column("speed-up over\nthe shortest", _speedup_over_shortest)),
        *(
            Column(f"10⁹ {kind}\ninstructions", partial(_instruction_count, kind))
            for kind in ("scalar", "vector")
        ),
        *(c.PEAK_SHARE, without_fma),
    )
    note = q.wrap_notes(
        f"Floating-point instructions of {STEPS} steps are counted in the disassembly. The numbers for "
        "scalar loops with branches are lower bounds. The peak is that of multiply-adds with the longest "
        "vectors. Without multiply-adds (FMA), it is half of this peak."
    )
    for size in group.split(q.grid):
        rows = ordered_rows(size, lambda m: (_line(m), bits(m)))
        size_note, paper_rows = with_notes("vectors", size, note), published_rows("vectors", size)
        heading = q.heading(size.first)
        yield row_table(
            "Time per update", columns, rows, note=size_note, heading=heading, published=paper_rows, left=3
        )


def _sentences(group: Group) -> Iterator[str]:
    for line in group.split(_line):
        share, line_text = amdahl(line), _line_text(line.first)
        if share is None:
            continue
        if 0.0 <= share <= 1.0:
            yield f"{line_text}: by Amdahl's law, {share:.2f} of the time is proportional to 1 / bits."
        else:
            yield (
                f"{line_text}: the times do not follow Amdahl's law, because the share of the time "
                f"proportional to 1 / bits would be {share:.2f}."
            )
    if any(measurement.get("instructions") is None for measurement in group.members):
        yield (
            "The instructions of some runs are not counted. Counting requires objdump (Debian package "
            "binutils), g++, x86-64, and a case or a file with settings."
        )


def _figure(group: Group) -> Figure | None:
    runs_with_bits = group.select(bits)
    panel = Panel(
        runs_with_bits,
        lambda m, g: q.update_seconds(m),
        "Time per update",
        "seconds per update",
        line=_line,
        label=lambda line: _line_text(line.first),
        x=bits,
        xlabel="vector length in bits",
        log=False,
    )
    return draw([panel] if runs_with_bits.members else [])


CONTENTS = Contents(_tables, _sentences, {"vectors.png": _figure})
