"""Properties of matrices derived from formulas, compared with dense NumPy matrices.

Further tests solve systems with null spaces, and systems that have no solution.
"""

from __future__ import annotations

import numpy as np
import pytest

from patched_matrices import patched_laplacian


@pytest.mark.ranks(2)
def test_ranks_agree_on_a_null_space_of_fields() -> None:
    """All ranks apply the operator again if one rank has accessed a view."""
    from mpi4py import MPI

    checksums = []
    for options in ({}, {"communicator": MPI.COMM_SELF}):
        solver = patched_laplacian("cg-fused", **options)
        f, m = (solver.fields.grid.fields[name] for name in "fm")
        solver.fields[f] = lambda x, y: np.sin(9.0 * x) * (y - 0.5)
        for value in (1.5, 4.0, 1.5):
            solver.fields[m] = value
            solution = solver.solve(rtol=1e-9, start="last")
            if solver.domain.comm.rank == 0:
                assert solver.fields[m].flat[0] == value
            assert solution.converged
            checksums.append((solution.iterations, solution.fields.checksum(solver.unknown)))
    assert checksums[:3] == checksums[3:]
    assert len(set(checksums)) >= 2
