"""The documentation shows programs that run and print the shown output, and names that exist."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from dataclasses import fields
from typing import Any

import pytest

import halocline as hc
from array_libraries import library
from documented_blocks import BLOCK, ROOT, run
from halocline.plan.trace import TRACE_EVENTS
from halocline.problems.names import Names
from halocline.problems.problem import Problem
from loops import some
from source import LAYERS, MODULES
from suites import cases

TUTORIAL = ROOT / "docs" / "tutorial.md"
ARCHITECTURE = ROOT / "docs" / "reference" / "architecture.md"
LANGUAGE = ROOT / "docs" / "reference" / "language.md"
COMMAND = ROOT / "docs" / "reference" / "command.md"
RESULTS = ROOT / "docs" / "reference" / "results.md"
SOURCE = ROOT / "src" / "halocline"
EXAMPLES = sorted(path for path in SOURCE.rglob("*.py") if ">>> " in path.read_text())
MARK = "-- end of block --"


@pytest.fixture(scope="module")
def blocks() -> list[tuple[str, str | None]]:
    """Return each runnable block with the output below it, or None without output."""
    result = [(code, output or None) for code, output in BLOCK.findall(TUTORIAL.read_text())]
    assert len(result) == TUTORIAL.read_text().count("```python")
    return result


@cases("ranks", [1, 2], default=[1])
def test_the_tutorial_prints_the_shown_output(blocks, ranks, tmp_path):
    text = "".join(f'{code}\nhc.print("{MARK}")\n' for code, _ in blocks)
    printed = run(text, ranks, tmp_path).split(f"{MARK}\n")[:-1]
    assert len(printed) == len(blocks)
    for (code, expected), actual in zip(blocks, printed, strict=True):
        if expected is not None:
            assert actual == expected, f"after\n{code}"
    left = {path.name for path in (tmp_path / "out" / "tutorial").iterdir()}
    assert left == {"plate.png", "gradient.png", "plate.zarr", "warmest.zarr"}


def test_the_reference_of_planning_prints_the_shown_output(tmp_path):
    result = BLOCK.findall((ROOT / "docs" / "reference" / "planning.md").read_text())
    assert len(result) == 4
    assert run("".join(code for code, _ in result), 1, tmp_path) == "".join(output for _, output in result)


def test_one_equation_prints_the_result_of_each_stage(tmp_path):
    text = (ROOT / "docs" / "reference" / "one-equation.md").read_text()
    result = BLOCK.findall(text)
    assert len(result) == text.count("```python")
    printed = run("".join(code for code, _ in result), 1, tmp_path)

    assert printed.replace("script.py", "heat.py") == "".join(output for _, output in result)
    for code in re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        assert any(code in file.read_text() for file in (ROOT / "native").rglob("*.*pp")) or any(
            code in file.read_text() for file in (ROOT / "native").rglob("*.h")
        ), code


def test_one_equation_names_a_file_for_each_stage():
    text = (ROOT / "docs" / "reference" / "one-equation.md").read_text()
    named = re.findall(r"`([\w/]+\.(?:py|cpp|hpp|h))`", text)
    assert len(set(named)) > 20
    for name in named:
        assert ((ROOT if name.startswith("native/") else SOURCE) / name).is_file(), name
    stages = re.findall(r"^\| (.+?) \| `", text, re.MULTILINE)
    assert len(stages) == text.count("\n## ") == 13


def rows_of(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without its head."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+) \|$", section, re.MULTILINE)
    return [re.split(r" \| ", row) for row in rows[2:]]


def test_the_architecture_names_all_layers_in_their_order():
    rows = rows_of(ARCHITECTURE.read_text(), "Layers")
    layers = [layer for layer in LAYERS if layer not in MODULES]
    assert [row[0].strip("`") for row in rows] == layers
    for layer, _, first in rows:
        assert (SOURCE / layer.strip("`") / first.strip("`")).is_file(), first
    sections = re.findall(r"^## (.+)$", (ARCHITECTURE.parent / "modules.md").read_text(), re.MULTILINE)
    assert sections == [*layers, "engine"]


def test_the_reference_of_devices_names_every_event_of_a_trace():
    rows = rows_of((ROOT / "docs/reference/devices.md").read_text(), "Trace events")
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(named) == sorted(TRACE_EVENTS)


def test_documented_files_to_change_exist():
    rows = rows_of(ARCHITECTURE.read_text(), "Files to change")
    assert len(rows) >= 12
    for change, *cells in rows:
        paths = [re.findall(r"`([\w/.-]+(?:/|\.(?:py|md|hpp|cpp|json)))`", cell) for cell in cells]
        assert all(paths), f"{change}: a column names no file"
        for path in some(path for column in paths for path in column):
            assert (SOURCE / path).exists() or (ROOT / path).exists(), f"{change}: {path}"


def test_every_printing_block_shows_its_output(blocks):
    for code, expected in some(blocks):
        assert ("hc.print(" in code) == (expected is not None), code


@cases("ranks", [1, 2], default=[2])
def test_programs_of_the_readme_print_the_shown_output(ranks, tmp_path):
    programs = BLOCK.findall((ROOT / "README.md").read_text())
    assert len(programs) == 2
    printed = run("".join(code for code, _ in programs), ranks, tmp_path)
    assert printed == "".join(output for _, output in programs)


@pytest.mark.parametrize(("name", "ranks"), [
    ("array-libraries", 2),
    ("from-other-libraries", 2),
    pytest.param("incompressible-flow", 2, marks=pytest.mark.long),
    pytest.param("numpy-between-steps", 1, marks=pytest.mark.long),
    ("numpy-between-steps", 2),
    ("seismic-modelling", 1),  # gathers whole fields on one rank
    ("staggered-grids", 2),
    ("where-the-time-goes", 2),
])  # fmt: skip
def test_programs_of_guides_print_the_shown_output(name, ranks, tmp_path):
    programs = BLOCK.findall((ROOT / "docs" / "how-to" / f"{name}.md").read_text())
    assert programs
    printed = run("".join(code for code, _ in programs), ranks, tmp_path)
    assert printed == "".join(output for _, output in programs)


def test_the_guide_to_array_libraries_runs_with_pytorch(tmp_path):
    library("torch")
    text = (ROOT / "docs" / "how-to" / "array-libraries.md").read_text()
    ((program, output),) = BLOCK.findall(text)
    blocks = re.findall(r"^```py\n(.*?)^```\n", text, re.MULTILINE | re.DOTALL)
    *parts, function = blocks
    assert function in (ROOT / "examples" / "fit_conductivity.py").read_text()
    check = 'print(f"values {tensor.max():.3f} {sim[T].max()} {sim[T][0, 1]}")\n'
    printed = run(program + "".join(parts) + check, 1, tmp_path)
    assert printed == f"{output}values 1.000 1.0 0.0\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_examples_in_docstrings_are_correct(path):
    name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    result = [example for test in doctest.DocTestFinder().find(module) for example in test.examples]
    assert len(result) == path.read_text().count(">>> ")
    assert doctest.testmod(module).failed == 0


# -- the reference -------------------------------------------------------------------------------------------


def test_the_reference_names_every_public_name():
    text = LANGUAGE.read_text()
    named = set(re.findall(r"`(?:@|with )?hc\.(\w+)", text))
    public = set(hc.__all__) - {"__version__"}
    assert public - named == set(), "missing from docs/reference/language.md"
    assert named - public == set(), "named in docs/reference/language.md, but there is no such name"


@pytest.fixture
def command_reference(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module that writes the reference of the command."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("command_reference")


def test_names_of_modules_in_the_documentation_exist():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = {name for page in pages for name in re.findall(r"`(halocline(?:\.\w+)+)", page.read_text())}
    assert "halocline.plan.decompose_levels" in names
    for name in sorted(names):
        assert pkgutil.resolve_name(name) is not None, name


def test_the_reference_of_the_command_agrees_with_the_help_texts(command_reference):
    assert command_reference.PAGE == COMMAND
    assert COMMAND.read_text() == command_reference.page(), "write it anew: python tools/command_reference.py"


def test_the_reference_names_every_option_of_every_command(command_reference):
    import typer

    from halocline.cli.app import app

    title, *sections = re.split(r"^## ", COMMAND.read_text(), flags=re.MULTILINE)
    result = {section.partition("\n")[0]: section for section in sections}
    every = dict(command_reference.commands(typer.main.get_command(app)))
    assert {f"halocline {words}" for words in every} == set(result)
    for words, command in every.items():
        name = f"halocline {words}"
        assert f"| `{name}` |" in title
        options = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
        options = {option for option in options if option.startswith("--")}
        documented = {
            option for form in re.findall(r"`(--[^`]+)`", result[name]) for option in form.split(", ")
        }
        assert options <= {option.partition(" ")[0] for option in documented}, name


def test_the_reference_names_every_result_of_a_solve():
    case = Problem("poisson", [8])
    _, _, section = RESULTS.read_text().partition("## Results of halocline solve poisson\n")
    for name in some(case.run(threads=1).findings()):
        assert f"`{name}`" in section.partition("\n## ")[0], name


def test_the_reference_names_every_result_of_a_case():
    from halocline.problems.record import Record

    text = RESULTS.read_text()
    for field in some(fields(Record)):
        assert f"`{field.name}`" in text, field.name


def test_the_special_names_of_files_are_listed():
    text = (ROOT / "docs" / "reference" / "problem-files.md").read_text()
    table = text.partition("| name | meaning |\n")[2].partition("\n\n")[0]
    listed = {name for row in table.splitlines() for name in re.findall(r"`(\w+)", row.split("|")[1])}
    expected = {field.name for field in fields(Names)}
    assert expected <= listed | {"sim"}, expected - listed


@cases("ranks", [1, 2], default=[1])
def test_the_pages_on_output_are_correct(ranks, tmp_path):
    ((program, _), (reading, expected)) = BLOCK.findall((ROOT / "docs" / "how-to" / "output.md").read_text())
    run(program, ranks, tmp_path)
    assert run(reading, 1, tmp_path) == expected


@cases("ranks", [1, 2], default=[2])
def test_the_pages_on_restarts_are_correct(ranks, tmp_path):
    ((program, expected),) = BLOCK.findall((ROOT / "docs" / "how-to" / "restart.md").read_text())
    assert run(program, ranks, tmp_path) == expected


def test_the_pages_on_walls_are_correct(tmp_path):
    """All blocks form one program that runs."""
    text = (ROOT / "docs" / "how-to" / "walls.md").read_text()
    result = BLOCK.findall(text)
    assert len(result) == text.count("```python") == 3
    assert run("".join(code for code, _ in result), 1, tmp_path) == "".join(output for _, output in result)


def test_the_reference_names_every_environment_variable():
    read = re.compile(r"""(?:getenv\(|environ\.get\(|environ\[)["'](\w+)["']""")
    variables = {"HALOCLINE_MARCH"}  # read by CMake
    for folder, kinds in ((SOURCE, "*.py"), (ROOT / "native", "*.[ch]pp"), (ROOT / "native", "*.py")):
        for path in folder.rglob(kinds):
            variables |= set(read.findall(path.read_text()))
    variables -= {"HALOCLINE_LAUNCH", "PMI_FD"}  # between the command, mpiexec and the ranks
    _, _, section = RESULTS.read_text().partition("## Environment\n")
    assert variables - set(re.findall(r"`(\w+)`", section)) == set()
