"""The reason of each halo exchange."""

from __future__ import annotations

import halocline as hc
from halocline.explanation.explain import explain_program
from halocline.model.execute import execute
from halocline.plan.decompose import decompose
from halocline.plan.layout import Layout
from halocline.plan.machine import load_machine


def test_explain_gives_the_reason_of_each_exchange() -> None:
    grid = hc.Grid((16, 16), periodic=True)
    k, u, v, w = (grid.field(name) for name in "kuvw")

    @hc.program
    def step() -> None:
        w.set(u[1, 0] + k[1, 0])
        v.set(w[1, 0] + k[1, 0] + v[1, 0])
        u.set(u + v)
        v.set(w + u)

    result = hc.explain(hc.Simulation(grid, step), ranks=2, decomposition=(2, 1))
    exchange, *sweeps = [step for step in result.steps if step.kind in ("exchange", "sweep")]
    assert exchange.kind == "exchange"
    assert {halo.field: halo.reason for halo in exchange.halos} == {
        "k": "each pass of the loop reads the field, and no pass assigns the field"
    }
    assert exchange.messages == 1
    reasons = {(n, halo.field): halo.reason for n, sweep in enumerate(sweeps, 1) for halo in sweep.halos}
    assert reasons[1, "k"] == "the halo is still valid from the exchange before the loop"
    assert reasons[2, "k"] == "the halo is still valid from the exchange before the loop"
    assert reasons[1, "u"] == "the field has changed since its last exchange"
    assert reasons[2, "w"] == "the field has changed since its last exchange"
    assert "exchange  once, before the loop" in str(result)
    assert result.as_dict()["pass"]["sweeps"] == len(sweeps)


def test_explain_distinguishes_unfilled_and_too_narrow_halos() -> None:
    grid = hc.Grid((16, 16), periodic=True)
    u, v, w = (grid.field(name) for name in "uvw")

    @hc.program
    def program() -> None:
        v.set(u[1, 0])
        w.set(u[2, 0] + v[1, 0])

    result = explain_program(program.trace(), grid, ranks=2, decomposition=(2, 1))
    reasons = [
        {halo.field: halo.reason for halo in step.halos} for step in result.steps if step.kind == "sweep"
    ]
    assert reasons == [
        {"u": "the halo has not been filled before"},
        {
            "u": "the sweep reads more halo cells than the exchange before sweep 1 filled",
            "v": "the field has changed since its last exchange",
        },
    ]


def test_explain_names_fields_that_take_over_buffers() -> None:
    """The halo of the older field comes with the buffer, so that only the newer one is exchanged."""
    grid = hc.Grid((16, 16), periodic=True)
    u, before, oldest = (grid.field(name) for name in ("u", "before", "oldest"))

    @hc.program
    def step() -> None:
        hc.assign({u: 2.0 * u[1, 0] - before[1, 0] + oldest, before: u, oldest: before})

    result = hc.explain(hc.Simulation(grid, step), ranks=2, decomposition=(2, 1))
    *_, sweep = [step for step in result.steps if step.kind == "sweep"]
    assert sweep.new_buffers == (("before", "u"), ("oldest", "before"))
    assert "before: takes over the buffer of u, without a copy" in str(result)
    assert {halo.field: bool(halo.travels) for halo in sweep.halos} == {"u": True, "before": False}


def test_sweeps_that_read_only_coefficients_at_neighbours_send_no_messages() -> None:
    grid = hc.Grid((16, 16), periodic=True)
    k, u = grid.field("k"), grid.field("u")

    @hc.program
    def step() -> None:
        u.set(u + k[1, 0] + k[0, 1])

    sim = hc.Simulation(grid, step)
    result = hc.explain(sim, ranks=4)
    assert result.as_dict()["pass"]["messages"] == 0
    assert result.routes == []
    layout = Layout.of(decompose(grid.shape, 4, periodic=grid.periodic))
    spans = execute(sim.schedule, layout, load_machine("summit"), traced=range(4)).spans
    assert {span.kind for span in spans} == {"patch"}
