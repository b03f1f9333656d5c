"""Kernels for devices, in the C that CUDA and OpenCL share: a thread for each column of cells.

A kernel runs one loop nest: its threads march along the slowest axis of the grid, each over a few cells, so
that what they add up is reduced once for many cells. All decisions about values are those of the kernels for
the CPU (`halocline.compile.values`), so that the bits are the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from halocline.compile.contract import contract
from halocline.compile.device_source import device_headers
from halocline.compile.nests import Nest, Target
from halocline.compile.schedule import DeviceKernel
from halocline.compile.text import Text, identifier, padded, padded_extent
from halocline.compile.values import C_TYPES, VARIABLES, Dialect, ValueWriter, scalar_values
from halocline.lang.dtype import ITEMSIZE, kept_dtype
from halocline.lang.expression import Expr, walk
from halocline.lang.grid import Field
from halocline.lang.program import Stage

LARGEST_GROUP = 256  # threads

DIALECT = Dialect(
    fma="hc_fma", sqrt="hc_sqrt", nan="HC_NAN", infinity="HC_INFINITY", arguments="f.", int32="int"
)


# each only where it is used: much of the time to compile goes into them
_HEADERS = {
    "elementary.hpp": r"hc_(exp|log|sin|cos|pow|min|max|abs|sign)f?\(|HC_NAN|HC_INFINITY",
    "device_reduce.h": "hc_partial",
    "device_finish.h": "hc_partial",
}


def device_text(kernels: Sequence[str], fields: int) -> str:
    """The source of all kernels of a program, for subdomains with so many fields: after the headers they
    need, with the kernel that copies halos."""
    body = "\n".join(kernels)
    names = ["frame.h", "device_move.h"] + [name for name, sign in _HEADERS.items() if re.search(sign, body)]
    return "\n".join([device_headers(names), _move_kernel(2 * fields + 1), body])


def _move_kernel(arrays: int) -> str:
    """A kernel whose groups copy a piece each, between any of so many arrays."""
    out = Text()
    taken = [f"HC_GLOBAL char *a{n}" for n in range(arrays)]
    taken += [
        "HC_GLOBAL const hc_piece *pieces",
        "const hc_int64 first",
        "HC_GLOBAL const hc_control *control",
    ]
    out.open(f"HC_KERNEL hc_move_pieces({', '.join(taken)})")
    out.add("if (control->skip != 0) return;")
    out.add("const hc_piece p = pieces[first + hc_group(0)];")
    out.add("HC_GLOBAL const char *from = a0;")
    out.add("HC_GLOBAL char *to = a0;")
    for n in range(1, arrays):
        out.add(f"if (p.from == {n}) from = a{n};")
        out.add(f"if (p.to == {n}) to = a{n};")
    out.add("hc_move(p, from, to);")
    out.close()
    return str(out)


def scalars_kernel(name: str, statements: Sequence[tuple[str, Expr]], scalars: dict[str, int]) -> str:
    """Scalar statements, as `halocline.compile.emit.write_scalars` writes them, for one thread."""
    out = _one_thread(name)
    for target, expression in statements:
        (root,) = contract([expression])
        out.open("")
        out.add(f"s[{scalars[target]}] = {scalar_values(out, [root], scalars, DIALECT)[id(root)]};")
        out.close()
    out.close()
    return str(out)


def stop_kernel(name: str, condition: Expr, scalars: dict[str, int]) -> str:
    """The end of a run where a condition holds: kernels skip for `why` from then on."""
    out = _one_thread(name, "const hc_int64 why")
    out.add(f"if ({scalar_values(out, [condition], scalars, DIALECT)[id(condition)]}) control->skip = why;")
    out.close()
    return str(out)


def loop_kernel(name: str, until: Expr | None, scalars: dict[str, int]) -> str:
    """The test of a loop before each pass; after each it notes all scalars for the host."""
    out = _one_thread(name, "HC_GLOBAL double *notes", "const hc_loop loop")
    out.add("s[loop.count] = loop.begins ? 0.0 : s[loop.count] + 1.0;")
    if until is not None:
        out.open("")
        holds = scalar_values(out, [until], scalars, DIALECT)[id(until)]
        out.add(f"if ({holds}) control->skip = loop.condition;")
        out.close()
    reached = "loop.limit >= 0 && s[loop.count] >= s[loop.limit]"
    out.add(f"if (control->skip == 0 && {reached}) control->skip = loop.reached;")
    out.add("if (loop.begins) return;")
    out.add("HC_GLOBAL double *row = notes + control->notes % loop.rows * loop.scalars;")
    out.add("for (hc_int64 n = 0; n < loop.scalars; ++n) row[n] = s[n];")
    out.add("control->notes += 1;")
    out.close()
    return str(out)


def _one_thread(name: str, *parameters: str) -> Text:
    out = Text()
    taken = ["HC_GLOBAL double *s", "HC_GLOBAL hc_control *control", *parameters]
    out.open(f"HC_KERNEL {name}({', '.join(taken)})")
    out.add("if (control->skip != 0) return;")
    return out


def march_axis(ndim: int) -> int | None:
    """The axis, of the three of generated code, that threads march along; None where each has one cell."""
    return None if ndim == 1 else 3 - ndim


@dataclass(kw_only=True)
class DeviceWriter(ValueWriter):
    """Writes the kernel of one nest.

    Parameters
    ----------
    name : str
    numbers : dict of array name to field number
    dtypes : dict of array name to dtype
    sinks : dict of Field to array name
    scalars : dict of scalar name to its number
    comment : str
    """

    name: str
    numbers: dict[str, int]
    dtypes: dict[str, str]
    sinks: dict[Field, str]
    scalars: dict[str, int]
    comment: str
    dialect: Dialect = field(default_factory=lambda: DIALECT)

    def write(
        self, nest: Nest, nests: Sequence[Nest], accumulators: dict[Expr, int]
    ) -> tuple[str, DeviceKernel]:
        """The text of the kernel, and what it takes. `nests` are all nests of the sweep: their stages share
        scratch memory."""
        out, ndim = self.out, self.grid.ndim
        roots = [target.expression for target in nest.targets]
        read = {self.sources[leaf.attribute[0]] for leaf in walk(roots) if leaf.op == "read"}
        written = {self.sinks[t.thing] for t in nest.targets if isinstance(t.thing, Field)}
        arrays = [name for name in self.numbers if name in read | written]
        self.arrays = frozenset(arrays)
        reductions = [t for t in nest.targets if t.kind == "reduction"]
        staged = any(leaf.op == "stage" for leaf in walk(roots)) or any(
            t.kind == "stage" for t in nest.targets
        )
        parameters = []
        for name in arrays:
            constant, alone = ("", "") if name in written else ("const ", " HC_RESTRICT")
            if name in written and name not in read:
                alone = " HC_RESTRICT"
            ctype = C_TYPES[self.dtypes[name]]
            parameters += [
                f"HC_GLOBAL {constant}{ctype} *{alone} {name}_data",
                f"const hc_layout {name}_where",
            ]
        parameters += ["HC_GLOBAL const double *scalars"]
        parameters += ["HC_GLOBAL char *scratch"] * staged
        parameters += ["HC_GLOBAL hc_partial *partials"] * bool(reductions)
        parameters += ["HC_GLOBAL const hc_control *control", "const hc_frame f"]
        for line in self.comment.splitlines():
            out.add(f"// {line}")
        out.open(f"HC_KERNEL {self.name}({', '.join(parameters)})")
        if reductions:
            out.add(f"HC_SHARED hc_partial shared[HC_SCRATCH({LARGEST_GROUP})];")
        out.add("if (control->skip != 0) return;")
        for name in sorted({leaf.attribute[0] for leaf in walk(roots) if leaf.op == "scalar"}):
            out.add(f"const double {self.scalar_names[name]} = scalars[{self.scalars[name]}];")
        if staged:
            self._scratch(nests)
        for number, target in enumerate(reductions):
            out.add(f"hc_partial partial{number};")
            out.add(f"hc_partial_reset(&partial{number}, {_kind(target)});")
        self.extent = padded_extent(nest.extent, ndim)
        self._cells(nest, roots, arrays)
        for number, target in enumerate(reductions):
            where = "shared, hc_thread_number(), hc_group_threads()"
            out.add(f"hc_group_reduce({_kind(target)}, &partial{number}, {where});")
            slot = f"f.group0 + {number} * f.stride + hc_group_number()"
            out.add(f"if (hc_thread_number() == 0) partials[{slot}] = partial{number};")
        out.close()
        return str(out), DeviceKernel(
            self.name,
            tuple(self.numbers[name] for name in arrays),
            nest.extent,
            nest.top,
            nest.cell,
            tuple(accumulators[t.thing] for t in reductions),  # type: ignore[index]
            staged,
        )

    def _scratch(self, nests: Sequence[Nest]) -> None:
        """Where the stages of the sweep lie: as in kernels for the CPU, one after the other."""
        out, ndim = self.out, self.grid.ndim
        out.add("HC_GLOBAL char *free_scratch = scratch;")
        for nest in nests:
            for target in nest.targets:
                if target.kind != "stage":
                    continue
                stage = target.thing
                assert isinstance(stage, Stage)
                name = self.unique(identifier(stage.name))
                self.stage_names[stage] = name
                dtype = kept_dtype(stage.definition, self.types)
                extent = padded_extent(nest.extent, ndim)
                top = padded(nest.top, ndim)
                size = [
                    f"(f.box_hi[{a}] - f.box_lo[{a}] + {lo + hi}" + (f" + f.box_top[{a}])" if top[a] else ")")
                    for a, (lo, hi) in enumerate(extent)
                ]
                ctype = C_TYPES[dtype]
                out.add(f"const hc_int64 {name}_s1 = hc_padded_row({size[2]}, {ITEMSIZE[dtype]});")
                out.add(f"const hc_int64 {name}_s0 = {name}_s1 * {size[1]};")
                first = [f"(f.box_lo[{a}] - {lo})" for a, (lo, _) in enumerate(extent)]
                origin = f"{first[0]} * {name}_s0 + {first[1]} * {name}_s1 + {first[2]}"
                out.add(f"HC_GLOBAL {ctype} *const {name}_base = (HC_GLOBAL {ctype} *)free_scratch;")
                out.add(f"const hc_int64 {name}_origin = {origin};")
                out.add(f"free_scratch += {name}_s0 * {size[0]} * {ITEMSIZE[dtype]};")

    def _cells(self, nest: Nest, roots: list[Expr], arrays: Sequence[str]) -> None:
        """The loop over the cells of a thread."""
        out, ndim = self.out, self.grid.ndim
        march = march_axis(ndim)
        inside = []
        for axis in (2, 1, 0):
            v, group = VARIABLES[axis], f"hc_group({2 - axis})"
            if axis < 3 - ndim:
                out.add(f"const hc_int64 {v} = f.lo[{axis}];")
            elif axis != march:
                at = f"{group} * hc_group_size({2 - axis}) + hc_thread({2 - axis})"
                out.add(f"const hc_int64 {v} = f.lo[{axis}] + {at};")
                inside.append(f"{v} < f.hi[{axis}]")
            else:
                out.add(f"const hc_int64 {v}_begin = f.lo[{axis}] + {group} * f.march;")
                out.add(f"const hc_int64 {v}_end = hc_min_index({v}_begin + f.march, f.hi[{axis}]);")
        out.open(f"if ({' && '.join(inside)})")
        depths: dict[int, int] = {}
        values: dict[int, str] = {}
        self.used = set()
        self.declare(0, roots, values, depths)
        if march is not None:
            v = VARIABLES[march]
            out.open(f"for (hc_int64 {v} = {v}_begin; {v} < {v}_end; ++{v})")
        written = {self.sinks[t.thing] for t in nest.targets if isinstance(t.thing, Field)}
        for name in arrays:
            constant = "" if name in written else "const "
            at = f"{name}_where.at + i * {name}_where.s0 + j * {name}_where.s1 + k"
            ctype = C_TYPES[self.dtypes[name]]
            out.add(f"HC_GLOBAL {constant}{ctype} *const {name}_here = {name}_data + ({at});")
        stages = {leaf.attribute[0] for leaf in walk(roots) if leaf.op == "stage"}
        stages |= {t.thing for t in nest.targets if isinstance(t.thing, Stage)}
        for stage, name in self.stage_names.items():
            if stage in stages:
                at = f"i * {name}_s0 + j * {name}_s1 + k - {name}_origin"
                ctype = C_TYPES[kept_dtype(stage.definition, self.types)]
                out.add(f"HC_GLOBAL {ctype} *const {name}_here = {name}_base + ({at});")
        self.declare(3, roots, values, depths)
        number = 0
        for target, root in zip(nest.targets, roots, strict=True):
            if target.kind == "reduction":
                kind = _kind(target).removeprefix("HC_").lower()
                value = self.cast(root, "float64", values)
                out.add(f"hc_{kind}_put(&partial{number}, {value}{' != 0.0' if kind == 'count' else ''});")
                number += 1
            else:
                self._store(target, root, values)
        if march is not None:
            out.close()
        out.close()

    def _store(self, target: Target, root: Expr, values: dict[int, str]) -> None:
        if isinstance(target.thing, Field):
            name = self.sinks[target.thing]
            dtype = self.dtypes[name]
        else:
            assert isinstance(target.thing, Stage)
            name = self.stage_names[target.thing]
            dtype = kept_dtype(target.thing.definition, self.types)
        self.out.add(f"{name}_here[0] = {self.cast(root, dtype, values)};")

    def spelled_read(self, name: str, offset: tuple[int, ...]) -> str:
        staged = name in self.stage_names.values()
        strides = [f"{name}_s{a}" if staged else f"{name}_where.s{a}" for a in (0, 1)]
        terms = [f"{o} * {s}" for o, s in zip(offset[:2], strides, strict=True) if o]
        if offset[2]:
            terms.append(str(offset[2]))
        return f"{name}_here[{' + '.join(terms) or '0'}]"


def _kind(target: Target) -> str:
    assert isinstance(target.thing, Expr)
    return f"HC_{target.thing.attribute[0].upper()}"
