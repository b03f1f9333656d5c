"""Declarations of studies and papers in the packages that `halocline.applications` lists."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from halocline.applications import STUDIES


@cache
def _modules() -> list[ModuleType]:
    """Return the modules of all packages. Within a package, they are in the order of the file names."""
    return [
        import_module(f"{package}.{name}")
        for package in STUDIES
        for name in sorted(info.name for info in iter_modules(import_module(package).__path__))
    ]


def declared(name: str) -> list[Any]:
    """Return the values of a module-level variable, from all modules that define it."""
    return [getattr(module, name) for module in _modules() if hasattr(module, name)]


def register() -> list[Any]:
    """Return the registered tables and figures of all papers, with their commands or reasons."""
    return [entry for entries in declared("REGISTER") for entry in entries]


def papers() -> dict[str, Any]:
    """Return all tables and figures of papers by name."""
    return {paper.name: paper for papers in declared("PAPERS") for paper in papers}
