"""`halocline study ablation exchange`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from halocline.cli.output import check_files, say, write, write_json, written
from halocline.cli.progress import progress
from halocline.cli.ranks import spread
from halocline.run.host.command_line import command_line


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
    tables = study.table(found)
    record = {**how, "shape": shape, "ranks": comm.size, "devices": [asdict(place) for place in places]}
    if json != "-":
        say(f"{lead}\n")
        for table in tables:
            say(table.text())
        say("\n".join(study.verdicts(found)))
    write_json(json, {**record, "variants": [asdict(m) for m in found]})
    if csv:
        write(csv, as_rows([asdict(m) for m in found]))
    if html:
        from halocline.io.style import styled
        from halocline.study.reporting.page import Page, facts_of_machine

        with styled():
            page = Page(
                title="Ablation study: the exchange",
                lead=lead,
                said=study.verdicts(found),
                tables=tables,
                figure=study.plot(found),
                pictures=[],
                facts=facts_of_machine(this_machine().as_dict()),
                command=shlex.join(command_line()),
                footer="Time is that of one exchange on the slowest rank: the median of runs of 30, all "
                "variants in turn.",
            )
            write(html, page.html())
    written([json, csv, html])
