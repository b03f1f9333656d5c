"""The source of the framework: its layers, and the imports of its files."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "halocline"

# Each layer imports only from itself and those before it.
# The first layers have one file each.
MODULES = ("applications", "errors", "deprecation", "forks", "native", "words", "ranges", "markup")
LAYERS = (
    *MODULES,
    "lang",
    "compile",
    "plan",
    "model",
    "archive",
    "run",
    "io",
    "solvers",
    "physics",
    "problems",
    "explanation",
    "study",
    "cli",
    "cases",
    "papers",
)


def imports(file: Path, at_start_only: bool = False) -> set[str]:
    """Return the modules that a file imports, as absolute names."""
    tree = ast.parse(file.read_text())
    nodes = tree.body if at_start_only else ast.walk(tree)
    modules = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative import"
            module = node.module or ""
            modules |= (
                {f"{module}.{alias.name}" for alias in node.names} if module == "halocline" else {module}
            )
    return modules
