"""Solve equations on structured grids, on one core or many ranks, with bit-for-bit identical results.

Examples
--------
halocline doctor
halocline solve poisson --n 512
halocline solve poisson --n 1024 --ranks 2 --threads 1 --json result.json
halocline explain poisson --n 1024 --ranks 64
halocline study convergence poisson --n 256,512,1024 --html study.html
halocline run heat.py --ranks 4
halocline run orszag-tang-resistive --n 128 --until 1
"""

from typing import Annotated

import typer

from halocline.cli.commands import (
    bench,
    cache,
    cases,
    compile,
    demo,
    doctor,
    explain,
    group,
    model,
    new,
    solve,
    stores,
    study,
)
from halocline.cli.commands import run as run_command
from halocline.errors import InputError

app = group(__doc__)
groups = {"solve": solve, "study": study, "explain": explain, "model": model, "bench": bench, "cache": cache}
for name, module in groups.items():
    app.add_typer(module.app, name=name)
for module in (demo, run_command, compile, cases, new, stores, doctor):  # commands without a group
    app.add_typer(module.app)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if show:
        from halocline import __version__

        print(f"halocline {__version__}")
        raise typer.Exit


def run(words: list[str]) -> int:
    """Run a command line, and return its exit status.

    Raises
    ------
    InputError
        The parser rejects the command line. Exceptions that a command raises are passed on.
    """
    command = typer.main.get_command(app)
    try:
        with command.make_context("halocline", words) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except Exception as error:
        message = getattr(error, "format_message", None)  # exceptions of the parser have this method
        if message is None:
            raise
        if not message():
            return 2  # without a command, the parser has printed the help text
        path = getattr(getattr(error, "ctx", None), "command_path", "halocline")
        raise InputError(f"{message()}\nTry `{path} --help`.") from None
    return 0
