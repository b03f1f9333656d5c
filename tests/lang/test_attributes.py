"""Attributes that a user sets: some have an effect, all others are errors."""

from __future__ import annotations

from typing import Any

import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.lang.attributes import Sealed
from halocline.physics.mhd_tvd import MHDSimulation


def public_objects() -> dict[str, Any]:
    """Return an object of each public class with attributes."""
    grid = hc.Grid((4,), periodic=True)
    u, w = grid.field("u"), grid.vector("w")
    sim = hc.Simulation(
        grid, lambda u, kappa: {u: kappa * hc.laplacian(u)}, scheme=hc.Euler(), dt=0.1,
        parameters={"kappa": 0.1}, threads=1,
    )  # fmt: skip
    walls = hc.Grid((4,))
    v = walls.field("v", boundary=hc.Value(0.0))
    problem = hc.LinearProblem(lambda v: -hc.laplacian(v), v, 1.0, threads=1)
    return {
        "Grid": grid, "Field": u, "Vector": w, "Scalar": hc.Scalar("a"), "Simulation": sim,
        "LinearProblem": problem, "Fields": problem.fields,
        "Parameters": sim.parameters, "Output": hc.Output("u.zarr"), "Checkpoint": hc.Checkpoint("c"),
        "Execution": hc.Execution(), "Euler": hc.Euler(), "RK3": hc.RK3(),
    }  # fmt: skip


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    return public_objects()


def test_attributes_without_effect_are_rejected(objects: dict[str, Any]) -> None:
    """Unknown attributes and read-only attributes are errors."""
    attempt_count = 0
    for kind, instance in objects.items():
        public_names = [name for name in dir(instance) if not name.startswith("_")]
        settable = {"title", "notes", "dt"} if isinstance(instance, hc.Simulation) else set()
        for name in {*public_names, f"{public_names[0]}x", "until", "time"} - settable - {"name"}:
            with pytest.raises((InputError, AttributeError)):
                setattr(instance, name, 1e300)
            attempt_count += 1
        assert vars(type(instance)).get("settable", {}).keys() <= settable | {"name"}, kind
    assert attempt_count > 150


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (
            "Simulation",
            "time",
            r"time of a Simulation cannot be set: sim\.start_new_run\(time=0\) sets the time",
        ),
        ("Simulation", "steps", r"start_new_run\(time=0\)"),
        ("Simulation", "tittle", r"a Simulation has no attribute 'tittle' \(did you mean 'title'\?\)"),
        (
            "Simulation",
            "scheme",
            "scheme of a Simulation cannot be changed after creation. Create another Simulation",
        ),
        ("Simulation", "parameters", r'set a parameter, as in parameters\["kappa"\] = 0\.2'),
        ("Simulation", "tme", r"a Simulation has no attribute 'tme' \(did you mean 'time'\?\)"),
        ("Parameters", "kappa", r'expected an item: parameters\["kappa"\] = 0\.2'),
        ("LinearProblem", "rtol", r"give it to solve\(\)"),
        ("Grid", "shap", r"did you mean 'shape'\?"),
        ("Field", "boundary", "boundary of a Field cannot be changed after creation"),
        ("Scalar", "value", r"s\.set\(value\) records a statement"),
    ],
)
def test_the_error_includes_a_remedy(kind: str, name: str, words: str, objects: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=words):
        setattr(objects[kind], name, 1.0)


def test_attributes_with_effect_can_be_set(objects: dict[str, Any]) -> None:
    sim = objects["Simulation"]
    sim.title, sim.notes, sim.dt = "heat", lambda: {"seen": 1}, 0.05
    sim.parameters["kappa"] = 0.2
    sim["u"] = 1.0
    sim.run(steps=2)
    assert (sim.title, sim.dt, sim.time) == ("heat", 0.05, 0.1)


def test_subclasses_set_their_attributes_in_init() -> None:
    class Recorder(hc.Simulation):
        def __init__(self, **options: Any) -> None:
            grid = hc.Grid((2,), periodic=True)
            grid.field("u")
            super().__init__(grid, lambda u: {u: 0.0 * u}, scheme=hc.Euler(), dt=0.1, threads=1, **options)
            self.times: list[float] = []
            self._looks = 0

        def look(self) -> None:
            self._looks += 1
            self.times.append(self.time)

    sim = Recorder()
    sim["u"] = 0.0
    sim.run(steps=2, every=hc.steps(1), callback=Recorder.look)
    assert (sim._looks, len(sim.times)) == (2, 2)
    with pytest.raises(InputError, match=r"a Recorder has no attribute 'tmes' \(did you mean 'times'\?\)"):
        sim.tmes = []
    assert issubclass(MHDSimulation, Sealed)
