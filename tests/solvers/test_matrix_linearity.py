"""Linear operators are accepted; others are rejected with a reason."""

from __future__ import annotations

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError

GRID = hc.Grid((15, 15), walls="node")
U = GRID.field("u", boundary=hc.Value(0))
K = GRID.field("k", boundary=hc.Value(1))


def smooth(storage):
    def operator(u):
        inner = hc.stage(u - 0.2 * (u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1]), "inner", storage=storage)
        return 2 * inner

    return operator


@pytest.mark.parametrize(
    "operator",
    [
        lambda u: -hc.laplacian(u),
        lambda u: hc.where(K > 1, u, 2 * u),
        lambda u: u + 0.001 * hc.sum(u),
        smooth("patch"),
        *(
            pytest.param(operator, marks=pytest.mark.long)
            for operator in (
                lambda u: u - u[1, 0] / 4 - u[-1, 0] / 4,
                lambda u: (2 + K * K) * u / (1 + K * K),
                lambda u: 4 * u - hc.where(hc.abs(K) > 0, u, 0),
                smooth("inline"),
                smooth("array"),
            )
        ),
    ],
)
def test_linear_operators_are_solved(operator):
    problem = hc.LinearProblem(operator, U, 1.0)
    problem.fields[U] = 0.0
    problem.fields[K] = lambda x, y: 0.5 + x
    solution = problem.solve(rtol=1e-9)
    assert solution.converged
    assert np.isfinite(solution.fields.gather(U)).all()


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (lambda u: u * u - hc.laplacian(u), r"\(u \* u\) is not a multiple"),
        (lambda u: u - 1, r"\(u - 1\) has a term that does not depend on"),
        (lambda u: u + K, "has a term that does not depend on"),
        (lambda u: hc.exp(u), r"exp\(u\) is not a multiple"),
        (lambda u: 1 / u, "is not a multiple"),
        (lambda u: hc.where(u > 0, u, 2 * u), r"\(u > 0\) is not a multiple"),
        (lambda u: hc.where(K > 0, u, 1), "is not a multiple"),
        (lambda u: 2 * hc.stage(u * u, "square"), r"\(u \* u\) is not a multiple"),
        (lambda u: 1.0, "returns 1, which does not depend on the unknown 'u'"),
        (lambda u: 0 * u, "returns 0, which does not depend on the unknown 'u'"),
        (lambda u: K, "returns k, which does not depend on the unknown 'u'"),
    ],
)
def test_nonlinear_operators_are_rejected(operator, message):
    with pytest.raises(InputError, match=message):
        hc.solve(operator, U, 1.0)
