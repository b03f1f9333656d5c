"""The rooms of the compiler: which may import from which."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import halocline.compile

HOME = Path(halocline.compile.__file__).parent
ROOMS = {path.name: path for path in HOME.iterdir() if (path / "__init__.py").is_file()}

# what each room may take from the others of the compiler: rooms, and modules beside them
ALLOWED = {
    "ir": set(),
    "passes": {"ir", "strategy"},
    "printers": {"ir", "strategy", "schedule"},
    "targets": {"ir", "passes", "printers", "strategy", "schedule", "headers"},
}


def imported(path: Path) -> set[str]:
    """The rooms and modules of the compiler that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halocline.compile."):
            found.add((node.module or "").split(".")[2])
    return found


def test_all_rooms_are_named() -> None:
    assert set(ROOMS) == set(ALLOWED)


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_takes_from_those_before_it(room: str) -> None:
    for module in ROOMS[room].glob("*.py"):
        assert imported(module) - {room} <= ALLOWED[room], module.name


def test_modules_beside_the_rooms_import_in_one_direction() -> None:
    modules = {path.stem: imported(path) for path in HOME.glob("*.py")}
    done: set[str] = set(ALLOWED)
    while modules:
        free = {name for name, needed in modules.items() if needed <= done}
        assert free, f"a circle among {sorted(modules)}"
        done |= free
        for name in free:
            del modules[name]
