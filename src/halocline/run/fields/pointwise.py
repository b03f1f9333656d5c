"""Evaluation of programs in NumPy, point by point, if compilation would take longer.

Results are bit-for-bit identical to the results of generated kernels, because both use the same intermediate
representation, functions and accumulators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halocline.compile.compiler import arranged
from halocline.compile.ir.kernel import ELEMENTARY, POINT, Kernel, Value
from halocline.compile.ir.statements import Reduce, Store, roots
from halocline.compile.lower import AwaitGraph, ScalarGraph, SweepGraph
from halocline.compile.passes.contract import contract
from halocline.compile.translate import translate_scalar
from halocline.lang.expression import SELECTIONS
from halocline.lang.grid import Field
from halocline.lang.program import Program
from halocline.native import native
from halocline.run.engine.prepare import check_scalars
from halocline.run.engine.prepared import scalars_of_run
from halocline.run.memory.store import FieldStore, Place

if TYPE_CHECKING:
    Arrays = Mapping[int, NDArray[Any]]

MOST_WORK = 2**22  # maximum number of values per rank and program, over all runs without compilation
SLAB = 2**15  # points per NumPy operation

NUMPY = {
    "add": "add", "sum2": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal", "and": "logical_and", "or": "logical_or", "not": "logical_not",
}  # fmt: skip
NATIVE = ("sqrt", "abs", "sign", "min", "max", "fma", *ELEMENTARY)
LEAVES = ("const", "scalar", "index", "load", "cast")
OPERATIONS = {*NUMPY, *NATIVE, *LEAVES, *SELECTIONS, "lookup"}


@dataclass(frozen=True)
class _Sweep:
    """Sweep that reads and writes only values at the point that it computes.

    Attributes
    ----------
    kernel : Kernel
        Kernel with a body of stores and reductions only.
    fields : dict of str to Field
        Fields by the names of their arrays. All fields have the same points.
    reductions : tuple of str
        Name of the scalar for the result of each reduction.
    """

    kernel: Kernel
    fields: dict[str, Field]
    reductions: tuple[str, ...]


@dataclass
class Pointwise:
    """Program that is evaluated without compiled kernels; see `pointwise`.

    Attributes
    ----------
    program : Program
    steps : sequence
        Sweeps and scalar statements, in order. A scalar statement is a pair: the name of a scalar, and the
        kernel that computes the value of this scalar.
    work : int
        Number of values that one run computes on one rank: results, and intermediate values that vary along
        the last axis.
    done : int
        Number of values computed in all runs.
    scalars : dict of str to float
        All scalars after the last run.
    """

    store: FieldStore
    program: Program
    steps: Sequence[_Sweep | tuple[str, Kernel]]
    work: int
    done: int = 0
    scalars: dict[str, float] = field(default_factory=dict)

    @property
    def is_worthwhile(self) -> bool:
        """True if all runs so far and another run take less time than the compilation of the program."""
        return self.done + self.work <= MOST_WORK

    def run(self, values: Mapping[str, float]) -> Pointwise:
        """Run the program, set `scalars`, and return this object; collective.

        Parameters
        ----------
        values : mapping of str to float
            Parameters and other scalars.
        """
        scalars = scalars_of_run(self.store, self.program.name, values)
        self.done += self.work
        with np.errstate(all="ignore"):
            for step in self.steps:
                if isinstance(step, _Sweep):
                    scalars |= self._run_sweep(step, scalars)
                else:
                    name, kernel = step
                    (root,) = roots(kernel.body)
                    scalars[name] = float(_values(kernel, (root,), scalars, (), {})[root])
        self.scalars = scalars
        return self

    def _run_sweep(self, sweep: _Sweep, scalars: Mapping[str, float]) -> dict[str, float]:
        """Run a sweep on the points of this rank, and return the results of its reductions over all ranks."""
        kernel, store = sweep.kernel, self.store
        kinds = [s.kind for s in kernel.body if isinstance(s, Reduce)]
        accumulators, merged = ([native().Accumulator(kind) for kind in kinds] for _ in range(2))
        with ExitStack() as stack:
            written = {name: stack.enter_context(store.writable(f)) for name, f in sweep.fields.items()}
            for parts in zip(*written.values(), strict=True):
                origin, shape = parts[0][0], parts[0][1].shape
                views = {name: view for name, (_, view) in zip(written, parts, strict=True)}
                for box in _slabs(shape):
                    slab = {name: view[box] for name, view in views.items()}
                    first = tuple(o + b.start for o, b in zip(origin, box, strict=True))
                    _slab(kernel, slab, first, scalars, accumulators)
        for states in store.domain.comm.allgather([a.state() for a in accumulators]):
            for accumulator, state in zip(merged, states, strict=True):
                accumulator.merge(state)
        return dict(zip(sweep.reductions, (a.result() for a in merged), strict=True))


def _slab(
    kernel: Kernel,
    views: Mapping[str, NDArray[Any]],
    origin: Place,
    scalars: Mapping[str, float],
    accumulators: Sequence[Any],
) -> None:
    """Execute a kernel in a box of points: store its results, and add to its reductions.

    Parameters
    ----------
    views : mapping of str to array
        Points of the box, by array name.
    origin : tuple of int
        Global index of the first point.
    """
    shape = next(iter(views.values())).shape
    stores = [s for s in kernel.body if isinstance(s, Store)]
    reduces = [s for s in kernel.body if isinstance(s, Reduce)]
    values = _values(kernel, roots(kernel.body), scalars, origin, views)
    for reduce, accumulator in zip(reduces, accumulators, strict=True):
        operand = np.broadcast_to(values[reduce.value], shape)
        if reduce.cell is not None:
            place = tuple(c - o for c, o in zip(reduce.cell, origin, strict=True))
            if not all(0 <= i < n for i, n in zip(place, shape, strict=True)):
                continue
            operand = operand[place]
        accumulator.deposit(np.ascontiguousarray(operand, dtype=np.float64).ravel())
    for store in stores:
        views[store.array][...] = values[store.value]


def _values(
    kernel: Kernel,
    numbers: Sequence[int],
    scalars: Mapping[str, float],
    origin: Place,
    views: Mapping[str, NDArray[Any]],
) -> dict[int, NDArray[Any]]:
    """Return values of a kernel in a box of points, as arrays that broadcast to the shape of the box."""
    known: dict[int, NDArray[Any]] = {}
    ndim = len(origin)
    for number in kernel.below(numbers):
        value = kernel.values[number]
        args = [known[arg] for arg in value.args]
        if value.op == "const":
            result = np.full((1,) * ndim, value.attribute)
        elif value.op == "scalar":
            result = np.full((1,) * ndim, scalars[value.attribute])
        elif value.op == "load":
            result = views[value.attribute[0]].copy()
        elif value.op == "index":
            axis = value.attribute[0]
            count = next(iter(views.values())).shape[axis]
            result = np.arange(origin[axis], origin[axis] + count, dtype=np.float64)
            result = result.reshape([-1 if a == axis else 1 for a in range(ndim)])
        elif value.op == "cast":
            result = args[0].astype(value.dtype)
        elif value.op in SELECTIONS:
            result = np.where(args[0], _wide(args[1]), _wide(args[2]))
        elif value.op == "lookup":
            table = np.array([float.fromhex(entry) for entry in value.attribute])
            clamped = np.where(args[0] < len(table) - 1, args[0], len(table) - 1.0)
            result = table[np.where(clamped > 0.0, clamped, 0.0).astype(np.int32)]
        elif value.op in NATIVE:
            parts = np.broadcast_arrays(*map(_wide, args))
            result = np.empty(parts[0].shape)
            native().apply(value.op, result.reshape(-1), [np.ascontiguousarray(p).reshape(-1) for p in parts])
        else:
            is_logical = value.op in ("and", "or", "not")
            result = getattr(np, NUMPY[value.op])(*(args if is_logical else map(_wide, args)))
        known[number] = result
    return known


def _wide(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in float64."""
    return array.astype("float64", copy=False)


def _slabs(shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield the parts of a box, divided along its first axis. A part has at most about `SLAB` points."""
    rows = max(1, SLAB // max(1, prod(shape[1:])))
    other_axes = tuple(slice(0, n) for n in shape[1:])
    for first in range(0, shape[0], rows):
        yield (slice(first, min(first + rows, shape[0])), *other_axes)


@contextmanager
def compiled_always() -> Iterator[None]:
    """Compile all programs during the with block, however few values they compute."""
    global MOST_WORK
    previous, MOST_WORK = MOST_WORK, -1
    try:
        yield
    finally:
        MOST_WORK = previous


def pointwise(store: FieldStore, program: Program, scalar_names: Iterable[str]) -> Pointwise | None:
    """Return a program for evaluation without compiled kernels, or None if it must be compiled.

    A program can be evaluated in this way if it has no loops and no stop statements, and if it computes in
    float64. All fields must have memory on the host. A sweep may read and write only values at the point that
    it computes, and all its fields must have the same location. A run must also take less time than the
    compilation.

    Parameters
    ----------
    store : FieldStore
    program : Program
    scalar_names : iterable of str
        Scalars that have a value during the run.

    Raises
    ------
    InputError
        The program cannot be compiled either, or reads a scalar without a value.
    """
    domain = store.domain
    if domain.devices or domain.transfers is None:
        return None
    steps: list[_Sweep | tuple[str, Kernel]] = []
    arrangement = arranged(program, domain.grid)
    for operation in arrangement.operations:
        if isinstance(operation, SweepGraph):
            kernel = arrangement.nests[operation].staged
            fields = {array.name: domain.grid.fields.get(array.name) for array in kernel.arrays}
            known = {name: f for name, f in fields.items() if f is not None and name in store.storages}
            if len(known) < len(fields) or not _is_pointwise(kernel, known) or _is_inactive(kernel, store):
                return None
            steps.append(_Sweep(kernel, known, tuple(operation.reductions.values())))
        elif isinstance(operation, ScalarGraph):
            steps += [(name, contract(translate_scalar(e))) for name, e in operation.statements]
        elif not isinstance(operation, AwaitGraph):
            return None
    kernels = [step.kernel if isinstance(step, _Sweep) else step[1] for step in steps]
    computed = [[kernel.values[n] for n in kernel.below(roots(kernel.body))] for kernel in kernels]
    if not all(value.op in OPERATIONS for values in computed for value in values):
        return None
    results = sum(len(step.kernel.body) for step in steps if isinstance(step, _Sweep))
    operations = sum(value.depth == POINT for values in computed for value in values)
    candidate = Pointwise(store, program, steps, (results + operations) * store.cells // domain.comm.size)
    if not candidate.is_worthwhile:
        return None
    read = dict.fromkeys(v.attribute for values in computed for v in values if v.op == "scalar")
    check_scalars(read, program, domain.grid.scalar_values(), scalar_names)
    return candidate


def _is_pointwise(kernel: Kernel, fields: Mapping[str, Field]) -> bool:
    """Return True if a kernel reads and writes only values at its own point, and computes in float64."""
    places = {field.staggered for field in fields.values()}
    places |= {s.place for s in kernel.body if isinstance(s, Reduce)}
    return (
        len(fields) > 0
        and len(places) == 1
        and all(isinstance(s, (Store, Reduce)) for s in kernel.body)
        and all(_is_local(kernel.values[n]) for n in kernel.below(roots(kernel.body)))
    )


def _is_inactive(kernel: Kernel, store: FieldStore) -> bool:
    """Return True if a kernel reads a single value in an inactive block. Planning rejects such kernels."""
    cells = [s.cell for s in kernel.body if isinstance(s, Reduce) and s.cell is not None]
    return store.blocks is not None and not all(map(store.blocks.is_active, cells))


def _is_local(value: Value) -> bool:
    if value.op == "load":
        return not any(value.attribute[1])
    if value.op == "index":
        return not value.attribute[1]
    return value.op in LEAVES or value.dtype == "float64"
