"""Assignments that assign nothing, and functions that must not be traced."""

from __future__ import annotations

import functools
import operator
import random
import re
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halocline as hc
from arguments import DRAWS, ENDS, OTHERS, generator, line, noise
from halocline.errors import InputError
from halocline.lang import equations, trace
from halocline.lang.expression import IN_PLACE
from halocline.lang.program import Assign, Program
from stepped_programs import program_of

# -- assignments that assign nothing -------------------------------------------------------------------------


APPLY = {sign: getattr(operator, name) for name, sign in IN_PLACE.items()}


def test_in_place_operators_on_fields_are_rejected() -> None:
    grid = hc.Grid((4, 4), periodic=True)
    u, v = grid.field("u"), grid.vector("v")
    assert len(APPLY) == 13
    for name, sign in IN_PLACE.items():
        apply = getattr(operator, name)
        targets = {"u": u, "v": v, "v_x": v[0], "w": v.like("w")}
        targets[r"hc\.Vector\(\(u, v_y,\)\)"] = hc.Vector((u, v[1]))
        for target, thing in targets.items():
            words = rf"^{target} {re.escape(sign)}= ... assigns nothing: write {target}\.set\({target} "
            with pytest.raises(InputError, match=words):
                apply(thing, 2.0)
    for thing in (u, hc.Scalar("u")):
        with pytest.raises(InputError, match=r"^u\[...\] = ... assigns nothing: write u.set"):
            thing[0, 0] = 1.0
        with pytest.raises(InputError, match=r"^u\[...\] = ... assigns nothing: write u.set"):
            u[1, 0] += 1.0
    with pytest.raises(InputError, match=r"^v\[0\] = ... assigns nothing: write v\[0\].set"):
        v[0] = u
    # a name that the user binds to a value may be reused
    s = hc.derivative(u, "x")
    s += hc.derivative(u, "y")
    assert s is hc.derivative(u, "x") + hc.derivative(u, "y")
    s *= 2.0
    s -= u
    s /= 3.0
    s **= 2
    t = hc.parameter("k")
    t += 1.0
    assert t is hc.parameter("k") + 1.0
    w = 1.0 * v
    w += v
    assert all(map(operator.is_, w, 1.0 * v + v))
    k = hc.Scalar("k")
    k *= 2.0  # outside of a program
    assert k is 2.0 * hc.Scalar("k")
    with trace.tracing(Program("p")):
        q = hc.stage(2.0 * u)
        q += 1.0
        assert isinstance(q, hc.Expr)


def test_a_program_without_assignments_is_reported_with_the_likely_cause() -> None:
    grid = hc.Grid(4, periodic=True)
    u, _ = grid.field("u"), grid.vector("v")

    def adds(u: Any) -> None:
        u = u + hc.laplacian(u)

    def in_place(u: Any) -> None:
        u += hc.laplacian(u)

    def returns(u: Any) -> Any:
        return u + 1.0

    def vector(v: Any) -> None:
        v = v * 2.0

    def number(u: Any, k: Any) -> None:
        k = k * 2.0

    def stops(u: Any) -> None:
        u = u + 1.0
        hc.stop(hc.max(u) > 2.0, "full")

    line = adds.__code__.co_firstlineno + 1
    for function, words in (
        (
            adds,
            rf"'adds' assigns no field or scalar: u = ... in line {line} only rebinds the Python",
        ),
        (in_place, r"^u \+= ... assigns nothing: write u.set\(u \+ ...\)"),
        (returns, r"'returns' assigns no field or scalar; write u.set\(...\)$"),
        (number, r"'number' assigns no field or scalar; write u.set\(...\)$"),
        (vector, r"v = ... in line \d+ only rebinds the Python name; write v.set"),
        (stops, r"'stops' assigns no field"),
        (lambda: None, r"'<lambda>' assigns no field or scalar"),
    ):
        with pytest.raises(InputError, match=words):
            program_of(grid, hc.program(function), parameters={"k": 1.0})
    for setting in (lambda u: [u.set(2.0 * u), {u: u}][1], lambda u, v: (u.set(v[0]), v)):
        with pytest.raises(InputError, match=r"'<lambda>' returns a value of type \w+, which has no effect"):
            program_of(grid, hc.program(setting))
    program_of(grid, hc.program(lambda u, v: (u.set(v[0]), v[0].set(u))))
    for function in (lambda u: u * 2.0, lambda u: None):
        with pytest.raises(InputError, match=r"'<lambda>' assigns no field or scalar"):
            program_of(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.1, after_step=function)
    program_of(
        grid,
        lambda u: {u: -u},
        scheme=hc.Euler(),
        dt=0.1,
        after_step=lambda u: hc.stop(hc.max(u) > 1.0, "full"),
    )
    assert u.name == "u"


def test_a_rebound_field_name_without_assignment_is_reported() -> None:
    grid = hc.Grid(4, periodic=True)
    grid.field("u"), grid.field("v")

    def half(u: Any, v: Any) -> None:
        u = u + 1.0
        v.set(u)

    def whole(u: Any, v: Any) -> None:
        u.set(u + 1.0)
        u = 2.0 * u
        v.set(u)

    (notice,) = program_of(grid, hc.program(half)).notices
    assert re.search(r"^program half: u = ... in line \d+ only rebinds .* Write u.set", notice)
    assert program_of(grid, hc.program(whole)).notices == []

    def clock(u: Any, t: Any) -> None:
        t = t + 0.1
        u.set(u * t)

    (notice,) = program_of(grid, hc.program(clock)).notices
    assert re.search(r"^program clock: t = ... in line \d+ only rebinds .* Write t.set", notice)


def test_names_of_numbers_may_be_rebound() -> None:
    grid = hc.Grid(4, periodic=True)
    grid.field("u")

    def program(u: Any, kappa: Any) -> None:
        kappa = kappa / 2.0
        u.set(u * kappa)

    def in_place(u: Any, kappa: Any) -> None:
        kappa /= 2.0
        u.set(u * kappa)

    expected, in_place_program = (
        program_of(grid, hc.program(f), parameters={"kappa": 1.0}) for f in (program, in_place)
    )
    assert expected.notices == in_place_program.notices == []
    assert [s.values for s in in_place_program.all_statements() if isinstance(s, Assign)] == [
        s.values for s in expected.all_statements() if isinstance(s, Assign)
    ]

    def rates(u: Any, kappa: Any, t: Any) -> Any:
        kappa *= 2.0
        t += 1.0
        return {u: kappa * t * u}

    plain = lambda u, kappa, t: {u: (2.0 * kappa) * (t + 1.0) * u}  # noqa: E731
    with_updates, written_out = (
        equations.equations(program_of(grid, f, parameters={"kappa": 1.0}, scheme=hc.RK3(), dt=0.5))
        for f in (rates, plain)
    )
    assert with_updates == written_out

    def lost(u: Any, t: Any) -> None:
        t += 0.1
        u.set(u * t)

    def update_of_scalar(u: Any) -> None:
        s = hc.scalar("s")
        s.set(0.0)
        s += 1.0
        u.set(u * s)

    for function, name in ((lost, "t"), (update_of_scalar, "s")):
        with pytest.raises(InputError, match=rf"^{name} \+= ... assigns nothing: write {name}.set"):
            program_of(grid, hc.program(function))


# -- numbers and arrays --------------------------------------------------------------------------------------


class Drawing:
    """Model that owns random number generators."""

    shared = np.random.default_rng(8)
    __slots__ = ("__dict__", "slot")

    def __init__(self) -> None:
        self.rng = self.slot = np.random.default_rng(9)
        self.table = {"r": [self.rng]}

    @property
    def number(self) -> float:
        return self.rng.random()

    def attribute(self, x: Any) -> Any:
        return self.rng.normal() * x

    def in_slot(self, x: Any) -> Any:
        return self.slot.normal() * x

    def of_class(self, x: Any) -> Any:
        return type(self).shared.normal() * x

    def by_property(self, x: Any) -> Any:
        return self.number * x

    def by_method(self, x: Any) -> Any:
        return self.attribute(x)

    def in_container(self, x: Any) -> Any:
        return self.table["r"][0].normal() * x

    def inside(self, x: Any) -> Any:
        draw = lambda: generator.random()  # noqa: E731
        return draw() * x


drawing = Drawing()
held = {"r": np.random.default_rng(10)}
module = types.ModuleType("own_generators")
vars(module)["rng"] = np.random.default_rng(11)
HOLDERS: dict[str, Callable[[Any], Any]] = {
    "attribute": drawing.attribute,
    "slot": drawing.in_slot,
    "class": drawing.of_class,
    "property": drawing.by_property,
    "method": drawing.by_method,
    "container of an object": drawing.in_container,
    "function inside": drawing.inside,
    "object": lambda x: drawing.rng.random() * x,
    "class by name": lambda x: Drawing.shared.random() * x,
    "dictionary": lambda x: held["r"].random() * x,
    "module": lambda x: module.rng.random() * x,
    "compiled method": (lambda draw: lambda x: draw() * x)(random.Random(3).random),
    "cached": functools.lru_cache(lambda x: drawing.rng.random() * x),
}

FIRST_USES = """
import halocline as hc
from halocline.lang.stepping import stepping
grid = hc.Grid(8, periodic=True)
grid.field("u")
assert "numpy.random" not in __import__("sys").modules
def table(u):
    import numpy as np
    return {u: float(np.random.default_rng(5).random(3)[0]) * u}
def loads(u):
    from scipy.special import erf
    return {u: float(erf(0.5)) * u}
def draws(u):
    return {u: np.random.rand() * u}
"""


@pytest.mark.parametrize(
    ("loaded", "function", "words"),
    [
        ("", "table", ""),
        ("", "loads", ""),
        ("numpy", "table", ""),
        ("numpy", "draws", "draws random numbers"),
    ],
)
def test_loading_a_generator_draws_no_number(loaded: str, function: str, words: str) -> None:
    text = f"{FIRST_USES}\n{'import numpy as np' if loaded else ''}\n"
    text += f"stepping(grid, {function}, scheme=hc.Euler(), dt=0.1)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (words in done.stderr) if words else done.returncode == 0, done.stderr


def test_random_numbers_are_detected_in_all_traced_functions() -> None:
    def drawn() -> float:
        return np.random.rand()  # noqa: NPY002

    grid = line()
    T = grid.find("T")
    scheme = {"scheme": hc.Euler(), "dt": 0.1}
    tracers: dict[str, Callable[[], Any]] = {
        "equations": lambda: program_of(grid, lambda T: {T: drawn() * T}, **scheme),
        "generator": lambda: program_of(grid, lambda T: {T: generator.random() * T}, **scheme),
        "helper": lambda: program_of(grid, lambda T: {T: noise() * T}, **scheme),
        "program": lambda: program_of(grid, hc.program(lambda T: T.set(drawn() * T))),
        "dt": lambda: program_of(grid, lambda T: {T: T}, scheme=hc.Euler(), dt=lambda T: drawn()),
        "after_step": lambda: program_of(
            grid, lambda T: {T: T}, after_step=lambda T: T.set(drawn()), **scheme
        ),
        "kernel": lambda: hc.BoundaryKernel(lambda u: u[0] + drawn()).ghost(ENDS[0]),
        "map": lambda: hc.Grid(8, stretch={"x": lambda x: x + 1e-12 * generator.random()}),
    }
    for name, tracer in tracers.items():
        with pytest.raises(InputError, match=f"{DRAWS}|{OTHERS}"):
            tracer()
        assert name
    for name, function in HOLDERS.items():
        rates, size = (lambda T, f=function: {T: f(T)}), (lambda T, f=function: f(hc.max(T)))
        kernel = hc.BoundaryKernel(lambda u, f=function: f(u[0]))
        for tracer in (
            lambda rates=rates: program_of(grid, rates, **scheme),
            lambda size=size: program_of(grid, lambda T: {T: T}, scheme=hc.Euler(), dt=size),
            lambda kernel=kernel: kernel.ghost(ENDS[0]),
        ):
            with pytest.raises(InputError, match=DRAWS):
                tracer()
            assert name
    # numbers drawn before, or by a generator with a fixed seed, are the same in each call
    phases = generator.random(3)
    one = program_of(grid, lambda T: {T: float(phases[0]) * T}, **scheme)
    two = program_of(grid, lambda T: {T: np.random.default_rng(3).random() * T}, **scheme)
    assert one.statements
    assert two.statements
    assert T is not None
    with pytest.raises(InputError, match=r"boundary kernel of field 'u' returns None; expected a value"):
        hc.BoundaryKernel(lambda u: None).ghost(ENDS[0])
