"""Names at the top of a problem file."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import halocline as hc
from halocline.cli.app import run as command
from halocline.problems.names import Extrapolated, Family, Names
from halocline.problems.problem import Problem
from suites import cases

FILE = """
import halocline as hc
until, key_diagnostics, other = 2.0, ("u",), 1
def check(sim): assert sim.steps == 0
def exact(time): return {{}}
grid = hc.Grid({shape}, periodic=True)
u = grid.field("u")
hc.Simulation(grid, lambda u: {{u: -u}}, scheme=hc.Euler(), dt=0.1)
"""


def names_of(folder: Path, shape: str) -> Names:
    file = folder / "own.py"
    file.write_text(FILE.format(shape=shape))
    problem = Problem(str(file))
    assert problem.program
    return problem.known


def test_a_file_with_settings_has_all_names(tmp_path: Path) -> None:
    names = names_of(tmp_path, "hc.cells(4, 4)")
    assert (names.until, names.key_diagnostics, names.steps, names.figures) == (2.0, ("u",), None, {})
    assert names.check is not None
    assert names.exact is not None


def test_files_without_settings_may_use_most_special_names(tmp_path: Path) -> None:
    names = names_of(tmp_path, "(4, 4)")
    assert (names.until, names.key_diagnostics) == (None, ())
    assert names.check is not None
    assert names.exact is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dim": 4}, "family 'waves': dim is 4; expected a whole number from 1 to 3"),
        ({"sizes": 8}, "family 'waves': sizes are 8; expected numbers, such as"),
        ({"sizes": (8, 0)}, "family 'waves': a size is 0"),
        ({"lines": "nu"}, "family 'waves': lines are 'nu'; expected mappings"),
        ({"order": 0}, "family 'waves': order is 0"),
    ],
)
def test_families_are_checked(options: dict[str, object], words: str) -> None:
    with pytest.raises(hc.InputError) as error:
        Family(**{"title": "waves", "dim": 1, "sizes": (8,)} | options)  # type: ignore[arg-type]
    assert words in str(error.value)


def test_numbers_are_extrapolated_without_an_exact_solution() -> None:
    extrapolated = Extrapolated(("Nu",))
    assert Names(extrapolated=extrapolated).is_extrapolated
    assert not Names(extrapolated=extrapolated, error=len).is_extrapolated
    assert not Names().is_extrapolated
    assert extrapolated.published((8, 8), {}) == {}
    assert extrapolated.noise({}) == 0.0


def refusal(capsys: pytest.CaptureFixture[str], *words: Any) -> str:
    """Return the error message of a command, also if it is printed below a line of the file."""
    with pytest.raises((hc.InputError, SystemExit)) as error:
        command([str(word) for word in words])
    return str(error.value) + capsys.readouterr().err


# -- names of another kind -----------------------------------------------------------------------------------

SETTINGS = """
import halocline as hc
grid = hc.Grid(hc.cells(4), periodic=True)
u = grid.field("u")
{before}
sim = hc.Simulation(grid, lambda u: {{u: -u}}, scheme=hc.Euler(), dt=0.1)
{between}
sim.run(steps=2)
{after}
"""


def written(folder: Path, before: str = "", between: str = "", after: str = "") -> str:
    file = folder / "own.py"
    file.write_text(SETTINGS.format(before=before, between=between, after=after))
    return str(file)


NO_CHECKS = ("False", "3", "{'a': 1}", "'passed'", "[3]", "[]")
WRONG = [
    ("until = 'soon'", "until is 'soon'; expected a number"),
    ("until = -1.0", "until is -1; expected a finite time of at least 0"),
    ("steps = 0", "steps is 0; expected a whole number from 1"),
    ("steps = 2.5", "steps is 2.5; expected a whole number"),
    ("def exact(x, t): ...", "exact takes 2 arguments without a default; expected the time"),
    ("error = 5", "error is 5; expected a function"),
    ("error_name = 3", "error_name is 3; expected text"),
    ("def check(): ...", "check takes 0 arguments without a default; expected the problem"),
    ("start = 'random'", "start is 'random'; expected a function"),
    ("diagnostics = {'mean': 1}", "diagnostics is {'mean': 1}; expected a function"),
    ("key_diagnostics = 'mean'", "key_diagnostics is 'mean'; expected strings"),
    ("pictures = {'u': u}", "expected a function"),
    ("figures = 3", "figures is 3; expected a mapping of names to functions"),
    ("figures = {'cut': 3}", "figures['cut'] is 3; expected a function"),
    ("findings = len", "findings takes 1 argument without a default; expected diagnostics and steps"),
    ("limit = 0.5", "limit is 0.5; expected a function"),
    ("advice = 'wait'", "advice is 'wait'; expected a function"),
    ("progress = True", "progress is True; expected a function"),
    ("ends = 'steady'", "ends is 'steady'; expected strings"),
    ("events = 3", "events is 3; expected a sequence of hc.Event"),
    ("scheme_name = hc.RK3()", "expected text"),
    ("automatic = {'nu': 'small'}", "automatic['nu'] is 'small'; expected a number"),
    ("families = (3,)", "families is (3,); expected a sequence of hc.Family"),
    ("extrapolated = ('Nu',)", "extrapolated is ('Nu',); expected hc.Extrapolated"),
]


def test_every_special_name_is_tested() -> None:
    tried_names = {line.removeprefix("def ").replace("(", " ").split()[0] for line, _ in WRONG}
    assert tried_names == set(Names.__dataclass_fields__)


@pytest.mark.parametrize(("line", "words"), WRONG, ids=[line for line, _ in WRONG])
@pytest.mark.parametrize("place", ["before", "between"])
def test_an_invalid_special_name_ends_a_file_before_its_first_step(
    line: str, words: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("halocline.run.engine.prepared.Prepared.run", None)
    problem = Problem(written(tmp_path, **{place: line}))
    with pytest.raises(hc.InputError) as error:
        problem.run()
    assert str(error.value).startswith(f"{problem.spelling}: ")
    assert words in str(error.value)
    assert "rename it if the file needs it for something else" in str(error.value)


@cases("line, words", WRONG, default=WRONG[::3], ids=[line for line, _ in WRONG])
def test_a_special_name_set_after_the_run_loses_no_result(
    line: str, words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "halocline")
    result = Problem(written(tmp_path, after=line)).run()
    assert result.record is not None
    assert result.record.steps == 2
    if "check" not in line:
        assert words in caplog.text
    else:
        with pytest.raises(hc.InputError, match=re.escape(words)):
            result.check()


def test_names_imported_from_halocline_are_not_special_names(tmp_path: Path) -> None:
    problem = Problem(written(tmp_path, "from halocline import *\nfrom halocline import steps"))
    assert problem.run().record is not None
    assert problem.complaints == {}
    assert problem.known.steps is None


def test_files_without_settings_may_use_special_names(tmp_path: Path) -> None:
    file = written(tmp_path, "\n".join(line for line, _ in WRONG))
    Path(file).write_text(Path(file).read_text().replace("hc.cells(4)", "(4,)"))
    assert Problem(file).run().record is not None


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            "def diagnostics(): return 5",
            "diagnostics() returns 5; expected a mapping of names to values, such as",
        ),
        (
            "def diagnostics(): return {'time': hc.max(u)}",
            "diagnostics() returns 'time', but each row already has a value of this name",
        ),
        ("def diagnostics(): return {'most': hc.max(u)}\nkey_diagnostics = ('must',)", "'must'"),
        ("extrapolated = hc.Extrapolated(('Nu',))", "diagnostic in extrapolated 'Nu' is unknown"),
        ("def diagnostics(): return {'most': 'u'}", "diagnostics(): operand is 'u' of type str; expected"),
        ("def diagnostics(): return {'most': u}", "diagnostics(): u varies from cell to cell. Reduce it"),
    ],
)
def test_invalid_diagnostics_end_a_file_before_its_first_step(lines: str, words: str, tmp_path: Path) -> None:
    file = written(tmp_path, lines)
    with pytest.raises(hc.InputError) as error:
        Problem(file).run()
    assert words in str(error.value)
    assert file in str(error.value)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("def pictures(): return u", "pictures() returns"),
        ("figures = {'cut': lambda sim: 3}", "figure 'cut' is 3; expected a halocline.io.figure.Figure"),
        ("def findings(numbers, steps): return steps", "findings(diagnostics, steps) returns 2; expected"),
        *((f"def check(sim): return {value}", f"check returns {value}; expected") for value in NO_CHECKS),
        ("def limit(scalars): return 3", "limit(scalars) is 3; expected text"),
    ],
)
def test_invalid_results_of_functions_of_a_file_are_reported(
    lines: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, lines)
    check = ["--check"] if "check" in lines else []
    message = refusal(capsys, "run", file, "--json", tmp_path / "a.json", "--pictures", tmp_path, *check)
    assert words in message
    assert file in message


@pytest.mark.parametrize("option", [["--n", "8"], ["--dim", "1"]])
@pytest.mark.parametrize("verb", ["run", "explain"])
def test_cells_of_a_file_without_declared_cells_are_rejected(
    verb: str, option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(written(tmp_path, "k = hc.setting('k', 1.0)"))
    file.write_text(file.read_text().replace("hc.cells(4)", "(4,)"))
    message = refusal(capsys, verb, file, *option)
    assert f"{' '.join(option)}: {file} declares no cells. Leave the option out, or call hc.cells" in message


def test_a_declaration_by_another_name_is_an_error(tmp_path: Path) -> None:
    file = Path(written(tmp_path))
    file.write_text(file.read_text().replace("hc.cells(4)", "declared(4)"))
    file.write_text(file.read_text().replace("grid =", "declared = hc.cells\ngrid ="))
    with pytest.raises(hc.InputError, match="is called under another name"):
        Problem(str(file)).run()
    file.write_text(
        file.read_text().replace("import halocline as hc", "import halocline as hc\nfrom halocline import *")
    )
    file.write_text(file.read_text().replace("declared = hc.cells\n", "").replace("declared(4)", "cells(4)"))
    assert Problem(str(file), [8]).shape == (8,)


def test_a_vector_has_a_diagnostic_for_each_component(tmp_path: Path) -> None:
    lines = (
        "w = grid.vector('w')\ndef diagnostics(): return {'most': hc.max(w)}\nkey_diagnostics = ('most_x',)"
    )
    record = Problem(written(tmp_path, lines)).run().record
    assert record is not None
    assert record.diagnostics == {"most_x": 0.0}


def test_results_of_a_file_are_in_its_json(tmp_path: Path) -> None:
    file = written(tmp_path, "def findings(numbers, steps): return {'ratio': steps / 4, 'file': 'other'}")
    assert command(["run", file, "--json", str(tmp_path / "a.json")]) == 0
    record_data = json.loads((tmp_path / "a.json").read_text())
    assert (record_data["ratio"], record_data["file"], record_data["run"]["steps"]) == (0.5, file, 2)
