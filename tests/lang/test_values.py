"""NumPy scalars and arrays, paths, and names in two spellings, as arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halocline as hc
from halocline.errors import InputError
from halocline.lang.boundary import Ghost
from halocline.lang.program import Program
from halocline.lang.trace import tracing
from halocline.lang.values import as_name, as_quantity, as_real, json_value, plain
from halocline.run.output.every import Every
from halocline.run.simulation.course import run_bounds
from halocline.run.simulation.observers import RunArguments

INTEGERS: list[Callable[[int], Any]] = [np.int64, np.int32, np.int8, np.uint16, np.array]
REALS: list[Callable[[float], Any]] = [
    np.float64, np.float32, np.float16, np.array, lambda x: np.array(x, np.float32)
]  # fmt: skip


def facts(grid: hc.Grid) -> Any:
    return grid.shape, grid.extent, grid.origin, grid.periodic, grid.walls


def checked(region: Any) -> str:
    """Return the text of a region, which stores compare, after a check on a grid."""
    grid = hc.Grid((8, 8))
    region.check(grid)
    return repr(region)


def formula(make: Callable[[hc.Field], Any]) -> bytes:
    """Return the digest of a formula of a field."""
    digest: bytes = make(hc.Grid((8, 8), periodic=True).field("u")).expr.digest
    return digest


def ghosts(condition: Any) -> list[bytes]:
    """Return the digests of the ghosts of a boundary condition."""
    u = hc.Grid((8, 8)).field("u", boundary=condition)
    with tracing(Program("ghosts")):
        return [condition.ghost(Ghost(u, 0, -1, layer)).digest for layer in (0, 1)]


def interval(options: Any) -> Every:
    return Every.parse("every", options.every)


# calls of the public interface with a whole number, and with a real number
WHOLE: dict[str, Callable[[Any], Any]] = {
    "Grid": lambda n: facts(hc.Grid(n)),
    "Grid of two axes": lambda n: facts(hc.Grid((n, n), extent=n, origin=(n, 0))),
    "vector": lambda n: len(hc.Grid((4, 4)).vector("v", components=n)),
    "Execution": lambda n: hc.Execution(
        threads=n, subdomains_per_rank=n, mailboxes=n, ranks_per_node=n, patch=n, decomposition=(n, n)
    ),
    "Execution by axis": lambda n: hc.Execution(patch={"x": n}, decomposition={"x": n}),
    "steps": lambda n: run_bounds(RunArguments(steps=n), timed=True),
    "every": lambda n: run_bounds(RunArguments(None, 8, n, callback=print), timed=True),
    "Output": lambda n: (interval(hc.Output("a", every=n)), hc.Output("a", io_threads=n)),
    "Checkpoint": lambda n: (interval(hc.Checkpoint("a", every=n)), hc.Checkpoint("a", keep=n, io_threads=n)),
    "Coarsen": lambda n: checked(hc.Coarsen(n)),
    "offset": lambda n: formula(lambda u: u[n, n]),
    "shift": lambda n: formula(lambda u: hc.shift(u, 1, n)),
    "order": lambda n: formula(lambda u: hc.laplacian(u, order=n)),
    "difference": lambda n: formula(lambda u: hc.difference(u, 0, n)),
    "power": lambda n: formula(lambda u: u**n + hc.pow(u, n)),
    "value": lambda n: formula(lambda u: hc.value(u, at=(n, n))),
    "random": lambda n: formula(lambda u: hc.random(n, n, u)),
    "lookup": lambda n: formula(lambda u: hc.lookup((n, 1), u)),
    "Value": lambda n: ghosts(hc.Value(n, order=n)),
    "Derivative": lambda n: ghosts(hc.Derivative(n, order=n)),
    "Extrapolate": lambda n: ghosts(hc.Extrapolate(n)),
}
REAL: dict[str, Callable[[Any], Any]] = {
    "Grid": lambda x: facts(hc.Grid((4, 4), extent=(x, 1.0), origin={"x": x})),
    "until": lambda x: run_bounds(RunArguments(x), timed=True),
    "every": lambda x: run_bounds(RunArguments(1.0, None, x, True, print), timed=True),
    "Output": lambda x: interval(hc.Output("a", every=x)),
    "Checkpoint": lambda x: interval(hc.Checkpoint("a", every=x)),
    "Slice": lambda x: checked(hc.Slice(x=x)),
    "Box": lambda x: checked(hc.Box(x=(0.25, x), y=(x, 1.0))),
    "Points": lambda x: checked(hc.Points([(x, x)])),
    "arithmetic": lambda x: formula(lambda u: ((x * u + x) / x - x) ** x + x / u),
    "comparison": lambda x: formula(lambda u: hc.where((u > x) | (u == x), x, u)),
    "maximum": lambda x: formula(lambda u: hc.maximum(x, hc.minimum(u, x))),
    "value": lambda x: formula(lambda u: hc.value(u, x=x, y=x)),
    "lookup": lambda x: formula(lambda u: hc.lookup((x, x), u)),
    "Value": lambda x: ghosts(hc.Value(x)),
    "Derivative": lambda x: ghosts(hc.Derivative(x)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_of_numpy_are_accepted(name: str) -> None:
    call = WHOLE[name]
    for kind in INTEGERS:
        assert call(kind(2)) == call(2), kind


@pytest.mark.parametrize("name", REAL)
def test_real_numbers_of_numpy_are_accepted(name: str) -> None:
    call = REAL[name]
    for kind in REALS:
        assert call(kind(0.5)) == call(0.5), kind


def test_arrays_are_accepted_as_sequences() -> None:
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        pair = np.array([1, 2], dtype)
        expected = facts(hc.Grid((4, 4), extent=(1, 2), origin=(1, 2)))
        assert facts(hc.Grid((4, 4), extent=pair, origin=pair)) == expected
        assert "[0" in checked(hc.Box(x=np.array([0, 1], dtype)))
    pair = np.array([1, 2], np.int32)
    assert hc.Grid(pair).shape == (1, 2)
    assert hc.Execution(patch=pair, decomposition=pair) == hc.Execution(patch=[1, 2], decomposition=[1, 2])
    assert hc.Grid((4, 4), periodic=np.array([True, False])).periodic == (True, False)
    assert hc.Execution(overlap=np.True_, gpudirect=np.False_) == hc.Execution(overlap=True)


@given(
    st.one_of(
        st.integers(-(2**31), 2**31 - 1).map(np.int32),
        st.integers(0, 2**53).map(np.int64),
        st.floats(width=32, allow_nan=False).map(np.float32),
        st.floats(allow_nan=False).map(np.float64),
        st.booleans().map(np.bool_),
    )
)
def test_the_conversion_is_exact(value: Any) -> None:
    for form in (value, np.array(value)):
        assert plain(form) == value
        assert type(plain(form)) in (bool, int, float)
        assert as_real(form) == float(value)
        assert (as_quantity(form) is None) == isinstance(value, np.bool_)
    assert plain({"a": (value, [value])}) == {"a": (value, [value])}
    if np.isfinite(value):
        assert json.loads(json.dumps([value], default=json_value)) == [plain(value)]


def test_float32_values_are_converted_exactly() -> None:
    assert Every.parse("every", np.float32(0.1)).time == 0.10000000149011612
    assert json.dumps([Path("a/b"), np.arange(2)], default=json_value) == '["a/b", [0, 1]]'
    with pytest.raises(TypeError, match="2j of type complex is not JSON data"):
        json.dumps([2j], default=json_value)


@pytest.mark.parametrize("wrong", [5, None, b"a.zarr"])
def test_an_invalid_path_is_one_message(wrong: Any) -> None:
    for make in (hc.Output, hc.Checkpoint):
        with pytest.raises(InputError, match=r"the path of an? .* is .*; expected a text such as"):
            make(wrong)
    assert hc.Output(np.str_("a.zarr")).path == hc.Output("a.zarr").path


def test_names_are_normalised_to_one_unicode_form(tmp_path: Path) -> None:
    micro, greek = "\u00b5", "\u03bc"
    assert as_name(micro, "name") == greek
    grid = hc.Grid((8, 8), periodic=True)
    field, w = grid.field(micro), grid.vector("w" + micro)
    scope: dict[str, Any] = {}
    exec(f"def f({micro}, k{micro}): return {{{micro}: -k{micro} * {micro}}}", scope)
    sim = hc.Simulation(
        grid, scope["f"], parameters={"k" + micro: np.float32(0.5)}, scheme=hc.Euler(), dt=np.float32(0.5)
    )
    sim[micro], sim[w] = np.float32(2.0), 1.0
    sim.notes = lambda: {"a": np.float32(1.5), "b": np.arange(2), "c": tmp_path}
    sim.run(
        steps=np.int64(2),
        output=hc.Output(tmp_path / "a.zarr", [micro], units={micro: "Pa s"}),
        checkpoint=hc.Checkpoint(tmp_path / "points", every=np.int32(1)),
    )
    result = 2.0 * 0.75**2
    assert sim.evaluate(hc.max(field)) == result
    sim.resume(tmp_path / "points", change=["k" + micro])
    assert sim.resumed is not None
    assert sim.resumed.facts["a"] == 1.5
    sim.parameters["k" + greek] = np.float64(0.25)
    assert sim.parameters["k" + micro] == 0.25
    sim[field] = 0.0
    sim[field] = tmp_path / "a.zarr" / micro
    assert sim.evaluate(hc.max(field)) == result
    with pytest.raises(InputError, match="already has a field named"):
        grid.field(greek)
    two_spellings = {"k" + micro: 1, "k" + greek: 2}
    with pytest.raises(InputError, match=r"parameter .* is given twice, in different Unicode forms"):
        hc.Simulation(grid, scope["f"], parameters=two_spellings, scheme=hc.Euler(), dt=0.1)
    with pytest.raises(InputError, match="field name 5 is not an identifier such as"):
        grid.field(5)  # type: ignore[arg-type]
