"""`halocline explain`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.cli.output import check_files, check_pictures, first, say, write_json, written

if TYPE_CHECKING:
    from halocline.study.explanation.facts import Explanation


def poisson(
    *,
    n: int,
    dim: int,
    method: str,
    ranks: int,
    rank: int | None,
    code: bool,
    passes: bool,
    picture: Path | None,
    json: str | None,
    execution: Mapping[str, Any],
) -> None:
    """Compile and plan, and report."""
    from halocline.physics.poisson import Poisson
    from halocline.study.explanation.explain import explain_program

    check_files(json, picture)
    check_pictures(picture)
    equations = Poisson.on(n, dim)
    told = explain_program(
        equations.program(method),
        equations.grid,
        ranks=ranks,
        rank=rank,
        **execution,
    )
    heading = {"case": "poisson", "n": n, "dim": dim, "method": method, "ranks": ranks}
    title = f"Poisson in {dim}D, N = {n}: {n**dim:,} unknowns, {method}"
    _tell(told, title, heading, code, passes, picture, json)


def case(
    name: str,
    *,
    n: str | None,
    dim: int | None,
    settings: Sequence[str],
    order: int | None,
    scheme: str | None,
    ranks: int,
    rank: int | None,
    code: bool,
    passes: bool,
    picture: Path | None,
    json: str | None,
    execution: Mapping[str, Any],
) -> None:
    """The same of steps of a case or a file that `halocline run` takes."""
    from halocline.cli.problem import described, problem_of
    from halocline.cli.run_case import cells_of
    from halocline.study.explanation.explain import explain_program

    check_files(json, picture)
    check_pictures(picture)
    cells = None if n is None else cells_of(n)
    ready = problem_of(name, cells, settings, ("poisson",), dim=dim, order=order, scheme=scheme)
    told = explain_program(ready.program, ready.grid, ranks=ranks, rank=rank, **execution)
    title, facts = described(ready)
    heading = {**facts, "ranks": ranks}
    _tell(told, title, heading, code, passes, picture, json)


def _tell(
    told: Explanation,
    title: str,
    heading: Mapping[str, Any],
    code: bool,
    passes: bool,
    picture: Path | None,
    json: str | None,
) -> None:
    """Print, draw and keep an explanation."""
    from halocline.compile.ir.show import show_trail
    from halocline.study.explanation.text import lines

    bound = told.bound()
    facts = {**heading, "threads": told.plan.threads, **told.as_dict()}
    write_json(json, {**facts, "bound": asdict(bound) if bound else None})
    if picture is not None:
        from halocline.io.style import save, styled
        from halocline.study.explanation.matrix import plot

        with styled():
            save(plot(told.schedule, told.plan.transfers), picture)
    if json == "-":
        return
    text = [title, "", *lines(told, bound)]
    if passes:
        text += ["", *show_trail(told.trail).splitlines()]
    if code:
        device = told.schedule.device
        source = told.schedule.source if device is None else device.source
        _print_code("\n".join(f"// {line}".rstrip() for line in text) + f"\n\n{source}")
    else:
        say("\n".join(text))
    written([json, picture])


def _print_code(source: str) -> None:
    """C++, in colour on a terminal."""
    if not sys.stdout.isatty() or not first():
        say(source.rstrip())
        return
    from rich.console import Console
    from rich.syntax import Syntax

    Console().print(Syntax(source, "cpp", theme="ansi_dark", word_wrap=False, background_color="default"))
