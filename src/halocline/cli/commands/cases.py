"""Command `halocline cases`."""

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
    """List the cases of `halocline run`, or describe one of them.

    The description of a case contains its origin, and its parameters with meaning, unit and default.

    Parameters
    ----------
    name
        Case to describe.

    Examples
    --------
    halocline cases
    halocline cases helical-turbulence
    """
    from halocline.cli.cases import cases

    cases(name, json)
