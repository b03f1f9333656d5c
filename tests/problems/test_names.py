"""Names at the top of a problem file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import halocline as hc
from halocline.problems.names import Extrapolated, Family, Names
from halocline.problems.problem import Problem

FILE = """
import halocline as hc
until, shown, other = 2.0, ("u",), 1
def check(sim): assert sim.steps == 0
def exact(time): return {{}}
{line}
grid = hc.Grid({shape}, periodic=True)
u = grid.field("u")
hc.Simulation(grid, lambda u: {{u: -u}}, scheme=hc.Euler(), dt=0.1)
"""


def names_of(folder: Path, shape: str, line: str = "") -> Names:
    file = folder / "own.py"
    file.write_text(FILE.format(shape=shape, line=line))
    problem = Problem(str(file))
    assert problem.program
    return problem.known


@pytest.mark.parametrize("shape", ["hc.cells(4, 4)", "(4, 4)"])
def test_a_file_has_all_names_with_and_without_settings(tmp_path: Path, shape: str) -> None:
    names = names_of(tmp_path, shape)
    assert (names.until, names.shown, names.steps, names.figures) == (2.0, ("u",), None, {})
    assert names.check is not None
    assert names.exact is not None


WRONG = [
    ("until = 'late'", "until is 'late'; expected a number"),
    ("steps = 1.5", "steps is 1.5; expected a whole number"),
    ("error = 5", "error is 5; expected a function"),
    ("exact = lambda x, y: x", "exact takes 2 arguments without a default; expected the time"),
    ("diagnostics = {}", "diagnostics is {}; expected a function"),
    ("pictures = {'u': 1}", "pictures is {'u': 1}; expected a function"),
    ("progress = lambda: ''", "progress takes 0 arguments without a default; expected the scalars"),
    ("events = 3", "events is 3; expected a list of hc.Event"),
    ("families = (3,)", "families is (3,); expected a list of hc.Family"),
    ("extrapolated = ('Nu',)", "extrapolated is ('Nu',); expected hc.Extrapolated"),
    ("figures = 3", "figures is 3; expected a mapping"),
    ("figures = {'maps': 3}", "figure 'maps' is 3; expected a function"),
    ("automatic = 3", "automatic is 3; expected a mapping"),
    ("ends = 'steady'", "ends is 'steady'; expected texts"),
    ("error_name = 3", "error_name is 3; expected text"),
]


@pytest.mark.parametrize(("line", "words"), WRONG)
def test_a_name_of_another_form_is_reported(
    tmp_path: Path, line: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(hc.InputError, match=re.escape(f"own.py: {words}")):
        names_of(tmp_path, "hc.cells(4, 4)", line)
    name = line.partition(" ")[0]
    assert getattr(names_of(tmp_path, "(4, 4)", line), name) == getattr(Names(), name)
    (warning,) = caplog.messages
    assert f"own.py: {words}" in warning
    assert warning.endswith("; commands ignore this name")


def test_a_name_that_the_file_uses_after_its_run_is_not_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    problem_file = tmp_path / "own.py"
    for shape in ("(4, 4)", "hc.cells(4, 4)"):
        text = FILE.format(shape=shape, line="def error(sim): return 0.25")
        problem_file.write_text(
            text.replace("hc.Sim", "sim = hc.Sim") + "sim.run(steps=1)\nerror = error(sim)\n"
        )
        assert Problem(str(problem_file)).run(threads=1).record.error == 0.25
    assert not caplog.messages


@pytest.mark.parametrize("shape", ["(4, 4)", "hc.cells(4, 4)"])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("def diagnostics(): return 5", "diagnostics() returns 5; expected a mapping by name"),
        (
            "shown = ['nosuch']; diagnostics = lambda: {'all': hc.sum(u)}",
            "shown: diagnostic 'nosuch' is unknown; known: all",
        ),
        ("def error(sim): return 'much'", "error(sim) is 'much'; expected a number"),
    ],
)
def test_results_of_the_functions_are_validated(tmp_path: Path, shape: str, line: str, words: str) -> None:
    file = tmp_path / "own.py"
    text = FILE.format(shape=shape, line="").replace('until, shown, other = 2.0, ("u",), 1', line)
    file.write_text(text.replace("hc.Sim", "sim = hc.Sim") + "sim.run(steps=1)\n")
    with pytest.raises(hc.InputError, match=re.escape(words)):
        Problem(str(file)).run(threads=1)


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


def test_numbers_are_extrapolated_where_there_is_no_error() -> None:
    extrapolated = Extrapolated(("Nu",))
    assert Names(extrapolated=extrapolated).is_extrapolated
    assert not Names(extrapolated=extrapolated, error=len).is_extrapolated
    assert not Names().is_extrapolated
    assert extrapolated.published((8, 8), {}) == {}
    assert extrapolated.noise({}) == 0.0
