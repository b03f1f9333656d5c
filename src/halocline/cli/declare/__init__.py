"""How options and commands are declared.

An option is one line, `Option("The problem", "--n N", "Cells along each axis.", whole(POINTS), 64)`: panel,
form, help, kind and default. A command names the options that it takes, in the order of its help text, and
the function that does it.
"""

from halocline.cli.declare.commands import Command, Commands
from halocline.cli.declare.kinds import (
    NUMBER,
    PATH,
    PLACE,
    PLACE_OR_DASH,
    POSITIVE,
    TEXT,
    TEXTS,
    TIME,
    Kind,
    one_of,
    step_interval,
    whole,
)
from halocline.cli.declare.options import REQUIRED, FromLine, Group, Option, function

__all__ = [
    "NUMBER",
    "PATH",
    "PLACE",
    "PLACE_OR_DASH",
    "POSITIVE",
    "REQUIRED",
    "TEXT",
    "TEXTS",
    "TIME",
    "Command",
    "Commands",
    "FromLine",
    "Group",
    "Kind",
    "Option",
    "function",
    "one_of",
    "step_interval",
    "whole",
]
