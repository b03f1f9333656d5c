"""Problem files: files of users, and the files of the named cases."""

from __future__ import annotations

from pathlib import Path

from halocline.errors import InputError
from halocline.words import suggestion

CASES = Path(__file__).parents[1] / "cases"
RESOLUTION = "n"  # in a file without settings, variable with the number of cells along the first axis
PLACES = "@"  # suffix of a field name, for the array of axes along which the field is staggered


def is_file(name: str) -> bool:
    """Return True if the name of a problem is a file: the file exists, or the name ends in .py."""
    return Path(name).is_file() or name.endswith(".py")


def case_names() -> list[str]:
    """Return the names of all cases."""
    files = (path.stem for path in CASES.glob("*.py"))
    return sorted(stem.replace("_", "-") for stem in files if not stem.startswith("_"))


def path_of(name: str) -> Path:
    """Return the file of a problem.

    Raises
    ------
    InputError
        There is no file and no case of this name.
    """
    if is_file(name):
        return Path(name)
    if name not in (known := case_names()):
        problem = f"there is no file {name}" if not Path(name).exists() else f"{name} is not a file"
        nearest = suggestion(name, [f"{name}.py"] if Path(f"{name}.py").is_file() else known)
        raise InputError(f"{problem} and no case of that name{nearest}; cases: {', '.join(known)}")
    return CASES / f"{name.replace('-', '_')}.py"
