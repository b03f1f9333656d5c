"""Where a run went wrong: the first step that left a value that is not finite, and which terms of the
equations led to it."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from halocline.errors import HaloclineError, InputError, RunError
from halocline.lang import trace
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.grid import Field
from halocline.lang.location import at_target
from halocline.lang.program import Program, bind, own_name
from halocline.lang.reductions import max as greatest
from halocline.lang.reductions import value
from halocline.native import native
from halocline.run.engine.prepare import prepare
from halocline.run.fields.fields import Fields
from halocline.run.fields.session import Session
from halocline.run.memory import contents

IN_MEMORY = 1 << 26  # bytes of a rank's copy; a greater one lies in a temporary file
LARGEST = 3  # terms that are named where all are finite
INSTEAD = (
    "which step was the first, and which terms led to it, is not known, since no copy of the fields could be "
    "kept ({why}): run it again one step at a time (--every 1), with fewer cells, or with TMPDIR where there "
    "is room"
)


class FailureReplay:
    """What a session held when all of it was last found finite, to go on from there once more and find what
    went wrong. All ranks call its methods.

    Parameters
    ----------
    session : Session
    terms : callable
        The terms of time derivatives by field and name; its arguments are found by name.
    order : int
        Of the differences in space.

    Attributes
    ----------
    begin : callable or None
        Sets the fields to what they are at step 0, where that is known: no copy is made of that.
    why : str
        Why there is no copy; empty where there is one.
    """

    def __init__(
        self, session: Session, terms: Callable[..., Mapping[Field, Mapping[str, Any]]], order: int
    ) -> None:
        self.session, self.terms, self.order = session, terms, order
        self.fields, self.store = session.fields, session.fields.store
        self.begin: Callable[[Fields], None] | None = None
        self.why = ""
        self._file: Any = None
        self._copied: list[Field] = []
        self._from_start = False
        self._until = math.inf
        self._values: dict[str, float] = {}

    # --- the copy ---

    def keep(self, until: float) -> None:
        """Copy what the session holds, on its way to a time."""
        if self.why:
            return
        self._until, self._values = until, dict(self.session.fields.values)
        self._from_start = self.begin is not None and self.session.step == 0
        if self._from_start:
            return
        why = ""
        try:
            self._write()
        except (OSError, MemoryError, RunError) as error:
            why = str(error) or "no memory"
        self.why = next(filter(None, self.store.domain.comm.allgather(why)), "")
        if self.why:
            self._file = None

    def _write(self) -> None:
        self._copied = self.store.fields
        if self._file is None:
            size = sum(storage.bytes for f in self._copied for storage in self.store.of(f))
            needed, available = self.store.of_node(size), native().available_memory()
            if needed > available:  # temporary files may lie in memory too
                raise MemoryError(
                    f"it takes {needed / 1e9:,.1f} GB of memory, and {available / 1e9:,.1f} GB are available"
                )
            self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - it is kept
        self._file.seek(0)
        for f in self._copied:
            for _, view in self.store.pieces(f):
                np.save(self._file, view)
        self._file.flush()

    def _restore(self) -> None:
        """Set fields and scalars to the copy, bit for bit."""
        if self._from_start:
            assert self.begin is not None
            for f in self.session.held:  # the scheme's own too
                self.fields[f] = 0.0
            self.begin(self.fields)
            self.fields.check_inputs("at the start")  # they are set now
        else:
            with self.store.domain.comm.agreement("read the copy of the fields"):
                self._file.seek(0)
                for f in self._copied:
                    with self.store.writing(f) as pieces:
                        for _, view in pieces:
                            view[...] = np.load(self._file)
        self.fields.values.clear()
        self.fields.values.update(self._values)

    # --- what went wrong ---

    def explained(self, error: HaloclineError) -> HaloclineError:
        """The same error with the terms that led to it.

        Where a step left a value that is not finite, the simulation holds what was before the first such step
        afterwards; else it is left alone.
        """
        if error.place is None:
            return self._longer(error, "now")
        found = None if self.why else self._first_failure()
        if self.why:
            return error.explained(INSTEAD.format(why=self.why))
        return error if found is None else self._longer(found, f"before step {self.session.step + 1}")

    def _first_failure(self) -> HaloclineError | None:
        """The error after the first step that leaves a value that is not finite, found by halving what was
        done since the copy; None where all is finite when repeated."""
        low, high = int(self._values["step"]), self.session.step
        self._restore()
        while high - low > 1:
            middle = (low + high) // 2
            if self._fails(middle - low) is not None:
                high = min(high - 1, self.session.step)
                self._restore()
            elif self.session.step < middle:  # a stop ended it
                return None
            else:
                low = middle
                self.keep(self._until)
                if self.why:
                    return None
        found = self._fails(1)
        dt = self.session.fields.values.get("dt")
        self._restore()
        if dt is not None:
            self.session.fields.values["dt"] = dt  # forcing may read it
        return found

    def _fails(self, steps: int) -> HaloclineError | None:
        """Repeat some steps, and return the error that their check raises."""
        session, before = self.session, self.session.step
        is_paused = True
        while is_paused:  # a request to pause is served later
            inputs = session.inputs(self._until, self._until, before + steps - session.step)
            is_paused = session.take(inputs, session.prepared.run(inputs)).reason == "paused"
        try:
            self.session.check_after(before)
        except RunError as error:
            return error
        return None

    def at(self, error: InputError) -> HaloclineError:
        """The same error of a value that was set, with the terms that are not finite in its cell."""
        assert error.place is not None
        cell = error.place[1]
        sizes = self._sizes(lambda e: value(e, cell))
        bad = [term for term, size in sizes.items() if not math.isfinite(size)]
        return error.explained(f"terms that are not finite in that cell: {', '.join(bad)}" if bad else "")

    def _longer(self, error: HaloclineError, when: str) -> HaloclineError:
        """The error with the terms of what the simulation holds, where there is memory to compute them."""
        try:
            return error.explained(self._told(when))
        except RunError:
            return error

    def _told(self, when: str) -> str:
        """The terms of what the simulation holds: those that are not finite anywhere, or the largest."""
        sizes = self._sizes(lambda e: greatest(magnitude(e)))
        bad = [term for term, size in sizes.items() if not math.isfinite(size)]
        if bad:
            return f"terms that are not finite {when}: {', '.join(bad)}\n{self._place(bad[0])}".rstrip()
        largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:LARGEST]
        sized = ", ".join(f"{term} ({sizes[term]:.3g})" for term in largest)
        return sized and f"largest terms {when}: {sized}"

    def _place(self, term: str) -> str:
        """The first cell in which a term is not finite, and what the fields are there."""
        program = Program("place")
        with trace.order(self.order), trace.tracing(program):
            terms = self._terms(program)
            f, e = terms[term]
            if not e.varies:
                return ""
            found = f.like(f"{f.name}_term")
            found.set(e)
        prepare(self.store, program, self._known()).run(self._known())
        worst = contents.first_nonfinite(self.store, [found])
        self.store.forget(found.name)
        if worst is None:
            return ""
        cell = worst[1]
        fields = dict.fromkeys(f for f, _ in terms.values())
        there = self.fields.evaluate(*(value(f, cell) for f in fields), 0.0)[:-1]
        values = ", ".join(f"{f.name} = {number:.6g}" for f, number in zip(fields, there, strict=True))
        return f"{term} is not finite at cell {cell}, where {values}"

    def _sizes(self, reduced: Callable[[Expr], Expr]) -> dict[str, float]:
        """The terms of time derivatives, "viscosity of u_x", each as one number."""
        program = Program("terms")
        with trace.order(self.order), trace.tracing(program):
            terms = self._terms(program)
            for number, (_, e) in enumerate(terms.values()):
                program.own(f"term{number}").set(reduced(e) if e.varies else magnitude(e))
        if not terms:
            return {}
        found = prepare(self.store, program, self._known()).run(self._known()).scalars
        return {name: found[own_name(f"term{number}")] for number, name in enumerate(terms)}

    def _terms(self, program: Program) -> dict[str, tuple[Field, Expr]]:
        """Return the terms by name, each with the field whose derivative the term is part of."""
        names = {name: program.parameter(name) for name in ("t", "dt", "step", *self.fields.parameters)}
        terms_of_fields = trace.call(self.terms, **bind(self.terms, self.fields.grid, names))
        found: dict[str, tuple[Field, Expr]] = {}
        for f, terms in terms_of_fields.items():
            for term, e in terms.items():
                placed = at_target(as_expr(e), f.staggered, f"term {term!r} of field {f.name!r}")
                found[f"{term} of {f.name}"] = f, placed
        return found

    def _known(self) -> dict[str, float]:
        return {"dt": 1.0, **self.session.fields.values}  # before the first step it has none
