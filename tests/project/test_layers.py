"""Each layer imports only from earlier layers; cases and papers are separate from the framework."""

from __future__ import annotations

import pytest

from loops import some
from source import LAYERS, MODULES, ROOT, SOURCE, imports


def test_all_layers_are_named():
    homes = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert homes | {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "_version"} == set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_from_earlier_layers(layer):
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    files = [SOURCE / f"{layer}.py"] if layer in MODULES else list((SOURCE / layer).rglob("*.py"))
    assert files
    for file in files:
        for module in imports(file):
            parts = module.split(".")
            if parts[0] == "halocline" and len(parts) > 1 and parts[1] in LAYERS:
                assert parts[1] in allowed, f"{file.relative_to(ROOT)} imports {module}"


@pytest.mark.parametrize("layer", ["problems", "explanation", "study", "cli"])
def test_the_framework_imports_no_physics(layer):
    for file in some((SOURCE / layer).rglob("*.py")):
        assert not any(module.startswith("halocline.physics") for module in imports(file)), file


def test_only_one_module_names_the_packages_of_papers():
    files = [path for path in SOURCE.rglob("*.py") if "halocline.papers" in path.read_text()]
    assert {path.relative_to(SOURCE).parts[0] for path in files} == {"applications.py", "papers"}
