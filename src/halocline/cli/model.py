"""`halocline model`."""

from __future__ import annotations

import json as encoding
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.cli.output import check_files, check_pictures, first, say, write, write_json, written
from halocline.cli.progress import progress
from halocline.cli.texts import cells_of, overlap_of
from halocline.compile.cache import own_folder
from halocline.errors import InputError
from halocline.ranges import NODES, RANK, whole_numbers

if TYPE_CHECKING:
    from halocline.study.measuring.predict import Predicted

SHOWN = 4  # ranks of a trace, where none are named


def case(
    name: str,
    *,
    n: str | None,
    dim: int | None,
    settings: Sequence[str],
    order: int | None,
    scheme: str | None,
    method: str | None,
    machine: str,
    nodes: str,
    ranks_per_node: int | None,
    scaling: str,
    decomposition: str,
    placement: str,
    methods: str | None,
    overlap: str,
    json: str | None,
    picture: Path | None,
    trace: Path | None,
    traced: str | None,
    timeline: Path | None,
    measure: int | None,
) -> None:
    """Predict steps or iterations of a case or a file, and print the table."""
    from halocline.compile.compiler import compile_program
    from halocline.problems.named import described, problem_of
    from halocline.study.measuring import host
    from halocline.study.measuring import predict as study

    counts = whole_numbers(nodes, "--nodes", NODES)
    check_files(json, picture, trace, timeline)
    check_pictures(picture, timeline)
    if traced is not None and trace is None and timeline is None:
        raise InputError(f"--traced {traced} names ranks, but nothing shows them: give --trace or --timeline")
    there = host.machine_named(machine)
    options: dict[str, Any] = {"dim": dim, "order": order, "scheme": scheme, "method": method}
    ready = problem_of(name, cells_of(n), settings, **options)
    title, facts = described(ready)
    schedule = compile_program(ready.program, ready.grid)
    pace = 1.0
    if measure is not None:
        if machine != host.HOST:
            raise InputError(f"--measure {measure} runs the case here, but --machine is {machine}: say host")
        per_node = ranks_per_node or there.device.count
        smaller = problem_of(name, [measure], settings, **options)
        made = compile_program(smaller.program, smaller.grid), smaller.shape
        task = {"case": name, "n": measure, "settings": list(settings), **options}
        pace = host.pace_of(task, made, there, per_node)
    ranks: list[int] | range = range(0)
    if trace is not None or timeline is not None:
        shown = range(min(SHOWN, max(counts) * (ranks_per_node or there.device.count)))
        ranks = shown if traced is None else whole_numbers(traced, "--traced", RANK)
    with progress(f"{title.partition(';')[0]} on {there.name}", f"of {len(counts)} numbers of nodes") as done:
        found = study.predict(
            schedule,
            ready.shape,
            there,
            counts,
            ranks_per_node=ranks_per_node,
            scaling=scaling,
            strategy=decomposition,
            placement=placement,
            methods=methods,
            overlap=overlap_of(overlap),
            traced=ranks,
            pace=pace,
            on_progress=done,
        )
    runs = [{k: v for k, v in vars(p).items() if k != "spans"} for p in found]
    how: dict[str, Any] = {
        "machine": there.name,
        "scaling": scaling,
        "placement": placement,
        "overlap": overlap,
    }
    if measure is not None:
        how |= {"pace": pace, "pace_measured_at": measure}
    if json != "-":
        say(f"{title}\n")
        say(study.table(found, there, scaling).text())
        say(study.verdict(found))
        if measure is not None:
            say(f"Sweeps take {pace:.2f} times as long, measured, as their bytes and operations predict.")
    write_json(json, {**facts, **how, "runs": runs})
    _draw(found, scaling, picture, trace, timeline)
    written([json, picture, trace, timeline])


def _draw(
    found: list[Predicted], scaling: str, picture: Path | None, trace: Path | None, timeline: Path | None
) -> None:
    from halocline.explanation import timeline as lanes
    from halocline.io.style import save, styled
    from halocline.run.domain.trace import chrome_events
    from halocline.study.measuring import predict as study

    trace_events = study.trace_events(found[-1].spans)
    threads = dict.fromkeys(sorted({event.rank for event in trace_events}), 1)
    if trace is not None:
        events = list(chrome_events(trace_events, threads))
        write(trace, encoding.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n")
    with styled():
        if picture is not None:
            save(study.plot(found, scaling), picture)
        if timeline is not None:
            save(lanes.plot(trace_events, threads), timeline)


def calibrate(file: Path | None) -> None:
    """Measure this host, keep what came of it, and print it."""
    from halocline.study.measuring import host

    target = host.calibration_file() if file is None else file
    if file is None and first():
        with suppress(OSError):  # the check that follows says so
            own_folder(target.parent)
    check_files(target)
    with progress("calibrating this host", "of 2 numbers of ranks") as done:
        made = host.calibrate(done)
    say(f"{made.title}\n")
    say(host.table(made).text())
    write(target, host.as_toml(made))
    written([target])
