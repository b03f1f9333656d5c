"""Schedules: exchanges, second buffers, and statements that share a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import halocline as hc
from compiled_programs import body, number, schedule_of
from halocline.compile.compiler import compile_program
from halocline.compile.footprint import Footprint
from halocline.compile.schedule import Schedule
from halocline.compile.strategy import TILE_BYTES, Strategy
from halocline.problems.problem import Problem
from halocline.solvers.cg import METHODS
from loops import some


def poisson(method: str) -> Schedule:
    grid = hc.Grid((64, 64), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    limits = [hc.Scalar("rtol"), hc.Scalar("max_iterations")]
    return compile_program(METHODS[method].trace(lambda v: -hc.laplacian(v), u, grid.x, *limits), grid)


def test_fused_conjugate_gradients_exchange_r_and_never_p() -> None:
    schedule = poisson("cg-fused")
    p, r = number(schedule, "p"), number(schedule, "r")
    first, second = body(schedule)
    assert set(first.exchange) == {r}
    assert set(second.exchange) == set()
    assert first.halo_kernel is not None  # p is computed in the halo
    assert dict(first.halo_extent) == dict(first.exchange[r])
    assert all(p not in sweep.exchange for sweep in body(schedule))


def test_plain_conjugate_gradients_exchange_p_and_never_r() -> None:
    schedule = poisson("cg")
    p, r = number(schedule, "p"), number(schedule, "r")
    exchanged = [set(sweep.exchange) for sweep in body(schedule)]
    assert {p} in exchanged
    assert all(r not in fields for fields in exchanged)


def test_an_iteration_has_the_expected_memory_traffic() -> None:
    """An iteration moves 8 arrays if fused and 11 if plain.

    Fused: r, p read, p' written; p', x, r read, x, r written: 8.

    Plain: p read, q written; x, p, r, q read, x, r written; r, p read, p written: 11.
    """
    assert sum(s.bytes for s in body(poisson("cg-fused"))) == 8 * 8
    assert sum(s.bytes for s in body(poisson("cg"))) == 11 * 8


def test_a_wider_later_read_is_exchanged_completely() -> None:
    """Exchanges of widths (2, 1) and (1, 2) do not replace the exchange of (2, 2)."""
    grid = hc.Grid((8, 8), periodic=True)
    for name in "uvwz":
        grid.field(name)

    def program(u: Any, v: Any, w: Any, z: Any) -> None:
        v.set(u[2, 1])
        w.set(u[1, 2] + v[1, 0])
        z.set(u[2, 2] + w[1, 0])

    schedule = schedule_of(grid, program)
    u = number(schedule, "u")
    exchanged: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for sweep in some(schedule.sweeps()):
        for direction, width in sweep.exchange.get(u, Footprint()):
            exchanged.setdefault(direction, []).append(width)
        for direction, width in some(sweep.reads.get(u, Footprint())):
            assert any(all(a >= b for a, b in zip(h, width, strict=True)) for h in exchanged[direction])


def test_unchanged_fields_are_exchanged_once() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    for name in "uvw":
        grid.field(name)

    def program(u: Any, v: Any, w: Any) -> None:
        v.set(hc.laplacian(u))
        w.set(hc.laplacian(u) + v[1, 0])

    schedule = schedule_of(grid, program)
    first, second = schedule.sweeps()
    assert set(first.exchange) == {number(schedule, "u")}
    assert set(second.exchange) == {number(schedule, "v")}


def test_only_fields_whose_old_values_neighbours_read_have_a_second_buffer() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    for name in "uv":
        grid.field(name)

    def program(u: Any, v: Any) -> None:
        u.set(u + hc.laplacian(u))
        v.set(v * 2.0)

    schedule = schedule_of(grid, program)
    assert [f.name for f in schedule.fields] == ["u", "v", "u'"]
    (sweep,) = schedule.sweeps()
    assert sweep.swaps == ((number(schedule, "u"), number(schedule, "u'")),)


def test_adjacent_statements_share_a_sweep_if_reads_allow_it() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    for name in "uvw":
        grid.field(name)

    def joined(u: Any, v: Any, w: Any) -> None:
        u.set(u * 2.0)
        v.set(u + v)
        w.set(v - u)
        hc.scalar("total").set(hc.dot(u, w))

    def split(u: Any, v: Any, w: Any) -> None:
        u.set(u * 2.0)
        v.set(u[1, 0] + v)
        hc.scalar("total").set(hc.sum(v))
        w.set(v * hc.parameter("total"))

    assert len(list(schedule_of(grid, joined).sweeps())) == 1
    assert len(list(schedule_of(grid, split).sweeps())) == 3


# -- equal on all ranks ------------------------------------------------------------------------------------


def parts(value: Any) -> Iterator[Any]:
    """Yield a value and all that it contains."""
    yield value
    if is_dataclass(value):
        contents = [getattr(value, field.name) for field in fields(value) if field.repr]
    elif isinstance(value, Mapping):
        contents = [*value.keys(), *value.values()]
    else:
        contents = [*value] if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else []
    for content in contents:
        yield from parts(content)


@pytest.mark.parametrize("device", [None, Strategy()], ids=["cpu", "device"])
@pytest.mark.parametrize("name", ["mhd-benchmark", "cavity-2d", "poisson"])
def test_no_part_of_a_schedule_is_an_unordered_set(name: str, device: Strategy | None) -> None:
    """Ranks compare the texts of their schedules. The order of a set differs between processes."""
    problem = Problem(name, [16])
    schedule = compile_program(problem.program, problem.grid, device=device, shared=TILE_BYTES)
    if name == "mhd-benchmark" and device is not None:
        assert schedule.device is not None
        assert len(schedule.device.constants) > 1
    assert not [part for part in parts(schedule) if isinstance(part, Set)]
