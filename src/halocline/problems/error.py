"""Error of a finished run, from the functions `error` and `exact` of its file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.callables import argument_count
from halocline.lang.expression import Operators
from halocline.lang.functions import abs as magnitude
from halocline.lang.reductions import max as greatest
from halocline.lang.values import as_number, real_array
from halocline.problems.names import Names
from halocline.run.fields.fields import Fields
from halocline.run.simulation.observers import RunArguments
from halocline.words import short_repr


def error_of(problem: Any, arguments: RunArguments, names: Names) -> float | None:
    """Return the error of a run; None if the file defines neither `error` nor `exact`. All ranks call this.

    If the file defines `error`, the result is also None in two cases: the end of the run differs from the end
    in the file, or the error is not finite.

    Parameters
    ----------
    problem : Simulation or LinearProblem
    arguments : RunArguments
        Arguments of the last run in the file.
    names : Names

    Raises
    ------
    InputError
        A function of the file returns neither an error nor a solution.
    """
    fields = problem if isinstance(problem, Fields) else problem.fields
    time = getattr(problem, "time", 0.0)
    if names.error is None:
        return None if names.exact is None else difference(fields, time, names.exact)
    if arguments.until is not None and time != arguments.until:
        return None
    if hasattr(problem, "steps") and arguments.until is None and problem.steps != arguments.steps:
        return None
    with trace.order(getattr(problem, "order", 2)):
        value = names.error(problem)
    with fields.domain.comm.agreement("error(sim)"):
        error = as_number(value, "error(sim)")
    return error if math.isfinite(error) else None


def difference(fields: Fields, time: float, exact: Any) -> float:
    """Return the maximum difference from an exact solution; all ranks call this.

    ``exact(time)`` returns an expression, a function of the coordinates, or an array for each field.
    """
    call = f"exact({time:g})"
    maximum, solutions = 0.0, exact(time)
    if not isinstance(solutions, Mapping):
        raise InputError(f"{call} returns {short_repr(solutions)}; expected a mapping of fields to values")
    for known, solution in solutions.items():
        target = fields.field_with_values(known)
        if isinstance(solution, Operators):
            maximum = max(maximum, float(fields.evaluate(greatest(magnitude(target - solution)))))
            continue
        computed = fields.gather(target)
        with fields.domain.comm.agreement(call):
            if computed is not None:
                lines = np.meshgrid(*target.positions, indexing="ij")
                of_field = f"{call} of field {target.name!r}"
                if callable(solution):
                    argument_count(solution, of_field, (len(lines),), f"{len(lines)} coordinates")
                    solution = solution(*lines)
                values = real_array(solution, f"{of_field} is").astype(np.float64)
                if values.shape not in ((), computed.shape):
                    raise InputError(f"{of_field} has shape {values.shape}; expected {computed.shape}")
                maximum = max(maximum, float(np.abs(computed - values).max()))
    return float(fields.domain.comm.bcast(maximum))
