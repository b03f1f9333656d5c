"""Commands are declared: what a command hands on is what its function takes."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator

import pytest
import typer

from halocline.cli import options
from halocline.cli.app import HALOCLINE
from halocline.cli.commands.studies import commands
from halocline.cli.declare import TEXT, Command, Commands, Group, Option, function, whole
from halocline.cli.declare.options import each_of
from halocline.errors import InputError
from halocline.ranges import POINTS


def declared(group: Commands) -> Iterator[tuple[str, Command]]:
    """Every command with its words."""
    for each in group.commands or commands():
        if isinstance(each, Commands):
            for words, command in declared(each):
                yield f"{each.name} {words}", command
        else:
            yield each.name, each


ALL = dict(declared(HALOCLINE))


@pytest.mark.parametrize("words", ALL)
def test_a_function_takes_what_its_command_hands_on(words: str) -> None:
    command = ALL[words]
    taken = [each.keyword for each in each_of(command.takes)]
    inspect.signature(function(command.does)).bind(**dict.fromkeys(taken))
    keywords = [option.keyword for each in each_of(command.takes) for option in each.options]
    assert max(Counter(keywords).values(), default=1) == 1


def ran(words: list[str], *takes: Option | Group) -> dict[str, object]:
    """What a command with these options hands on."""
    found: dict[str, object] = {}
    command = Command(name="try", does=found.update, help="", examples=[], takes=takes)
    one = Commands(name="a", help="", examples=[], commands=[command])
    made = typer.main.get_command(one.app())  # the only command itself
    with made.make_context("try", words) as context:
        made.invoke(context)
    return found


def test_what_an_option_is() -> None:
    cells = Option("The problem", "--cells-of-it N", "Cells.", whole(POINTS), 4)
    assert (cells.name, cells.metavar, cells.keyword) == ("--cells-of-it", "N", "cells_of_it")
    assert ran([], cells) == {"cells_of_it": 4}
    assert ran(["--cells-of-it", "8"], cells) == {"cells_of_it": 8}
    other = cells.but("Many.", form="--cells-of-it N,N,...", kind=TEXT, default="1")
    assert ran(["--cells-of-it", "8,9"], other) == {"cells_of_it": "8,9"}
    assert (cells.help, other.help) == ("Cells.", "Many.")
    assert ran([], options.SETTINGS, options.CHECK) == {"settings": [], "check": False}
    assert ran(["--set", "a=1", "--set", "b=2"], options.SETTINGS) == {"settings": ["a=1", "b=2"]}
    assert ran(["--no-corners"], Option(None, "--corners/--no-corners", "", default=True)) == {
        "corners": False
    }


def test_what_a_group_is() -> None:
    some = options.EXECUTION.only(options.PATCH, options.OVERLAP)
    assert ran(["--patch", "8,16", "--overlap", "on"], some) == {
        "execution": {"patch": [8, 16], "overlap": True}
    }
    with pytest.raises(InputError, match="--overlap maybe: expected auto, on or off"):
        ran(["--overlap", "maybe"], some)
    less = some.without(options.PATCH).but(options.OVERLAP.but(default="off")).also(options.TRACE)
    assert ran([], less) == {"execution": {"overlap": False, "trace": None}}
    kept = ran(["--output", "heat.zarr"], options.KEPT)["kept"]
    assert [str(path) for path in kept.stores] == ["heat.zarr"]
