"""Nests that share a device kernel: independent, with stages, and with separate scratch memory."""

from __future__ import annotations

from typing import Any

import halocline as hc
from halocline.compile.ir.kernel import Array, Kernel, Value
from halocline.compile.ir.statements import Nest, Reduce, Store
from halocline.compile.passes.merge import merge
from halocline.compile.passes.scratch import stage_uses
from halocline.compile.strategy import Strategy
from halocline.run.engine import prepare
from suites import cases

NONE = ((0, 0),)


def kernel(*nests: tuple[str, str], extents: dict[str, tuple[int, int]] | None = None) -> Kernel:
    """Return a kernel with nests that copy one array to another: "s" and "t" are stages, "u" is a field."""
    names = list(dict.fromkeys(name for nest in nests for name in nest))
    arrays = tuple(Array(n, "float64", "scratch" if n in "rst" else "field") for n in names)
    values = tuple(Value("load", (), (source, (0,)), "float64") for source, _ in nests)
    bodies = [
        Nest((Store(target, number),), ((extents or {}).get(target, (0, 0)),), (0,))
        for number, (_, target) in enumerate(nests)
    ]
    return Kernel("k", "k", 1, (True,), arrays, values, tuple(bodies))


def numbers(kernel: Kernel) -> list[int | None]:
    return [s.kernel for s in merge(kernel).body if isinstance(s, Nest)]


def test_only_independent_nests_share_a_kernel() -> None:
    assert numbers(kernel(("u", "s"), ("u", "t"))) == [0, 0]
    assert numbers(kernel(("u", "s"), ("s", "t"))) == [0, 1]  # t reads s
    assert numbers(kernel(("u", "s"), ("v", "u"), ("u", "t"))) == [0, 1, 2]  # a field between two reads of it
    assert numbers(kernel(("u", "s"), ("u", "s"))) == [0, 1]  # both write s
    assert numbers(kernel(("u", "s"), ("u", "t"), ("s", "w"), ("t", "v"))) == [0, 0, 1, 1]


def test_nests_without_stages_or_with_a_reduction_are_alone() -> None:
    assert numbers(kernel(("u", "v"), ("u", "w"))) == [0, 1]
    two = kernel(("u", "s"), ("u", "t"))
    first, second = two.body
    assert isinstance(second, Nest)
    reducing = Nest((*second.body, Reduce(0, "sum", 1)), second.extent, second.top)
    assert numbers(Kernel("k", "k", 1, (True,), two.arrays, two.values, (first, reducing))) == [0, 1]


def test_stages_of_one_kernel_do_not_share_memory_with_stages_that_it_reads() -> None:
    """The last nest may run before the nest that reads s."""
    separate = kernel(("u", "s"), ("s", "v"), ("u", "r"))
    uses, slots = stage_uses(separate)
    assert [use.slot for use in uses] == [0, 0]
    uses, slots = stage_uses(merge(separate))
    assert [use.slot for use in uses] == [0, 1]
    assert len(slots) == 2


@cases("walls", [False, True], default=[True])
def test_merged_nests_have_the_bits_of_the_cpu(walls: bool, opencl: Any, monkeypatch: Any) -> None:
    """The nests of a kernel have other extents, and other points at upper walls."""

    def flow(**options: Any) -> tuple[Any, str]:
        grid = hc.Grid((11, 13, 17), periodic=not walls)
        u = grid.field("u", boundary=hc.Value(0.5) if walls else None)
        v = grid.field("v", location="face-y")

        def step(u: Any, v: Any) -> None:
            a = hc.stage(hc.sqrt(u + 2.0), "a", storage="patch")
            b = hc.stage(u * u[0, 1, 0], "b", storage="patch")
            c = hc.stage(u - u[0, 0, 1] * a[1, 0, 0], "c", storage="patch")
            v.set(b + b[0, -1, 0])
            u.set(0.3 * (a[0, 2, 0] - c[0, 0, -1]) + 0.1 * b[-1, 0, 0] * c)

        sim = hc.Simulation(grid, hc.program(step), **options)
        sim[u] = lambda x, y, z: 1.0 + 0.3 * x * y - 0.2 * z
        sim.run(steps=3)
        return sim, sim.checksum(u) + sim.checksum(v)

    expected = flow()[1]
    monkeypatch.setattr(prepare, "Strategy", lambda *_: Strategy(stages="memory"))
    sim, checksum = flow(device="opencl:0")
    assert checksum == expected
    (sweep,) = (sweep for sweep in sim.schedule.sweeps() if sweep.stages)
    extents = [(kernel.extent, kernel.top) for kernel in sim.schedule.device.kernels[sweep.kernel]]
    assert (len(extents), 1 + max(stage.last for stage in sweep.stages)) == (3, 5)
    source = sim.schedule.device.source
    assert "(f.hi[1] - 2)" in source  # the end of a nest with a smaller extent than its kernel
    assert "(f.hi[1] - f.box_top[1])" in source
    assert flow(device="opencl:0", patch=6)[1] == expected
