"""Import rules of modules: folders of the compiler, folders of run, and no cycle in any layer.

test_layers.py tests that layers import only from earlier layers.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import halocline.compile
from loops import some
from source import LAYERS as ALL_LAYERS

SOURCE = Path(halocline.compile.__file__).parents[1]
HOME = Path(halocline.compile.__file__).parent
COMPILER_FOLDERS = {path.name: path for path in HOME.iterdir() if (path / "__init__.py").is_file()}

# the folders and modules of the compiler from which each of its folders may import
ALLOWED = {
    "ir": set(),
    "passes": {"ir", "strategy"},
    "printers": {"ir", "strategy", "schedule"},
    "targets": {"ir", "passes", "printers", "strategy", "schedule"},
}


def imported(path: Path) -> set[str]:
    """Return the folders and modules of the compiler that a module imports."""
    result = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halocline.compile."):
            result.add((node.module or "").split(".")[2])
    return result


def test_all_folders_of_the_compiler_are_listed() -> None:
    assert set(COMPILER_FOLDERS) == set(ALLOWED)


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_folder_of_the_compiler_imports_only_allowed_folders(folder: str) -> None:
    for module in some(COMPILER_FOLDERS[folder].glob("*.py")):
        assert imported(module) - {folder} <= ALLOWED[folder], module.name


def test_modules_outside_the_folders_import_in_one_direction() -> None:
    modules = {path.stem: imported(path) for path in HOME.glob("*.py")}
    done: set[str] = set(ALLOWED)
    while modules:
        free = {name for name, imports in modules.items() if imports <= done}
        assert free, f"a circle among {sorted(modules)}"
        done |= free
        for name in free:
            del modules[name]


# -- folders of run ----------------------------------------------------------------------------------

# each folder imports only from itself and from earlier ones
FOLDERS = (
    "host", "ranks", "devices", "tuning", "domain", "memory", "engine", "measurements", "fields", "output",
    "simulation",
)  # fmt: skip


def test_all_modules_of_run_are_in_its_folders() -> None:
    home = SOURCE / "run"
    assert {path.parent.name for path in home.glob("*/__init__.py")} == set(FOLDERS)
    assert [path.name for path in home.glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_run_imports_only_from_earlier_folders(folder: str) -> None:
    allowed = FOLDERS[: FOLDERS.index(folder) + 1]
    for path in some((SOURCE / "run" / folder).glob("*.py")):
        parts = [name.split(".") for name in imported_by(path)]
        folders = {part[2] for part in parts if part[:2] == ["halocline", "run"]}
        assert folders <= set(allowed), f"{path.name} imports {folders - set(allowed)}"


# -- import cycles -----------------------------------------------------------------------------------

# Fields, expressions and programs of the language import each other.
LAYERS = [layer for layer in ALL_LAYERS if layer != "lang" and (SOURCE / layer).is_dir()]
# Cycles that are to be removed. An entry that is no cycle any more fails, and must be removed from this list.
KNOWN: set[frozenset[str]] = set()


def module_name(path: Path) -> str:
    """Return the import name of a module."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py")}


def imported_by(path: Path) -> set[str]:
    """Return the modules of Halocline that a module imports, at its top, in functions, and for types.

    A module imported from a package counts as an import of the package too, since the package is imported
    first.
    """
    result = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            result |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return result & set(MODULES)


def circles(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the largest sets of two or more modules that import each other, also indirectly."""
    result: set[frozenset[str]] = set()
    place: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []

    def visit(name: str) -> None:  # Tarjan's algorithm
        place[name] = lowest[name] = len(place)
        open_.append(name)
        for other in imports[name] - {name}:
            if other not in place:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in open_:
                lowest[name] = min(lowest[name], place[other])
        if lowest[name] == place[name]:
            first = open_.index(name)
            circle = frozenset(open_[first:])
            del open_[first:]
            if len(circle) > 1:
                result.add(circle)

    for name in imports:
        if name not in place:
            visit(name)
    return result


def test_import_cycles_are_detected() -> None:
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d", "e"}, "f": {"a", "f"}}
    assert circles(imports) == {frozenset("abc"), frozenset("de")}


def test_no_layer_except_the_language_has_an_import_cycle() -> None:
    inside = [name for name in MODULES if name.split(".")[1:2] and name.split(".")[1] in LAYERS]
    assert {name.split(".")[1] for name in inside} == set(LAYERS)
    result = circles({name: imported_by(MODULES[name]) & set(inside) for name in inside})
    assert not result - KNOWN, sorted(map(sorted, result - KNOWN))
    assert not KNOWN - result, f"no circle any more: remove from KNOWN {sorted(map(sorted, KNOWN - result))}"
