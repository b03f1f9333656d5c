"""Output of a run: its arrays, the generated code that computes them, and the store that xarray opens."""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline import __version__, forks
from halocline.archive.arrays import ArraySpec, narrowed
from halocline.archive.reader import POINT, STEP, TIME
from halocline.archive.series import ROWS, Series, rows_of
from halocline.errors import InputError, RunError
from halocline.lang import equations, trace
from halocline.lang.boundary import Symmetric
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.expression import Expr, as_expr, as_number
from halocline.lang.grid import AXES, Field, Vector, checked_choice, component_names
from halocline.lang.program import Program, stage
from halocline.lang.stepping import Recorded
from halocline.lang.values import as_name, by_name
from halocline.run.engine.prepare import prepare
from halocline.run.engine.prepared import Prepared
from halocline.run.fields.fields import Fields, location_and_dtype
from halocline.run.fields.regions import FACE, Points, Stencils, dimensions
from halocline.run.fields.session import Session
from halocline.run.memory.contents import point_values
from halocline.run.output.every import Every
from halocline.run.output.output import CELL_METHODS, PREFIX, Output, Statistic, Statistics
from halocline.run.output.restart import Saved
from halocline.run.output.store import Part, RunStore, coordinate
from halocline.words import short_repr

log = logging.getLogger("halocline")

BUFFER_BYTES = 8 << 20  # maximum memory of the rows that wait for publication
ROW_BYTES = 256  # memory of a row in addition to its numbers
RESERVED = (TIME, STEP, *AXES, *(f"{axis}{FACE}" for axis in AXES), POINT)


class OutputContents:
    """Arrays of an output, by name. Creation and all methods are collective.

    Parameters
    ----------
    declaration : Output
    fields : Fields
    owner : str
        Unique name of this output within the run; an identifier.
    number : int
        Index of the output among the outputs of the run.
    axis : {"time", "step"}
        Dimension along which the arrays grow.

    Attributes
    ----------
    specs : dict of str to ArraySpec
        Descriptions of all arrays, with zero rows.
    parts : dict of str to Part
        Arrays of field points.
    columns : dict of str to ArraySpec
        Arrays with few values per row: numbers, and values at single points.
    number_bytes : int
        Bytes of the numbers of one row.
    statistics : Statistics or None
        Statistics over time, accumulated step by step.
    narrows : bool
        True if the store has a lower precision than the computation for some values.
    """

    def __init__(self, declaration: Output, fields: Fields, owner: str, number: int, *, axis: str) -> None:
        self.fields, self.grid, self.region, self._number = fields, fields.grid, declaration.region, number
        self.axis, self.dtype, self.compression = axis, declaration.dtype, declaration.compression
        self.units = by_name(declaration.units, "units of")
        self._steps = (STEP,) if axis == TIME else ()  # additional coordinate along the time axis
        declaration.region.check(self.grid)
        self.parts: dict[str, Part] = {}
        self.specs: dict[str, ArraySpec] = {}
        self._numbers: dict[str, tuple[str, Expr]] = {}  # scalar of the program, and its expression
        self._stencils: dict[str, tuple[Field, Stencils]] = {}
        self._lines: dict[str, tuple[int, NDArray[Any]]] = {}  # axis and coordinates of each dimension
        self._prepared: Prepared | None = None
        program, computed_fields, contents_by_name = (
            Program("output"),
            list[Field](),
            self._named_contents(declaration.fields),
        )
        self._check_units(contents_by_name)
        statistics = {
            name: content for name, content in contents_by_name.items() if isinstance(content, Statistic)
        }
        self._texts = {name: _text(content) for name, content in contents_by_name.items()}
        self.statistics = Statistics(self.grid, owner, statistics) if statistics else None
        with trace.tracing(program):
            for name, content in contents_by_name.items():
                kind = content.kind if isinstance(content, Statistic) else None
                if isinstance(content, Statistic):
                    assert self.statistics is not None
                    content = self.statistics.values[name]
                if not isinstance(content, Field) and not content.varies:
                    self._add_number(program, name, content)
                else:
                    self._add_field(name, self._output_field(program, name, content, computed_fields), kind)
        self.columns = {name: spec for name, spec in self.specs.items() if name not in self.parts}
        self.number_bytes = 8 * sum(spec.row_size for spec in self.columns.values())
        self.narrows = any(
            part.spec.dtype == "float32" != part.field.dtype for part in self.parts.values()
        ) or any(spec.dtype != "float64" for spec in self.columns.values())
        self._program, self._computed = program, computed_fields
        for f in (
            computed_fields
        ):  # these fields are computed at each write, and are therefore not part of the state
            self.grid.fields.pop(f.name)

    # --- declaration ---

    def _named_contents(self, fields: Any) -> dict[str, Expr | Field | Statistic]:
        """Return the contents of the arrays by name, from the declaration of an output."""
        if fields is None:
            users = [f for f in self.grid.fields.values() if not self.grid.is_work_field(f)]
            users = [f for f in users if not f.name.startswith(PREFIX)]
            return {f.name: f for f in users if f.name in self.fields.store.storages}
        if isinstance(fields, (Field, Vector, str)) or not isinstance(fields, (Sequence, Mapping)):
            raise InputError(
                f"fields is {short_repr(fields)}; expected a list of fields, or a mapping of names to "
                "expressions"
            )
        if not fields:
            raise InputError("fields is empty; expected a field or an expression, or None for all fields")
        contents_by_name: dict[str, Expr | Field | Statistic] = {}
        for name, content in self._pairs(fields):
            if name in contents_by_name:
                raise InputError(f"two arrays of the output have the name {name!r}. Rename one of them.")
            contents_by_name[name] = self._check_content(name, content)
        for name in contents_by_name:
            if not name.isidentifier() or name in RESERVED:
                raise InputError(
                    f"output name {name!r}: expected an identifier other than {', '.join(RESERVED)}"
                )
        return contents_by_name

    def _pairs(self, fields: Sequence[Any] | Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield names and contents of arrays. A vector gives one pair per component."""
        pairs = fields.items() if isinstance(fields, Mapping) else ((None, content) for content in fields)
        for name, content in pairs:
            base = name
            if base is None:
                base = content if isinstance(content, str) else getattr(content, "name", None)
            if not isinstance(base, str) or not base:
                raise InputError(
                    f"fields has {content!r}, which has no name; expected a mapping, {{'name': ...}}"
                )
            base = as_name(base, "output name")
            components = self.fields.components(content)
            if components is None:
                yield base, content
            else:
                yield from zip(component_names(base, len(components)), components, strict=True)

    def _check_content(self, name: str, content: Any) -> Expr | Field | Statistic:
        """Return the content of an array as a field, expression or statistic.

        Raises
        ------
        InputError
            The content belongs to another grid.
        """
        if isinstance(content, Statistic):
            return content
        if isinstance(content, (Field, str)):
            return self.fields.field_with_values(content)
        expression = as_expr(content, f"output {name!r}")
        if expression.grid is not None and expression.grid is not self.grid:
            raise InputError(f"output {name!r} belongs to another grid, {expression.grid!r}")
        return expression

    # --- computation ---

    def _output_field(
        self, program: Program, name: str, content: Expr | Field, computed_fields: list[Field]
    ) -> Field:
        """Return the field that contains the values, or their block averages, after a run of the program."""
        block = self.region.block
        if isinstance(content, Field) and block == 1:
            return content
        e = as_number(as_expr(content))
        location, dtype = location_and_dtype(e)

        def new(boundary: Any = None) -> Field:
            internal = program.unique_name(f"output_{self._number}_{name}")
            computed_fields.append(
                self.grid.internal_field(internal, location=location, dtype=dtype, boundary=boundary)
            )
            return computed_fields[-1]

        if block == 1:
            output_field = new()
            output_field.set(e)
            return output_field
        # Averages read only cells inside the grid, because the grid consists of complete blocks.
        values, output_field = new(None if all(self.grid.periodic) else Symmetric()), new()
        values.set(e)
        output_field.set(_average(values, block))
        return output_field

    def _add_field(self, name: str, source_field: Field, kind: str | None) -> None:
        """Add an array for a field. For a statistic, `kind` is the kind of the statistic."""
        region = self.region
        if isinstance(region, Points):
            # With interpolation "nearest", the values have the coordinates and axis names of the field.
            is_nearest = region.interpolate == "nearest"
            axes = dimensions(source_field.staggered if is_nearest else (False,) * self.grid.ndim)
            lines = region.coordinates(self.grid, source_field.staggered)
            self._lines.update(zip(axes, enumerate(lines), strict=False))
            attributes = {**self._attributes(name, kind, (), *axes), "interpolation": region.interpolate}
            self._stencils[name] = source_field, region.stencils(self.grid, source_field.staggered)
            self._add_column(name, (len(region.places),), self.dtype or source_field.dtype, attributes)
            return
        points = region.choose(self.grid, source_field.staggered)
        blocks = [f"{AXES[axis]}: mean" for axis in points.axes] if region.block > 1 else []
        part = Part.of(
            source_field, points, (self.axis,), dtype=self.dtype, compression=self.compression,
            attributes=self._attributes(name, kind, blocks),
        )  # fmt: skip
        self._lines |= part.lines
        self.parts[name], self.specs[name] = part, part.spec

    def _add_number(self, program: Program, name: str, number: Expr) -> None:
        """Add an array with one number per row."""
        scalar = program.internal_scalar(name)
        scalar.set(as_number(number))
        self._numbers[name] = scalar.name, as_number(number)
        self._add_column(name, (), self.dtype or "float64", self._attributes(name))

    def _add_column(
        self, name: str, shape: tuple[int, ...], dtype: str, attributes: Mapping[str, Any]
    ) -> None:
        """Add an array with one number, or values at single points, per row. A chunk has several rows."""
        rows = rows_of(shape[0], ITEMSIZE[dtype]) if shape else ROWS
        names = (self.axis, POINT)[: 1 + len(shape)]
        self.specs[name] = ArraySpec((0, *shape), (rows, *shape), dtype, names, attributes, self.compression)

    def _attributes(
        self, name: str, kind: str | None = None, means: Sequence[str] = (), *coordinates: str
    ) -> dict[str, Any]:
        """Return the attributes of an array.

        Parameters
        ----------
        name : str
        kind : str, optional
            Kind of a statistic over time.
        means : sequence of str
            CF cell methods of averages along axes.
        *coordinates : str
            Names of coordinate arrays that are not named after an axis of the array.
        """
        methods = [*([] if kind is None else [f"time: {CELL_METHODS[kind]}"]), *means]
        cell_methods = {"cell_methods": " ".join(methods)} if methods else {}
        names = " ".join((*self._steps, *coordinates))
        places = {"coordinates": names} if names else {}
        return {**places, **self._units(name), **cell_methods}

    def _units(self, name: str) -> dict[str, str]:
        """Return the units of an array, by default the units of its vector, as an attribute."""
        vector = name.removesuffix(f"_{name[-1]}")
        units = self.units.get(name, self.units.get(vector) if vector in self.grid.vectors else None)
        return {} if units is None else {"units": units}

    def _check_units(self, contents_by_name: Collection[str]) -> None:
        """Raise InputError if `units` names an array that does not exist in the output."""
        vectors = (name for name in self.grid.vectors if f"{name}_x" in contents_by_name)
        valid_names = [*contents_by_name, *vectors, TIME, *AXES[: self.grid.ndim]]
        for name in self.units:
            checked_choice("name in units", name, valid_names)

    # --- use in a run ---

    @property
    def numbers(self) -> tuple[Expr, ...] | None:
        """Expressions of the numbers of a row. None if not all arrays of the output are numbers."""
        only_numbers = self.statistics is None and len(self._numbers) == len(self.specs)
        return tuple(number for _, number in self._numbers.values()) if only_numbers else None

    def load_statistics(self, saved: Saved) -> None:
        """Continue the statistics of a checkpoint."""
        assert self.statistics is not None
        weight = self.statistics.weight.name
        self.fields.load(self.statistics.fields, lambda field: saved.fetch(self.fields.store, field))
        self.fields.values[weight] = float.fromhex(saved.facts["values"][weight])

    def prepare(self) -> None:
        """Compile the computed fields and numbers, and allocate memory. All ranks call this method.

        The method `release` frees the memory.
        """
        if self._program.statements:
            if self.statistics is not None:
                self.fields.values.setdefault(self.statistics.weight.name, 0.0)
            grid_fields = self.grid.fields
            grid_fields.update((f.name, f) for f in self._computed)
            try:
                self._prepared = prepare(self.fields.store, self._program, self.fields.values)
            finally:
                for f in self._computed:
                    grid_fields.pop(f.name)

    def release(self) -> None:
        """Free the memory of the computed fields."""
        self._prepared = None
        for f in self._computed:
            self.fields.store.forget(f.name)

    def compute(self) -> Sequence[float]:
        """Compute the fields of all parts, and return the numbers in the order of `columns`.

        All ranks call this method. With values at single points, only the first rank returns numbers.
        """
        self.fields.settle()
        scalars = {} if self._prepared is None else self._prepared.run(self.fields.values).scalars
        if not self._stencils:
            return [scalars[scalar] for scalar, _ in self._numbers.values()]
        points = {
            name: (source_field, stencils.points) for name, (source_field, stencils) in self._stencils.items()
        }
        values = point_values(self.fields.store, points)
        if values is None:
            return []
        numbers: dict[str, Any] = {name: [scalars[scalar]] for name, (scalar, _) in self._numbers.items()}
        numbers |= {name: stencils.apply(values[name]) for name, (_, stencils) in self._stencils.items()}
        return np.concatenate([numbers[name] for name in self.columns])  # type: ignore[return-value]

    def coordinates(self) -> dict[str, tuple[ArraySpec, NDArray[Any]]]:
        """Return the coordinate arrays by name: one per dimension, or for single points one per axis."""
        along = POINT if isinstance(self.region, Points) else None
        return {
            name: coordinate(self.grid, axis, line, along or name, self._units(AXES[axis]))
            for name, (axis, line) in self._lines.items()
        }

    def description(self, program: Program) -> dict[str, Any]:
        """Return facts about the contents as JSON data. Stores with the same contents have the same facts."""
        return {
            "region": repr(self.region),
            "expressions": self._texts,
            "fields": equations.fields(self.grid, program),
            "grid": equations.grid_text(self.grid),
        }


def _text(content: Expr | Field | Statistic) -> str:
    """Return the content of an array as text."""
    if isinstance(content, Statistic):
        return f"{content.kind} over time of {equations.expression(as_expr(content.expression))}"
    return content.name if isinstance(content, Field) else equations.expression(content)


def _average(f: Field, block: int) -> Expr:
    """Return the average over a block of cells that begins at this cell, computed axis by axis."""
    ndim, values = f.grid.ndim, f
    for axis in range(ndim):
        offsets = [tuple(n if a == axis else 0 for a in range(ndim)) for n in range(block)]
        total: Any = values[offsets[0]]
        for offset in offsets[1:]:
            total = total + values[offset]
        values = stage(total) if axis + 1 < ndim else total
    return as_expr(values / float(block**ndim))


class OutputStore(RunStore):
    """Store that a run writes to over time. All methods are collective.

    Parameters
    ----------
    declaration : Output
    session : Session
        Fields and program of the run, which the store describes.
    title : str
        Title of the run.
    run : str
        Identifier of the run. Only the same run continues a store.
    command : sequence of str
        Words of the command line.
    owner : str
        Unique name of this output within the run; an identifier.
    number : int
        Index of the output among the outputs of the run.
    saved : Saved, optional
        Checkpoint from which the run was resumed. None if the run has already begun this output after it was
        resumed.

    Attributes
    ----------
    count : int
        Number of rows in the store or in progress.
    committed : int
        Number of rows that are visible to readers.
    synced : int
        Number of rows that are on disk and survive a failure of the machine.
    last_step : int
        Step of the last row that this run has added; -1 if the run has added no row.
    every : Every
        Interval between two rows; empty if only the initial and final state are written.
    """

    def __init__(
        self,
        declaration: Output,
        session: Session,
        title: str,
        *,
        run: str,
        command: Sequence[str],
        owner: str,
        number: int,
        saved: Saved | None = None,
    ) -> None:
        super().__init__(declaration.path, "output", session.fields.store, declaration.io_threads)
        self.declaration, self.fields, self.owner = declaration, session.fields, owner
        self._saved, self._command = saved, command
        self.contents = OutputContents(
            declaration, self.fields, owner, number, axis=TIME if session.has_time_step else STEP
        )
        self.every = Every() if declaration.every is None else Every.parse("every", declaration.every)
        if declaration.exact and self.every.time is None:
            raise InputError(
                f"output {self.path}: exact=True requires a time interval, but `every` is "
                f"{short_repr(declaration.every)}; expected a float, such as every=0.1"
            )
        self.count = self.committed = self.synced = 0
        self._is_continued = False
        self._open_rows = 0  # number of rows in the arrays that are open for writing
        self.last_step = -1
        described = self.contents.description(session.program)
        if self.contents.statistics is not None:
            described["window"] = declaration.window
        current_time = datetime.now(UTC).isoformat(timespec="seconds")
        attributes = {
            "Conventions": "CF-1.11",
            "title": title,
            "source": f"Halocline {__version__}",
            "history": f"{current_time}: {shlex.join(command)}",
            "equations": equations.equations(session.program),
        }
        self._series = Series(
            self.path, self.contents.specs, self.contents.coordinates(), described,
            run=run, attributes=attributes, axis=self.contents.axis, time_units=declaration.units.get("time"),
        )  # fmt: skip
        self._infinite = Counter[tuple[int, str]]()  # values that became infinite, by step and array
        self._warned = False
        self._rows: list[NDArray[Any]] = []  # not committed yet

    def check(self) -> None:
        """Check that the output can be created or continued. Change nothing on disk.

        Raises
        ------
        InputError
            The path contains data other than output of this run, or the output is damaged.
        RunError
            This process is a fork of a process that has written stores.
        """
        saved, statistics = self._saved, self.contents.statistics
        before = (0, 0) if saved is None else (saved.step, saved.facts.get("rows", {}).get(self.owner, 0))
        with self.comm.agreement(f"inspect output {self.path}"):
            if self.comm.rank == 0:
                forks.check(forks.STORES)
                self._is_continued = self._series.check(overwrite=self.declaration.overwrite, before=before)
        self._is_continued = self.comm.bcast(self._is_continued)
        is_known = saved is None or statistics is None or statistics.are_saved_in(saved.facts)
        if self._is_continued and saved is not None and not is_known:
            raise InputError(
                f"output {self.path} has statistics over time, but the run of checkpoint {saved.folder} "
                "did not write this output. Choose another path."
            )

    def begin(self, step: int) -> None:
        """Create the store, or continue the store of this run.

        Parameters
        ----------
        step : int
            Current step of the run. Rows of later steps are removed.

        Raises
        ------
        RunError
            The store cannot be written.
        """
        note = {"version": __version__, "command": self._command, "parameters": dict(self.fields.parameters)}
        note["owner"] = self.owner
        with self.comm.agreement(f"prepare output {self.path}"):
            if self.comm.rank == 0:
                self.count = self._series.open(step, note)
        self.count = self.committed = self.synced = self.comm.bcast(self.count)
        if self.contents.statistics is not None:
            if self._saved is not None and self._is_continued:
                self.contents.load_statistics(self._saved)
            elif self.count == 0:
                self.fields.values[self.contents.statistics.weight.name] = 0.0

    def write(self, time: float, step: int) -> None:
        """Begin to write the current state; `poll` and `finish` publish it to readers."""
        with self.timing():
            row = np.array([[time, step, *self.contents.compute()]])
            statistics = self.contents.statistics
            if statistics is not None and self.declaration.window == "output":
                self.fields.values[statistics.weight.name] = 0.0
            if self.contents.parts and self.count >= self._open_rows:
                self._open_rows = (self.count // ROWS + 1) * ROWS
                specs = self._series.specs(self._open_rows)
                with self.comm.agreement(f"write output {self.path}"):
                    self.attach(self.path, {name: specs[name] for name in self.contents.parts})
            for name, part in self.contents.parts.items():
                self._count_infinite(name, step, self.put(name, part, (self.count,)))
        self.add(row)

    @property
    def recorded(self) -> Recorded | None:
        """Numbers that steps can compute. None unless all arrays are numbers and the interval is in steps."""
        numbers = self.contents.numbers
        if self.every.steps is None or numbers is None:
            return None
        return Recorded(self.every.steps, numbers)

    def add(self, rows: NDArray[Any]) -> None:
        """Add rows whose fields have been passed to the writer.

        Parameters
        ----------
        rows : array (rows, 2 + numbers)
            Time, step, and numbers in the order of the columns. With values at single points, only the first
            rank has numbers.
        """
        if not len(rows):
            return
        with self.timing():
            if self.contents.narrows and self.comm.rank == 0:
                self._count_numbers(rows)
        self._rows.append(rows)
        self.count += len(rows)
        self.last_step = int(rows[-1, 1])
        # The condition is equal on all ranks.
        if (self.count - self.committed) * (ROW_BYTES + self.contents.number_bytes) >= BUFFER_BYTES:
            self._commit()

    def poll(self) -> None:
        """Publish the rows whose chunks are on disk.

        Raises
        ------
        RunError
            A chunk cannot be written.
        """
        if self.count == self.committed:
            return
        with self.timing():
            self._warn()
            self._commit_complete()
        if self.comm.most(self.writer.failure is not None):
            self._commit()

    def finish(self) -> None:
        """Wait until all rows are on disk and survive a failure of the machine, and publish them.

        Raises
        ------
        RunError
            A row cannot be written. All rows before this row are published.
        """
        self._commit()
        if self.synced == self.count:
            return
        with self.timing():
            with self.comm.agreement(f"write output {self.path}"):
                if self.comm.rank == 0:
                    self._series.sync(self.synced)
            self.synced = self.count

    def _commit(self) -> None:
        """Wait until the chunks of all rows are on disk, and publish the rows."""
        if self.count == self.committed:
            return
        with self.timing():
            self._warn()
            try:
                with self.comm.agreement(f"write output {self.path}"):
                    self.writer.finish()
            except RunError:
                with suppress(RunError):  # the first error is raised
                    self._commit_complete()
                self._rows, self.count = [], self.committed
                raise
            self._commit_complete()

    def _commit_complete(self) -> None:
        """Publish the rows that all ranks have written completely, up to the first incomplete row."""
        first_open = self.writer.first_open
        complete = -self.comm.most(-(self.count if first_open is None else first_open))
        if complete <= self.committed:
            return
        rows = np.concatenate(self._rows)
        try:
            with self.comm.agreement(f"write output {self.path}"):
                if self.comm.rank == 0:
                    self._series.commit(self.committed, rows[: complete - self.committed])
        except RunError:
            self._rows, self.count = [], self.committed
            raise
        self._rows, self.committed = [rows[complete - self.committed :]], complete

    def _count_numbers(self, rows: NDArray[Any]) -> None:
        """Count the numbers in `rows` that become infinite in the precision of the store."""
        column = 2
        for name, spec in self.contents.columns.items():
            for row in rows:
                infinite = narrowed(row[column : column + spec.row_size], spec.dtype)[1]
                self._count_infinite(name, int(row[1]), infinite)
            column += spec.row_size

    def _count_infinite(self, name: str, step: int, infinite: int) -> None:
        """Count finite values of an array that become infinite in the precision of the store."""
        if infinite and not self._warned:
            self._infinite[step, name] += infinite

    def _warn(self) -> None:
        """Warn once about values that became infinite, with the first such step and their number."""
        if self._warned or not self.contents.narrows:
            return
        counts = sum(self.comm.allgather(self._infinite), Counter[tuple[int, str]]())
        self._infinite.clear()
        if not counts:
            return
        self._warned = True
        if self.comm.rank == 0:
            first, names = min(step for step, _ in counts), (*self.contents.columns, *self.contents.parts)
            log.warning(
                "output %s: at step %d, finite values beyond the range of %s are written as infinity: %s. "
                'Choose dtype="float64" for this output; later steps are not reported',
                self.path, first, self.declaration.dtype or "float32",
                ", ".join(f"{n} of {name}" for name in names if (n := counts[first, name])),
            )  # fmt: skip

    def close(self) -> None:
        """Release the store for other processes, and free the memory of computed fields."""
        self.contents.release()
        super().close()
