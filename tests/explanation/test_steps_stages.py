"""Stages in explanations: their lifetimes and chains."""

from __future__ import annotations

import halocline as hc
from stage_chains import chain


def test_explain_shows_the_lifetime_of_stages() -> None:
    grid = hc.Grid(400, periodic=True)
    grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(0.5 * chain(u, 3) + 0.1)), patch=100)
    text = str(hc.explain(sim))
    assert "3 stages in 2 arrays, 1.66 kB per patch" in text  # 104 and 102 points, rows of whole cache lines
    assert "s0 (1): loop nests 1 to 2 of 4, 8 bytes per point, additional layers x- 2, x+ 2\n" in text
    assert "s2 (1): loop nests 3 to 4 of 4, 8 bytes per point\n" in text


def test_explain_shows_the_longest_chain_of_stages() -> None:
    """The longest chain is named on each side separately; programs without stages have no such line."""
    grid = hc.Grid((20, 20), periodic=True)
    u, v = grid.field("u"), grid.field("v")

    @hc.program
    def step() -> None:
        near_stage = hc.stage(u[-1, 0] + v[2, 0], "near", storage="patch")
        far_stage = hc.stage(near_stage[-1, 0] * u, "far", storage="patch")
        u.set(far_stage[-1, 0] + near_stage[2, 0] + v[-2, 0])

    sim = hc.Simulation(grid, step)
    (sweep,) = (step for step in hc.explain(sim).steps if step.kind == "sweep")
    result = {(c.axis, c.side): [(link.name, link.layers) for link in c.links] for c in sweep.chains}
    assert result == {
        (0, -1): [("u", 0), ("far", 1), ("near", 2), ("u", 3)],
        (0, 1): [("u", 0), ("near", 2), ("v", 4)],
    }
    assert "3 layers on x- because of u <- far (1) <- near (2) <- u (3)\n" in str(hc.explain(sim))


def test_explain_shows_no_chain_without_a_field() -> None:
    grid = hc.Grid((20, 20), periodic=True)
    u = grid.field("u")
    plain = hc.program(lambda: u.set(0.5 * (u[1, 0] + u[-1, 0])))

    @hc.program
    def wave() -> None:
        s = hc.stage(hc.sin(grid.x) * grid.y + 3.0, "s", storage="patch")
        u.set(s[1, 0] - s[-1, 0])

    @hc.program
    def beside() -> None:
        s = hc.stage(hc.sin(u) * 3.0, "s", storage="patch")
        u.set(s + u[1, 0])

    for program in (plain, wave, beside):
        steps = hc.explain(hc.Simulation(grid, program)).steps
        assert steps
        assert not any(step.chains for step in steps)
