"""Measure a problem many times over, each time as a process of its own, and make tables, plots and a page.

Examples
--------
halocline study convergence poisson --n 256,512,1024
halocline study strong poisson --n 1024 --ranks 1,2 --threads 1,2
halocline study weak acoustic.py --ranks 1,2,4
halocline study paper umbc-4.1
"""

from typing import Any

from typer.core import TyperGroup

from halocline.cli.commands import group


class Studies(TyperGroup):
    """Group that imports the studies when its commands are needed, so that other commands start sooner."""

    @property
    def commands(self) -> Any:
        """Commands by name."""
        from halocline.cli.commands.studies import commands

        return commands

    @commands.setter
    def commands(self, none: Any) -> None:
        """Ignore the commands that the base class starts with."""


app = group(__doc__, Studies)
