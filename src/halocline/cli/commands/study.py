"""Run a problem repeatedly, and report the results as tables, plots and an HTML page.

Each run is a separate process.

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
    """Group of commands that imports the studies on first use, so that all other commands start faster."""

    @property
    def commands(self) -> Any:
        """Commands by name."""
        from halocline.cli.commands.studies import commands

        return commands

    @commands.setter
    def commands(self, none: Any) -> None:
        """Ignore the initial commands of the base class."""


app = group(__doc__, Studies)
