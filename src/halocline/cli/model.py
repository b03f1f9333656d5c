"""`halocline model`."""

from __future__ import annotations

import json as encoding
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.cli.options import overlap_of, whole_numbers
from halocline.cli.output import check_files, check_pictures, first, say, write, write_json, written
from halocline.cli.progress import progress
from halocline.compile.cache import own_folder
from halocline.errors import InputError
from halocline.ranges import NODES, RANK

if TYPE_CHECKING:
    from halocline.study.predict import Case, Predicted

SHOWN = 4  # ranks of a trace, where none are named


def poisson(*, n: int, dim: int, method: str, **how: Any) -> None:
    """Predict conjugate gradients."""
    from halocline.study.predict import poisson as made

    told = {"case": "poisson", "n": n, "dim": dim, "method": method}
    title = f"Poisson in {dim}D, N = {n}, {method}; a pass is an iteration"
    _predict(told, title, lambda n: made(n, dim, method), **how)


def heat(*, n: int, dim: int, scheme: str, order: int, **how: Any) -> None:
    """Predict explicit steps of the heat equation."""
    from halocline.study.predict import heat as made

    told = {"case": "heat", "n": n, "dim": dim, "scheme": scheme, "order": order}
    title = f"Heat in {dim}D, N = {n}, {scheme}, order {order}; a pass is a step"
    _predict(told, title, lambda n: made(n, dim, scheme, order), **how)


def wave(*, n: int, dim: int, **how: Any) -> None:
    """Predict explicit steps of the wave equation."""
    from halocline.study.predict import wave as made

    title = f"Waves in {dim}D, N = {n}; a pass is a step"
    _predict({"case": "wave", "n": n, "dim": dim}, title, lambda n: made(n, dim), **how)


def case(
    name: str,
    *,
    n: str | None,
    dim: int | None,
    settings: Sequence[str],
    order: int | None,
    scheme: str | None,
    **how: Any,
) -> None:
    """Predict steps of a case or a file."""
    from halocline.cli.problem import described, problem_of
    from halocline.cli.run_case import cells_of
    from halocline.compile.compiler import compile_program

    cells = None if n is None else cells_of(n)
    ready = problem_of(name, cells, settings, dim=dim, order=order, scheme=scheme)
    title, facts = described(ready)
    made = compile_program(ready.program, ready.grid), ready.shape
    _predict(facts, title, lambda _: made, **how)


def _predict(
    told: Mapping[str, Any],
    title: str,
    make: Callable[[Any], Case],
    *,
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
    measure: int | None = None,
) -> None:
    """Predict, and print the table."""
    from halocline.study import host
    from halocline.study import predict as study

    counts = whole_numbers(nodes, "--nodes", NODES)
    check_files(json, picture, trace, timeline)
    check_pictures(picture, timeline)
    if traced is not None and trace is None and timeline is None:
        raise InputError(f"--traced {traced} names ranks, but nothing shows them: give --trace or --timeline")
    there = host.machine_named(machine)
    schedule, shape = make(told.get("n"))
    pace = 1.0
    if measure is not None:
        if machine != host.HOST:
            raise InputError(f"--measure {measure} runs the case here, but --machine is {machine}: say host")
        per_node = ranks_per_node or there.device.count
        pace = host.pace_of({**told, "n": measure}, make(measure), there, per_node)
    ranks: list[int] | range = range(0)
    if trace is not None or timeline is not None:
        shown = range(min(SHOWN, max(counts) * (ranks_per_node or there.device.count)))
        ranks = shown if traced is None else whole_numbers(traced, "--traced", RANK)
    with progress(f"{title.partition(';')[0]} on {there.name}", f"of {len(counts)} numbers of nodes") as done:
        found = study.predict(
            schedule,
            shape,
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
            say(f"Sweeps take {pace:.2f} times as long as their bytes and operations let expect: measured.")
    write_json(json, {**told, **how, "runs": runs})
    _draw(found, scaling, picture, trace, timeline)
    written([json, picture, trace, timeline])


def _draw(
    found: list[Predicted], scaling: str, picture: Path | None, trace: Path | None, timeline: Path | None
) -> None:
    from halocline.io.style import save, styled
    from halocline.run.domain.trace import chrome_events
    from halocline.study import predict as study
    from halocline.study import timeline as lanes

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
    from halocline.study import host

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


def figures(folder: Path, json: str | None) -> None:
    """Draw the figures of the papers, and print their numbers."""
    from halocline.io.style import save, styled
    from halocline.plan.machine import load_machine
    from halocline.study import figures as study
    from halocline.study.predict import poisson as case

    names = ("halo-sizes.png", "theoretical-scaling.png", "ranks-of-a-node.png")
    paths = [folder / name for name in names]
    check_files(json, *paths)
    machine, ranks, per_node = load_machine("stampede2-skx"), 192, (2, 4, 8, 16, 24, 48)
    halo, scaling = study.halo_sizes(), study.theoretical_scaling()
    schedule, shape = case(4096)
    together = study.ranks_of_a_node(schedule, shape, machine, ranks, per_node)
    with styled():
        for path, figure in zip(
            paths,
            (
                study.draw_halo_sizes(halo),
                study.draw_theoretical_scaling(scaling),
                study.draw_ranks_of_a_node(together, ranks),
            ),
            strict=True,
        ):
            save(figure, path)
    numbers = {"halo_sizes": halo, "theoretical_scaling": scaling, "ranks_of_a_node": together}
    write_json(json, numbers)
    if json != "-":
        most = max(scaling[256])
        for n, line in scaling.items():
            say(f"{n}³ on {most} devices: {line[1] / most / line[most]:.1%} of ideal scaling")
    written([json, *paths])
