"""A linear problem with walls, and its residual in NumPy."""

from __future__ import annotations

import numpy as np

import halocline as hc

N = 31


def problem(method: str = "cg-fused", dtype: str = "float64", **options: object) -> hc.LinearProblem:
    """Return the problem (1 + x) u - laplacian(u) = b on N by N - 4 points, with u = 2 on the wall."""
    grid = hc.Grid((N, N - 4), extent=(1.0, 1.0), walls="node")
    u = grid.field("u", dtype=dtype, boundary=hc.Value(2.0))
    return hc.LinearProblem(
        lambda v: (1.0 + grid.x) * v - hc.laplacian(v),
        u,
        lambda x, y: np.sin(3 * x) + y,
        method=method,
        **options,
    )


def residual_in_numpy(u: np.ndarray) -> float:
    """Return the norm of b - A u of `problem`."""
    padded = np.pad(u.astype(np.float64), 1, constant_values=2.0)
    h = [1.0 / (n + 1) for n in u.shape]
    x, y = ((np.arange(n) + 1) * step for n, step in zip(u.shape, h, strict=True))
    second = [
        (np.roll(padded, 1, axis) - 2 * padded + np.roll(padded, -1, axis))[1:-1, 1:-1] / h[axis] ** 2
        for axis in (0, 1)
    ]
    b = np.sin(3 * x)[:, None] + y[None, :]
    return float(np.linalg.norm(b - (1.0 + x)[:, None] * u + second[0] + second[1]))
