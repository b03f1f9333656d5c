"""Random exchanges: every halo that is read has its owner's current values, and no other cell changes.

Each case is drawn from a seed and its number. It has a random shape, periodic axes and fields. Fields have
random precisions, staggering and halos on every side, edge and corner. Sweeps leave fields unchanged, change
them in place or write to a second buffer. Random options are decomposition, patches, methods, subdomains,
nodes, mailboxes, schedule, overlap, threads and checks. To repeat a case:

    mpiexec -n 3 python tests/support/exchange_fuzz.py --seed 7 --case 1234
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from halocline.compile.footprint import Footprint
from halocline.compile.schedule import FieldInfo, Loop, Schedule, Sweep
from halocline.errors import InputError
from halocline.lang.grid import Grid
from halocline.plan.box import Box
from halocline.plan.transfer import METHODS, PACKING
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import SCHEDULES, Execution
from halocline.run.engine.prepare import prepare_schedule
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.mpi import world

BUMPS = [*product(("float64", "float32"), product((0, 1), repeat=3))]  # precision, staggering on three axes
CASES = {1: 3000, 2: 4000, 3: 2000, 4: 1000}  # by ranks, in `make test-full`
CTYPE = {"float64": "double", "float32": "float"}

ON_HOSTS = tuple(method for method in METHODS if method != "gpu_aware")  # gpu_aware is for devices


def kernel(kind: str, dtype: str, staggered: tuple[int, ...]) -> str:
    """Return the name of a kernel."""
    return "_".join((kind, dtype, *map(str, staggered)))


SOURCE = """#include "halocline/abi.h"

// Adds the first scalar to all points of a box: from the first operand to the last, which may be the same.
template <typename T, int X, int Y, int Z, int LAST>
static void bump(const hc_arguments *a, const hc_box *box) {
  const T *from = (const T *)a->fields[0];
  T *to = (T *)a->fields[LAST];
  const T by = (T)a->scalars[0];
  for (int64_t i = box->lo[0]; i < box->hi[0] + X * box->top[0]; ++i)
    for (int64_t j = box->lo[1]; j < box->hi[1] + Y * box->top[1]; ++j)
      for (int64_t k = box->lo[2]; k < box->hi[2] + Z * box->top[2]; ++k)
        to[i * a->strides[2 * LAST] + j * a->strides[2 * LAST + 1] + k] =
            from[i * a->strides[0] + j * a->strides[1] + k] + by;
}

extern "C" void still(const hc_arguments *, const hc_box *) {}
""" + "\n".join(
    f'extern "C" void {kernel(kind, dtype, staggered)}(const hc_arguments *a, const hc_box *box) '
    f"{{ bump<{CTYPE[dtype]}, {', '.join(map(str, staggered))}, {last}>(a, box); }}"
    for dtype, staggered in BUMPS
    for last, kind in enumerate(("place", "swap"))
)


@dataclass(frozen=True)
class Quantity:
    """A field of a case; `kind` is the action of its sweep on the field."""

    info: FieldInfo
    footprint: Footprint
    kind: str


@dataclass(frozen=True)
class Case:
    """One exchange; `dealt` is the number of pretended nodes that receive the ranks in turn, or 0."""

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    fields: tuple[Quantity, ...]
    passes: int
    check: bool
    dealt: int
    execution: dict[str, Any]

    def schedule(self) -> Schedule:
        """Return a loop with one sweep for all unchanged fields, and one for each of the others."""
        infos = [q.info for q in self.fields]
        still = {n: q.footprint for n, q in enumerate(self.fields) if q.kind == "still"}
        body = [Sweep("still", tuple(still), still, still, names=("still",))] if still else []
        for n, q in enumerate(self.fields):
            if q.kind == "still":
                continue
            missing = (0,) * (3 - len(self.shape))
            name = kernel(q.kind, q.info.dtype, (*missing, *map(int, q.info.staggered)))
            reads = {n: q.footprint}
            if q.kind == "place":
                body.append(Sweep(name, (n,), reads, reads, overwrites=(n,), names=(name,)))
            else:
                second = len(infos)
                infos.append(FieldInfo(q.info.name + "'", q.info.dtype, q.info.staggered, q.info.halo))
                body.append(Sweep(name, (n, second), reads, reads, swaps=((n, second),), names=(name,)))
        loop = Loop(until=None, limit=1, count=2, record=(), body=tuple(body))
        scalars = ("by", "passes", "'count")
        return Schedule(len(self.shape), self.periodic, tuple(infos), scalars, (loop,), SOURCE)


def draw(random: np.random.Generator, ranks: int) -> Case:
    """Draw a case, perhaps one that cannot be cut."""

    def random_choice(p: float) -> bool:
        return bool(random.random() < p)

    def one_of(*choices: Any) -> Any:
        return choices[random.integers(len(choices))]

    ndim = one_of(1, 2, 2, 3, 3)
    longest = {1: 60, 2: 24, 3: 14}[ndim]
    shape = tuple(
        int(n) for n in random.integers(1 if random_choice(0.2) else 4, longest, ndim, endpoint=True)
    )
    periodic = tuple(random_choice(0.7) for _ in shape)
    # thin halos are frequent, so that most cases fit
    most = one_of(1, 1, 2, 3)
    fields = []
    for number in range(one_of(1, 1, 2, 2, 3, 4)):
        sides = random.integers(0, most, (ndim, 2), endpoint=True)
        density = one_of(0.3, 1.0, 1.0)
        widths = []
        for direction in product((-1, 0, 1), repeat=ndim):
            width = tuple(int(sides[axis, int(d > 0)]) if d else 0 for axis, d in enumerate(direction))
            if (
                any(direction)
                and all(w for w, d in zip(width, direction, strict=True) if d)
                and random_choice(density)
            ):
                widths.append(
                    (direction, tuple(w and int(random.integers(1, w, endpoint=True)) for w in width))
                )
        footprint = Footprint.of(widths)
        halo = tuple(
            (lower + int(random_choice(0.2)), upper + int(random_choice(0.2)))
            for lower, upper in footprint.layers(ndim)
        )
        staggered = tuple(random_choice(0.3) for _ in shape)
        dtype = one_of("float64", "float32")
        kind = one_of("still", "place", "swap")
        fields.append(Quantity(FieldInfo(f"q{number}", dtype, staggered, halo), footprint, kind))
    methods = [method for method in ON_HOSTS if random_choice(0.6)]
    strategies = ("optimal", "optimal", "bisection", "row", "1d-x", "1d", "2d", "3d", "morton")
    execution = {
        "threads": one_of(1, 1, 2),
        "decomposition": one_of(*strategies),
        "patch": one_of(None, None, 1, 2, 3, tuple(int(n) for n in random.integers(1, 9, ndim))),
        "subdomains_per_rank": one_of(1, 1, 2, 3),
        "ranks_per_node": one_of(None, None, *range(1, ranks + 1)),
        "methods": ",".join(methods) or "mpi",
        "mailboxes": one_of(1, 2, 3),
        "schedule": one_of(*SCHEDULES),
        "overlap": random_choice(0.8),
        "packing": tuple(PACKING)[sum(shape) % len(PACKING)],
    }
    dealt = one_of(0, 0, 0, *range(2, ranks)) if execution["ranks_per_node"] is None else 0
    if execution["patch"] == 1 and prod(shape) > 500:
        execution["patch"] = 4
    return Case(shape, periodic, tuple(fields), one_of(1, 2, 3), random_choice(0.2), dealt, execution)


@cache
def communicator(nodes: int) -> Communicator:
    """Return all ranks, dealt in turn to the given number of pretended nodes."""
    comm = world()
    if nodes == 0:
        return comm
    node = comm.node.Split(comm.rank % nodes)
    dealt = tuple(rank % nodes for rank in range(comm.size))
    return replace(comm, node=node, ranks_per_node=dealt.count(0), nodes_of_ranks=dealt, _groups={})


def points(case: Case, info: FieldInfo) -> tuple[int, ...]:
    """Return the number of points of a field along each axis."""
    return tuple(
        n + (staggered and not wraps)
        for n, staggered, wraps in zip(case.shape, info.staggered, case.periodic, strict=True)
    )


def segments(
    case: Case, q: Quantity, box: Box
) -> Iterator[tuple[tuple[NDArray[Any], ...], tuple[NDArray[Any], ...]]]:
    """Yield the interior of a subdomain, then each halo segment with a source.

    Each item has the positions of its points in the storage and in the grid, as indices along each axis.
    """
    for direction, width in (((0,) * len(case.shape),) * 2, *q.footprint):
        local, in_grid = [], []
        for axis, (d, w) in enumerate(zip(direction, width, strict=True)):
            lo, hi, n, wraps = box.lo[axis], box.hi[axis], case.shape[axis], case.periodic[axis]
            at_wall = not wraps and (lo == 0 if d < 0 else hi == n)
            if d and at_wall:
                break
            if d == 0:
                indices = np.arange(lo, hi + (at_wall and q.info.staggered[axis]))
            else:
                indices = np.arange(lo - w, lo) if d < 0 else np.arange(hi, hi + w)
            local.append(indices - lo + q.info.halo[axis][0])
            in_grid.append(indices % n if wraps else indices)
        else:
            yield np.ix_(*local), np.ix_(*in_grid)


def try_case(case: Case) -> Iterable[str]:
    """Run a case, compare all cells of all storages, and yield the methods of the halos.

    Raises
    ------
    InputError
        The case cannot be cut.
    """
    os.environ["HALOCLINE_CHECK"] = "1" if case.check else "0"
    grid = Grid(case.shape, periodic=case.periodic)
    domain = Domain(grid, communicator(case.dealt), Execution(**case.execution))
    schedule = case.schedule()
    prepared = prepare_schedule(FieldStore(domain), schedule, "exchange")
    assert domain.decomposition is not None
    assert domain.transfers is not None
    boxes = [domain.decomposition.box(number) for number in domain.subdomains]
    total = sum(prod(points(case, q.info)) for q in case.fields)
    ids, start = [], 0
    for q in case.fields:
        size = prod(points(case, q.info))
        ids.append(np.arange(start, start + size).reshape(points(case, q.info)))
        start += size

    def whole(name: str, n: int, info: FieldInfo) -> NDArray[Any]:
        storage = prepared.store.storages[name][n]
        array: NDArray[Any] = storage.whole()
        return array.reshape(array.shape[3 - len(case.shape) :])

    def fill(array: NDArray[Any], q: Quantity, box: Box, values: NDArray[Any], halo: bool) -> None:
        for local, in_grid in list(segments(case, q, box))[: None if halo else 1]:
            array[local] = values[in_grid]

    for q, values in zip(case.fields, ids, strict=True):
        for n, box in enumerate(boxes):
            for name in (q.info.name, q.info.name + "'")[: 1 + (q.kind == "swap")]:
                whole(name, n, q.info)[...] = -1
            fill(whole(q.info.name, n, q.info), q, box, values, halo=False)
    prepared.run({"by": float(total), "passes": float(case.passes)})
    for q, values in zip(case.fields, ids, strict=True):
        for n, box in enumerate(boxes):
            # the values of interior and halo of the first buffer, and of the second
            current, previous = case.passes * total, (case.passes - 1) * total
            added = {
                q.info.name: {"still": (0, 0), "place": (current, previous)}.get(
                    q.kind, (current, current - 2 * total)
                )
            }
            if q.kind == "swap":
                added[q.info.name + "'"] = (previous, previous)
            for name, (inside, outside) in added.items():
                array = whole(name, n, q.info)
                expected = np.full_like(array, -1)
                if outside >= 0:
                    fill(expected, q, box, values + outside, halo=True)
                fill(expected, q, box, values + inside, halo=False)
                np.testing.assert_array_equal(array, expected, f"{name} of subdomain at {box.lo}")
    for plan in prepared.plan.subdomains:
        for sweep in plan.sweeps:
            yield from (message.method for message in sweep.receives)
            yield from (f"{m.method}, not packed" for m in sweep.receives if not m.packed)
            yield from (domain.transfers.method(plan.number, copy.subdomain) for copy in sweep.copies)


def run_case(seed: int, number: int) -> set[str]:
    """Run a case by its number; cases that cannot be cut are drawn again."""
    random = np.random.default_rng([seed, number])
    for _ in range(200):
        case = draw(random, world().size)
        try:
            return set(try_case(case))
        except InputError:
            continue
        except BaseException as error:
            error.add_note(f"{world().size} ranks, seed {seed}, case {number}: {case}")
            raise
    raise AssertionError(f"seed {seed}, case {number}: 200 draws, and none can be cut")


def run_cases(seed: int, count: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Run all cases; if the ranks hang, the last line of their output names the case."""
    methods: set[str] = set()
    for number in range(count):
        if world().rank == 0:
            with capfd.disabled():
                print(f"{world().size} ranks, seed {seed}, case {number}", flush=True)
        methods |= run_case(seed, number)
    # one rank colocates no subdomain, and it sends itself so few messages that all of them may be packed
    unused = {"colocated", "mpi, not packed"} if world().size == 1 else set()
    assert set().union(*world().allgather(methods)) - unused == {*ON_HOSTS, "mpi, not packed"} - unused


def main() -> None:
    """Repeat one case, or run several."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--cases", type=int, default=1000, help="so many")
    options = parser.parse_args()
    for number in range(options.cases) if options.case is None else [options.case]:
        run_case(options.seed, number)


if __name__ == "__main__":
    main()
