"""Load balancing: subdomains move between ranks, and results keep their bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import balanced_runs
import halocline as hc
from halocline.errors import InputError, RunError
from halocline.run.memory.balance import Balance, active_cells
from loops import some
from suites import examples


@hc.program
def turn(u: Any) -> None:
    u.set(u[0, 1])


def turning(**options: Any) -> tuple[hc.Simulation, hc.Grid, hc.Field]:
    """Return a simulation whose steps shift a field by one cell, its grid, and the field.

    The field returns to its start after 20 steps.
    """
    grid = hc.Grid((24, 20), periodic=True)
    u = grid.field("u")
    sim = hc.Simulation(grid, turn, threads=1, **options)
    sim[u] = lambda x, y: x + 2.0 * y
    return sim, grid, u


AT, THERE = (5, 7), 5.5 / 24 + 2.0 * (7.5 / 20)  # a cell and its initial value


@pytest.mark.ranks(1, 2, 3, 4, long=(1, 2, 4))
def test_balance_does_not_change_bits(shared_tmp_path: Path) -> None:
    balanced_runs.check_bits(range(examples(2, 4)), shared_tmp_path)


def slowest(balance: Balance) -> float:
    """Return the bound on the ratio of the slowest rank to the mean: a tenth more, or one subdomain more."""
    return 1.0 + max(0.1, balance.largest)


def counted(sim: hc.Simulation, work: Any, slow: float = 1.0) -> Balance:
    """Balance three times by counted work of cells, and return the result of a fourth balance.

    The last rank takes `slow` times as long as other ranks.
    """
    domain = sim.domain
    last = domain.comm.size - 1
    for _ in range(4):
        weights = active_cells(sim.store)
        if work is not None:
            with sim.values_as_field(work) as field:
                weights = {
                    n: float(view.sum()) for n, view in zip(weights, sim.store.views(field), strict=True)
                }
        factor = slow if domain.comm.rank == last else 1.0
        domain.work = {number: factor * domain.threads * weight for number, weight in weights.items()}
        balance = sim.balance()
    return balance


@pytest.mark.ranks(2, 3, 4, long=(2, 3))
def test_three_balances_equalise_the_work_of_ranks() -> None:
    """Counted work is balanced for inactive blocks, a corner with fifty times the work, and slow ranks."""
    mask = [[x + y < 5 for y in range(8)] for x in range(8)]
    settings = (
        (None, None, 2.0), (mask, 50.0, 3.0),
        (mask, None, 1.0), (None, 50.0, 1.0), (None, None, 10.0),
    )  # fmt: skip
    for active, corner, slow in some(settings[: examples(2, 5)]):
        grid = hc.Grid((64, 64), periodic=True, **({} if active is None else {"active": active}))
        u = grid.field("u")

        sim = hc.Simulation(grid, turn, subdomains_per_rank=16, threads=1)
        sim[u] = 0.0
        work = None
        if corner is not None:
            work = 1.0 + corner * hc.where((grid.x < 0.3) & (grid.y < 0.3), 1.0, 0.0)
        balance = counted(sim, work, slow)
        assert balance.before <= slowest(balance), (active is None, corner, slow, balance)


@pytest.mark.ranks(3)
def test_ranks_without_subdomains_wait_and_receive_new_ones() -> None:
    """Output, sums and points cover the whole grid while the set of active ranks shrinks and grows."""
    sim, _, u = turning(subdomains_per_rank=2, ranks_active=1)
    rank = sim.domain.comm.rank
    assert len(sim.domain.subdomains) == (6 if rank == 0 else 0)
    sim.run(steps=3)
    total = sim.evaluate(hc.sum(u))
    if rank:
        with pytest.raises(InputError, match=f"rank {rank} has no subdomain at present"):
            _ = sim[u]
    for active in (3, 2, 1, 3):
        sim.balance(work=1.0, ranks_active=active)
        assert (len(sim.domain.subdomains) > 0) == (rank < active)
        assert sim.evaluate(hc.sum(u)) == total
        assert sim.evaluate(hc.value(u, at=(AT[0], AT[1] - 3))) == pytest.approx(THERE)
        sim.run(steps=20)  # one period
    assert sim.evaluate(hc.value(u, at=(AT[0], AT[1] - 3))) == pytest.approx(THERE)


@pytest.mark.ranks(2)
def test_a_run_balances_at_the_requested_interval(shared_tmp_path: Path) -> None:
    sim, _, u = turning(subdomains_per_rank=4, balance="3 steps")
    store = hc.Output(shared_tmp_path / "u.zarr", fields=[u], every="2 steps")
    sim.run(steps=10, output=store)
    assert len(sim.balances) == 3
    assert all(balance.subdomains == 8 and balance.seconds > 0 for balance in sim.balances)


@pytest.mark.ranks(2)
def test_unsupported_balances_are_rejected() -> None:
    sim, _, _ = turning()
    with pytest.raises(InputError, match="no rank has several subdomains"):
        sim.balance()
    with pytest.raises(InputError, match="ranks_active is 3; expected 1 to 2, the number of ranks"):
        sim.balance(ranks_active=3)
    with pytest.raises(InputError, match="ranks_active is 5; expected 1 to 2"):
        turning(ranks_active=5)
    several, grid, u = turning(subdomains_per_rank=2)
    several[u] = 1.0
    left = grid.x < 0.2
    for work, words in (
        (-1.0 * u, "-1 somewhere"), (hc.where(left, -2.0, 9.0), "-2 somewhere"), (-3.0, "-3; expected"),
        (9.0 * u * hc.where(left, 1e308, 1.0), "inf somewhere"), (u / hc.where(left, 0.0, 1.0), "inf some"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"work is {words}"):
            several.balance(work=work)
    with pytest.raises(InputError, match=r"balance is 0.5, a time, but these equations have no time"):
        turning(balance=0.5)


@pytest.mark.ranks(2)
def test_a_balance_without_measurements_changes_nothing() -> None:
    """A second balance has no measurements, and keeps the result of the first one."""
    sim, grid, _ = turning(subdomains_per_rank=4)
    first = sim.balance(work=1.0 + 50.0 * hc.where(grid.x < 0.2, 1.0, 0.0))
    held = sim.domain.subdomains
    assert first.moved_count > 0
    with pytest.warns(DeprecationWarning, match="moved has been renamed to moved_count"):
        assert first.moved == first.moved_count
    assert sim.balance().moved_count == 0
    assert sim.domain.subdomains == held


@pytest.mark.ranks(2)
def test_a_balance_without_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sim, _, u = turning(subdomains_per_rank=4)
    sim.run(steps=2)
    before, held = sim.checksum(u), sim.domain.subdomains

    def full(*_: Any, **__: Any) -> None:
        raise RunError("no memory")

    with monkeypatch.context() as changed:
        changed.setattr(type(sim.store), "new_storage", full)
        with pytest.raises(RunError, match="no memory"):
            sim.balance(work=1.0, ranks_active=1)
    assert (sim.checksum(u), sim.domain.subdomains, sim.domain.active_ranks) == (before, held, 2)
    sim.run(steps=18)
    assert sim.evaluate(hc.value(u, at=AT)) == pytest.approx(THERE)
    sim.balance(work=1.0, ranks_active=1)
    assert sim.domain.active_ranks == 1


@pytest.mark.ranks(3)
def test_two_ranks_of_three_balance_by_measured_time() -> None:
    """Balancing also works if each rank has one subdomain at the start."""
    sim, _, _ = turning(ranks_active=2)
    sim.run(steps=40)
    domain = sim.domain
    assert all(domain.work[number] > 0.0 for number in domain.subdomains)
    balance = sim.balance()
    assert 1.0 <= balance.before <= 2.0
    assert balance.largest <= 2.0
    assert len(domain.subdomains) == 0 or domain.comm.rank < 2
