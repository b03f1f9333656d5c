"""Random exchanges between devices: halos that are read are current, and no other cell changes.

Cases are drawn as in exchange_fuzz, for one to three devices, with messages and copies. A rank has one or
several devices, or ranks share one. The devices are PoCL's, or those of the stand-in for CUDA. With the
stand-in, ranks share memory and MPI accepts device addresses. All cases share one text of kernels, which is
compiled once per shape of a thread block. To repeat a case:

    cd tests/support
    POCL_DEVICES="pthread pthread" mpiexec -n 2 python device_exchange_fuzz.py --seed 7 --case 1234

For CUDA, add --interface cuda and the environment of cuda_standin.environment().
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import exchange_fuzz as fuzz
from halocline.compile.footprint import Footprint
from halocline.compile.schedule import DeviceCode, DeviceKernel, FieldInfo, Schedule, Sweep
from halocline.compile.strategy import block_splits
from halocline.compile.targets.source import device_text, loop_kernel
from halocline.errors import InputError
from halocline.lang.grid import Grid
from halocline.native import native
from halocline.plan.box import Box, three
from halocline.plan.launches import _launch
from halocline.run.devices import gpu_aware
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import Execution
from halocline.run.engine.prepare import prepare_schedule
from halocline.run.engine.prepared import Prepared
from halocline.run.memory.store import FieldStore
from halocline.run.ranks import launch
from halocline.run.ranks.mpi import world

FIELDS = 3  # fields of every case, and the same number of second buffers
CASES = {1: 600, 2: 400, 3: 300}  # by ranks, in `make test-full`
METHODS = {
    "opencl": (None, "self,peer,mpi", "mpi", "self,mpi", "peer,mpi"),
    "cuda": (
        *(None, "self,peer,colocated", "colocated", "self,peer,gpu_aware", "self,gpu_aware"),
        *("mpi", "peer,mpi"),
    ),
}

# Kernels for grids of one, two and three axes: the scalar "ndim" selects the axis of streaming.
KERNEL = """
HC_KERNEL NAME(PARAMETERS HC_GLOBAL const double *scalars, HC_GLOBAL const hc_control *control,
               const hc_frame f) {
  if (control->skip != 0) return;
  const int ndim = (int)scalars[2];
  hc_int64 i0 = f.lo[0], i1 = f.hi[0], j0 = f.lo[1], j1 = f.hi[1];
  const hc_int64 k = f.lo[2] + hc_block(0) * hc_block_size(0) + hc_thread(0);
  if (ndim == 2) {
    j0 += hc_block(1) * f.block_cells[1];
    j1 = hc_min_index(j0 + f.block_cells[1], j1);
  }
  if (ndim == 3) {
    j0 += hc_block(1) * hc_block_size(1) + hc_thread(1);
    j1 = hc_min_index(j0 + 1, j1);
    i0 += hc_block(2) * f.block_cells[0];
    i1 = hc_min_index(i0 + f.block_cells[0], i1);
  }
  if (k >= f.hi[2]) return;
  for (hc_int64 i = i0; i < i1; ++i)
    for (hc_int64 j = j0; j < j1; ++j)
      STATEMENT;
}
"""
HERE = "i * {0}.s0 + j * {0}.s1 + k + {0}.at"

# indices of `b`, whose cells include the halo of `a`; `box_lo` is the halo width on the lower sides
WITHIN = "(i + f.box_lo[0]) * b.s0 + (j + f.box_lo[1]) * b.s1 + (k + f.box_lo[2]) + b.at"
STATEMENTS = {
    "place": ("a", f"pa[{HERE.format('a')}] += (T)scalars[0]"),
    "swap": ("ab", f"pb[{HERE.format('b')}] = pa[{HERE.format('a')}] + (T)scalars[0]"),
    "fetch": ("ab", f"pb[{WITHIN}] = pa[{HERE.format('a')}]"),
    "store": ("ab", f"pa[{HERE.format('a')}] = pb[{WITHIN}]"),
}


def kernels() -> list[str]:
    """Return all kernels, for both precisions."""
    texts = []
    for name, (arrays, statement) in STATEMENTS.items():
        for dtype, ctype in fuzz.CTYPE.items():
            parameters = "".join(f"HC_GLOBAL {ctype} *p{a}, const hc_layout {a}, " for a in arrays)
            text = KERNEL.replace("NAME", f"{name}_{dtype}").replace("PARAMETERS ", parameters)
            texts.append(text.replace("STATEMENT", statement.replace("(T)", f"({ctype})")))
    return texts


SCALARS = ("by", "passes", "ndim", "'count")
LOOP = loop_kernel("test_loop", None, {name: n for n, name in enumerate(SCALARS)})
SOURCE = device_text([*kernels(), LOOP], 2 * FIELDS)


def schedule(case: fuzz.Case) -> Schedule:
    """Return the CPU schedule of a case with device kernels, and with a second buffer for each field."""
    plain = case.schedule()
    infos = [q.info for q in case.fields]
    infos += [replace(info, name=info.name + "'") for info in infos]
    (loop,) = plain.operations
    body, device_kernels = [], {}
    for n, q in enumerate(case.fields):
        kind = "still" if q.kind == "still" else f"{q.kind}_{q.info.dtype}"
        reads = {n: q.footprint}
        operands = (n, n + FIELDS) if q.kind == "swap" else (n,)
        swaps = (operands,) if q.kind == "swap" else ()
        name = f"{kind}_{n}"
        body.append(
            Sweep(name, operands, reads, reads, swaps=swaps, overwrites=(n,) * (q.kind == "place"))  # type: ignore[arg-type]
        )
        none = ((0, 0),) * len(case.shape)
        top = tuple(map(int, q.info.staggered))
        device_kernels[name] = () if q.kind == "still" else (DeviceKernel(kind, operands, none, top),)
    still = [s for s in body if s.kernel.startswith("still")]
    if len(still) > 1:  # one sweep, so that fields of both precisions share messages
        reads = {n: footprint for s in still for n, footprint in s.reads.items()}
        together = Sweep("still_0", tuple(reads), reads, reads)
        device_kernels["still_0"] = ()
        body = [together, *(s for s in body if s not in still)]
    loop = replace(loop, count=3, body=tuple(body))  # type: ignore[type-var]
    return replace(
        plain,
        fields=tuple(infos),
        scalars=SCALARS,
        operations=(loop,),
        source='#include "halocline/abi.h"\n',
        device=DeviceCode(SOURCE, device_kernels, ("test_loop",)),
    )


def draw(random: np.random.Generator, ranks: int, devices: int, interface: str) -> fuzz.Case:
    """Draw a case, perhaps one that cannot be cut."""
    case = fuzz.draw(random, ranks)
    empty = Footprint.of([])
    spare = [
        fuzz.Quantity(
            FieldInfo(f"spare{n}", "float64", (False,) * len(case.shape), ((0, 0),) * len(case.shape)),
            empty,
            "still",
        )
        for n in range(FIELDS)
    ]

    def one_of(*choices: Any) -> Any:
        return choices[random.integers(len(choices))]

    numbers = [int(n) for n in random.permutation(devices)]
    chosen = numbers[: one_of(*(n for n in range(1, devices + 1) if ranks > n or n % ranks == 0))]
    execution = {
        "device": f"{interface}:" + ",".join(map(str, chosen)),
        "decomposition": case.execution["decomposition"],
        "patch": one_of(None, None, 3, 5),
        "subdomains_per_rank": one_of(1, 1, 2, 3),
        "methods": one_of(*METHODS[interface]),
        "overlap": case.execution["overlap"],
        "packing": case.execution["packing"],
    }
    fields = (*case.fields, *spare)[:FIELDS]
    if random.random() < 0.5:  # messages of both precisions
        other = "float32" if fields[0].info.dtype == "float64" else "float64"
        twin = replace(fields[0], info=replace(fields[0].info, name="twin", dtype=other))
        fields = tuple(replace(q, kind="still") for q in (twin, fields[0], fields[2]))
    return replace(case, fields=fields, execution=execution, dealt=0, check=False)


class Whole:
    """A field of a subdomain on a device with its whole halo; kernels copy it to and from cells."""

    def __init__(self, prepared: Prepared, module: Any, n: int, number: int) -> None:
        domain = prepared.domain
        info = prepared.schedule.fields[number]
        field = prepared.store.storages[info.name][n]
        ndim = prepared.schedule.ndim
        lower, upper = (three(sides) for sides in zip(*info.halo, strict=True))
        shape = [a + b + c for a, b, c in zip(lower, field.shape, upper, strict=True)]
        device = domain.device_of(n)
        self.ndim, self.device, self.comm = ndim, device, domain.comm
        self.cells = native().DeviceStorage(device, shape, (0,) * 3, (0,) * 3, field.itemsize)
        self.host = native().Storage(shape, (0,) * 3, (0,) * 3, field.itemsize, 0)
        self.subdomain = native().DeviceSubdomain(device, module, [field, self.cells], len(SCALARS))
        missing = 3 - ndim
        lo = tuple(-a for a in lower[missing:])
        box = Box(lo, tuple(a + n for a, n in zip(lo, shape[missing:], strict=True)))
        launch = _launch(DeviceKernel("", (), (), (), splits=block_splits(ndim)), box, box, (0,) * ndim)
        self.grid, self.block_counts, self.dtype = (
            shape,
            (launch.block_counts, launch.block_shape),
            info.dtype,
        )
        # halos are empty along axes that the case does not have
        self.frame = [*three(box.lo), *three(box.hi, 1), *lower, *[0] * 12, 0, 0, *launch.block_cells]

    def run(self, name: str) -> None:
        scalars = np.array([0.0, 0.0, self.ndim, 0.0])
        engine = native().Engine.on_devices(
            str(fuzz_library()), [self.subdomain], scalars, self.grid, 100, None
        )
        launch = native().Launch(
            f"{name}_{self.dtype}", [0, 1], self.frame, *self.block_counts, False, False, False, ("", 0)
        )
        item = native().Item(0, False, [launch])
        engine.device_sweep(name, [native().DeviceShare([], [], [], [], [], [], [item], [])], [], [], 0)
        engine.run()

    def read(self) -> NDArray[Any]:
        self.run("fetch")
        values: NDArray[Any] = self.cells.fetch().view()[(0,) * (3 - self.ndim)]
        return values

    def write(self, values: NDArray[Any]) -> None:
        self.host.view()[(0,) * (3 - self.ndim)] = values
        self.cells.store(self.host)
        self.run("store")


_library: list[Any] = []


def fuzz_library() -> Any:
    """Return the path of a native library without kernels, which an engine requires."""
    from halocline.compile.driver import compile_library

    if not _library:
        _library.append(compile_library('#include "halocline/abi.h"\n'))
    return _library[0]


def try_case(case: fuzz.Case) -> set[str]:
    """Run a case, compare all cells, and return the methods of the halos.

    Raises
    ------
    InputError
        The case cannot be cut.
    """
    domain = Domain(Grid(case.shape, periodic=case.periodic), world(), Execution(**case.execution))
    prepared = prepare_schedule(FieldStore(domain), schedule(case), "exchange")
    assert domain.decomposition is not None
    assert domain.transfers is not None
    boxes = [domain.decomposition.box(number) for number in domain.subdomains]
    _ = prepared.engine
    total = sum(prod(fuzz.points(case, q.info)) for q in case.fields)
    ids, start = [], 0
    for q in case.fields:
        shape = fuzz.points(case, q.info)
        ids.append(np.arange(start, start + prod(shape)).reshape(shape))
        start += prod(shape)

    def blank(q: fuzz.Quantity, n: int) -> NDArray[Any]:
        (at,) = [i for i, other in enumerate(case.fields) if other is q]
        owned = prepared.plan.subdomains[n].fields[at].storage.shape
        return np.full(owned, -1, q.info.dtype)

    def fill(array: NDArray[Any], q: fuzz.Quantity, box: Box, values: NDArray[Any], halo: bool) -> None:
        for local, in_grid in list(fuzz.segments(case, q, box))[: None if halo else 1]:
            array[local] = values[in_grid]

    modules = prepared.modules_of_subdomains()
    wholes = {
        (number, n): Whole(prepared, modules[n], n, number)
        for number in range(2 * FIELDS)
        for n in range(len(boxes))
    }
    for number, (q, values) in enumerate(zip(case.fields, ids, strict=True)):
        for n, box in enumerate(boxes):
            first = blank(q, n)
            wholes[number + FIELDS, n].write(first)
            fill(first, q, box, values, halo=False)
            wholes[number, n].write(first)
    prepared.run({"by": float(total), "passes": float(case.passes), "ndim": float(len(case.shape))})
    for number, (q, values) in enumerate(zip(case.fields, ids, strict=True)):
        for n, box in enumerate(boxes):
            # the values of interior and halo of the first buffer, and of the second
            current, previous = case.passes * total, (case.passes - 1) * total
            values_of_buffers = [
                {"still": (0, 0), "place": (current, previous)}.get(q.kind, (current, current - 2 * total))
            ]
            values_of_buffers.append((previous, previous) if q.kind == "swap" else (-1, -1))
            for second, (inside, outside) in enumerate(values_of_buffers):
                expected = blank(q, n)
                if outside >= 0:
                    fill(expected, q, box, values + outside, halo=True)
                if inside >= 0:
                    fill(expected, q, box, values + inside, halo=False)
                array = wholes[number + FIELDS * second, n].read()
                label = f"{q.info.name}, buffer {second}, of subdomain at {box.lo}"
                np.testing.assert_array_equal(array, expected, label)
    ways = set()
    for plan in prepared.plan.subdomains:
        for sweep in plan.sweeps:
            ways |= {message.method for message in sweep.receives}
            ways |= {f"{m.method}, not packed" for m in sweep.receives if not m.packed}
            ways |= {domain.transfers.method(plan.number, copy.subdomain) for copy in sweep.copies}
            for message in sweep.receives:
                if len({case.fields[field].info.dtype for field, _ in message.parts}) > 1:
                    ways.add("both precisions")
    return ways


def run_case(seed: int, number: int, devices: int, interface: str = "opencl") -> set[str]:
    """Run a case by its number; cases that cannot be cut are drawn again."""
    random = np.random.default_rng([seed, number])
    for _ in range(200):
        case = draw(random, world().size, devices, interface)
        try:
            return try_case(case)
        except InputError:
            continue
        except BaseException as error:
            setting = f"{world().size} ranks, {devices} devices of {interface}"
            error.add_note(f"{setting}, seed {seed}, case {number}: {case}")
            raise
    raise AssertionError(f"seed {seed}, case {number}: 200 draws, and none can be cut")


def run_cases(seed: int, count: int, devices: int, interface: str = "opencl") -> None:
    """Run all cases; if the ranks hang, the last line of their output names the case."""
    methods: set[str] = set()
    for number in range(count):
        if world().rank == 0:
            print(f"{world().size} ranks, seed {seed}, case {number}", flush=True)
        methods |= run_case(seed, number, devices, interface)
    expected = {"self", "peer", "mpi", "both precisions"} if world().mpi is not None else {"self", "peer"}
    if world().size > 1:
        expected |= {"mpi, not packed"}
    if interface == "cuda" and world().size > 1:
        expected |= {"colocated", "gpu_aware", "mpi, not packed", "gpu_aware, not packed"}
    assert expected <= set().union(*world().allgather(methods))


def in_other_processes(environment: dict[str, str], ranks: int, **options: object) -> None:
    """Run cases in other processes: a process counts devices once, and loads the stand-in at its start."""
    launcher = [] if ranks == 1 else [str(launch.mpiexec()), "-n", str(ranks)]
    command = [*launcher, sys.executable, __file__]
    command += [word for name, value in options.items() for word in (f"--{name}", str(value))]
    environment = launch.environment() | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"} | environment
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3000)
    assert process.returncode == 0, process.stdout[-200:] + process.stderr


def main() -> None:
    """Repeat one case, or run several."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--interface", choices=METHODS, default="opencl")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--cases", type=int, default=100, help="so many")
    options = parser.parse_args()
    if options.interface == "cuda":
        # the stand-in's memory is host memory, which every MPI accepts
        gpu_aware.claimed = lambda library: True
    device_options = (options.devices, options.interface)
    if options.case is None:
        run_cases(options.seed, options.cases, *device_options)
    else:
        run_case(options.seed, options.case, *device_options)


if __name__ == "__main__":
    main()
