"""Add a built documentation to a folder of versions: docs_versions.py BUILT FOLDER VERSION.

The pages of BUILT, such as out/docs, are copied to FOLDER/VERSION. FOLDER/index.html then lists all versions,
with the newest release first.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Halocline: versions of the documentation</title>
<h1>Halocline: versions of the documentation</h1>
<ul>
{items}
</ul>
</html>
"""


def order(version: str) -> tuple[list[int], bool, str]:
    """Return the sort key of a version: pre-releases are older than releases, and other names are oldest."""
    name = version.removeprefix("v")
    release = re.match(r"[\d.]*", name)[0]
    numbers = [int(number) for number in release.split(".") if number]
    return numbers, release == name, version


def index(versions: list[str]) -> str:
    """Return the page that lists the versions, newest first."""
    names = sorted(versions, key=order, reverse=True)
    return PAGE.format(items="\n".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in names))


def add(built: Path, folder: Path, version: str) -> None:
    """Copy a built documentation in place of an earlier copy of its version, and list all versions."""
    shutil.rmtree(folder / version, ignore_errors=True)
    shutil.copytree(built, folder / version, ignore=shutil.ignore_patterns(".doctrees"))
    versions = [page.parent.name for page in folder.glob("*/index.html")]
    (folder / "index.html").write_text(index(versions))


def main(arguments: list[str]) -> int:
    """Add a version, and return the exit status."""
    if len(arguments) != 3 or not re.fullmatch(r"[\w.+-]*\w", arguments[2]):
        print(__doc__.partition("\n")[0], file=sys.stderr)
        return 2
    built = Path(arguments[0])
    if not (built / "index.html").is_file():
        print(f"docs_versions: {built} has no index.html. Run make docs first.", file=sys.stderr)
        return 2
    add(built, Path(arguments[1]), arguments[2])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
