"""Printer of device kernels in the C subset that CUDA and OpenCL share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Value, joint_extent, padded, padded_extent, tile_bytes
from halocline.compile.printers.spelling import (
    C_TYPES,
    DEVICE,
    VARIABLES,
    Dialect,
    KernelPrinter,
    Names,
    Text,
    suffix,
)
from halocline.compile.schedule import FILL, INVARIANTS
from halocline.compile.strategy import MAX_THREADS_PER_BLOCK, VECTOR_BYTES
from halocline.lang.dtype import ITEMSIZE


def print_device_kernel(
    kernel: Kernel,
    names: Names,
    *,
    layouts: bool,
    block_shape: tuple[int, int, int] | None,
    launch_bounds: tuple[int, str] | None = None,
) -> str:
    """Return the text of a device kernel.

    If `layouts` is True, the kernel reads the layouts of its arrays from memory. If `block_shape` is not
    None, the kernel runs only with thread blocks of this shape. Otherwise `launch_bounds` may limit the
    threads of a block, and give the minimum number of thread blocks that a multiprocessor holds.
    """
    printer = _Printer(kernel=kernel, names=names, block_threads=prod(block_shape or ()))
    out, statements = printer.out, list(ir.flat(kernel.body))
    staged = any(isinstance(s, ir.Allocate) for s in statements)
    reduces = any(isinstance(s, ir.Reduce) for s in statements)
    streams = any(isinstance(s, ir.Axis) and s.kind == "stream" for s in statements)
    barriers = reduces or block_shape is not None
    invariants = any(array.kind == "invariants" for array in kernel.arrays)
    arrays = {printer.name_of(array): array for array in kernel.arrays if array.kind == "field"}
    out.add(f"// {kernel.comment}")
    fixed = "" if block_shape is None else f"_FIXED_BLOCK({', '.join(map(str, block_shape))})"
    if not fixed and launch_bounds is not None:
        fixed = f"_LAUNCH_BOUNDS({launch_bounds[0]}, {launch_bounds[1]})"
    parameters = _arrays(kernel, arrays, layouts)
    parameters += ["HC_GLOBAL const double *scalars"]
    parameters += ["HC_GLOBAL char *scratch"] * staged
    parameters += ["HC_GLOBAL hc_partial *partials"] * reduces
    parameters += ["HC_CONSTANT const double *invariants"] * invariants
    parameters += ["HC_GLOBAL const hc_control *control", "const hc_frame f"]
    with out.block(f"HC_KERNEL{fixed} {kernel.name}({', '.join(parameters)})"):
        if reduces:
            out.add(f"HC_SHARED hc_partial shared[HC_SCRATCH({MAX_THREADS_PER_BLOCK})];")
        if barriers:
            # no return before barriers: PoCL 3.1 compiles some of these kernels so that they always return
            out.add("const hc_int64 end = control->skip != 0 ? f.lo[2] : f.hi[2];")
        else:
            out.add("if (control->skip != 0) return;")
            out.add("const hc_int64 end = f.hi[2];")
        for name, array in arrays.items():
            argument = f"layouts[{array.number}]" if layouts else f"{name}_argument"
            constant = "" if streams else "const "
            out.add(f"{constant}hc_layout {name}_layout = HC_LAYOUT({array.number}, {argument});")
        printer.declare_scalars()
        printer.body(kernel.body)
    return str(out)


@dataclass(frozen=True)
class GhostLayers:
    """Layers of ghosts of a field beyond a wall, each with a function that computes one of its cells.

    Parameters
    ----------
    functions : tuple of str
        Functions of the layers, from the wall outward, see `print_ghost_function`.
    axis, side : int
        Axis of the generated code, and -1 for the lower side or 1 for the upper side.
    arrays : tuple of Array
        Fields that the functions read and write, in the order of their parameters.
    """

    functions: tuple[str, ...]
    axis: int
    side: int
    arrays: tuple[Array, ...]


def print_ghost_function(kernel: Kernel, names: Names) -> str:
    """Return the text of a function that computes one cell of a layer of ghosts."""
    printer = _Printer(kernel=kernel, names=names)
    out = printer.out
    parameters = []
    for array in kernel.arrays:
        name = printer.name_of(array)
        parameters += [f"{_pointer(array)}{name}_data", f"const hc_layout {name}_layout"]
    parameters += ["HC_GLOBAL const double *scalars", "const hc_frame f", "const hc_int64 number"]
    out.add(f"// {kernel.comment}")
    with out.block(f"HC_FUNCTION void {kernel.name}({', '.join(parameters)})"):
        printer.declare_scalars()
        printer.body(kernel.body)
    return str(out)


def print_wall_kernel(name: str, walls: Sequence[GhostLayers], names: Names, *, layouts: bool) -> str:
    """Return the text of a kernel that fills ghosts beyond several walls.

    Each wall has its own thread blocks. Each thread computes one ghost of each layer, from the wall outward.
    If `layouts` is True, the kernel reads the layouts of its arrays from memory.
    """
    out = Text()
    arrays = wall_arrays(walls)
    parameters = []
    for array in arrays:
        parameters.append(f"{_pointer(array)}{names.arrays[array.name]}_data")
        parameters += [f"const hc_layout {names.arrays[array.name]}_argument"] * (not layouts)
    parameters += ["HC_GLOBAL const hc_layout *layouts"] * layouts
    parameters += ["HC_GLOBAL const double *scalars", "HC_GLOBAL const hc_control *control"]
    parameters += ["const hc_frame f", f"const hc_{name} walls"]
    out.add(f"typedef struct {{ hc_wall wall[{len(walls)}]; }} hc_{name};")
    with out.block(f"HC_KERNEL {name}({', '.join(parameters)})"):
        out.add("if (control->skip != 0) return;")
        for array in arrays:
            array_name = names.arrays[array.name]
            argument = f"layouts[{array.number}]" if layouts else f"{array_name}_argument"
            out.add(f"const hc_layout {array_name}_layout = HC_LAYOUT({array.number}, {argument});")
        for n, wall in enumerate(walls):
            condition = f"if (hc_block(0) < walls.wall[{n}].end_block)"
            with out.block(f"else {condition}" if n else condition):
                first = f"walls.wall[{n - 1}].end_block" if n else "0"
                out.add(f"const hc_int64 number = hc_wall_thread({first});")
                field_names = (names.arrays[array.name] for array in wall.arrays)
                fields = [f"{field}_{part}" for field in field_names for part in ("data", "layout")]
                for layer, function in enumerate(wall.functions):
                    frame = f"hc_wall_layer(f, walls.wall[{n}], {wall.axis}, {wall.side}, {layer})"
                    out.add(f"{function}({', '.join([*fields, 'scalars', frame, 'number'])});")
    return str(out)


def wall_arrays(walls: Sequence[GhostLayers]) -> list[Array]:
    """Return the arrays of all walls, in the order of the parameters of their kernel."""
    arrays: dict[str, Array] = {}
    for array in (array for wall in walls for array in wall.arrays):
        known = arrays.get(array.name, array)
        arrays[array.name] = replace(array, written=array.written or known.written)
    return list(arrays.values())


def _pointer(array: Array) -> str:
    return f"HC_GLOBAL {'' if array.written else 'const '}{C_TYPES[array.dtype]} *"


LANES = "xyzw"  # names of the elements of a vector


def vector_type(dtype: str, cells: int) -> str:
    """Return the type of a vector in CUDA and OpenCL, or of a number for one cell."""
    return C_TYPES[dtype] + (str(cells) if cells > 1 else "")


def vector_text(dtype: str, values: Sequence[str]) -> str:
    """Return the text of a vector of some values, or the only value."""
    if len(values) == 1:
        return values[0]
    return f"HC_{vector_type(dtype, len(values)).upper()}({', '.join(values)})"


def print_fill_kernel(kernel: Kernel, names: Names, statement: ir.ComputeInvariants) -> str:
    """Return the text of the kernel that computes the invariants of a sweep, in one thread."""
    printer = _Printer(kernel=kernel, names=names)
    out = printer.out
    out.add(f"HC_INVARIANTS({INVARIANTS}, {len(statement.values)})")
    parameters = "HC_GLOBAL const double *scalars, HC_GLOBAL double *invariants"
    parameters += ", HC_GLOBAL const hc_control *control, const hc_frame f"
    with out.block(f"HC_KERNEL {FILL}{INVARIANTS}({parameters})"):
        out.add("if (control->skip != 0) return;")
        printer.declare_scalars()
        printer.body((ir.Let(tuple(kernel.below(statement.values))),))
        for place, number in enumerate(statement.values):
            out.add(f"invariants[{place}] = {printer.cast(number, 'float64')};")
    return str(out)


def _arrays(kernel: Kernel, arrays: dict[str, Array], layouts: bool) -> list[str]:
    """Return the parameters for fields, by their names in the code, and for their layouts."""
    read = {name for name, _ in kernel.loads(ir.roots(kernel.body))}
    read |= {array.source for array in kernel.arrays if array.name in read}
    written = {s.array for s in ir.flat(kernel.body) if isinstance(s, ir.STORES)}
    parameters = []
    for name, array in arrays.items():
        constant = "" if array.name in written else "const "
        restrict = "" if array.name in read & written else " HC_RESTRICT"
        parameters += [f"HC_GLOBAL {constant}{C_TYPES[array.dtype]} *{restrict} {name}_data"]
        parameters += [f"const hc_layout {name}_argument"] * (not layouts)
    return parameters + ["HC_GLOBAL const hc_layout *layouts"] * layouts


@dataclass(kw_only=True)
class _Printer(KernelPrinter):
    """Printer of the statements of a kernel, and of the values that a thread computes for a cell."""

    dialect: Dialect = field(default_factory=lambda: DEVICE)
    streaming_axis: int | None = None
    steps: dict[int, int] = field(default_factory=dict)  # cells of a thread along the axes with threads
    slots: list[int] = field(default_factory=list)  # reductions in the order of their partial results
    vectors: dict[tuple[str, ir.Offset], str] = field(default_factory=dict)  # loaded vectors in scope
    block_threads: int = 0  # threads of a block of fixed shape
    lanes_read: dict[tuple[str, ir.Offset], set[int]] = field(default_factory=dict)  # see `lanes_of`
    missing: tuple[tuple[int, int, int], ...] = ((0, 0, 0),) * 3  # see `missing_cells`
    slot_sizes: dict[str, tuple[str, int]] = field(default_factory=dict)  # of slots so far: variable, number
    slot_places: dict[int, str] = field(default_factory=dict)  # by number of the slot
    allocations: list[ir.Allocate] = field(default_factory=list)  # of stages to slots
    used_arrays: set[str] = field(default_factory=set)  # of the current nest
    tiles: int = 0  # bytes of the field tiles that are declared
    is_tile: bool = False  # the threads of a block number its cells

    def print_nest(self, statement: ir.Nest) -> None:
        self.names_in_use = set()
        self.nest, self.extent = statement, padded_extent(statement.extent, self.kernel.ndim)
        nests = [s for s in self.kernel.body if isinstance(s, ir.Nest)]
        loops = [s for s in ir.flat(statement.body) if isinstance(s, ir.Axis)]
        self.streaming_axis = next((s.axes[0] for s in loops if s.kind == "stream"), None)
        self.steps = {axis: s.step for s in loops if s.kind == "thread" for axis in s.axes}
        self.lanes_read = self.lanes_of(statement)
        self.is_tile = any(len(loop.axes) > 1 for loop in loops) and any(s.kind == "block" for s in loops)
        self.missing = ((0, 0, 0),) * 3 if self.is_tile else self.missing_cells(nests)
        loads = {name for name, _ in self.kernel.loads(ir.roots(statement.body))}
        self.used_arrays = loads | {s.array for s in ir.flat(statement.body) if isinstance(s, ir.STORES)}

        def body() -> None:
            if self.streaming_axis is None:
                self.declare_used_scratch()
            self.body(statement.body)

        if len(nests) > 1:
            self.block("", body)
        else:
            body()

    # --- scratch memory ---

    def print_slot(self, statement: ir.Slot) -> None:
        terms = [f"{count} * {size}" for size, count in self.slot_sizes.values()]
        self.slot_places[statement.number] = f"({' + '.join(['scratch', *terms])})"
        text = self.slot_bytes(statement)
        if text not in self.slot_sizes:
            self.slot_sizes[text] = f"size{len(self.slot_sizes)}", 0
            self.out.add(f"hc_int64 {self.slot_sizes[text][0]} = {text};")
        size, count = self.slot_sizes[text]
        self.slot_sizes[text] = size, count + 1

    def print_allocate(self, statement: ir.Allocate) -> None:
        self.name_stage(statement.array)
        self.allocations.append(statement)

    def declare_used_scratch(self, *, recompute: bool = False) -> None:
        """Declare the scratch arrays of the current nest, with `recompute` anew for each plane."""
        allocations = [s for s in self.allocations if s.array in self.used_arrays]
        if allocations and recompute:
            for name in ("scratch", *(size for size, _ in self.slot_sizes.values())):
                self.out.add(f"HC_RECOMPUTE({name});")
        for statement in allocations:
            self.declare_scratch(statement, self.slot_places[statement.slot])

    def missing_cells(self, nests: Sequence[ir.Nest]) -> tuple[tuple[int, int, int], ...]:
        """Return the cells of a launch that the current nest does not compute, along three axes.

        These are the cells below it, above it, and, in addition, at an upper wall.
        """
        ndim = self.kernel.ndim
        extent, top = joint_extent(nests)
        sides = zip(padded_extent(extent, ndim), padded(top, ndim), strict=True)
        of_nest = zip(self.extent, padded(self.nest.top, ndim), strict=True)
        return tuple(
            (lower - lo, upper - hi, at_wall - t)
            for ((lower, upper), at_wall), ((lo, hi), t) in zip(sides, of_nest, strict=True)
        )

    # --- threads and 2.5D streaming ---

    def print_axis(self, statement: ir.Axis) -> None:
        match statement.kind:
            case "block":
                self.print_block_axis(statement)
            case "thread" if len(statement.axes) > 1 and self.is_tile:
                self.print_tile_axis(statement)
            case "thread" if len(statement.axes) > 1:
                self.print_numbered_axis(statement)
            case "thread":
                self.print_thread_axis(statement)
            case _:
                v = VARIABLES[statement.axes[0]]
                if any(step > 1 for step in self.steps.values()):
                    self.out.add("HC_UNROLL(1)")  # several cells at once are enough work
                with self.out.block(f"for (hc_int64 {v} = {v}_begin; {v} < {v}_end; ++{v})"), self.scope():
                    for array in self.kernel.arrays:
                        if array.kind == "field":
                            for stride in ("s0", "s1"):
                                self.out.add(f"HC_RECOMPUTE({self.name_of(array)}_layout.{stride});")
                    self.declare_used_scratch(recompute=True)
                    self.body(statement.body)

    def print_block_axis(self, statement: ir.Axis) -> None:
        """Print the first cell of a thread block along an axis, and the end of its cells."""
        (axis,), out = statement.axes, self.out
        v, first = VARIABLES[axis], self.begin(axis)
        cells = str(statement.step or f"f.block_cells[{axis}]")
        if axis in self.steps and not statement.step:  # fewer registers than with a 64-bit argument
            cells = f"(hc_block_size({2 - axis}) * {self.steps[axis]})"
        if axis == 2 and self.steps.get(axis, 1) > 1:
            first = f"({first} & -{self.steps[axis]})"  # vectors are aligned
        out.add(f"const hc_int64 {v}_begin = {first} + hc_block({2 - axis}) * {cells};")
        if axis in self.steps or axis == self.streaming_axis:
            out.add(f"const hc_int64 {v}_end = hc_min_index({v}_begin + {cells}, {self.end(axis)});")
        else:
            out.add(f"const hc_int64 {v} = {v}_begin;")
        self.body(statement.body)

    def print_thread_axis(self, statement: ir.Axis) -> None:
        """Print the cells of a thread along several axes, and the body for threads with cells in the box."""
        conditions = []
        with self.out.block(""):
            while True:
                (axis,) = statement.axes
                v, step = VARIABLES[axis], f" * {statement.step}" if statement.step > 1 else ""
                self.out.add(f"const hc_int64 {v} = {v}_begin + hc_thread({2 - axis}){step};")
                conditions.append(f"{v} < {self.end(axis)}")
                inner = statement.body[0]
                if not (isinstance(inner, ir.Axis) and inner.kind == "thread"):
                    break
                statement = inner
            self.block(f"if ({' && '.join(conditions)})", statement.body)

    def print_cell_address(self, statement: ir.CellAddress) -> None:
        array = self.kernel.array[statement.array]
        if array.kind == "stage_tile" and array.name not in self.stages:
            self.name_stage(array.name)
        name, ctype = self.name_of(array), C_TYPES[array.dtype]
        if array.kind == "stage_tile":
            (_, d1, d2), layers = array.shape, array.layers
            terms = [f"((int)({v} - {v}_begin) + {layers[a][0]})" for a, v in enumerate(VARIABLES)]
            self.out.add(f"const int {name}_at = ({terms[0]} * {d1} + {terms[1]}) * {d2} + {terms[2]};")
        elif array.kind == "scratch":
            index = f"i * {name}_s0 + j * {name}_s1 + k - {name}_origin"
            self.out.add(f"HC_GLOBAL {ctype} *const {name}_cell = {name}_base + ({index});")
        else:
            constant = "" if statement.sink else "const "
            index = f"{name}_layout.at + i * {name}_layout.s0 + j * {name}_layout.s1 + k"
            self.out.add(f"HC_GLOBAL {constant}{ctype} *const {name}_cell = {name}_data + ({index});")

    def print_declare_queue(self, statement: ir.DeclareQueue) -> None:
        array = self.kernel.array[statement.array]
        ((first, last),) = array.layers
        zero = vector_text(array.dtype, ["0"] * array.length)
        places = ", ".join(f"{self.queued(array, step)} = {zero}" for step in range(first, last + 1))
        self.out.add(f"{vector_type(array.dtype, array.length)} {places};")

    def print_fill_queues(self, statement: ir.FillQueues) -> None:
        assert self.streaming_axis is not None
        v = VARIABLES[self.streaming_axis]
        with self.out.block():
            self.out.add(f"const hc_int64 {v} = {v}_begin;")
            addresses = dict.fromkeys(self.kernel.array[name].source for name in statement.queues)
            for source in addresses:
                self.print_cell_address(ir.CellAddress(source))
            for name in statement.queues:
                array = self.kernel.array[name]
                for step in range(*array.layers[0]):
                    self.out.add(f"{self.queued(array, step)} = {self.queue_source(array, step)};")

    def print_load_queue_end(self, statement: ir.LoadQueueEnd) -> None:
        array = self.kernel.array[statement.array]
        last, tile = array.layers[0][1], self.kernel.array.get(f"{array.source}:field_tile")
        text = self.queue_source(array, last)
        if tile is not None and last >= 0:
            text = self.as_vector(self.in_tile(tile, last, (0, array.shape[0], 0)), array, "HC_LOCAL")
        self.out.add(f"{self.queued(array, last)} = {text};")

    def queue_source(self, array: Array, step: int) -> str:
        """Return the text that reads an entry of a queue from memory."""
        offset = [step if axis == self.streaming_axis else 0 for axis in range(3)]
        offset[1] += array.shape[0]
        return self.as_vector(self.in_memory(array, tuple(offset)), array, "HC_GLOBAL")

    def print_shift_queue(self, statement: ir.ShiftQueue) -> None:
        array = self.kernel.array[statement.array]
        for step in range(*array.layers[0]):
            self.out.add(f"{self.queued(array, step)} = {self.queued(array, step + 1)};")

    # --- shared memory ---

    def print_declare_shared(self, statement: ir.DeclareShared) -> None:
        array = self.kernel.array[statement.array]
        ctype, count = C_TYPES[array.dtype], prod(array.shape)
        if array.kind == "field_tile":
            self.out.add(f"HC_TILE({ctype}, {self.name_of(array)}_field_tile, {count}, {self.tiles});")
            self.tiles += tile_bytes(array)
            return
        name = f"{self.name_of(array)}_tile" if array.kind == "shared" else self.name_of(array)
        self.out.add(f"HC_SHARED {ctype} {name}[{count}];")

    def declare_scalars(self) -> None:
        """Declare all scalars of the kernel."""
        for scalar in sorted({*self.kernel.attributes("scalar")}):
            number = self.names.numbers[scalar]
            self.out.add(f"const double {self.names.scalars[scalar]} = scalars[{number}];")

    def print_barrier(self, statement: ir.Barrier) -> None:
        self.out.add("HC_BARRIER();")

    def print_fill_tiles(self, statement: ir.FillTiles) -> None:
        out, ahead = self.out, statement.ahead
        arrays = [self.kernel.array[name] for name in statement.arrays]
        groups: list[list[tuple[Array, str, int]]] = []
        for group in range(ahead):
            groups.append([])
            for array in arrays:
                last = array.layers[0][1]
                first, count = (0, last + 1) if group == 0 else (last + group, 1)
                groups[-1].append((array, f"{self.streamed}_begin + {first}", count))

        def bulk() -> None:
            threads = sum(array.shape[1] for array in arrays)
            out.add(f"HC_SHARED hc_uint64 copied[{ahead}];")
            with out.block("if (hc_thread_number() == 0)"):
                for group in range(ahead):
                    out.add(f"HC_BULK_INIT(&copied[{group}], {threads});")
            out.add("HC_BARRIER();")
            for group, copies in enumerate(groups):
                for array, plane, count in copies:
                    self.copy_rows(array, plane, count, f"&copied[{group}]")

        def plain() -> None:
            for copies in groups:
                for array, plane, count in copies:
                    self.copy_planes(array, plane, count)
                out.add("HC_COPIES_END();")

        self.print_copies(arrays, bulk, plain)

    def print_load_tiles(self, statement: ir.LoadTiles) -> None:
        out, v, ahead = self.out, self.streamed, statement.ahead
        arrays = [self.kernel.array[name] for name in statement.arrays]
        newest = [(array, f"{v} + {array.layers[0][1] + ahead}") for array in arrays]

        def bulk() -> None:
            out.add(f"const int group = (int)({v} - {v}_begin);")
            out.add(f"HC_BULK_WAIT(&copied[group % {ahead}], group / {ahead} & 1);")
            out.add("HC_BARRIER();")
            for array, plane in newest:
                self.copy_rows(array, plane, 1, f"&copied[group % {ahead}]")

        def plain() -> None:
            out.add(f"HC_COPIES_WAIT({ahead - 1});")
            out.add("HC_BARRIER();")
            for array, plane in newest:
                self.copy_planes(array, plane)
            out.add("HC_COPIES_END();")

        self.print_copies(arrays, bulk, plain)
        for array in arrays:
            for step in self.planes_read(array):
                place = self.place_of(array, f"{v} + {step}" if step else v)
                out.add(f"const int {self.plane_of(array, step)} = {place};")

    def print_copies(
        self, tiles: Sequence[Array], bulk: Callable[[], None], plain: Callable[[], None]
    ) -> None:
        """Print bulk and plain copies to tiles, of which HC_BULK_COPIES selects one.

        If the rows of some tiles do not permit bulk copies, print only plain copies.
        """
        possible = all(
            array.length * ITEMSIZE[array.dtype] == VECTOR_BYTES and array.shape[1] <= self.block_threads
            for array in tiles
        )
        if possible:
            self.out.add("#ifdef HC_BULK_COPIES")
            bulk()
            self.out.add("#else")
        plain()
        if possible:
            self.out.add("#endif")

    def copy_rows(self, array: Array, first: str, count: int, barrier: str) -> None:
        """Print the bulk copies of planes and the layers around them to a field tile, one row per thread."""
        out, (_, rows, row) = self.out, array.shape
        (_, last), _, (before, behind) = array.layers
        with out.block(f"if (hc_thread_number() < {rows})"):
            out.add("const int n = (int)hc_thread_number();")
            out.add(f"const hc_int64 cell = k_begin - {before};")
            out.add(f"const hc_int64 cells = hc_min_index({row}, {self.end(2)} + {behind} - cell);")
            condition, source = self.row_of_tile(array, "n")
            out.add(
                f"const hc_int64 end_plane = hc_min_index({first} + {count}, {self.streamed}_end + {last});"
            )
            with (
                out.block(f"if (cells > 0{condition})"),
                out.block(f"for (hc_int64 plane = {first}; plane < end_plane; ++plane)"),
            ):
                to = f"&{self.name_of(array)}_field_tile[{self.place_of(array, 'plane')} + n * {row}]"
                vectors = f"(cells + {array.length - 1}) / {array.length} * {VECTOR_BYTES}"
                out.add(f"HC_BULK_ROW({to}, {source}, {vectors}, {barrier});")
            out.add(f"HC_BULK_END({barrier});")

    def planes_read(self, tile: Array) -> list[int]:
        """Return the planes of a tile that threads read: the current one, and the newest of each queue."""
        queues = (a for a in self.kernel.arrays if (a.kind, a.source) == ("queue", tile.source))
        return sorted({0, *(queue.layers[0][1] for queue in queues if queue.layers[0][1] > 0)})

    def plane_of(self, tile: Array, step: int) -> str:
        """Return the variable with the place of a plane in a tile, `step` planes after the current one."""
        return f"{self.name_of(tile)}_plane{step or ''}"

    def place_of(self, array: Array, plane: str) -> str:
        """Return the place of a plane in the ring of a field tile."""
        planes, rows, row = array.shape
        return f"(int)({plane} - {self.streamed}_begin) % {planes} * {rows * row}"

    def copy_planes(self, array: Array, first: str, count: int = 1) -> None:
        """Print the copies of planes and the layers around them to a field tile, if a cell reads them."""
        out, (_, rows, row) = self.out, array.shape
        (_, last), _, (before, behind) = array.layers
        vectors, lanes = row // array.length, f" * {array.length}" if array.length > 1 else ""
        with out.block():
            out.add(f"hc_int64 plane = {first};")
            end = f"hc_min_index({first} + {count}, {self.streamed}_end + {last})"
            planes = "if (plane < {})" if count == 1 else "for (; plane < {}; ++plane)"
            loop = f"for (int n = (int)hc_thread_number(); n < {rows * vectors}; n += {self.block_threads})"
            if count > 1:
                out.add("HC_UNROLL(1)")
            with out.block(planes.format(end)), out.block(loop):
                condition, source = self.row_of_tile(array, f"n / {vectors}")
                out.add(f"const hc_int64 cell = k_begin - {before} + n % {vectors}{lanes};")
                to = f"&{self.name_of(array)}_field_tile[{self.place_of(array, 'plane')} + n{lanes}]"
                copy = f"HC_COPY({vector_type(array.dtype, array.length)}, {to}, {source});"
                out.add(f"if (cell < {self.end(2)} + {behind}{condition}) {copy}")

    def row_of_tile(self, array: Array, number: str) -> tuple[str, str]:
        """Print the row with a number in a field tile; return its condition, and the address of a cell.

        The condition is true if threads read the row. It is empty if the threads of a block have one row.
        """
        name, (below, above) = self.name_of(array), array.layers[1]
        index, condition = [*VARIABLES[:2], "cell"], ""
        if self.streaming_axis == 0:
            index[1] = "row"
            self.out.add(f"const hc_int64 row = j_begin - {below} + {number};")
            # rows beyond the box feed the queues of threads that have the last row
            condition = f" && row < {self.end(1)} + {max(above, self.steps[1] - 1)}"
        index[VARIABLES.index(self.streamed)] = "plane"
        place = f"{index[0]} * {name}_layout.s0 + {index[1]} * {name}_layout.s1 + {index[2]}"
        return condition, f"&{name}_data[{name}_layout.at + {place}]"

    def print_tile_axis(self, statement: ir.Axis) -> None:
        """Print the loop over the cells of a nest in and around the cells of a thread block."""
        out, top = self.out, padded(self.nest.top, self.kernel.ndim)
        for axis, (lower, upper) in enumerate(self.extent):
            v = VARIABLES[axis]
            out.add(f"const hc_int64 lo{axis} = {v}_begin - {lower};")
            more = f" + ({v}_end == f.hi[{axis}] ? f.box_top[{axis}] : 0)" if top[axis] else ""
            out.add(f"const int n{axis} = (int)({v}_end + {upper}{more} - lo{axis});")
        self.block(
            "for (int n = (int)hc_thread_number(); n < n0 * n1 * n2; n += (int)hc_block_threads())",
            statement.body,
            "const hc_int64 i = lo0 + n / (n1 * n2), j = lo1 + n / n2 % n1, k = lo2 + n % n2;",
        )

    def print_numbered_axis(self, statement: ir.Axis) -> None:
        """Print the cell of a thread that has the given number among all cells of the launch."""
        for axis in range(3):
            self.out.add(f"const int n{axis} = (int)(f.hi[{axis}] - f.lo[{axis}]);")
        self.out.add("const int n = (int)number;")
        self.block(
            "if (n < n0 * n1 * n2)",
            statement.body,
            "const hc_int64 i = f.lo[0] + n / (n1 * n2), j = f.lo[1] + n / n2 % n1, k = f.lo[2] + n % n2;",
        )

    def print_branch(self, statement: ir.Branch) -> None:
        values = [self.kernel.values[number] for number in statement.values]
        variables = [self.temporary() for _ in values]
        for value, variable in zip(values, variables, strict=True):
            self.out.add(f"{C_TYPES[value.dtype]} {variable};")
        for side, line, body in (
            (1, f"if ({self.value_texts[statement.condition]})", statement.then),
            (2, "else", statement.otherwise),
        ):
            with self.out.block(line), self.scope():
                self.body(body)
                for value, variable in zip(values, variables, strict=True):
                    self.out.add(f"{variable} = {self.cast(value.args[side], value.dtype)};")
        self.value_texts |= dict(zip(statement.values, variables, strict=True))

    # --- results ---

    def print_reset_partial(self, statement: ir.ResetPartial) -> None:
        self.out.add(f"hc_partial partial{statement.number};")
        self.out.add(f"hc_partial_reset(&partial{statement.number}, HC_{statement.kind.upper()});")
        if statement.kind == "sum":
            self.out.add(f"hc_sum_state state{statement.number} = hc_sum_begin(&partial{statement.number});")

    def print_reduce(self, statement: ir.Reduce) -> None:
        if statement.slot not in self.slots:
            self.slots.append(statement.slot)
        value = self.cast(statement.value, "float64")
        counted = " != 0.0" if statement.kind == "count" else ""
        number = self.slots.index(statement.slot)
        state = f" &state{number}," if statement.kind == "sum" else ""
        self.out.add(f"hc_{statement.kind}_put(&partial{number},{state} {value}{counted});")

    def print_cell(self, statement: ir.Cell) -> None:
        condition = self.inside(statement.offset)
        if condition:
            self.block(f"if ({condition})", statement.body)
        else:
            self.body(statement.body)

    def inside(self, offset: ir.Offset, cells: int = 1) -> str:
        """Return the condition under which some adjacent cells of a row are in the box; empty for none.

        The first cell of the thread is in the box. For vectors, which are aligned, it may also lie before the
        first cell of a row.
        """
        conditions = [
            f"{VARIABLES[axis]} + {offset[axis]} < {self.end(axis)}" for axis in (0, 1) if offset[axis]
        ]
        if self.steps.get(2, 1) > 1:
            first, last = offset[2], offset[2] + cells - 1
            conditions.append(f"k + {first} >= {self.begin(2)}" if first else f"k >= {self.begin(2)}")
            if last:
                conditions.append(f"k + {last} < {self.end(2)}")
        return " && ".join(conditions)

    def print_store_cells(self, statement: ir.StoreCells) -> None:
        array, offset = self.kernel.array[statement.array], statement.offset
        values = [self.cast(number, array.dtype) for number in statement.values]
        condition = self.inside(offset, len(values))
        text = self.stored(array, offset, vector_text(array.dtype, values), len(values))
        self.out.add(f"if ({condition}) {text}" if condition else text)
        if len(values) > 1:
            with self.out.block("else"):
                for lane, value in enumerate(values):
                    place = (*offset[:2], offset[2] + lane)
                    self.out.add(f"if ({self.inside(place)}) {self.stored(array, place, value)}")

    def stored(self, array: Array, offset: ir.Offset, value: str, cells: int = 1) -> str:
        """Return the text that stores the values of adjacent cells at an offset from the current cell."""
        place = self.in_memory(array, offset)
        if cells > 1:
            place = f"*(HC_GLOBAL {vector_type(array.dtype, cells)} *)&{place}"
        return f"{place} = {value};"

    def print_store(self, statement: ir.Store) -> None:
        array = self.kernel.array[statement.array]
        name = self.name_of(array)
        place = f"{self.tile_of(array)}[{name}_at]" if array.kind == "stage_tile" else f"{name}_cell[0]"
        self.out.add(f"{place} = {self.cast(statement.value, array.dtype)};")

    def print_reduce_block(self, statement: ir.ReduceBlock) -> None:
        out, kinds, count = self.out, statement.kinds, len(statement.kinds)
        # one loop for all reductions: PoCL then compiles kernels with many reductions in a third of the time
        out.add(f"hc_partial partial[{count}] = {{{', '.join(f'partial{n}' for n in range(count))}}};")
        out.add(f"const int kinds[{count}] = {{{', '.join(f'HC_{k.upper()}' for k in kinds)}}};")
        out.add(f"HC_UNROLL({count})")
        with out.block(f"for (int n = 0; n < {count}; ++n)"):
            out.add("hc_block_reduce(kinds[n], &partial[n], shared, hc_thread_number(), hc_block_threads());")
            slot = "f.first_block + n * f.stride + hc_block_number()"
            out.add(f"if (hc_thread_number() == 0) partials[{slot}] = partial[n];")

    # --- values ---

    @contextmanager
    def scope(self) -> Iterator[None]:
        vectors = dict(self.vectors)
        with super().scope():
            yield
        self.vectors = vectors

    def loaded(self, value: Value) -> str:
        """Declare the value of an array at an offset, and return its name.

        If a thread computes several cells of a row at once, it loads vectors whose elements the kernel reads.
        """
        name, grid_offset = value.attribute
        array, lanes = self.kernel.array[name], self.steps.get(2, 1)
        *place, along = padded(grid_offset, self.kernel.ndim)
        lane = along % lanes
        group = name, (*place, along - lane)
        if array.kind not in ("field", "field_tile") or len(self.lanes_read.get(group, ())) < 2:
            return super().loaded(value)
        if group not in self.vectors:
            variable = self.reserve_name(f"{self.name_of(array)}_{suffix(group[1])}_vector")
            space = "HC_GLOBAL" if array.kind == "field" else "HC_LOCAL"
            text = self.as_vector(self.load_text(array, group[1]), array, space)
            self.out.add(f"const {vector_type(array.dtype, lanes)} {variable} = {text};")
            self.vectors[group] = variable
        return f"{self.vectors[group]}.{LANES[lane]}"

    def lanes_of(self, nest: ir.Nest) -> dict[tuple[str, ir.Offset], set[int]]:
        """Return the elements of each vector that a nest reads, by array and offset of the vector."""
        lanes = self.steps.get(2, 1)
        result: dict[tuple[str, ir.Offset], set[int]] = {}
        for name, grid_offset in self.kernel.loads(ir.roots(nest.body)) if lanes > 1 else ():
            *place, along = padded(grid_offset, self.kernel.ndim)
            result.setdefault((name, (*place, along - along % lanes)), set()).add(along % lanes)
        return result

    def begin(self, axis: int) -> str:
        """Return the first cell of the nest along an axis."""
        below = self.missing[axis][0]
        return f"(f.lo[{axis}] + {below})" if below else f"f.lo[{axis}]"

    def end(self, axis: int) -> str:
        """Return the end of the nest along an axis.

        If `hc_control.skip` is set, the box is empty along the last axis. The thread block may still stream
        and compute around the box.
        """
        _, above, at_wall = self.missing[axis]
        text = "end" if axis == 2 else f"f.hi[{axis}]"
        text += f" - {above}" if above else ""
        text += f" - f.box_top[{axis}]" if at_wall else ""
        return f"({text})" if above or at_wall else text

    def name_of(self, array: Array) -> str:
        if array.kind in ("queue", "field_tile"):
            return self.names.arrays[array.source]
        return self.stages[array.name] if array.kind == "stage_tile" else super().name_of(array)

    def tile_of(self, array: Array) -> str:
        """Return the name of the shared memory that contains a tile."""
        return f"{self.name_of(self.kernel.array[array.source])}_tile"

    @property
    def streamed(self) -> str:
        """Variable of the streaming axis."""
        assert self.streaming_axis is not None
        return VARIABLES[self.streaming_axis]

    def queued(self, array: Array, step: int) -> str:
        """Return the register with the value that is `step` cells away along the streaming axis."""
        return f"{self.name_of(array)}_queue{array.shape[0] or ''}_{suffix((step,))}"

    def load_text(self, array: Array, offset: ir.Offset) -> str:
        if array.kind == "queue":
            assert self.streaming_axis is not None
            entry = self.queued(array, offset[self.streaming_axis])
            return f"{entry}.{LANES[offset[2]]}" if array.length > 1 else entry
        if array.kind == "field_tile":
            return self.in_tile(array, 0, offset)
        return self.in_memory(array, offset)

    def in_tile(self, array: Array, step: int, offset: ir.Offset) -> str:
        """Return the text that reads a field tile `step` planes ahead, at an offset in this plane."""
        _, (below, _), (before, _) = array.layers
        row = f"({'(int)(j - j_begin)' if self.streaming_axis == 0 else '0'} + {below + offset[1]})"
        along = f"(int)(k - k_begin) + {before + offset[2]}"
        place = f"{self.plane_of(array, step)} + {row} * {array.shape[2]} + {along}"
        return f"{self.name_of(array)}_field_tile[{place}]"

    def as_vector(self, place: str, array: Array, space: str) -> str:
        """Return the text that reads the cells of a vector, or one cell, from a place in an address space."""
        lanes = self.steps.get(2, 1)
        return f"*({space} const {vector_type(array.dtype, lanes)} *)&{place}" if lanes > 1 else place

    def in_memory(self, array: Array, offset: ir.Offset) -> str:
        """Return the text that reads an array at an offset from the current cell."""
        name = self.name_of(array)
        if array.kind == "stage_tile":
            _, d1, d2 = array.shape
            step = (offset[0] * d1 + offset[1]) * d2 + offset[2]
            more = f" + {step}" if step > 0 else f" - {-step}" if step else ""
            return f"{self.tile_of(array)}[{name}_at{more}]"
        prefix = name if array.kind == "scratch" else f"{name}_layout."
        strides = [f"{name}_s{a}" if array.kind == "scratch" else f"{prefix}s{a}" for a in (0, 1)]
        terms = [f"{o} * {s}" for o, s in zip(offset[:2], strides, strict=True) if o]
        if offset[2]:
            terms.append(str(offset[2]))
        return f"{name}_cell[{' + '.join(terms) or '0'}]"
