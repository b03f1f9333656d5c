"""Folders of native code: each includes only from folders that the table of modules lists before it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from halocline.native import native

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "native" / "src"
INCLUDED = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def documented() -> list[str]:
    """Return the folders in the order of the table."""
    text = (ROOT / "docs" / "reference" / "modules.md").read_text()
    section = text.partition("\n## engine\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def wrong(home: Path, order: list[str]) -> list[str]:
    """Return the includes that name no known file, or a file of a folder that is not before their own.

    Without such includes there is no cycle among the folders.
    """
    results = []
    for path in sorted(home.rglob("*.?pp")):
        folder = path.relative_to(home).parts[0]
        for name in INCLUDED.findall(path.read_text()):
            target, _, file = name.partition("/")
            if target == "halocline":  # headers of generated code: native/include
                continue
            known = target in order[: order.index(folder) + 1] and (home / target / file).is_file()
            if not known:
                results.append(f"{path.relative_to(home)} includes {name}")
    return results


def test_all_folders_are_documented() -> None:
    order = documented()
    assert len(order) == len(set(order))
    assert {path.name for path in HOME.iterdir()} == set(order)


def test_folders_include_only_from_earlier_folders() -> None:
    assert wrong(HOME, documented()) == []


def test_some_folders_include_from_others() -> None:
    """Some folders include from others; otherwise the pattern of an include is out of date."""
    assert wrong(HOME, documented()[::-1])


@pytest.mark.parametrize(
    ("file", "line", "good"),
    [
        ("upper/a.hpp", '#include "lower/b.hpp"', True),
        ("upper/a.cpp", '#include "upper/a.hpp"', True),
        ("upper/a.cpp", '#include "halocline/abi.h"', True),
        ("upper/a.cpp", "#include <vector>", True),
        ("lower/b.cpp", '#include "upper/a.hpp"', False),  # a cycle with the first include
        ("lower/b.cpp", '#  include "upper/a.hpp"', False),
        ("lower/b.cpp", '#include "b.hpp"', False),
        ("lower/b.cpp", '#include "../upper/a.hpp"', False),
        ("upper/a.cpp", '#include "lower/none.hpp"', False),
    ],
)
def test_an_include_against_the_order_is_detected(tmp_path: Path, file: str, line: str, good: bool) -> None:
    for header in ("lower/b.hpp", "upper/a.hpp"):
        (tmp_path / header).parent.mkdir()
        (tmp_path / header).write_text("#pragma once\n")
    (tmp_path / "upper/a.hpp").write_text('#include "lower/b.hpp"\n')
    path = tmp_path / file
    with path.open("a") as end:
        end.write(line + "\n")
    result = wrong(tmp_path, ["lower", "upper"])
    assert result == [] if good else result[0].startswith(f"{file} includes ") and len(result) == 1


def test_the_module_exports_only_its_init_function() -> None:
    """Other exports would mix a statically linked libstdc++ with that of other libraries in the process."""
    command = ["nm", "--dynamic", "--defined-only", "--format=posix", native().__file__]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in symbols.splitlines()] == ["PyInit__native"]
