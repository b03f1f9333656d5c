"""`halocline explain`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from halocline.cli.output import check_files, check_pictures, first, say, write_json, written
from halocline.errors import InputError


def poisson(
    *,
    n: int,
    dim: int,
    method: str,
    ranks: int,
    rank: int | None,
    code: bool,
    picture: Path | None,
    json: str | None,
    execution: Mapping[str, Any],
) -> None:
    """Compile and plan, and tell about it."""
    from halocline.physics.poisson import Poisson
    from halocline.study.explain import explain_program
    from halocline.study.explain_text import lines

    check_files(json, picture)
    check_pictures(picture)
    if ranks < 1:
        raise InputError(f"ranks is {ranks}; expected a whole number from 1")
    equations = Poisson.on(n, dim)
    told = explain_program(
        equations.program(method),
        equations.grid,
        ranks=ranks,
        rank=rank,
        **execution,
    )
    bound = told.bound()
    heading = {"case": "poisson", "n": n, "dim": dim, "method": method}
    heading |= {"ranks": ranks, "threads": told.plan.threads}
    write_json(json, {**heading, **told.as_dict(), "bound": asdict(bound) if bound else None})
    if picture is not None:
        from halocline.io.style import styled
        from halocline.study.matrix import plot

        with styled():
            plot(told.schedule, told.plan.transfers).savefig(picture)
    if json == "-":
        return
    text = [f"Poisson in {dim}D, N = {n}: {n**dim:,} unknowns, {method}", "", *lines(told, bound)]
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
