"""Count the lines of Python code of the package, also in comparison with another commit.

Run `.venv/bin/python tools/code_size.py [COMMIT]`. Docstrings, comments and blank lines do not count. With a
commit, the table has the lines at that commit, the lines of the working tree, and the change. A module that
has moved between the framework and the applications counts for its present place on both sides.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/halocline"
APPLICATIONS = ("physics", "cases", "papers")
MOVED = {  # earlier places of modules that moved between framework and applications, with their part now
    "study/papers.py": "papers",
    "study/reporting/published.py": "papers",
    "study/studies/astaroth.py": "papers",
    "study/studies/cavity.py": "papers",
    "study/studies/pearson.py": "papers",
    "study/studies/umbc.py": "papers",
    "study/studies/wombat.py": "papers",
    "physics/case.py": "problems",  # parameters, checks, events and families of cases
    "physics/cases.py": "problems",
    "physics/events.py": "run",
    "io/contours.py": "physics",
}
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Return the number of lines of a module without docstrings, comments and blank lines."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def working_tree() -> dict[str, str]:
    """Return the sources of the package in the working tree, by their paths in it."""
    folder = ROOT / PACKAGE
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.py"))}


def at_commit(commit: str) -> dict[str, str]:
    """Return the sources of the package at a commit, by their paths in it."""
    command = ["git", "-C", str(ROOT), "archive", commit, PACKAGE]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    sources = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            content = files.extractfile(member) if member.name.endswith(".py") else None
            if content is not None:
                sources[PurePosixPath(member.name).relative_to(PACKAGE).as_posix()] = content.read().decode()
    return sources


def part(path: str) -> str:
    """Return the top-level folder that a module counts for."""
    if path in MOVED:
        return MOVED[path]
    folder, _, rest = path.partition("/")
    return folder if rest else "(top level)"


def sizes(sources: Mapping[str, str]) -> Counter[str]:
    """Return the lines of code of each part."""
    lines: Counter[str] = Counter()
    for path, source in sources.items():
        lines[part(path)] += code_lines(source)
    return lines


def rows(sizes_of_parts: Counter[str], parts: Iterable[str]) -> dict[str, int]:
    """Return the lines of each part, of the framework, of the applications and of all."""
    lines = {name: sizes_of_parts[name] for name in parts}
    applications = sum(sizes_of_parts[name] for name in APPLICATIONS)
    total = sizes_of_parts.total()
    return {**lines, "framework": total - applications, "applications": applications, "total": total}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("commit", nargs="?", help="commit to compare the working tree with")
    commit = parser.parse_args().commit
    current = sizes(working_tree())
    if commit is None:
        for name, lines in rows(current, sorted(current)).items():
            print(f"{name:14}{lines:8,}")
        return
    before = sizes(at_commit(commit))
    parts = sorted(before | current)
    print(f"{'':14}{commit[:8]:>8}{'now':>8}{'change':>9}")
    for (name, old), new in zip(rows(before, parts).items(), rows(current, parts).values(), strict=True):
        change = f"{100 * (new / old - 1):+.1f} %" if old else "new"
        print(f"{name:14}{old:8,}{new:8,}{change:>9}")


if __name__ == "__main__":
    main()
