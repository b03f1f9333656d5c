"""Print the notes of a version: release_notes.py VERSION [CHANGELOG].

The notes are the section of this version in CHANGELOG.md, without its heading. VERSION may be "Unreleased".
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"
HEADING = re.compile(r"^## \[?([^\]\s]+)\]?.*\n", re.MULTILINE)


def release_notes(changelog: str, version: str) -> str:
    """Return the notes of a version.

    Raises
    ------
    ValueError
        The changelog has no section of this version, or this section is empty.
    """
    _, *parts = HEADING.split(changelog)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    key = version.removeprefix("v")
    if key not in sections:
        names = ", ".join(sections) or "none"
        raise ValueError(f"the changelog has no section of version {key}. Existing sections: {names}")
    notes = re.sub(r"\n\[[^\]]+\]: \S+(?=\n|$)", "", sections[key]).strip()  # without addresses of links
    if not notes:
        raise ValueError(f"the section of version {key} in the changelog is empty. Add its changes")
    return f"{notes}\n"


def main(arguments: list[str]) -> int:
    """Print the notes of a version, and return the exit status."""
    if len(arguments) not in (1, 2):
        print(__doc__.partition("\n")[0], file=sys.stderr)
        return 2
    path = Path(arguments[1]) if arguments[1:] else CHANGELOG
    try:
        print(release_notes(path.read_text(), arguments[0]), end="")
    except (OSError, ValueError) as error:
        print(f"release notes: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
