"""Kernels for devices whose stages stay in memory that a group shares: a group works through a tile of cells,
stage by stage, each over as many cells more as those after it read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from halocline.compile.device import REDUCING_BYTES, DeviceWriter, kind_of
from halocline.compile.nests import Nest
from halocline.compile.schedule import DeviceKernel
from halocline.compile.text import identifier, padded, padded_extent
from halocline.compile.values import C_TYPES, VARIABLES
from halocline.lang.dtype import ITEMSIZE, kept_dtype
from halocline.lang.expression import Expr, walk
from halocline.lang.grid import Field
from halocline.lang.program import Stage

TILES = {1: (1, 1, 512), 2: (1, 16, 64), 3: (4, 8, 32)}  # cells of a group, by axes of the grid
GROUP = (64, 4, 1)  # threads


def fits(nests: Sequence[Nest], ndim: int, shared: int) -> bool:
    """Whether the stages of a sweep fit into the bytes that a group can share, tile by tile; no nest may be
    of one cell."""
    if any(nest.cell is not None for nest in nests):
        return False
    stages = [(nest, t.thing) for nest in nests for t in nest.targets if isinstance(t.thing, Stage)]
    bytes_of = (
        prod(_shape(nest, ndim)) * ITEMSIZE[kept_dtype(stage.definition, {})] for nest, stage in stages
    )
    reduces = any(t.kind == "reduction" for nest in nests for t in nest.targets)
    return bool(stages) and sum(bytes_of) + reduces * REDUCING_BYTES <= shared


def _shape(nest: Nest, ndim: int) -> tuple[int, ...]:
    """The cells of a nest around a tile, on three axes."""
    extent, top = padded_extent(nest.extent, ndim), padded(nest.top, ndim)
    return tuple(n + lo + hi + t for n, (lo, hi), t in zip(TILES[ndim], extent, top, strict=True))


@dataclass(kw_only=True)
class TileWriter(DeviceWriter):
    """Writes the kernel of all nests of a sweep."""

    def write_tile(self, nests: Sequence[Nest], accumulators: dict[Expr, int]) -> tuple[str, DeviceKernel]:
        """The text of the kernel, and what it takes."""
        out, ndim = self.out, self.grid.ndim
        targets = [target for nest in nests for target in nest.targets]
        roots = [target.expression for target in targets]
        reductions = [target for target in targets if target.kind == "reduction"]
        written = {self.sinks[t.thing] for t in targets if isinstance(t.thing, Field)}
        arrays = self.head(roots, written, bool(reductions), staged=False, groups=GROUP)
        for number, target in enumerate(reductions):
            out.add(f"hc_partial partial{number};")
            out.add(f"hc_partial_reset(&partial{number}, {kind_of(target)});")
        for nest in nests:
            for target in nest.targets:
                if isinstance(target.thing, Stage):
                    name = self.stage_names[target.thing] = self.unique(identifier(target.thing.name))
                    ctype = C_TYPES[kept_dtype(target.thing.definition, self.types)]
                    out.add(f"HC_SHARED {ctype} {name}_tile[{prod(_shape(nest, ndim))}];")
        for axis, cells in enumerate(TILES[ndim]):
            out.add(f"const hc_int64 tile_lo{axis} = f.lo[{axis}] + hc_group({2 - axis}) * {cells};")
            out.add(
                f"const hc_int64 tile_hi{axis} = hc_min_index(tile_lo{axis} + {cells}, {self.end(axis)});"
            )
        first = 0
        for nest in nests:
            self._nest(nest, arrays, written, first)
            first += sum(target.kind == "reduction" for target in nest.targets)
        self.tail(reductions)
        none = ((0, 0),) * ndim
        return str(out), DeviceKernel(
            self.name,
            tuple(self.numbers[name] for name in arrays),
            none,
            (0,) * ndim,
            reductions=tuple(accumulators[t.thing] for t in reductions),  # type: ignore[index]
            group=GROUP,
            fixed=True,
            tile=TILES[ndim],
            layouts=self.layouts,
        )

    def _nest(self, nest: Nest, arrays: Sequence[str], written: set[str], first: int) -> None:
        """One nest over the tile and what the nests after it read around; `first` is the number of its first
        reduction."""
        out, ndim = self.out, self.grid.ndim
        roots = [target.expression for target in nest.targets]
        self.extent, self.shapes = padded_extent(nest.extent, ndim), self.shapes
        top = padded(nest.top, ndim)
        out.open("")
        self.used = set()
        values: dict[int, str] = {}
        depths: dict[int, int] = {}
        self.declare(0, roots, values, depths)
        for axis, (lower, upper) in enumerate(self.extent):
            out.add(f"const hc_int64 lo{axis} = tile_lo{axis} - {lower};")
            more = f" + (tile_hi{axis} == f.hi[{axis}] ? f.box_top[{axis}] : 0)" if top[axis] else ""
            out.add(f"const int n{axis} = (int)(tile_hi{axis} + {upper}{more} - lo{axis});")
        for target in nest.targets:
            if isinstance(target.thing, Stage):
                self.shapes[self.stage_names[target.thing]] = (_shape(nest, ndim), self.extent)
        out.open("for (int n = (int)hc_thread_number(); n < n0 * n1 * n2; n += (int)hc_group_threads())")
        out.add("const hc_int64 i = lo0 + n / (n1 * n2), j = lo1 + n / n2 % n1, k = lo2 + n % n2;")
        read = {self.sources[leaf.attribute[0]] for leaf in walk(roots) if leaf.op == "read"}
        mine = {self.sinks[t.thing] for t in nest.targets if isinstance(t.thing, Field)}
        for name in arrays:
            if name in read | mine:
                self.point_at(name, name in written)
        stages = {leaf.attribute[0] for leaf in walk(roots) if leaf.op == "stage"}
        stages |= {t.thing for t in nest.targets if isinstance(t.thing, Stage)}
        for stage, name in self.stage_names.items():
            if stage in stages:
                (_, d1, d2), extent = self.shapes[name]
                at = [f"((int)({v} - tile_lo{a}) + {extent[a][0]})" for a, v in enumerate(VARIABLES)]
                out.add(f"const int {name}_at = ({at[0]} * {d1} + {at[1]}) * {d2} + {at[2]};")
        self.declare(3, roots, values, depths)
        self.results(nest, roots, values, first)
        out.close()
        out.add("HC_BARRIER();")
        out.close()

    def stored_in(self, name: str) -> str:
        return f"{name}_tile[{name}_at]" if name in self.shapes else f"{name}_here[0]"

    def in_memory(self, name: str, offset: tuple[int, ...]) -> str:
        if name not in self.shapes:
            return super().in_memory(name, offset)
        (_, d1, d2), _ = self.shapes[name]
        step = (offset[0] * d1 + offset[1]) * d2 + offset[2]
        return f"{name}_tile[{name}_at{f' + {step}' if step > 0 else f' - {-step}' if step else ''}]"
