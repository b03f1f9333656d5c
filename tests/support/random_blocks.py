"""Random grids with inactive blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a grid with inactive blocks, offsets of reads and a number of subdomains."""
    ndim = draw(st.integers(1, 2))
    shape = tuple(draw(st.integers(4, 9)) for _ in range(ndim))
    counts = tuple(draw(st.integers(1, n)) for n in shape)
    bits = draw(st.lists(st.booleans(), min_size=int(np.prod(counts)), max_size=int(np.prod(counts))))
    mask = np.array(bits, dtype=bool).reshape(counts)
    mask[(0,) * ndim] |= not mask.any()
    offset = st.tuples(*[st.integers(-2, 2)] * ndim)
    return {
        "shape": shape,
        "mask": mask,
        "periodic": tuple(draw(st.booleans()) for _ in range(ndim)),
        "offsets": draw(st.lists(offset, min_size=3, max_size=3)),
        "depth": draw(st.integers(0, 3)),
        "subdomains": draw(st.sampled_from([1, 2, 3])),
    }
