"""Replay of a failed run: the first step that produced a non-finite value, and the terms that caused it."""

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
from halocline.lang.location import form_at_target
from halocline.lang.program import Program, bind, internal_name
from halocline.lang.reductions import max as greatest
from halocline.lang.reductions import value
from halocline.native import native
from halocline.run.engine.prepare import prepare
from halocline.run.fields.fields import Fields
from halocline.run.fields.session import Session
from halocline.run.memory import contents

IN_MEMORY = 1 << 26  # maximum bytes of a rank's copy in memory; larger copies use a temporary file
LARGEST = 3  # number of terms in the message if all terms are finite
INSTEAD = (
    "the first step that produced a non-finite value, and its terms, are unknown, because no copy of the "
    "fields could be stored ({reason}). Run again with --every 1, with fewer cells, or with TMPDIR on a disk "
    "with more space."
)


class FailureReplay:
    """Replay of a session from its last finite state, to find the origin of a failure.

    All methods are collective.

    Parameters
    ----------
    session : Session
    terms : callable
        Function that returns the terms of the time derivatives, by field and name of the term. The arguments
        of the function are bound by name.
    order : int
        Order of accuracy of the differences.

    Attributes
    ----------
    begin : callable or None
        Function that sets the fields to their values at step 0, so that this state needs no copy. None if
        there is no such function.
    reason : str
        Reason why no copy could be made; otherwise empty.
    """

    def __init__(
        self, session: Session, terms: Callable[..., Mapping[Field, Mapping[str, Any]]], order: int
    ) -> None:
        self.session, self.terms, self.order = session, terms, order
        self.fields, self.store = session.fields, session.fields.store
        self.begin: Callable[[Fields], None] | None = None
        self.reason = ""
        self._file: Any = None
        self._copied: list[Field] = []
        self._from_start = False
        self._until = math.inf
        self._values: dict[str, float] = {}

    # --- copy of the state ---

    def keep(self, until: float) -> None:
        """Copy the current state of the run, which ends at the time `until`."""
        if self.reason:
            return
        self._until, self._values = until, dict(self.session.fields.values)
        self._from_start = self.begin is not None and self.session.step == 0
        if self._from_start:
            return
        problem = ""
        try:
            self._write()
        except (OSError, MemoryError, RunError) as error:
            problem = str(error) or "no memory"
        self.reason = next(filter(None, self.store.domain.comm.allgather(problem)), "")
        if self.reason:
            self._file = None

    def _write(self) -> None:
        self._copied = self.store.fields
        if self._file is None:
            size = sum(storage.bytes for f in self._copied for storage in self.store.of(f))
            required, available = self.store.of_node(size), native().available_memory()
            if required > available:  # temporary files may be in memory too
                raise MemoryError(
                    f"it takes {required / 1e9:,.1f} GB of memory, "
                    f"and {available / 1e9:,.1f} GB are available"
                )
            self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - remains open
        self._file.seek(0)
        for f in self._copied:
            for _, view in self.store.pieces(f):
                np.save(self._file, view)
        self._file.flush()

    def _restore(self) -> None:
        """Set fields and scalars to the copy, bit for bit."""
        if self._from_start:
            assert self.begin is not None
            for f in self.session.program_fields:  # includes the fields of the scheme
                self.fields[f] = 0.0
            self.begin(self.fields)
            self.fields.check_inputs("at the start")  # evaluates the assignments
        else:
            with self.store.domain.comm.agreement("read the copy of the fields"):
                self._file.seek(0)
                for f in self._copied:
                    with self.store.writable(f) as pieces:
                        for _, view in pieces:
                            view[...] = np.load(self._file)
        self.fields.values.clear()
        self.fields.values.update(self._values)

    # --- search for the failure ---

    def explained(self, error: HaloclineError) -> HaloclineError:
        """Return the error with the terms that caused it.

        If a step has produced a non-finite value, the simulation is set to the state before the first such
        step. Otherwise the simulation is unchanged.
        """
        if error.place is None:
            return self._with_terms(error, "now")
        first_error = None if self.reason else self._first_failure()
        if self.reason:
            return error.explained(INSTEAD.format(reason=self.reason))
        return (
            error
            if first_error is None
            else self._with_terms(first_error, f"before step {self.session.step + 1}")
        )

    def _first_failure(self) -> HaloclineError | None:
        """Return the error after the first step that produces a non-finite value; None without such a step.

        The steps since the copy are repeated and searched by bisection.
        """
        low, high = int(self._values["step"]), self.session.step
        self._restore()
        while high - low > 1:
            middle = (low + high) // 2
            if self._error_after(middle - low) is not None:
                high = min(high - 1, self.session.step)
                self._restore()
            elif self.session.step < middle:  # a stop statement has ended the run
                return None
            else:
                low = middle
                self.keep(self._until)
                if self.reason:
                    return None
        error = self._error_after(1)
        dt = self.session.fields.values.get("dt")
        self._restore()
        if dt is not None:
            self.session.fields.values["dt"] = dt  # forcing may read dt
        return error

    def _error_after(self, steps: int) -> HaloclineError | None:
        """Repeat a number of steps, and return the error of the subsequent check, or None."""
        session, before = self.session, self.session.step
        is_paused = True
        while is_paused:  # the run handles a pause request later
            inputs = session.inputs(self._until, self._until, before + steps - session.step)
            is_paused = session.store_outcome(inputs, session.prepared.run(inputs)).reason == "paused"
        try:
            self.session.check_after(before)
        except RunError as error:
            return error
        return None

    def explained_at(self, error: InputError) -> HaloclineError:
        """Return the error for a non-finite value set by the user, with the non-finite terms in its cell."""
        assert error.place is not None
        cell = error.place[1]
        sizes = self._sizes(lambda e: value(e, cell))
        nonfinite = [term for term, size in sizes.items() if not math.isfinite(size)]
        return error.explained(
            f"terms that are not finite in that cell: {', '.join(nonfinite)}" if nonfinite else ""
        )

    def _with_terms(self, error: HaloclineError, when: str) -> HaloclineError:
        """Return the error with the terms of the current state, if the memory suffices for the terms."""
        try:
            return error.explained(self._describe_terms(when))
        except RunError:
            return error

    def _describe_terms(self, when: str) -> str:
        """Return a text with the non-finite terms of the current state, or otherwise the largest terms."""
        sizes = self._sizes(lambda e: greatest(magnitude(e)))
        nonfinite = [term for term, size in sizes.items() if not math.isfinite(size)]
        if nonfinite:
            names = ", ".join(nonfinite)
            return f"terms that are not finite {when}: {names}\n{self._place(nonfinite[0])}".rstrip()
        largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:LARGEST]
        size_texts = ", ".join(f"{term} ({sizes[term]:.3g})" for term in largest)
        return size_texts and f"largest terms {when}: {size_texts}"

    def _place(self, term: str) -> str:
        """Return a text with the first cell in which a term is not finite, and the field values there."""
        program = Program("place")
        with trace.order(self.order), trace.tracing(program):
            terms = self._terms(program)
            f, e = terms[term]
            if not e.varies:
                return ""
            term_field = f.like(f"{f.name}_term")
            term_field.set(e)
        prepare(self.store, program, self._scalars()).run(self._scalars())
        worst = contents.first_nonfinite(self.store, [term_field])
        self.store.forget(term_field.name)
        if worst is None:
            return ""
        cell = worst[1]
        fields = dict.fromkeys(f for f, _ in terms.values())
        values_at_cell = self.fields.evaluate(*(value(f, cell) for f in fields), 0.0)[:-1]
        values = ", ".join(
            f"{f.name} = {number:.6g}" for f, number in zip(fields, values_at_cell, strict=True)
        )
        return f"{term} is not finite at cell {cell}, where {values}"

    def _sizes(self, reduced: Callable[[Expr], Expr]) -> dict[str, float]:
        """Return the value of `reduced` for each term, by the name of the term ("viscosity of u_x")."""
        program = Program("terms")
        with trace.order(self.order), trace.tracing(program):
            terms = self._terms(program)
            for number, (_, e) in enumerate(terms.values()):
                program.internal_scalar(f"term{number}").set(reduced(e) if e.varies else magnitude(e))
        if not terms:
            return {}
        scalars = prepare(self.store, program, self._scalars()).run(self._scalars()).scalars
        return {name: scalars[internal_name(f"term{number}")] for number, name in enumerate(terms)}

    def _terms(self, program: Program) -> dict[str, tuple[Field, Expr]]:
        """Return each term by name, with the field whose time derivative contains the term."""
        names = {name: program.parameter(name) for name in ("t", "dt", "step", *self.fields.parameters)}
        terms_of_fields = trace.call(self.terms, **bind(self.terms, self.fields.grid, names))
        named_terms: dict[str, tuple[Field, Expr]] = {}
        for f, terms in terms_of_fields.items():
            for term, e in terms.items():
                placed = form_at_target(as_expr(e), f.staggered, f"term {term!r} of field {f.name!r}")
                named_terms[f"{term} of {f.name}"] = f, placed
        return named_terms

    def _scalars(self) -> dict[str, float]:
        return {"dt": 1.0, **self.session.fields.values}  # dt has no value before the first step
