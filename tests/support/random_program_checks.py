"""Random programs, compared with NumPy and between ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, event, given, note, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.errors import InputError
from numpy_reference import Undecided
from random_programs import ANY_SPEED, PARAMETERS, Case, Recipe, options, recipes, shapes_to_cut, too_small

# --- one process against NumPy ---


def check(recipe: Recipe, shape: tuple[int, ...], *, must_fit: bool, **options: Any) -> bool:
    """Compare a run with NumPy; return False if the grid is too small or no value is certain."""
    case = Case(recipe, shape, (1.5, 0.75, 1.0)[: recipe.ndim])
    try:
        sim = case.simulate(**options)
    except InputError as error:
        if must_fit or not too_small(error):
            raise
        return False
    try:
        reference = case.reference()
    except Undecided:
        return False
    compared = 0
    for f in case.declared_fields:
        if f.name not in sim.store.storages:
            continue
        have, want = np.asarray(sim[f], dtype=np.float64), reference.fields[f]
        assert np.isfinite(want.value).all(), f"the reference of {f.name} is not finite"
        worst = np.max(np.abs(have - want.value) - want.error)
        if worst > 0:
            at = np.unravel_index(np.argmax(np.abs(have - want.value) - want.error), have.shape)
            expected = f"{want.value[at]!r} +- {want.error[at]:.2g}"
            note(f"{f.name}{list(map(int, at))} of {shape}: {have[at]!r}, expected {expected}")
        assert worst <= 0
        sure = want.error <= (1e-3 if f.dtype == "float32" or "float32" in str(recipe) else 1e-9)
        compared += int(sure.sum())
    for name, value in reference.scalars.items():
        if name in sim.values and name not in PARAMETERS:
            assert abs(sim.values[name] - float(value.value)) <= 2 * float(value.error), name
    event("compared" if compared else "nothing was certain")
    return compared > 0


shapes_tiny = st.tuples(*[st.integers(1, 7)] * 3)
shapes_odd = st.tuples(*[st.integers(13, 19)] * 3)


def agrees_with_numpy(
    recipe: Recipe, large: tuple[int, ...], tiny: list[tuple[int, ...]], drawn: dict[str, Any]
) -> None:
    """Check a program on one large and some tiny grids."""
    note(str(recipe))
    assume(check(recipe, large[: recipe.ndim], must_fit=True, **drawn))
    for shape in tiny:
        check(recipe, shape[: recipe.ndim], must_fit=False, **drawn)


# --- several ranks against one ---


def same_on_ranks(
    recipe: Recipe, shape: tuple[int, ...], drawn: dict[str, Any], strategies: list[str]
) -> int:
    """Check that checksums equal those of one rank, and return the number of decompositions that fit."""
    from mpi4py import MPI

    def checksums(case: Case, sim: hc.Simulation) -> dict[str, str]:
        return {f.name: sim.checksum(f.name) for f in case.declared_fields if f.name in sim.store.storages}

    results = {}
    for strategy in strategies:
        case = Case(recipe, shape, (1.5, 0.75, 1.0)[: recipe.ndim])
        try:
            parted = case.simulate(decomposition=strategy, **drawn)
        except InputError as error:
            if too_small(error):
                continue
            raise
        results[strategy] = checksums(case, parted), dict(parted.values)
    # The reference runs last, so that its kernels come from the cache and no rank compiles again.
    alone = Case(recipe, shape, (1.5, 0.75, 1.0)[: recipe.ndim])
    serial = alone.simulate(communicator=MPI.COMM_SELF, threads=1)
    reference = checksums(alone, serial)
    for strategy, (sums, values) in results.items():
        assert sums == reference, strategy
        for name, value in serial.values.items():
            assert values[name] == value or np.isnan(value), name
    return len(results)


two_strategies = st.lists(
    st.sampled_from(["optimal", "optimal", "bisection", "row", "1d-x", "1d-y", "2d"]),
    min_size=2,
    max_size=2,
    unique=True,
)


def on_ranks(examples: int) -> int:
    """Check random programs, identical on every rank (see conftest), and return the number of comparisons."""
    compared = 0

    @settings(max_examples=examples, **ANY_SPEED)
    @given(recipes(), shapes_to_cut, options, two_strategies)
    def example(recipe: Recipe, shape: tuple[int, ...], drawn: dict[str, Any], strategies: list[str]) -> None:
        nonlocal compared
        compared += same_on_ranks(recipe, shape[: recipe.ndim], drawn, strategies)

    example()
    return compared
