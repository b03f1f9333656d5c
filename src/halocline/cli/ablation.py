"""`halocline study ablation exchange`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from halocline.cli.output import check_files, say
from halocline.cli.progress import progress
from halocline.cli.ranks import spread
from halocline.cli.report import leave


def ablation(
    *,
    n: int,
    dim: int,
    radius: int,
    fields: int,
    dtype: str,
    machine: str,
    repeat: int,
    ranks: int | None,
    json: str | None,
    csv: Path | None,
    html: Path | None,
    execution: Mapping[str, Any],
) -> None:
    """Time the exchange with one thing changed at a time, and print the tables."""
    spread(ranks)
    from halocline.io.table import as_rows
    from halocline.plan.machine import load_machine
    from halocline.run.devices.devices import devices_in_use, summary
    from halocline.run.host.machine import this_machine
    from halocline.run.ranks.mpi import world
    from halocline.study.reporting.page import facts_of_machine
    from halocline.study.reporting.report import Report
    from halocline.timing import ablation as study
    from halocline.timing.exchange import weak_shape
    from halocline.words import counted

    check_files(json, csv, html)
    there = load_machine(machine)
    comm = world()
    shape = weak_shape(n, comm.size, dim)
    how: dict[str, Any] = {"fields": fields, "radius": radius, "dtype": dtype}
    with devices_in_use() as met, progress("all variants in turn", f"of {repeat} rounds") as on_progress:
        found = study.measure(shape, **how, repeats=repeat, on_progress=on_progress, **execution)
    places = met(comm)
    if comm.rank != 0:
        return
    found += study.place(there, weak_shape(n, len(there.devices), dim), **how)
    cells = "x".join(map(str, shape))
    what = f"{counted(fields, dtype + ' field')} of {cells} cells, radius {radius}"
    lead = f"{what}, on {counted(comm.size, 'rank')}" + (f", {summary(places)}" if places else "")
    record = {**how, "shape": shape, "ranks": comm.size, "devices": [asdict(place) for place in places]}
    report = Report(
        study.table(found),
        study.verdicts(found),
        lambda: {"ablation.png": study.plot(found)},
        footer="Time is that of one exchange on the slowest rank: the median of runs of 30, all variants in "
        "turn.",
    )
    if json != "-":
        say(lead)
    leave(
        report,
        {"json": json, "csv": csv, "html": html},
        title="Ablation study: the exchange",
        lead=lead,
        record={**record, "variants": [asdict(m) for m in found]},
        rows=as_rows([asdict(m) for m in found]),
        facts=facts_of_machine(this_machine().as_dict()),
    )
