"""Answers to typical first attempts of new users, who know other libraries and NumPy."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.lang import advice
from halocline.words import short_repr
from hang import HANG
from sine_field import simulation, sine

# -- names of other libraries --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", advice.MISSING)
def test_names_of_other_libraries_get_advice(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'halocline' has no attribute '{name}'; use "):
        getattr(hc, name)
    # names in the answer exist
    words = advice.MISSING[name].replace("(", " ").replace(",", " ").replace(")", " ").split()
    for word in (w.removeprefix("hc.") for w in words if w.startswith("hc.")):
        assert hasattr(hc, word.partition(".")[0]), word


@pytest.mark.parametrize(
    ("name", "suggestion"), [("Rk3", "RK3"), ("Gird", "Grid"), ("laplacain", "laplacian")]
)
def test_a_close_name_is_suggested(name: str, suggestion: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean '{suggestion}'"):
        getattr(hc, name)


def test_every_advice_names_an_existing_function() -> None:
    texts = [*advice._BY_ADVICE, *advice.MISSING.values()]
    assert len(texts) > 60
    for text in texts:
        for part in text.split("hc.")[1:]:
            name = "".join(c if c.isalnum() or c == "_" else " " for c in part).split()[0]
            assert hasattr(hc, name), text


# -- functions of NumPy and methods of arrays ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda c: np.roll(c, 1, axis=0), r"NumPy's roll .*u\[-1, 0\], or hc\.shift"),
        (np.gradient, r"NumPy's gradient .*hc\.grad\(u\)"),
        (np.diff, r"NumPy's diff .*u\[1, 0\] - u\[0, 0\]"),
        (np.sum, r"NumPy's sum .*hc\.sum\(u\)"),
        (np.mean, r"NumPy's mean .*hc\.sum\(u\) / grid\.size"),
        (np.max, r"NumPy's max .*hc\.max\(u\)"),
        (np.linalg.norm, r"NumPy's norm .*hc\.norm"),
        (lambda c: np.pad(c, 1), r"NumPy's pad .*boundary"),
        (lambda c: np.where(c > 0), r"NumPy's where .*three arguments"),
        (np.add.reduce, r"NumPy's add\.reduce .*hc\.sum"),
        (np.arctan, r"NumPy's arctan cannot be traced into a kernel; these can"),
        (lambda c: np.sin(c, dtype="f4"), r"NumPy's sin with dtype= cannot be traced; leave dtype= out"),
        (np.array, "a NumPy array made from a field"),
        (lambda c: c.clip(0, 1), r"'Field' object has no attribute 'clip': write hc\.minimum\("),
        (lambda c: (c + 1).mean(), r"'Expr' object has no attribute 'mean': write hc\.sum"),
        (lambda c: c.locaton, r"has no attribute 'locaton' \(did you mean 'location'"),
    ],
)
def test_functions_of_numpy_get_advice(function: Callable[[Any], Any], words: str) -> None:
    grid = hc.Grid((8, 6), periodic=True)
    grid.field("c")
    with pytest.raises(InputError, match=words):
        hc.Simulation(grid, lambda c: {c: function(c)}, scheme=hc.Euler(), dt=1e-3)


def test_np_clip_is_traced() -> None:
    grid = hc.Grid(8, periodic=True)
    c = grid.field("c")
    assert np.clip(c, 0.25, 0.5) is hc.minimum(hc.maximum(c, 0.25), 0.5)


def test_methods_of_arrays_in_initial_values_get_advice(caplog: pytest.LogCaptureFixture) -> None:
    sim = simulation()
    sim["c"] = lambda x, y: x.clip(0.2, 0.4) + y
    assert "'Expr' object has no attribute 'clip': write hc.minimum(hc.maximum(u, low), high)" in caplog.text
    x, y = np.meshgrid((np.arange(8) + 0.5) / 8, (np.arange(6) + 0.5) / 6, indexing="ij")
    assert np.allclose(sim.gather("c"), x.clip(0.2, 0.4) + y, rtol=1e-15)


@pytest.mark.parametrize("value", [1j, "a", None, [1, "a"]])
def test_an_invalid_value_gives_an_error_without_warnings(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    sim = simulation()
    caplog.clear()
    with pytest.raises(InputError):
        sim["c"] = lambda x, y: value
    assert not caplog.records


# -- arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["RK3", "rk3", "hc.RK3()", hc.RK3])
def test_a_scheme_by_name_gets_advice(scheme: Any) -> None:
    grid = hc.Grid(8, periodic=True)
    grid.field("c")
    with pytest.raises(InputError, match=r"^scheme is .*hc\.Euler\(\), .*; write scheme=hc\.RK3\(\)$"):
        hc.Simulation(grid, sine, scheme=scheme, dt=1e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda sim: sim.run(1.0), r"run\(1\.0\): write run\(until=1\.0\) for a time"),
        (
            lambda sim: sim.run(steps=1, output="a.zarr"),
            r"expected an hc\.Output, such as hc\.Output\('a\.zarr'\)",
        ),
        (
            lambda sim: sim.run(steps=1, output=["a.zarr"]),
            r"expected an hc\.Output, such as hc\.Output\('a\.zarr'\)",
        ),
        (
            lambda sim: sim.run(steps=1, checkpoint="ck"),
            r"expected an hc\.Checkpoint, such as hc\.Checkpoint\('ck'\)",
        ),
        (lambda sim: hc.Output("w.nc"), r"NetCDF .*such as w\.zarr\. .*to_netcdf\(\"w\.nc\"\)"),
        (lambda sim: hc.Output("w.h5"), r"HDF5 .*such as w\.zarr"),
        (lambda sim: hc.Output("w.vtr"), r"VTK .*halocline export w\.zarr"),
        (
            lambda sim: hc.Grid((4, 4)).field("w", boundary=hc.Periodic()),
            r"side 'x-' is periodic, but its axis is not. Write hc\.Grid\(\.\.\., periodic='x'\)",
        ),
        (
            lambda sim: hc.Grid(4, stretch={"x": lambda x: None}),
            "map of axis x makes None; .* return statement",
        ),
        (
            lambda sim: hc.solve(lambda c, kappa: kappa * c, sim.grid.fields["c"], 1.0),
            r"the operator takes 2 arguments .*hc\.parameter\(name\)",
        ),
    ],
)
def test_common_mistakes_get_advice(call: Callable[[hc.Simulation], Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(simulation())


def test_an_outcome_has_a_short_representation() -> None:
    assert repr(simulation().run(steps=2)).startswith("Outcome('completed', loops=('limit',), seconds=")


def equations_that_fail(c: Any) -> Any:
    factor = 1 / 0
    return {c: factor * c}


def test_an_error_in_a_function_of_the_user_names_its_line() -> None:
    grid = hc.Grid(8, periodic=True)
    grid.field("c")
    line = equations_that_fail.__code__.co_firstlineno + 1
    with pytest.raises(InputError, match=rf"ZeroDivisionError\(.*\) at {__file__}:{line}$"):
        hc.Simulation(grid, equations_that_fail, scheme=hc.Euler(), dt=1e-3)


@pytest.mark.parametrize(
    "value",
    [10**400, 10**5000, "x" * 10_000, np.ones(10_000), list(range(10_000)), dict.fromkeys(range(9999))],
    ids=["digits", "more digits than Python prints", "text", "array", "list", "dictionary"],
)
def test_long_values_are_shortened_in_messages(value: Any) -> None:
    assert len(short_repr(value)) < 300
    for call in (
        lambda: hc.Grid(value),
        lambda: hc.steps(value),
        lambda: hc.RK3() and simulation().run(until=value),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert len(str(error.value)) < 800


# -- files of NumPy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"units": {"Q": "K"}}, "name in units 'Q' is unknown; known: c, time, x, y"),
        ({"fields": []}, "fields is empty"),
        ({"fields": {}}, "fields is empty"),
        ({"overwrite": "yes"}, "overwrite is 'yes'; expected True or False"),
        ({"path": ""}, "the path of an output is ''"),
    ],
)
def test_output_without_effect_is_an_error(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    sim = simulation()
    sim["c"] = 0.0
    with pytest.raises(InputError, match=words):
        sim.run(steps=1, output=hc.Output(**{"path": tmp_path / "a.zarr", **options}))
    with pytest.raises(InputError, match="the path of a checkpoint is ''"):
        hc.Checkpoint("")


HANGUP = """
import os, signal
from halocline.run.ranks.library import initialised_mpi
initialised_mpi()
os.kill(os.getpid(), signal.SIGHUP)
"""


def test_a_closed_terminal_ends_a_run() -> None:
    process = subprocess.run([sys.executable, "-c", HANGUP], timeout=HANG, check=False)
    assert process.returncode == -signal.SIGHUP
