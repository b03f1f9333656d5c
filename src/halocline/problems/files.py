"""Files of problems: a user's own, and the cases, each by its name."""

from __future__ import annotations

from pathlib import Path

from halocline.errors import InputError
from halocline.words import near

CASES = Path(__file__).parents[1] / "cases"
RESOLUTION = "n"  # the name that a file without settings gives its cells along the first axis
PLACES = "@"  # behind the name of a field: the axes along which its points lie on faces


def is_file(name: str) -> bool:
    """Return True where the name of a problem means a file, and no case: one that exists, or ends in .py."""
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
        The name is that of no file and no case.
    """
    if is_file(name):
        return Path(name)
    if name not in (known := case_names()):
        problem = f"there is no file {name}" if not Path(name).exists() else f"{name} is no file"
        nearest = near(name, [f"{name}.py"] if Path(f"{name}.py").is_file() else known)
        raise InputError(f"{problem} and no case of that name{nearest}; cases: {', '.join(known)}")
    return CASES / f"{name.replace('-', '_')}.py"
