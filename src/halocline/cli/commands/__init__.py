"""The commands, by their verb: their words and options, and the functions that do them."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

POISSON = (
    "The elliptic problem -Δu = f with u = 0 on the boundary of the unit interval, square or cube, and "
    "the exact solution u = Π sin²(π x); see UMBC HPCF-2018-10."
)


class CaseByName(TyperGroup):
    """Takes a word that is none of its commands for the name of a case, and hands it to the command CASE."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        return name, self.commands["CASE"], args[1:]
