"""`halocline study`, whose commands are made of the declared studies when they are needed."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from halocline.cli.declare import Commands


class Studies(TyperGroup):
    """Finds the studies when it is asked for its commands, so that other commands need not wait for it."""

    _found: dict[str, Any] | None = None

    @property
    def commands(self) -> Any:
        """The commands by name."""
        if not self._found:
            from halocline.cli.commands.studies import commands

            made = typer.main.get_command(
                Commands(name="study", help="", examples=(), commands=commands()).app()
            )
            assert isinstance(made, TyperGroup)
            self._found = dict(made.commands)
        return self._found

    @commands.setter
    def commands(self, given: Any) -> None:
        """What the base class begins with: none."""


STUDY = Commands(
    name="study",
    help="Measure a problem many times over, each time as a process of its own, and make tables, plots and "
    "a page.",
    examples=[
        "halocline study convergence poisson --n 256,512,1024",
        "halocline study strong poisson --n 1024 --ranks 1,2 --threads 1,2",
        "halocline study weak acoustic.py --ranks 1,2,4",
        "halocline study paper umbc-4.1",
    ],
    commands=(),
    cls=Studies,
)
