"""The words and options of the commands, by their verb; what they do is imported when they are called."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

POISSON = (
    "The elliptic problem -Δu = f with u = 0 on the boundary of the unit interval, square or cube, and "
    "the exact solution u = Π sin²(π x); see UMBC HPCF-2018-10."
)


def examples(*lines: str) -> str:
    """Examples for the end of a help text, one a line."""
    return "\n".join(["[bold]Examples[/]", *(f"  {line}" for line in lines)])


def group(help: str, *lines: str, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    return typer.Typer(
        cls=cls,
        help=help,
        epilog=examples(*lines),
        no_args_is_help=True,
        rich_markup_mode="rich",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


class CaseByName(TyperGroup):
    """Takes a word that is none of its commands for the name of a case, and hands it to the command CASE."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        return name, self.commands["CASE"], args[1:]
