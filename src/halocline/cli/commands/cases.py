"""The command `halocline cases`."""

from typing import Annotated

import typer

from halocline.cli import options
from halocline.cli.commands import command, group

app = group("")


@command(app, "cases")
def cases(
    name: Annotated[str | None, typer.Argument(metavar="NAME")] = None,
    json: Annotated[str | None, options.JSON] = None,
) -> None:
    """List the cases that `halocline run` knows by name, or show one: its parameters with units, defaults and
    meaning, and where it comes from.

    Parameters
    ----------
    name
        The case to show.

    Examples
    --------
    halocline cases
    halocline cases helical-turbulence
    """
    from halocline.cli.cases import cases

    cases(name, json)
