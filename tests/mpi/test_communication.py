"""Named communication schemes: their messages, their packing, and equal bits."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.explanation.explain import explain_program
from halocline.plan.communication import COMMUNICATIONS
from halocline.problems.problem import Problem
from halocline.run.domain.execution import Execution
from halocline.run.ranks.mpi import world
from suites import cases

SHAPE = (16, 12, 20)
CUTS = {
    "1d-x": (4, 1, 1),
    "1d-y": (1, 3, 1),
    "1d-z": (1, 1, 5),
    "2d": (4, 3, 1),
    "3d": (2, 2, 2),
    "2x1x4": (2, 1, 4),
}


def ready() -> Problem:
    return Problem("cavity", SHAPE, {"stages": 1, "watch": 1000})


def of_an_iteration(name: str, cut: str) -> Any:
    """Return the planned exchange of the middle rank in the sweep of every iteration."""
    case, parts = ready(), CUTS[cut]
    ranks = parts[0] * parts[1] * parts[2]
    options = {"decomposition": list(parts), "communication": name}
    explanation = explain_program(
        case.program, case.grid, ranks=ranks, rank=middle(parts), threads=1, **options
    )
    (number,) = (n for n, s in enumerate(explanation.schedule.sweeps()) if s.share == 1.0)
    return explanation.plan.subdomains[0].sweeps[number]


def middle(parts: tuple[int, ...]) -> int:
    position = [n // 2 for n in parts]
    return (position[0] * parts[1] + position[1]) * parts[2] + position[2]


def expected(parts: tuple[int, ...], uniform: bool, packing: str) -> tuple[int, int, int]:
    """Return the messages, the bytes, and the unpacked bytes that a rank sends, counted by hand."""
    position = [n // 2 for n in parts]
    size = [n // p for n, p in zip(SHAPE, parts, strict=True)]
    messages = total = unpacked = 0
    for direction in product((-1, 0, 1), repeat=3):
        neighbour = [a + d for a, d in zip(position, direction, strict=True)]
        inside = all(0 <= a < p for a, p in zip(neighbour, parts, strict=True))
        faces = sum(map(abs, direction))
        if faces != 1 or not inside:  # a neighbour and a message for each face (Section 4.4)
            continue
        cells = 0
        for field in range(5):
            width = 2 if uniform or field == 0 else 1
            box = [width if d else n for d, n in zip(direction, size, strict=True)]
            cells += box[0] * box[1] * box[2]
        messages, total = messages + 1, total + 8 * cells
        apart = packing == "none" or (packing == "last" and not direction[2])
        unpacked += 8 * cells if apart else 0
    return messages, total, unpacked


@cases("cut", CUTS, default=["3d"])
def test_each_communication_sends_the_expected_messages(cut: str) -> None:
    kinds = {
        "baseline": (True, "none"),
        "v1": (True, "last"),
        "v2": (False, "last"),
        "v3": (False, "all"),
        "overlap": (False, "all"),
    }
    assert kinds.keys() == COMMUNICATIONS.keys()
    measured = {}
    for name, (uniform, packing) in kinds.items():
        sweep = of_an_iteration(name, cut)
        assert {m.method for m in sweep.sends} == {"mpi"}
        measured[name] = len(sweep.sends), sweep.bytes_sent, sweep.bytes_not_packed
        assert measured[name] == expected(CUTS[cut], uniform, packing), name
    # each scheme differs from its predecessor, except v1 if all messages stay unpacked
    assert measured["v2"][1] < measured["v1"][1] == measured["baseline"][1]
    if CUTS[cut][2] > 1:
        assert measured["v1"][2] < measured["baseline"][2]
    if CUTS[cut] != CUTS["1d-z"]:
        assert measured["v3"][2] == 0 < measured["v2"][2]


def test_overlap_is_the_only_addition_of_the_last_communication() -> None:
    v3, last = (Execution(communication=name) for name in ("v3", "overlap"))
    assert (v3.overlap, last.overlap) == (False, True)
    assert (
        (v3.halo, v3.packing, v3.methods)
        == (last.halo, last.packing, last.methods)
        == ("read", "all", ("mpi",))
    )


def test_gpudirect_is_independent_of_the_communication() -> None:
    for name in COMMUNICATIONS:
        on = Execution(communication=name, gpudirect=True, device="cuda")
        off = Execution(communication=name, device="cuda")
        assert on.allowed_methods == ("gpu_aware", "mpi")
        assert off.allowed_methods == ("mpi",)
        assert (on.halo, on.packing, on.overlap) == (off.halo, off.packing, off.overlap)
    (notice,) = Execution(communication="v3", gpudirect=True, device="cpu").ignored_options
    assert "gpu_aware is not used: fields are in host memory" in notice


@pytest.mark.ranks(2, 4, 8, long=(2, 8))
def test_bits_do_not_depend_on_the_communication() -> None:
    from mpi4py import MPI

    case = Problem("cavity", SHAPE, {"stages": 1, "watch": 5})
    some = {"v1": ("1d-x", "1d-z"), "v2": ("1d-y",), "v3": ("1d-x",), "overlap": ("1d-z",)}
    cuts = {
        2: {"baseline": ("1d-x", "1d-y", "1d-z")} | some,
        4: dict.fromkeys(COMMUNICATIONS, ("2d",)),
        8: dict.fromkeys(COMMUNICATIONS, ("3d",)),
    }[MPI.COMM_WORLD.size]
    assert cuts.keys() == COMMUNICATIONS.keys()
    checksums = {}
    for name, cut in ((scheme, cut) for scheme, cuts_of_scheme in cuts.items() for cut in cuts_of_scheme):
        options = {"communication": name, "decomposition": cut, "threads": 2, "patch": 5}
        checksums[name, cut] = case.run(steps=7, **options).record.checksum
    alone = case.run(steps=7, threads=1, communicator=MPI.COMM_SELF).record.checksum
    assert checksums == dict.fromkeys(checksums, alone)


@pytest.mark.ranks(2)
def test_unpacked_messages_follow_swapped_buffers() -> None:
    """Fields may swap their buffers at every, every second and every third step."""
    from mpi4py import MPI

    def result(**options: Any) -> list[str]:
        grid = hc.Grid((12, 10), periodic=True)
        u, v, w = (grid.field(name) for name in "uvw")

        def step(u: Any, v: Any, w: Any) -> None:
            u.set(u + 1e-3 * hc.laplacian(v))
            with hc.every(2):
                v.set(v + 1e-3 * hc.laplacian(w))
            with hc.every(3):
                w.set(w + 1e-3 * hc.laplacian(u + v))

        sim = hc.Simulation(grid, hc.program(step), threads=1, **options)
        for f in (u, v, w):
            sim[f] = np.random.default_rng(ord(f.name)).random(grid.shape)
        sim.run(steps=25)
        return [sim.checksum(f) for f in (u, v, w)]

    assert result(communication="baseline") == result(communicator=MPI.COMM_SELF)


@pytest.mark.parametrize(("cut", "packed"), [("1d-x", {0: True, 1: False}), ("1d-y", {0: False, 1: True})])
def test_packing_along_the_last_axis_applies_to_messages_to_self(cut: str, packed: dict[int, bool]) -> None:
    """A message of a rank to itself around a periodic axis is packed if that axis is the last one."""
    grid = hc.Grid((8, 8), periodic=True)
    u = grid.field("u")
    program = hc.program(lambda u: u.set(u + hc.laplacian(u))).trace(u)
    options = {"decomposition": cut, "packing": "last", "methods": "mpi"}
    explanation = explain_program(program, grid, ranks=2, rank=0, **options)
    (sweep,) = explanation.plan.subdomains[0].sweeps
    assert {m.peer: m.packed for m in sweep.sends} == packed
    assert {m.peer: m.packed for m in sweep.receives} == packed


@pytest.mark.ranks(2)
def test_a_rank_packs_the_selected_messages(shared_tmp_path: Path) -> None:
    """In the trace of a run, a baseline packs and unpacks nothing, and v1 only along the last axis."""
    for name, cut, packs in (
        ("baseline", "1d-z", False),
        ("v1", "1d-z", True),
        ("v1", "1d-x", False),
        ("v3", "1d-x", True),
    ):
        trace = shared_tmp_path / f"{name}-{cut}.json"
        ready().run(steps=2, threads=1, communication=name, decomposition=cut, trace=trace)
        if world().rank == 0:
            events = {event.get("cat") for event in json.loads(trace.read_text())["traceEvents"]}
            assert ("pack" in events, "unpack" in events) == (packs, packs), (name, cut, events)
