"""Command `halocline new`."""

from pathlib import Path
from typing import Annotated

import typer

from halocline.cli.commands import command, group
from halocline.cli.options import problem_option
from halocline.errors import InputError

app = group("")


@command(app, "new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    case: Annotated[str, problem_option("--from CASE")] = "heat",
) -> None:
    """Create a problem file as a copy of a case, for editing.

    Parameters
    ----------
    name
        Name of the new file. The suffix .py is added if it is missing.
    case
        Case to copy; see `halocline cases`.

    Examples
    --------
    halocline new mine
    halocline new tube.py --from brio-wu
    """
    from halocline.cli.output import check_files, note, write
    from halocline.lang.grid import unknown_name_error
    from halocline.problems.files import case_names, path_of

    path = Path(name if name.endswith(".py") else f"{name}.py")
    if path.name == ".py":
        raise InputError(f"NAME is {name!r}; expected the name of a file, such as 'my_case'")
    if path.exists():
        raise InputError(f"{path} exists already. Choose another name, or remove the file.")
    names = case_names()
    if case not in names:
        raise unknown_name_error("--from: case", case, names)
    check_files(path)
    write(path, path_of(case).read_text())
    note(f"wrote {path}; run it with: halocline run {path}")
