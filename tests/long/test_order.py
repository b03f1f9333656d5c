"""Order of the operations and stores of a kernel."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.compile.ir.kernel import Array
from halocline.compile.ir.statements import Store
from halocline.compile.ir.verify import verify
from halocline.compile.passes.order import order
from kernels import in_nest, kernel_of
from kernels_of_devices import device_kernel, statements
from ordered_values import large


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 8), min_size=5, max_size=5), st.permutations(range(5)))
def test_stores_wait_only_for_old_values(chosen: list[int], stored: list[int]) -> None:
    """Stores wait only for reads of old values, for any arrangement of copies and large values."""
    grid = hc.Grid((8, 8), (1.0, 1.0), periodic=True)
    fields = [grid.field(f"f{n}") for n in range(5)]
    values = [fields[n] * 1.0 if n < 5 else large(fields[n - 5]) for n in chosen]
    kernel = in_nest(kernel_of(*values, large(fields[0])))
    (nest,) = kernel.body
    stores = [
        replace(s, array=f"f{stored[n]}") if n < 5 else s  # type: ignore[type-var]
        for n, s in enumerate(nest.body)  # type: ignore[attr-defined]
    ]
    arrays = tuple(a for a in kernel.arrays if not a.name.startswith("r") or a.name == "r5")
    missing = tuple(Array(f"f{n}", "float64") for n in range(5) if f"f{n}" not in {a.name for a in arrays})
    kernel = replace(kernel, arrays=arrays + missing, body=(replace(nest, body=tuple(stores)),))  # type: ignore[call-arg]
    before = device_kernel(kernel)
    after = order(before)
    verify(before)
    verify(after)
    assert set(statements(after, Store)) == set(statements(before, Store))
    assert len(statements(after, Store)) == 6
