"""Names at the top of a problem file."""

from __future__ import annotations

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
    assert (names.until, names.shown, names.steps, names.figures) == (2.0, ("u",), None, {})
    assert names.check is not None
    assert names.exact is not None


def test_another_file_may_use_most_names_for_itself(tmp_path: Path) -> None:
    names = names_of(tmp_path, "(4, 4)")
    assert (names.until, names.shown) == (None, ())
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


def test_numbers_are_extrapolated_where_there_is_no_error() -> None:
    extrapolated = Extrapolated(("Nu",))
    assert Names(extrapolated=extrapolated).is_extrapolated
    assert not Names(extrapolated=extrapolated, error=len).is_extrapolated
    assert not Names().is_extrapolated
    assert extrapolated.published((8, 8), {}) == {}
    assert extrapolated.noise({}) == 0.0
