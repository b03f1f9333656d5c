"""`halocline explain`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.cli.output import check_files, check_pictures, first, say, write_json, written
from halocline.cli.texts import cells_of
from halocline.errors import InputError
from halocline.words import printable

if TYPE_CHECKING:
    from halocline.explanation.explain import Explanation


def case(
    name: str,
    *,
    n: str | None,
    dim: int | None,
    settings: Sequence[str],
    order: int | None,
    scheme: str | None,
    method: str | None,
    ranks: int,
    rank: int | None,
    code: bool,
    passes: bool,
    picture: Path | None,
    json: str | None,
    execution: Mapping[str, Any],
) -> None:
    """Compile and plan a case or a file, and report."""
    from halocline.explanation.explain import explain_program
    from halocline.problems.problem import problem_of

    check_files(json, picture)
    check_pictures(picture)
    if json == "-" and (code or passes):
        option = "--code" if code else "--passes"
        raise InputError(f"{option}: --json - prints only the results. Give --json a file")
    ready = problem_of(name, cells_of(n), settings, dim=dim, order=order, scheme=scheme, method=method)
    found = explain_program(ready.program, ready.grid, ranks=ranks, rank=rank, **execution)
    title, facts = ready.description
    _show(found, title, {**facts, "ranks": ranks}, code, passes, picture, json)


def _show(
    found: Explanation,
    title: str,
    heading: Mapping[str, Any],
    code: bool,
    passes: bool,
    picture: Path | None,
    json: str | None,
) -> None:
    """Print, draw and keep an explanation."""
    from halocline.compile.ir.show import show_trail
    from halocline.explanation.text import lines

    bound = found.bound()
    facts = {**heading, "threads": found.plan.threads, **found.as_dict()}
    write_json(json, {**facts, "bound": asdict(bound) if bound else None})
    if picture is not None:
        from halocline.explanation.matrix import plot
        from halocline.io.style import save, styled

        with styled():
            save(plot(found.schedule, found.plan.transfers), picture)
    if json == "-":
        return
    text = [title, "", *lines(found, bound)]
    if passes:
        text += ["", *show_trail(found.trail).splitlines()]
    if code:
        device = found.schedule.device
        source = found.schedule.source if device is None else device.source
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

    Console().print(
        Syntax(printable(source), "cpp", theme="ansi_dark", word_wrap=False, background_color="default")
    )
