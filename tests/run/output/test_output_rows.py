"""Rows of numbers that steps compute, and the times at which rows of output are published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from diffusion import diffusion
from halocline.errors import RunError
from stores import open_content
from suites import cases


def numbers(sim: hc.Simulation) -> dict[str, Any]:
    T = sim.grid.fields["T"]
    return {"total": hc.sum(T * T + 0.3 * T), "most": hc.max(abs(T)), "mixed": hc.sum(T) / hc.max(T)}


VARYING = {"dt": lambda T: 1e-3 / (1.0 + hc.max(abs(T)))}


@cases("options", [{}, VARYING], default=[VARYING], ids=["constant", "varying"])
def test_rows_of_steps_agree_with_rows_of_pauses(tmp_path: Path, options: dict[str, Any]) -> None:
    """A step computes the same numbers as a callback after it, and the callback changes no row."""
    sim, plain = diffusion(**options), diffusion(**options)
    rows: list[tuple[float, ...]] = []

    def look(sim: hc.Simulation) -> None:
        rows.append((sim.time, sim.steps, *(sim.evaluate(e) for e in numbers(sim).values())))

    look(plain)
    plain.run(until=0.0101, every=hc.steps(1), callback=look)
    outputs = [
        hc.Output(
            tmp_path / f"{n}.zarr",
            numbers(sim) if n == 1 else {"most": hc.max(sim.grid.fields["T"])},
            every=hc.steps(n),
        )
        for n in (1, 4)
    ]
    sim.run(until=0.0101, output=outputs)
    assert sim.checksum("T") == plain.checksum("T")
    stored = open_content(tmp_path / "1.zarr")
    columns = [stored[name].values for name in ("time", "step", *numbers(sim))]
    assert len(rows) > 8
    np.testing.assert_array_equal(np.array(columns).T, np.array(rows))
    steps = open_content(tmp_path / "4.zarr")["step"].values
    assert steps.tolist() == list(range(0, sim.steps + 1, 4))


@cases("kind", ["number", "mean"], default=["mean"])
def test_fields_have_the_same_bits_with_any_output(tmp_path: Path, kind: str) -> None:
    """Fields keep their bits, although the output computes a product that the step fuses with a sum."""

    def after(T: hc.Field, E: hc.Field) -> None:
        E.set(0.3 * T * E + T)

    def checksums(*outputs: str) -> list[str]:
        grid = hc.Grid((12, 8), periodic=True)
        T, E = grid.field("T"), grid.field("E")
        options = {"scheme": hc.RK2(), "dt": 1e-3, "after_step": after}
        sim = hc.Simulation(grid, lambda T: {T: 0.1 * hc.laplacian(T)}, **options)
        sim[T], sim[E] = np.random.default_rng(3).standard_normal((2, 12, 8))
        product = 0.3 * T * E
        numbers = {"number": hc.sum(product), "mean": hc.time_mean(product)}
        sim.run(
            steps=6,
            output=[hc.Output(tmp_path / f"{o}.zarr", {"a": numbers[o]}, every=hc.steps(1)) for o in outputs],
        )
        return [sim.checksum(T), sim.checksum(E)]

    assert checksums(kind) == checksums()


@cases("end", ["callback", "stop", "nan", "interrupt"], default=["nan", "interrupt"])
def test_all_rows_are_on_disk_when_a_run_ends_early(tmp_path: Path, end: str) -> None:
    def failing(sim: hc.Simulation) -> None:
        if sim.steps == 8 and end in ("callback", "interrupt"):
            raise ValueError("mine") if end == "callback" else KeyboardInterrupt

    def after(T: hc.Field, step: hc.Scalar) -> None:
        if end == "stop":
            hc.stop(step >= 8, "enough")
        elif end == "nan":
            T.set(T + hc.where(step >= 8, 1e308, 0.0) * 1e308)
        else:
            T.set(T)

    sim = diffusion(after_step=after)
    T = sim.grid.fields["T"]
    outputs = [
        hc.Output(tmp_path / "n.zarr", {"most": hc.max(abs(T))}, every=hc.steps(1)),
        hc.Output(tmp_path / "f.zarr", [T], every=hc.steps(1)),
    ]
    error = {"callback": ValueError, "interrupt": KeyboardInterrupt, "nan": RunError}.get(end)
    run = {"steps": 50, "every": hc.steps(1), "callback": failing, "output": outputs}
    if error is None:
        assert sim.run(**run).reason == "enough"
    else:
        with pytest.raises(error):
            sim.run(**run)
    least = 7 if end == "nan" else 8
    for name in ("n", "f"):
        steps = open_content(tmp_path / f"{name}.zarr")["step"].values.tolist()
        assert steps == list(range(len(steps)))
        assert len(steps) >= least + 1
        assert end == "nan" or len(steps) == 9


def test_the_search_for_a_failed_step_adds_no_rows(tmp_path: Path) -> None:
    """The search repeats steps whose rows are already stored."""

    def after(T: hc.Field, step: hc.Scalar) -> None:
        T.set(T + hc.where(step >= 8, 1e308, 0.0) * 1e308)

    def terms(T: hc.Field, kappa: Any) -> Any:
        return {T: {"diffusion": kappa * hc.laplacian(T)}}

    sim = diffusion(after_step=after, terms=terms)
    most = {"most": hc.max(abs(sim.grid.fields["T"]))}
    with pytest.raises(RunError, match="diffusion of T"):
        sim.run(steps=50, output=hc.Output(tmp_path / "a.zarr", most, every=hc.steps(1)))
    steps = open_content(tmp_path / "a.zarr")["step"].values.tolist()
    assert steps == list(range(len(steps)))
    assert len(steps) > 8


@pytest.mark.ranks(1, 2, long=(1,))
def test_rows_after_a_restart_agree_with_an_uninterrupted_run(shared_tmp_path: Path) -> None:
    def output(sim: hc.Simulation, name: str) -> list[hc.Output]:
        T = sim.grid.fields["T"]
        contents = {"total": hc.sum(T * T), "most": hc.max(T)}
        return [
            hc.Output(shared_tmp_path / f"{name}-numbers.zarr", contents, every=hc.steps(1)),
            hc.Output(shared_tmp_path / f"{name}-third.zarr", contents, every=hc.steps(3)),
            hc.Output(shared_tmp_path / f"{name}-line.zarr", [T], every=hc.steps(2), region=hc.Slice(x=0.5)),
        ]

    whole = diffusion()
    whole.run(steps=20, output=output(whole, "whole"))
    interrupted = diffusion()
    saved = hc.Checkpoint(shared_tmp_path / "c", every=hc.steps(7))
    interrupted.run(steps=11, output=output(interrupted, "parts"), checkpoint=saved)
    interrupted.run(steps=4, output=output(interrupted, "parts"))  # the restarted run writes these rows again
    again = diffusion()
    again.resume(shared_tmp_path / "c")
    assert again.steps == 11
    again.run(steps=9, output=output(again, "parts"))
    again.domain.comm.barrier()
    for kind in ("numbers", "third", "line"):
        one, other = (open_content(shared_tmp_path / f"{name}-{kind}.zarr") for name in ("whole", "parts"))
        assert {*one} == {*other}
        assert len(one["step"]) > 6
        for name in (*one, *one.coords):
            np.testing.assert_array_equal(one[name].values, other[name].values)
        names = sorted(
            path.relative_to(shared_tmp_path / f"whole-{kind}.zarr")
            for path in (shared_tmp_path / f"whole-{kind}.zarr").glob("*/c.*")
        )
        assert len(names) > 2
        for name in names:
            files_of = [shared_tmp_path / f"{run}-{kind}.zarr" / name for run in ("whole", "parts")]
            assert files_of[0].read_bytes() == files_of[1].read_bytes()
