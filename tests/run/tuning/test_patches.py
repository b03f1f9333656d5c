"""Measured patches: selected, stored and reused, without an effect on results."""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.cli.app import run
from halocline.compile.cache import cache_folder
from halocline.errors import InputError, RunError
from halocline.plan.candidates import candidates
from halocline.plan.decompose import decompose
from halocline.plan.layout import Layout
from halocline.plan.transfer import Transfers
from halocline.run.ranks.mpi import world
from halocline.run.tuning import patches
from halocline.run.tuning.patches import Tuned

SHAPE = (61, 53)


def heat(**options: Any) -> hc.Simulation:
    """Return a simulation with a reduction in each step, and a field that is not set before the first run."""
    grid = hc.Grid(SHAPE, periodic=(True, False))
    T = grid.field("T", boundary=hc.Value(0.5))

    def equation(T: Any, kappa: Any) -> Any:
        return {T: kappa * hc.laplacian(T)}

    sim = hc.Simulation(
        grid,
        equation,
        parameters={"kappa": 0.01},
        scheme=hc.RK3(),
        dt=lambda T: 1e-3 / (1.0 + hc.max(abs(T))),
        **options,
    )
    sim[T] = lambda x, y: hc.sin(3 * x) * y
    return sim


def result(sim: hc.Simulation) -> tuple[str, float]:
    sim.run(steps=7)
    return sim.checksum("T"), sim.time


def key_of(sim: hc.Simulation) -> str:
    prepared, domain = sim.prepared, sim.domain
    return patches.key(
        prepared.library.stem, prepared.plan.transfers, domain.threads, domain.comm.ranks_of_node, "guided"
    )


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the cache of the tests of this file, without stored patches."""
    monkeypatch.setenv("HALOCLINE_CACHE", str(cache_folder() / "tuning"))

    def forget() -> None:
        if world().rank == 0:
            for stored in cache_folder().glob("*.patch.json"):
                stored.unlink()
        world().barrier()

    forget()
    yield cache_folder()
    world().barrier()
    forget()


@pytest.mark.ranks(1, 2, 3, long=(1, 3))
def test_tuning_does_not_change_results_and_is_stored(nothing_known: Path) -> None:
    comm = world()
    plain = heat(threads=2)
    assert plain.prepared.tuned is None
    expected = result(plain)

    first = heat(threads=2, patch="tune")
    choice = first.prepared.tuned
    assert choice is not None
    assert choice.measured_count > 1
    assert len(set(comm.allgather(choice))) == 1
    assert result(first) == expected
    (stored,) = nothing_known.glob("*.patch.json")
    written = stored.stat().st_mtime_ns

    for patch in ("tune", None):
        again = heat(threads=2, patch=patch)
        assert again.prepared.tuned == choice
        assert result(again) == expected
    assert heat(threads=2, patch="caches").prepared.tuned is None
    assert heat(threads=1).prepared.tuned is None
    assert stored.stat().st_mtime_ns == written
    comm.barrier()  # other ranks may still be compiling
    assert not list(nothing_known.glob("making-*"))


@pytest.mark.ranks(1, 2, long=(1,))
def test_stored_choices_are_used(nothing_known: Path) -> None:
    sim = heat(threads=1)
    before = result(sim)
    if world().rank == 0:
        patches.remember(patches.cache_file(key_of(sim)), Tuned((5, 7), 1.25, 9), "heat")
    world().barrier()
    tuned = heat(threads=1)
    (subdomain,) = tuned.plan.subdomains
    assert {len(edges) - 1 for edges in subdomain.patches.edges} == {
        -(-n // size) for n, size in zip(subdomain.box.shape, (5, 7), strict=True)
    }
    assert result(tuned) == before
    explanation = hc.explain(tuned, rank=world().rank)
    assert explanation.plan.subdomains[0].patches.edges == subdomain.patches.edges
    assert explanation.patches_by == "tuned: 1.25 times as fast as by cache size"
    assert hc.explain(tuned, patch="caches").patches_by == "by cache size"
    assert hc.explain(tuned, patch=4).patches_by == "as given"


def test_a_solver_whose_fields_have_values_is_tuned(
    nothing_known: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The tuner uses fields with values, since on empty fields the iteration divides by zero."""
    caplog.set_level(logging.INFO, "halocline")
    outcomes = []
    for patch in (None, "tune"):
        grid = hc.Grid((40, 33), walls="node")
        u = grid.field("u", boundary=hc.Value(0.0))
        solution = hc.solve(lambda u: -hc.laplacian(u), u, rhs=lambda x, y: x * y, rtol=1e-6, patch=patch)
        outcomes.append((solution.iterations, solution.fields.checksum(u)))
    assert outcomes[0] == outcomes[1]
    (line,) = (record.message for record in caplog.records if "patches of" in record.message)
    (stored,) = nothing_known.glob("*.patch.json")
    content = json.loads(stored.read_text())
    assert line.startswith(f"patches of {content['program']}: ")


def test_the_fastest_is_found() -> None:
    """The fastest patch is selected if each timer always returns the same time."""
    speeds = {None: 1.0, (8, 8): 1.5, (4, 4): 0.8, (2, 2): 0.99}
    calls: dict[Any, int] = dict.fromkeys(speeds, 0)

    def timer_of(patch: Any) -> Any:
        def timer(passes: int) -> float:
            calls[patch] += passes
            return passes * 1e-2 * speeds[patch]

        return timer

    assert patches.race([(8, 8), (4, 4), (2, 2)], timer_of) == Tuned((4, 4), 1.25, 4)
    assert calls[(8, 8)] < calls[(4, 4)]  # a slow patch is not measured again
    speeds[(4, 4)] = 1.0
    assert patches.race([(4, 4), (2, 2)], timer_of) == Tuned(None, 1.0, 3)  # 1 % may be noise
    assert patches.race([], timer_of) == Tuned(None, 1.0, 1)


def test_a_choice_that_cannot_run_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    """A choice is skipped if its preparation or its run fails."""
    caplog.set_level(logging.INFO, "halocline")
    speeds = {None: 1.0, "made": 0.5, "best": 0.4}

    def timer_of(choice: Any) -> Any:
        if choice == "not made":
            raise RunError("too few threads")
        if choice == "fails":
            return lambda passes: raised(RunError("a kernel failed"))
        return lambda passes: passes * 1e-2 * speeds[choice]

    assert patches.race(["not made", "made", "fails", "best"], timer_of) == Tuned("best", 2.5, 3)
    assert caplog.messages == [
        "not made is not measured: too few threads",
        "fails is not measured: a kernel failed",
    ]
    with pytest.raises(RunError, match="too few threads"):
        patches.race([], lambda choice: timer_of("not made"))


def raised(error: Exception) -> Any:
    raise error


def test_slow_candidates_are_dropped() -> None:
    held: list[weakref.ref[Any]] = []
    most = 0

    class Timer:
        def __init__(self, choice: int | None) -> None:
            self.speed = {None: 1.0, 7: 0.5}.get(choice, 2.0)

        def __call__(self, passes: int) -> float:
            return passes * 1e-2 * self.speed

    def timer_of(choice: int | None) -> Timer:
        nonlocal most
        timer = Timer(choice)
        held.append(weakref.ref(timer))
        most = max(most, sum(reference() is not None for reference in held))
        return timer

    assert patches.race(range(20), timer_of) == Tuned(7, 2.0, 21)
    assert most == 3  # the default, the best, and the current one


def test_unreadable_tuning_files_are_ignored(nothing_known: Path) -> None:
    assert patches.recall_patches("unknown", 2) is None
    patches.remember(patches.cache_file("mine"), Tuned((3, 4), 1.1, 5), "heat")
    assert patches.recall_patches("mine", 2) == Tuned((3, 4), 1.1, 5)
    wrong = (
        "7",
        "[3]",
        "[3, 4, 5]",
        "[0, 4]",
        "[-1, 4]",
        "[]",
        '"12"',
        "[4.7, 3]",
        "[Infinity, 1]",
        "[true, 4]",
    )
    files = ["", "{", "[]", "[" * 100_000, '{"choice": null}']
    files += [f'{{"choice": {patch}, "gain": 1.1, "tried": 2}}' for patch in wrong]
    files += [f'{{"choice": [3, 4], "gain": {gain}, "tried": 2}}' for gain in ("NaN", "0.5", "Infinity")]
    for text in files:
        (cache_folder() / "mine.patch.json").write_text(text)
        assert patches.recall_patches("mine", 2) is None, text


def test_a_measurement_applies_to_equal_programs_and_machines() -> None:
    cut = {parts: decompose((64, 64), 4, strategy=parts) for parts in ((4, 1), (2, 2))}
    keys = {
        patches.key(library, Transfers(Layout.of(cut[parts]), methods), threads, ranks, schedule)
        for library in ("a", "b")
        for parts in cut
        for threads in (1, 2)
        for ranks in (1, 4)
        for methods in (("self", "mpi"), ("self", "colocated", "mpi"))
        for schedule in ("static", "guided")
    }
    assert len(keys) == 64


@pytest.mark.parametrize("shape", [(100_000,), (64, 64), (5, 4000), (512, 512, 512), (7, 200, 33), (3, 2, 2)])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_candidates_suit_the_subdomain(shape: tuple[int, ...], threads: int) -> None:
    patches = candidates(shape, threads)
    assert len(set(patches)) == len(patches) <= 21
    for patch in patches:
        assert all(1 <= edge <= n for edge, n in zip(patch, shape, strict=True))
        assert np.prod([-(-n // edge) for n, edge in zip(shape, patch, strict=True)]) >= threads
    if shape == (512, 512, 512):
        assert {(32,) * 3, (50,) * 3} <= set(patches)
        assert len(patches) > 12


def test_the_command_tunes_patches(nothing_known: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = "solve poisson --n 64 --threads 1 --max-iterations 3 --patch"
    checksums = []
    for word in ("caches", "tune"):
        assert run([*line.split(), word]) == 0
        output = capfd.readouterr().out
        assert ("\npatches " in output) == (word == "tune")
        checksums.append(output.split("checksum")[1])
    assert checksums[0] == checksums[1]
    assert run(["explain", "poisson", "--n", "64"]) == 0
    output = capfd.readouterr().out
    assert "tuned: " in output or "candidates" in output
    with pytest.raises(InputError, match="patch 'tuna': expected edge lengths in cells, 'tune' or 'caches'"):
        hc.Execution(patch="tuna")
