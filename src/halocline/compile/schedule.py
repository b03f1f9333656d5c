"""What a program becomes: a schedule of sweeps, scalar statements and loops, as plain data.

The plan turns a schedule into boxes and messages of one rank, the engine executes it. Fields are
numbered; a field that needs a second buffer has a number for that too, and `Sweep.swaps` exchanges
the two after the sweep, so that a number always stands for the field's current values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from halocline.compile.footprint import Footprint
from halocline.compile.ir.statements import Slot, StageUse
from halocline.lang.blocks import Blocks
from halocline.lang.trace import OWN

AROUND = OWN + "around"  # see Sweep.wraps


@dataclass(frozen=True)
class FieldInfo:
    """One array of the program.

    Parameters
    ----------
    name : str
        The user's name; a second buffer has the name of its field with "'" appended.
    dtype : str
        "float64" or "float32".
    staggered : tuple of bool
        Per axis, whether the points lie on the lower faces of the cells instead of their centres.
    halo : tuple of (int, int)
        Allocated layers below and above, per axis.
    """

    name: str
    dtype: str
    staggered: tuple[bool, ...]
    halo: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Reduction:
    """A number over the grid: `kind` is "sum", "min", "max", "count" or "value"; the result goes to the
    scalar numbered `scalar` at the `Await` that follows the sweep. A value is that of `cell`."""

    kind: str
    scalar: int
    cell: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Fill:
    """A boundary condition of one field on one side, as a kernel over the ghost cells of that side.

    `operands` as in `Sweep`; `depth` ghost layers are written (layer k reads layers below k too);
    `reach` is how many interior cells inward it reads, `along` how many points further along the other
    axes. Fills run in the order of the sweep, each after those whose ghosts it reads.

    The box of a fill extends, along every other axis, over the halo that `corners` says is wanted
    there, so that corners come out the same for any decomposition: over that of neighbours, and over
    ghosts of the axes that it `covers`, whose fills of the same field run before.
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
class Sweep:
    """One pass over all patches; or, where `computes` is false, an exchange alone, which the sweeps of a loop
    then need not repeat in each pass.

    Parameters
    ----------
    kernel : str
        The symbol in the generated library.
    operands : tuple of int
        The field number of each kernel operand.
    reads : mapping from field number to Footprint
        What must be valid in the halo when a patch runs.
    exchange : mapping from field number to Footprint
        The part of `reads` that neighbours must send before (the rest is valid already). An exchange alone
        sends what later sweeps read.
    fills : tuple of Fill
        Boundary conditions to apply before, in this order.
    reductions : tuple of Reduction
        In the order of the kernel's accumulators.
    halo_kernel : str or None
        A kernel with the same operands that writes only the fields that are computed in the halo too.
    halo_extent : Footprint
        Over which segments `halo_kernel` runs (only where a neighbour exists).
    swaps : tuple of (int, int)
        Pairs of field numbers whose buffers change places after the sweep.
    overwrites : tuple of int
        The fields whose current values the kernel overwrites, instead of writing to a second buffer.
    wraps : tuple of int
        Fields whose rows the kernel wraps around itself where one subdomain spans the periodic last axis: the
        scalar `AROUND` says so, by the number of cells of that axis, or 0.
    scratch : tuple of Slot
        Rows are padded to 64 bytes.
    stages : tuple of StageUse
    flops, bytes : float
        Per cell: floating-point operations (an fma is two) and the bytes that must cross memory.
    names : tuple of str
        The user's names of what the sweep computes, for people.
    share : float
        The share of the loop's passes in which it is expected to run: 1 / k for a statement of every k steps.
    """

    kernel: str
    operands: tuple[int, ...]
    reads: Mapping[int, Footprint]
    exchange: Mapping[int, Footprint]
    fills: tuple[Fill, ...] = ()
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
        """True where the kernel sets fields or reduces; false for an exchange alone."""
        return bool(self.operands or self.reductions)


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel for a device: one loop nest of a sweep, or one layer of a boundary condition.

    Parameters
    ----------
    name : str
        The symbol in the device's code.
    operands : tuple of int
        The field number of each array that it takes.
    extent : tuple of (int, int)
        Per axis, over how many cells more than the patch (below, above) it runs.
    top : tuple of int
        Per axis, 1 where it has one more point at the upper wall.
    cell : tuple of int or None
        The only global cell that it runs over, where that is so.
    reductions : tuple of int
        The reductions of the sweep to which it contributes, in the order of its partial results.
    scratch : bool
        Whether it takes scratch memory.
    group : three int or None
        Threads of its groups, contiguous axis first. Narrow boxes have groups of another shape, and of no
        more threads.
    fixed : bool
        Whether it runs with these alone, and not with fewer where there are fewer cells.
    march : int or None
        Cells of each thread along the slowest axis; None: as the cells of each launch suggest.
    ahead : int
        Planes that each thread reads before it computes its first cell.
    tile : three int or None
        Cells of each group along three axes, where it works through these in some order.
    layouts : bool
        Whether it finds in memory where the cells of its arrays are, since parameters do not hold that.
    """

    name: str
    operands: tuple[int, ...]
    extent: tuple[tuple[int, int], ...]
    top: tuple[int, ...]
    cell: tuple[int, ...] | None = None
    reductions: tuple[int, ...] = ()
    scratch: bool = False
    group: tuple[int, int, int] | None = None
    fixed: bool = False
    march: int | None = None
    ahead: int = 0
    tile: tuple[int, int, int] | None = None
    layouts: bool = False


@dataclass(frozen=True)
class DeviceCode:
    """The kernels of a program for devices.

    Parameters
    ----------
    source : str
        In the C that CUDA and OpenCL share; see halocline.compile.targets.device.
    kernels : mapping of str to tuple of DeviceKernel
        What runs, one after the other, in the place of each kernel that the schedule names.
    loops : tuple of str
        The kernel that tests each loop, in the order of the program text. Scalar statements and stops have
        kernels with the names of their functions.
    """

    source: str
    kernels: Mapping[str, tuple[DeviceKernel, ...]]
    loops: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scalars:
    """Scalar statements, evaluated once per rank: symbol of an `hc_scalars` function."""

    function: str


@dataclass(frozen=True)
class Await:
    """Waits for the results of the last sweep with reductions; until then their scalars have old values."""


@dataclass(frozen=True)
class Stop:
    """Ends the run with `reason` where the `hc_condition` named `condition` holds; `error`: that is one."""

    condition: str
    reason: str
    error: bool = False


@dataclass(frozen=True)
class Loop:
    """Repeats `body` until the `hc_condition` named `until` holds or the scalar numbered `limit`
    is reached by the count of passes, kept in the scalar numbered `count`; both are tested before
    each pass. After each pass the scalars numbered in `record` are appended to the history.

    Of a conditional statement, which is a loop of one pass at most, `often` is the part of the passes around
    it in which it is expected to run; None for other loops."""

    until: str | None
    limit: int | None
    count: int
    record: tuple[int, ...]
    body: tuple[Operation, ...]
    often: float | None = None

    @property
    def interval(self) -> int:
        """Passes of the loop around from one run of the body to the next; 0 where this is not known."""
        passes = 0 if self.often is None else round(1 / self.often)
        return passes if passes > 1 else 0


Operation = Sweep | Scalars | Await | Stop | Loop


@dataclass(frozen=True)
class Schedule:
    """A compiled program.

    Parameters
    ----------
    ndim : int
    periodic : tuple of bool
    fields : tuple of FieldInfo
    scalars : tuple of str
        Names by scalar number; parameters first.
    operations : tuple of Operation
    source : str
        The generated C++; see halocline.compile.driver.compile_library. For devices, only scalar statements
        and conditions.
    blocks : Blocks, optional
        Which of the grid's blocks are active, where not all of it is.
    device : DeviceCode, optional
        Where the sweeps run on devices.
    """

    ndim: int
    periodic: tuple[bool, ...]
    fields: tuple[FieldInfo, ...]
    scalars: tuple[str, ...]
    operations: tuple[Operation, ...]
    source: str
    blocks: Blocks | None = None
    device: DeviceCode | None = None

    def sweeps(self) -> Iterator[Sweep]:
        """Every sweep, in the order of the program text."""
        return (operation for operation in self.flat() if isinstance(operation, Sweep))

    def pass_sweeps(self) -> Iterator[Sweep]:
        """The sweeps of one pass of the first loop, those in loops within it once; all without a loop."""

        return (operation for operation in self._pass() if isinstance(operation, Sweep))

    def dtype_of(self, *sweeps: Sweep) -> str:
        """Return the precision of the arithmetic of sweeps: float32 if all their arrays are, else float64."""
        dtypes = {self.fields[number].dtype for sweep in sweeps for number in sweep.operands}
        return "float32" if dtypes == {"float32"} else "float64"

    def pass_numbers(self) -> slice:
        """Where `pass_sweeps` are among all sweeps."""
        loops = [n for n, operation in enumerate(self.operations) if isinstance(operation, Loop)]
        before = self.operations[: loops[0]] if loops else ()
        first = sum(isinstance(operation, Sweep) for operation in before)
        return slice(first, first + sum(1 for _ in self.pass_sweeps()))

    def pass_waits(self) -> frozenset[int]:
        """After how many of the sweeps of one pass results of reductions are waited for."""
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
        """Every stop, in the order of the program text."""
        return (operation for operation in self.flat() if isinstance(operation, Stop))

    def flat(self) -> Iterator[Operation]:
        """Every operation, also those in loops, in the order of the program text."""

        return flat(self.operations)


def flat(operations: Sequence[Operation]) -> Iterator[Operation]:
    """Yield operations, and those in loops, in the order of the program text."""
    for operation in operations:
        yield operation
        if isinstance(operation, Loop):
            yield from flat(operation.body)


# Stands in the text of kernels for their name, until it is known whether they have been written before.
NAME = "@"


@dataclass(frozen=True)
class Code:
    """The text of a kernel, with NAME where its name is to stand; for devices the kernels in its place."""

    text: str
    kernels: tuple[DeviceKernel, ...] = ()
