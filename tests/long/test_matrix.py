"""Properties of matrices derived from formulas, against dense NumPy matrices; solves with null spaces, and
errors of solves that cannot succeed.
"""

from __future__ import annotations

import numpy as np
import pytest

from patched_matrices import patched


@pytest.mark.ranks(2)
def test_ranks_agree_on_a_null_space_of_fields() -> None:
    """A view that only one rank has taken makes all ranks apply the operator again."""
    from mpi4py import MPI

    checksums = []
    for options in ({}, {"communicator": MPI.COMM_SELF}):
        made = patched("cg-fused", **options)
        f, m = (made.fields.grid.fields[name] for name in "fm")
        made.fields[f] = lambda x, y: np.sin(9.0 * x) * (y - 0.5)
        for value in (1.5, 4.0, 1.5):
            made.fields[m] = value
            solution = made.solve(rtol=1e-9, start="last")
            if made.domain.comm.rank == 0:
                assert made.fields[m].flat[0] == value
            assert solution.converged
            checksums.append((solution.iterations, solution.fields.checksum(made.unknown)))
    assert checksums[:3] == checksums[3:]
    assert len(set(checksums)) >= 2
