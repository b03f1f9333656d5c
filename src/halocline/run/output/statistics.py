"""Statistics over time, which steps themselves add up: means, variances, extremes of any expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halocline.errors import InputError
from halocline.lang.expression import Expr, as_expr, as_number
from halocline.lang.functions import maximum, minimum, where
from halocline.lang.grid import STATISTIC, Field, Grid, by_component
from halocline.lang.program import Scalar, assign, labelled, present
from halocline.run.fields.fields import location_and_dtype

PREFIX = STATISTIC  # start of the names of fields that hold statistics; a user's field cannot have it


@dataclass(frozen=True)
class Statistic:
    """A statistic over time of an expression in each cell, for `halocline.Output`."""

    kind: str
    expression: Any

    def _alone(self, *_: Any) -> Statistic:
        """Raise InputError: a statistic is known when it is written, and not before."""
        raise InputError(
            f"a {self.kind} over time cannot be computed with; take it of an expression instead, such as "
            f"hc.time_{self.kind}(2 * T), or compute with what was written"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _alone
    __pow__ = __rpow__ = __neg__ = __abs__ = _alone


@by_component
def time_mean(expression: Any) -> Statistic:
    """The mean over time, in which each step counts as long as it is.

    Parameters
    ----------
    expression : Field or expression
        Of fields of one grid; it has a value in each cell. Of a vector the result is a Vector of statistics.

    Returns
    -------
    Statistic
        For `halocline.Output`; in the unit of the expression.
    """
    return Statistic("mean", expression)


@by_component
def time_variance(expression: Any) -> Statistic:
    """The variance over time, in which each step counts as long as it is; of the whole, not of a sample.

    Parameters
    ----------
    expression : Field or expression
        Of fields of one grid; it has a value in each cell. Of a vector the result is a Vector of statistics.

    Returns
    -------
    Statistic
        For `halocline.Output`; in the square of the unit of the expression.
    """
    return Statistic("variance", expression)


@by_component
def time_min(expression: Any) -> Statistic:
    """The least value that any step has left.

    Parameters
    ----------
    expression : Field or expression
        Of fields of one grid; it has a value in each cell. Of a vector the result is a Vector of statistics.

    Returns
    -------
    Statistic
        For `halocline.Output`; in the unit of the expression.
    """
    return Statistic("min", expression)


@by_component
def time_max(expression: Any) -> Statistic:
    """The greatest value that any step has left.

    Parameters
    ----------
    expression : Field or expression
        Of fields of one grid; it has a value in each cell. Of a vector the result is a Vector of statistics.

    Returns
    -------
    Statistic
        For `halocline.Output`; in the unit of the expression.
    """
    return Statistic("max", expression)


CELL_METHODS = {"mean": "mean", "variance": "variance", "min": "minimum", "max": "maximum"}  # of CF


class Statistics:
    """Those of one output: the fields that hold them, and the statements that steps end with.

    Means and variances are West's weighted ones (Communications of the ACM 22, 532, 1979), which keep their
    digits however long they go on.

    Parameters
    ----------
    grid : Grid
    owner : str
        A name of the output that no other one has; an identifier.
    wanted : mapping of str to Statistic

    Attributes
    ----------
    fields : list of Field
        State of the run.
    weight : Scalar
        The time, or steps, that they are of so far: 0 where a window begins.
    values : dict of str to Expr
        What is written.
    """

    def __init__(self, grid: Grid, owner: str, wanted: Mapping[str, Statistic]) -> None:
        self.weight = Scalar(f"{PREFIX}{owner}_weight", own=True)
        self.fields: list[Field] = []
        self.values: dict[str, Expr] = {}
        self._items: list[tuple[str, Expr, list[Field]]] = []
        for name, statistic in wanted.items():
            e = as_number(as_expr(statistic.expression, f"output {name!r}"))
            if not e.varies or e.grid is not grid:
                raise InputError(
                    f"output {name!r}: the statistic over time of {e!r}; expected a field of {grid!r} or an "
                    "expression of them"
                )
            count = 2 if statistic.kind == "variance" else 1
            own = [self._field(grid, f"{PREFIX}{owner}_{name}_{number}", e) for number in range(count)]
            self._items.append((statistic.kind, e, own))
            self.fields += own
            # nan where nothing is counted yet; the quotient is 1 else
            self.values[name] = own[1] / self.weight if count == 2 else own[0] * (self.weight / self.weight)

    def known(self, facts: Mapping[str, Any]) -> bool:
        """Whether a checkpoint with these facts has them."""
        return self.weight.name in facts["values"] and all(f.name in facts["fields"] for f in self.fields)

    def _field(self, grid: Grid, name: str, e: Expr) -> Field:
        location, dtype = location_and_dtype(e)
        name = f"{name}_{location.replace('-', '_')}_{dtype}"
        known = grid.fields.get(name)  # a run may take up again what it has left
        return Field(grid, name, location, dtype, None, internal=True) if known is None else known

    def add(self, weight: Expr) -> None:
        """Record the statements that count the fields of now in, with a weight."""
        begins = self.weight <= 0.0
        total = self.weight + weight
        changes: dict[Field, Expr] = {}
        for kind, given, own in self._items:
            e = present(given)
            if kind in ("min", "max"):
                further = (minimum if kind == "min" else maximum)(own[0], e)
                changes[own[0]] = where(begins, e, further)
                continue
            mean = where(begins, e, own[0] + (weight / total) * (e - own[0]))
            changes[own[0]] = mean
            if kind == "variance":
                changes[own[1]] = where(begins, 0.0 * e, own[1] + weight * (e - own[0]) * (e - mean))
        with labelled("statistics over time: " + ", ".join(self.values)):
            assign(changes)
        self.weight.set(total)
