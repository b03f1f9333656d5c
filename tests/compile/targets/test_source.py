"""Text of device kernels: layouts that arrays share."""

from __future__ import annotations

import re

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.strategy import Strategy
from halocline.compile.targets.source import with_shared_layouts


def source_of_three_fields() -> str:
    """Return kernels of fields whose names begin with each other, and of ghosts."""
    grid = hc.Grid((8, 8, 8), periodic=(True, True, False))
    u, uu, uuu = (grid.field(name, boundary=hc.Derivative(0.0)) for name in ("u", "uu", "uuu"))

    @hc.program
    def step() -> None:
        hc.assign({f: f + hc.laplacian(g) for f, g in ((u, uu), (uu, uuu), (uuu, u))})

    device = compile_program(step.trace(), grid, device=Strategy()).device
    assert device is not None
    return device.source


def used_layouts(source: str) -> set[str]:
    kernel = re.search(r"^HC_KERNEL\w*(?:\([^)]*\))? sweep_0_0\(.*?^}$", source, re.MULTILINE | re.DOTALL)
    assert kernel is not None
    return set(re.findall(r"\b(\w+_layout)\.", kernel[0]))


def test_arrays_with_equal_layouts_share_one() -> None:
    source = source_of_three_fields()
    every = used_layouts(source)
    assert {"u_layout", "uu_layout", "uuu_layout"} <= every
    assert with_shared_layouts(source, range(len(every))) == source
    assert used_layouts(with_shared_layouts(source, ["equal"] * len(every))) == {"u_layout"}
    two = ["first" if n in (0, 2) else "second" for n in range(len(every))]
    assert used_layouts(with_shared_layouts(source, two)) == {"u_layout", "uu_layout"}


def test_functions_of_ghosts_keep_their_parameters() -> None:
    source = source_of_three_fields()
    shared = with_shared_layouts(source, ["equal"] * 6)
    functions = r"^HC_FUNCTION void wall_.*$"
    assert re.findall(functions, shared, re.MULTILINE) == re.findall(functions, source, re.MULTILINE)
    assert len(re.findall(functions, source, re.MULTILINE)) == 6
