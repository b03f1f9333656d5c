"""Commands are functions that typer reads: their options, help texts, and the functions that they call."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import Annotated, Any

import pytest
import typer

from declared_commands import ALL
from halocline.cli import options
from halocline.cli.commands import command, group, parameters
from halocline.cli.options import general_option, panel, place, whole_number
from halocline.cli.texts import execution_of
from halocline.errors import InputError
from halocline.ranges import POINTS

# functions of other modules that commands call with the values of all options
CALLED = {
    "solve poisson": "halocline.cli.run:run",
    "run": "halocline.cli.run:run",
}
LINES = {"solve poisson": "--n 8", "run": "heat"}
OWN = {  # commands that do their work themselves, or that pass single values to a function
    "explain CASE", "model CASE", "model calibrate", "bench exchange", "cases", "new", "ls", "view", "export",
    "doctor", "demo", "compile", "cache info", "cache export", "cache import",
    "study paper", "study papers", "study report",
    "study ablation exchange", "study overlap heat", "study overlap CASE",
}  # fmt: skip


def arguments_of(
    function: str, monkeypatch: pytest.MonkeyPatch, words: str, line: list[str]
) -> dict[str, Any]:
    """Return the arguments that a command gives a function in place of the work, bound to its parameters."""
    module, _, name = function.partition(":")
    owner, calls = import_module(module), []
    parameters_of_function = signature(getattr(owner, name))
    monkeypatch.setattr(owner, name, lambda *args, **named: calls.append((args, named)))
    with ALL[words].make_context("heat", line) as context:
        context.command.invoke(context)
    ((args, named),) = calls
    return parameters_of_function.bind(*args, **named).arguments


@pytest.mark.parametrize("words", sorted(set(ALL) - OWN))
def test_a_function_accepts_the_arguments_of_its_command(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    is_study = words not in CALLED
    line = LINES.get(words, "heat" if is_study and "CASE" not in words else "").split()
    arguments = arguments_of(
        CALLED.get(words, "halocline.cli.commands.studies:measure"), monkeypatch, words, line
    )
    assert arguments
    if is_study:
        assert arguments["problem"] == "heat"


def test_a_file_receives_its_options_and_arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").touch()
    line = ["own.py", "--threads", "2", "--", "--n", "4"]
    arguments = arguments_of("halocline.cli.run:run", monkeypatch, "run", line)
    assert arguments["execution"] == {"threads": 2}
    assert arguments["arguments"] == ["--n", "4"]


def of_command(
    *sources: Any, without: tuple[str, ...] = (), text: str | None = None
) -> tuple[Any, dict[str, Any]]:
    """Return a command with the options of some classes, and the values that it is called with."""
    values: dict[str, Any] = {}
    one = group("")

    @command(one, "try", *sources, without=without, text=text)
    def function(**arguments: Any) -> None:
        """Try the options.

        All of
        them.

        Examples
        --------
        try --cells-of-it 4
        try
        """
        values.update(arguments)

    return typer.main.get_group(one).commands["try"], values


def ran(words: list[str], *sources: Any, **settings: Any) -> dict[str, Any]:
    """Return the values that a command with the options of some classes is called with."""
    command, values = of_command(*sources, **settings)
    with command.make_context("try", words) as context:
        command.invoke(context)
    return values


@dataclass
class Cells:
    """Options of a test.

    Attributes
    ----------
    cells_of_it
        Cells, in words
        of a docstring.
    """

    cells_of_it: Annotated[int, panel("Problem")("--cells-of-it N", whole_number(POINTS))] = 4
    settings: Annotated[list[str], panel("Problem")("--set NAME=VALUE")] = options.NO_TEXTS
    corners: Annotated[bool, general_option("--corners/--no-corners", help="Edges too.")] = True


@dataclass
class ManyCells(Cells):
    """Options of a test, one of them with another form."""

    cells_of_it: Annotated[str, general_option("--cells-of-it N,N,...")] = "1"


def test_options_have_values_and_help_texts() -> None:
    assert ran([], Cells) == {"cells_of_it": 4, "settings": [], "corners": True}
    assert ran(["--cells-of-it", "8"], Cells)["cells_of_it"] == 8
    assert ran(["--cells-of-it", "8,9"], ManyCells)["cells_of_it"] == "8,9"
    assert ran(["--set", "a=1", "--set", "b=2"], Cells)["settings"] == ["a=1", "b=2"]
    assert ran(["--no-corners"], Cells, without=("settings",)) == {"cells_of_it": 4, "corners": False}
    first, *other_options = of_command(Cells)[0].params
    assert (first.opts, first.metavar, first.help) == (
        ["--cells-of-it"], "N", "Cells, in words of a docstring.",
    )  # fmt: skip
    assert first.rich_help_panel == "Problem"
    assert [option.name for option in other_options] == ["settings", "corners"]
    assert of_command(ManyCells)[0].params[0].help == first.help
    assert [option.name for option in parameters(Cells, "settings")] == ["settings"]
    more = [Parameter("k", Parameter.KEYWORD_ONLY, default="2", annotation=str)]
    assert ran(["--k", "3"], more) == {"k": "3"}
    with pytest.raises(Exception, match="the name is empty; expected the name of a folder"):
        place("folder")("")
    with pytest.raises(Exception, match="the name contains a null character; expected the name of a folder"):
        place("folder")("a\0b")


def test_a_docstring_is_the_help_text() -> None:
    command, _ = of_command(Cells)
    assert command.help == "Try the options.\n\nAll of them."
    assert command.epilog == "[bold]Examples[/]\n  try --cells-of-it 4\n  try"
    assert of_command(Cells, text="Another.")[0].help == "Another."
    for listed_command in ALL.values():
        assert listed_command.help
        assert listed_command.epilog
        assert all(option.help for option in listed_command.params)


def test_execution_options_are_separated_from_others() -> None:
    values = ran(["--patch", "8,16", "--overlap", "on"], options.Execution, Cells)
    execution = execution_of(values)
    assert list(values) == ["cells_of_it", "settings", "corners"]
    assert (execution["patch"], execution["overlap"], execution["mailboxes"], execution["trace"]) == (
        [8, 16],
        True,
        2,
        None,
    )
    assert list(execution_of(ran([], options.Execution, without=("patch", "trace")))) == [
        name for name in execution if name not in ("patch", "trace")
    ]
    with pytest.raises(InputError, match="--overlap maybe: expected auto, on or off"):
        execution_of(ran(["--overlap", "maybe"], options.Execution))


def test_output_options_become_run_options() -> None:
    from halocline.cli.texts import storage_options
    from halocline.problems.run_options import RunOptions

    keeping = storage_options(ran(["--output", "heat.zarr", "--io-threads", "2"], options.StorageOptions))
    assert RunOptions(**keeping).option_texts == {
        "--output": "--output heat.zarr",
        "--io-threads": "--io-threads 2",
    }
    assert (keeping["output"].io_threads, keeping["checkpoint"]) == (2, None)


def test_help_imports_no_study() -> None:
    import subprocess

    script = "import sys, halocline.cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    slow = {"numpy", "rich", "mpi4py", "scipy", "matplotlib", "pydantic", "jinja2", "tensorstore", "h5py"}
    assert not {"halocline.study", "halocline.run.engine", *slow} & set(done.stdout.split())
