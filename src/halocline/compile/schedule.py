"""Schedule of a compiled program: sweeps, scalar statements and loops, as plain data.

The plan converts a schedule to the boxes and messages of one rank, and the engine executes the plan. Fields
have numbers, and the second buffer of a field has a separate number. The engine swaps buffers after a sweep
(`Sweep.swaps`), so that the number of a field always denotes its current values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from halocline.compile.footprint import Footprint
from halocline.compile.ir.statements import Slot, StageUse
from halocline.compile.strategy import Split
from halocline.lang.blocks import Blocks
from halocline.lang.trace import INTERNAL

AROUND = INTERNAL + "around"  # see Sweep.wraps


@dataclass(frozen=True)
class FieldInfo:
    """Array of the program.

    Parameters
    ----------
    name : str
        Name that the user gave; a second buffer has the name of its field with "'" appended.
    dtype : str
        "float64" or "float32".
    staggered : tuple of bool
        Per axis, True if the points are on the lower faces of the cells, False if they are at the centres.
    halo : tuple of (int, int)
        Allocated layers below and above, per axis.
    """

    name: str
    dtype: str
    staggered: tuple[bool, ...]
    halo: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Reduction:
    """Reduction over the grid.

    `kind` is "sum", "min", "max", "count" or "value"; "value" is the value at `cell`. The `Await` after the
    sweep writes the result to the scalar with number `scalar`.
    """

    kind: str
    scalar: int
    cell: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Fill:
    """Boundary condition of one field on one side, as a kernel over the ghost cells of that side.

    `operands` are the fields of the kernel, see `Sweep`. The kernel writes `depth` ghost layers; layer k also
    reads layers below k. `reach` is the number of interior cells that the kernel reads inward. `along` is the
    number of points that it reads along the other axes. A sweep runs its fills in order, each after the fills
    whose ghosts it reads.

    Along every other axis, the box of a fill also includes the halo layers in `corners`. Beside a
    neighbouring subdomain, these layers are halo cells. At a wall of an axis in `covers`, they are ghosts.
    The fills of the same field along the axes in `covers` run before this fill. The values at corners are
    therefore the same for any decomposition.
    """

    kernel: str
    field: int
    operands: tuple[int, ...]
    axis: int
    side: int  # -1 lower, +1 upper
    depth: int
    reach: int
    corners: tuple[tuple[int, int], ...]  # per axis (lower, upper) layers; (0, 0) for its own axis
    covers: tuple[int, ...]
    along: tuple[tuple[int, int], ...]  # per axis (lower, upper) points; (0, 0) for its own axis


@dataclass(frozen=True)
class WallKernel:
    """Ghosts beyond several walls, which one device kernel computes.

    Parameters
    ----------
    kernel : str
        Name of the kernel.
    parts : tuple of (int, range)
        For each wall, the position of its fill in `Sweep.fills`, and the layers of ghosts.
    """

    kernel: str
    parts: tuple[tuple[int, range], ...]


@dataclass(frozen=True)
class Sweep:
    """Computation in all patches, or only a halo exchange if `computes` is False.

    An exchange before a loop replaces exchanges in every pass of the loop.

    Parameters
    ----------
    kernel : str
        Symbol in the generated library.
    operands : tuple of int
        Field number of each kernel operand.
    reads : mapping from field number to Footprint
        Halo segments that must be valid before a patch runs.
    exchange : mapping from field number to Footprint
        Segments of `reads` that neighbours must send before the sweep; the other segments are already valid.
        If the sweep is only an exchange, these are the segments that later sweeps read.
    fills : tuple of Fill
        Boundary conditions to apply before the sweep, in this order.
    wall_kernels : tuple of WallKernel
        The same conditions as device kernels, which run in this order; empty for CPUs.
    reductions : tuple of Reduction
        Reductions in the order of the accumulators of the kernel.
    halo_kernel : str or None
        Kernel with the same operands that writes only the fields that are also computed in the halo.
    halo_extent : Footprint
        Segments that `halo_kernel` computes at neighbours; it computes no segments beyond walls.
    swaps : tuple of (int, int)
        Pairs of field numbers whose buffers are swapped after the sweep, in this order.
    overwrites : tuple of int
        Fields whose current values the kernel overwrites, instead of writing to a second buffer. The results
        may be those of another field of a rotation, which receives the buffer by the swaps.
    wraps : tuple of int
        Fields whose halo along the last axis the kernel fills itself, if this axis is periodic and one
        subdomain spans it. In this case, the scalar `AROUND` contains the number of cells along this axis,
        else 0.
    scratch : tuple of Slot
        Scratch arrays; their rows are padded to 64 bytes.
    stages : tuple of StageUse
    flops, bytes : float
        Per cell: floating-point operations (an fma counts as two), and minimum memory traffic in bytes.
    names : tuple of str
        Names that the user gave to the results of the sweep, for reports.
    share : float
        Expected share of loop passes that run the sweep: 1 / k for a statement that runs every k steps.
    """

    kernel: str
    operands: tuple[int, ...]
    reads: Mapping[int, Footprint]
    exchange: Mapping[int, Footprint]
    fills: tuple[Fill, ...] = ()
    wall_kernels: tuple[WallKernel, ...] = ()
    reductions: tuple[Reduction, ...] = ()
    halo_kernel: str | None = None
    halo_extent: Footprint = field(default_factory=Footprint)
    swaps: tuple[tuple[int, int], ...] = ()
    overwrites: tuple[int, ...] = ()
    wraps: tuple[int, ...] = ()
    scratch: tuple[Slot, ...] = ()
    stages: tuple[StageUse, ...] = ()
    flops: float = 0.0
    bytes: float = 0.0
    names: tuple[str, ...] = ()
    share: float = 1.0

    @property
    def computes(self) -> bool:
        """True if the kernel sets fields or reduces, False for an exchange alone."""
        return bool(self.operands or self.reductions)


@dataclass(frozen=True)
class DeviceKernel:
    """Kernel for a device: one loop nest of a sweep, or one layer of a boundary condition.

    Parameters
    ----------
    name : str
        Symbol in the code of the device.
    operands : tuple of int
        Field number of each array operand.
    extent : tuple of (int, int)
        Per axis, number of cells below and above the patch that the kernel also computes.
    top : tuple of int
        Per axis, 1 if the kernel computes one more point at the upper wall.
    cell : tuple of int or None
        Global index of the only cell that the kernel computes; None if it computes all cells.
    reductions : tuple of int
        Reductions of the sweep to which the kernel contributes, in the order of its partial results.
    scratch : bool
        True if the kernel has scratch memory as an argument.
    splits : tuple of Split
        Division of the cells among thread blocks and threads. In narrow boxes, blocks have another shape with
        at most the same number of threads.
    has_fixed_block : bool
        True if the kernel always runs with blocks of the shape of `splits`, also for fewer cells.
    tile_bytes : int
        Shared memory of a thread block for planes of fields.
    preloaded_planes : int
        Planes that each thread reads before it computes its first cell.
    layouts : bool
        True if the kernel reads the layouts of its arrays from memory, since they exceed the parameter space.
    invariants : (str, int) or None
        Symbol and number of the values in constant memory that the kernel reads. The kernel named `FILL` +
        symbol computes these values.
    """

    name: str
    operands: tuple[int, ...]
    extent: tuple[tuple[int, int], ...]
    top: tuple[int, ...]
    cell: tuple[int, ...] | None = None
    reductions: tuple[int, ...] = ()
    scratch: bool = False
    splits: tuple[Split, ...] = ()
    has_fixed_block: bool = False
    tile_bytes: int = 0
    preloaded_planes: int = 0
    layouts: bool = False
    invariants: tuple[str, int] | None = None

    def named(self, name: str) -> DeviceKernel:
        """Return the kernel with a name in place of `NAME`."""
        invariants = self.invariants and (self.invariants[0].replace(NAME, name), self.invariants[1])
        return replace(self, name=self.name.replace(NAME, name), invariants=invariants)


@dataclass(frozen=True)
class DeviceCode:
    """Kernels of a program for devices.

    Parameters
    ----------
    source : str
        Source in the C subset that CUDA and OpenCL share; see halocline.compile.targets.device.
    kernels : mapping of str to tuple of DeviceKernel
        Device kernels that run, in order, for each kernel of the schedule.
    loops : tuple of str
        For each loop, in the order of the program text, the name of the kernel that tests for its end. The
        kernels of scalar statements and of stop tests have the names of the corresponding CPU functions.
    constants : tuple of str
        Symbols in constant memory whose values do not change during a run, because no operation sets a scalar
        on which they depend. Their values are computed at the start of each run, those of other symbols
        before each sweep.
    """

    source: str
    kernels: Mapping[str, tuple[DeviceKernel, ...]]
    loops: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()

    @property
    def has_invariants(self) -> bool:
        """True if a kernel reads values from constant memory."""
        return any(kernel.invariants for kernels in self.kernels.values() for kernel in kernels)


@dataclass(frozen=True)
class Scalars:
    """Scalar statements, which each rank evaluates once; `function` is an `hc_scalars` function."""

    function: str


@dataclass(frozen=True)
class Await:
    """Wait for the results of the last sweep with reductions.

    Until the wait ends, the scalars of these results have their old values.
    """


@dataclass(frozen=True)
class Stop:
    """End of the run with the message `reason` if the `hc_condition` named `condition` is true.

    `error` is True if the end is an error.
    """

    condition: str
    reason: str
    error: bool = False


@dataclass(frozen=True)
class Loop:
    """Loop over `body`, which ends at a condition or after a number of passes.

    The loop tests two conditions before each pass. The loop ends if the `hc_condition` named `until` is true,
    or if the number of passes reaches the scalar with number `limit`. The scalar with number `count` contains
    the number of passes. After each pass, the scalars with the numbers in `record` are appended to the
    history.

    A conditional statement is a loop of at most one pass. `often` is the expected share of passes of the
    enclosing loop that run this statement; None for other loops.
    """

    until: str | None
    limit: int | None
    count: int
    record: tuple[int, ...]
    body: tuple[Operation, ...]
    often: float | None = None

    @property
    def interval(self) -> int:
        """Number of passes of the enclosing loop between two runs of the body; 0 if it is not known."""
        passes = 0 if self.often is None else round(1 / self.often)
        return passes if passes > 1 else 0


Operation = Sweep | Scalars | Await | Stop | Loop


@dataclass(frozen=True)
class Schedule:
    """Compiled program.

    Parameters
    ----------
    ndim : int
    periodic : tuple of bool
    fields : tuple of FieldInfo
    scalars : tuple of str
        Names by scalar number; parameters first.
    operations : tuple of Operation
    source : str
        Generated C++; see halocline.compile.driver.compile_library. For devices, it contains only scalar
        statements and conditions.
    blocks : Blocks, optional
        Active blocks of the grid; None if the whole grid is active.
    device : DeviceCode, optional
        Device kernels, if the sweeps run on devices.
    """

    ndim: int
    periodic: tuple[bool, ...]
    fields: tuple[FieldInfo, ...]
    scalars: tuple[str, ...]
    operations: tuple[Operation, ...]
    source: str
    blocks: Blocks | None = None

    @property
    def has_loop(self) -> bool:
        """True if the program has a loop. Only passes of a loop can be timed."""
        return any(isinstance(operation, Loop) for operation in self.operations)

    device: DeviceCode | None = None

    def sweeps(self) -> Iterator[Sweep]:
        """Return an iterator over all sweeps, in the order of the program text."""
        return (operation for operation in self.flat() if isinstance(operation, Sweep))

    def pass_sweeps(self) -> Iterator[Sweep]:
        """Return an iterator over the sweeps of one pass of the first loop; without a loop, over all sweeps.

        The iterator yields each sweep of an inner loop once.
        """

        return (operation for operation in self._pass() if isinstance(operation, Sweep))

    def dtype_of(self, *sweeps: Sweep) -> str:
        """Return the precision of sweeps: float32 if all arrays of the sweeps are float32, else float64."""
        dtypes = {self.fields[number].dtype for sweep in sweeps for number in sweep.operands}
        return "float32" if dtypes == {"float32"} else "float64"

    def pass_numbers(self) -> slice:
        """Return the slice of `sweeps` that `pass_sweeps` yields."""
        loops = [n for n, operation in enumerate(self.operations) if isinstance(operation, Loop)]
        before = self.operations[: loops[0]] if loops else ()
        first = sum(isinstance(operation, Sweep) for operation in before)
        return slice(first, first + sum(1 for _ in self.pass_sweeps()))

    def pass_waits(self) -> frozenset[int]:
        """Return, for each wait for reduction results in a pass, the number of sweeps before this wait."""
        waits, sweeps = set(), 0
        for operation in self._pass():
            sweeps += isinstance(operation, Sweep)
            if isinstance(operation, Await):
                waits.add(sweeps)
        return frozenset(waits)

    def _pass(self) -> Iterator[Operation]:
        loops = [operation for operation in self.operations if isinstance(operation, Loop)]
        return flat(loops[0].body if loops else self.operations)

    def stops(self) -> Iterator[Stop]:
        """Return an iterator over all stops, in the order of the program text."""
        return (operation for operation in self.flat() if isinstance(operation, Stop))

    def flat(self) -> Iterator[Operation]:
        """Return an iterator over all operations, also those in loops, in the order of the program text."""

        return flat(self.operations)


def flat(operations: Sequence[Operation]) -> Iterator[Operation]:
    """Yield operations, and those in loops, in the order of the program text."""
    for operation in operations:
        yield operation
        if isinstance(operation, Loop):
            yield from flat(operation.body)


# Placeholder for the name in the text of a kernel, so that kernels can be compared before they have names.
NAME = "@"

INVARIANTS = f"hc_{NAME}_invariants"  # symbol of the values in constant memory of a sweep
FILL = "fill_"  # prefix of the name of the kernel that computes them


@dataclass(frozen=True)
class Code:
    """Text of a kernel, with NAME as a placeholder for its name; for devices, also the device kernels."""

    text: str
    kernels: tuple[DeviceKernel, ...] = ()
