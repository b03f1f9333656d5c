"""Studies of cases: what is made of measurements, and the commands with few small runs."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import preloaded
from halocline.compile.compiler import arranged, compile_program
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Statement, roots
from halocline.errors import InputError
from halocline.explanation.explain import explain_program
from halocline.explanation.text import lines
from halocline.plan.traffic import Traffic
from halocline.problems.problem import Problem
from halocline.run.measurements import energy
from halocline.run.measurements.energy import Counter, EnergyMeter, gpus, processors
from halocline.run.measurements.peak import multiply_add_peak
from halocline.run.ranks.communicator import Communicator
from halocline.study.measurement import Measurement
from halocline.study.measuring.command import Command, as_csv, measure
from halocline.study.reporting.columns import SAME_BITS
from halocline.study.reporting.page import facts_of_measurements, page
from halocline.study.reporting.quantities import nanoseconds, size
from halocline.study.reporting.report import Contents, Group, Report, report
from halocline.study.reporting.theory import Exchanged, Theory, exchanged_by
from halocline.study.studies.orders import ORDERS
from halocline.study.studies.parts import PARTS, PARTS_OF_A_STEP
from halocline.study.studies.strong import STEPS
from halocline.study.studies.weak import WEAK
from hang import HANG


def halocline(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return preloaded.halocline(*line.split(), cwd=cwd, env={**os.environ, "COLUMNS": "120"})


def made(ns: float, ranks: int = 1, threads: int = 1, **other: Any) -> dict[str, Any]:
    """A measurement of the benchmark on 256³ cells, in ns a cell and step."""
    n = other.pop("n", 256)
    shape = other.pop("shape", [n] * 3)
    cells = shape[0] * shape[1] * shape[2]
    record = {
        "case": "mhd-benchmark", "n": n, "shape": shape, "cells": cells, "steps": 10, "warm_up": 2,
        "order": 6, "scheme": "rk3", "halo": "read", "only": None, "seconds": 8e-9 * ns * cells,
        "ns_per_cell_step": ns, "flops_per_cell_step": 2441.0, "bytes_per_cell_step": 704.0,
        "share_of_bound": 0.25,
        "share_of_peak": 0.2, "joules_per_cell_step": None, "joules_of": [], "checksum": "0" * 32,
        "checksums": {}, "diagnostics": {"u_rms": 1.0}, "series": [], "parameters": {"nu": 1.0},
        "ranks": ranks, "threads": threads, "cores_or_devices": ranks * threads,
        "devices": [], "memory_bytes": 2**30, "device": "cpu",
        "decomposition": "optimal", "patch": None, "settings": "nu=1", "command": "halocline run",
        "started": "2020-01-01T00:00:00+00:00", "times": [1.0],
        "environment": {"OMP_PROC_BIND": None, "OMP_PLACES": None},
        "machine": {
            "host": "h", "system": "s", "cpu": "c", "cores": 2, "hardware_threads": 2, "numa_nodes": 1,
            "simd_bits": 512, "memory_bytes": 10**10, "caches": [], "compiler": "g++",
            "compiler_version": "12", "mpi_library": "m", "mpi_version": "v", "commit": None,
        },
    }  # fmt: skip
    return {**record, **other}


def sides(bytes_of_a_cell: int = 8) -> Exchanged:
    """One layer of one number on each side of a box."""
    return Exchanged(
        Traffic(
            tuple(
                (tuple(sign if a == axis else 0 for a in range(3)), bytes_of_a_cell)
                for axis in range(3)
                for sign in (-1, 1)
            ),
            ((1, 1),) * 3,
        ),
        (1, 1, 1),
        (True, True, True),
    )


def shown(contents: Contents, found: list[dict[str, Any]], theory: Theory | None = None) -> Report:
    """What a part of a study shows."""
    return report((contents,), Group(found, theory))


# -- the formula ---------------------------------------------------------------------------------------


def test_the_formula_is_the_longer_of_work_and_exchange():
    theory = Theory({6: sides()}, per_byte=1e-9)
    one = made(2.2)
    # 8 subdomains of 128³: six sides in and out
    exchange = 2 * 6 * 128**2 * 8 * 1e-9
    found = [one, made(1.0, ranks=8)]
    assert theory.ns(found[1], found[0]) == pytest.approx(max(2.2 / 8, 1e9 * exchange / 256**3))
    slow = Theory({6: sides()}, per_byte=1e-6)
    assert slow.ns(found[1], one) == pytest.approx(1e12 * exchange / 256**3)
    assert slow.ns(one, one) == pytest.approx(2.2)  # nothing travels between subdomains


def test_the_pace_of_the_exchange_is_the_one_that_was_measured():
    exchange = made(0.3, ranks=2, only="exchange")
    others = [made(9.0, ranks=4, only="exchange"), made(0.5, ranks=2, only="exchange", halo="uniform")]
    small = made(7.0, ranks=2, only="exchange", n=32)
    theory = Theory.of({6: sides()}, [small, *others, exchange, made(0.1, only="exchange")])
    assert theory.measured_on == 2
    # so that with no work it gives back that time
    assert theory.ns(made(1.0, ranks=2), made(1e-12)) == pytest.approx(0.3)
    assert Theory.of({6: sides()}, [made(0.1, only="exchange")]).per_byte is None


def test_without_a_pace_of_the_exchange_the_formula_is_silent():
    theory = Theory({6: sides()}, None)
    found = [made(2.0), made(1.5, ranks=2)]
    assert theory.ns(found[1], found[0]) is None
    assert theory.ns(found[0], found[0]) == pytest.approx(2.0)
    table, *_ = shown(STEPS, found, theory).tables
    assert [row[4] for row in table.rows] == ["2", ""]


def test_what_travels_in_a_step_of_the_benchmark():
    """Three sub-steps; eight fields on sides, two components of u and of A on each edge, no corners."""
    own = exchanged_by(Problem("mhd-benchmark", [16]))
    weights = dict(own.traffic.weights)
    assert {sum(map(abs, direction)) for direction in weights} == {1, 2}
    assert len(weights) == 6 + 12
    for direction, weight in weights.items():
        assert weight == 3 * 8 * (8 * 3 if sum(map(abs, direction)) == 1 else 4 * 3 * 3)
    with pytest.raises(InputError, match="cannot be cut into 100000 subdomains"):
        own.check((16, 16, 16), 100000, "optimal")


# -- tables --------------------------------------------------------------------------------------------


def strong() -> list[dict[str, Any]]:
    return [made(8.0), made(5.0, ranks=2), made(4.0, threads=2), made(8.0, n=512), made(4.4, ranks=2, n=512)]


def test_strong_scaling_stands_beside_the_paper():
    theory = Theory({6: sides()}, 1e-12, 2)
    small, large, summary, against = shown(STEPS, strong(), theory).tables
    assert small.heading.startswith("256³: 16,777,216 cells, mhd-benchmark, order 6, rk3")
    assert [row[:6] for row in small.rows] == [
        ("1 rank of 1 thread", "1", "8", "8", "8", "100%"),
        ("1 rank of 2 threads", "2", "4", "4", "4", "100%"),  # 1/π is of a rank
        ("2 ranks of 1 thread", "2", "5", "4", "4", "80%"),
    ]
    assert [row[6] for row in small.rows] == ["100%", "100%", "80%"]
    assert len(large.rows) == 2
    assert summary.rows[0] == ("256³", "here", "2 cores", "8", "4", "100%", "100%")
    assert summary.muted == (2, 3, 4)
    assert [(row[0], row[2], row[5], row[6]) for row in summary.rows[2:]] == [
        ("256³", "64 V100", "18%", "50%"),
        ("512³", "64 V100", "43%", "59%"),
        ("1024³", "64 V100", "87%", "87%"),
    ]
    # the Pencil Code: 44 to 53 times 0.53 ns on a node
    assert against.title == "Against a CPU solver"
    assert against.rows[0] == ("256³", "here", "2 cores", "4", "5.8–7", "")
    assert [row[1:4] for row in against.rows[2:4]] == [
        ("paper", "4 V100", "0.53"),
        ("Pencil Code", "40 cores", "23.3–28.1"),
    ]
    assert "18–53 times" in against.note
    (*_, own) = shown(STEPS, [made(150.0, n=64), made(80.0, n=64, ranks=2)], theory).tables
    assert own.rows[0][4:] == ("0.29–0.35", "8.3")  # 1330 ns over two times 80
    # efficiency is t_1 / (p t_p)
    assert float(summary.rows[2][4]) == pytest.approx(2.2 / 64 / 0.18, rel=0.01)
    said = shown(STEPS, strong(), theory).said
    assert said[1] == (
        "512³: fastest with 2 ranks of 1 thread, 4.4 ns a cell and step: 1.82 times as fast as 1 rank of "
        "1 thread, 91% of the speed by the formula."
    )


def test_other_problems_are_not_compared_with_the_paper():
    theory = Theory({4: sides(), 6: sides()}, 1e-12, 2)
    for other in ({"order": 4}, {"case": "convection"}):
        assert shown(STEPS, [made(8.0, **other)], theory).tables[-1].muted == ()


def same_bits(measurements: list[Measurement]) -> list[str]:
    """Return the sentences on whether runs of the same problem have the same bits."""
    return list(SAME_BITS.said(Group(measurements)))


def test_equal_problems_must_have_equal_bits():
    same, other = made(1.0), made(1.0, ranks=2, checksum="1" * 32)
    assert same_bits([same, made(2.0, ranks=2)])[0].endswith(f"all with the same bits: checksum {'0' * 32}.")
    assert same_bits([same, other]) == [
        "256³, order 6, 10 steps: 2 runs gave 2 different results; please report this as a bug."
    ]
    # another order or size is another problem; parts have no result
    assert same_bits([same, made(1.0, order=4, checksum="1"), made(1.0, n=64, checksum="2")]) == []
    assert same_bits([same, made(1.0, only="compute", checksum=None)]) == []


def parts_of(
    ranks: int, whole: float, compute: float, exchange: float, corners: float
) -> list[dict[str, Any]]:
    kinds = [(None, "read"), ("compute", "read"), ("exchange", "read"), ("exchange", "uniform")]
    times = (whole, compute, exchange, corners)
    return [made(t, ranks=ranks, only=o, halo=h) for t, (o, h) in zip(times, kinds, strict=True)]


def test_parts_of_a_step():
    found = [*parts_of(1, 8.0, 8.0, 0.5, 0.5), *parts_of(2, 6.0, 4.0, 5.0, 5.5)]
    (table,) = shown(PARTS_OF_A_STEP, found).tables
    assert table.rows[0][2:] == ("8", "8", "0.5", "0.5", "+0%", "+0%")
    assert table.rows[1][2:] == ("6", "4", "5", "5.5", "+20%", "+10%")
    assert table.rows[2][-2:] == ("15% to 20%", "0.03% to 10%")
    assert table.muted == (2,)
    assert shown(PARTS_OF_A_STEP, found).said == [
        "256³ on 2 ranks of 1 thread: exchange alone takes longer (the exchange 1.25 times as long as "
        "computing), and a step 20% more than that."
    ]
    hidden = parts_of(2, 3.9, 4.0, 2.0, 2.0)
    assert shown(PARTS_OF_A_STEP, hidden).said[0].endswith("and a step no more than that.")


def test_orders():
    theory = Theory({2: sides(), 8: sides(32)}, 1e-12)
    found = [made(2.0, order=2), made(1.0, 2, order=2), made(4.0, order=8), made(4.0, 2, order=8)]
    (table,) = shown(ORDERS, found, theory).tables
    assert [row[0] for row in table.rows] == ["2", "8"]
    assert [row[2] for row in table.rows] == ["48", "192"]
    assert [row[4].split() for row in table.rows] == [["1", "100%"], ["4", "50%"]]
    assert shown(ORDERS, found, theory).said == ["256³ on 2: efficiency 100% at order 2, 50% at order 8."]


def weak() -> list[dict[str, Any]]:
    return [
        made(8.0, n=64),
        made(5.0, 2, n=64, shape=[128, 64, 64]),
        made(2.5, 4, n=64, shape=[128, 128, 64]),
    ]


def test_weak_scaling():
    (table,) = shown(WEAK, weak(), Theory({6: sides()}, 1e-12, 2)).tables
    assert [row[:5] for row in table.rows] == [
        ("1 rank of 1 thread", "64³", "8", "8", "100%"),
        ("2 ranks of 1 thread", "128 x 64 x 64", "10", "5", "80%"),
        ("4 ranks of 1 thread", "128 x 128 x 64", "10", "2.5", "80%"),
    ]
    assert shown(WEAK, weak()).said == [
        "64 a rank: 4 ranks of 1 thread keep 80% of the efficiency of 1 rank of 1 thread."
    ]


def test_energy_is_told_where_there_is_any():
    theory = Theory({6: sides()}, 1e-12, 2)
    assert "energy.png" not in shown(STEPS, strong(), theory).figures()
    known = [made(8.0, joules_per_cell_step=2e-6, joules_of=["processors"]), made(4.0, ranks=2)]
    table = shown(STEPS, known, theory).tables[0]
    assert [row[-1] for row in table.rows] == ["0.5", ""]
    assert len(table.heads) == len(strong_heads := shown(STEPS, strong(), theory).tables[0].heads) + 1
    assert "million cells\na joule" not in strong_heads
    assert "energy.png" in shown(STEPS, known, theory).figures()
    assert shown(WEAK, known, theory).tables[0].heads[-1] == "million cells\na joule"


def test_numbers_as_text():
    assert [nanoseconds(t) for t in (0.01234, 1.236, 99.96, 1234.5)] == ["0.0123", "1.24", "100", "1,234"]
    assert [size({"shape": s}) for s in ([64], [8, 8], [8, 8, 8], [8, 4, 4])] == [
        "64",
        "8²",
        "8³",
        "8 x 4 x 4",
    ]


def curves(ax: Any) -> list[tuple[list[float], list[float]]]:
    """Return the abscissas and ordinates of all lines of a panel."""
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines]


def test_a_page_holds_all_of_a_study():
    theory = Theory({6: sides(), 4: sides()}, 1e-12, 2)
    found = [*parts_of(1, 8.0, 8.0, 0.5, 0.5), *parts_of(2, 6.0, 4.0, 5.0, 5.5), made(3.0, order=4)]
    whole = [m for m in found if m["only"] is None and m["order"] == 6]
    figures = [
        shown(STEPS, whole, theory).figures()["strong.png"],
        shown(PARTS_OF_A_STEP, found).figures()["parts.png"],
        shown(ORDERS, found, theory).figures()["orders.png"],
        shown(WEAK, weak()).figures()["weak.png"],
    ]
    for figure, panels in zip(figures, (2, 1, 1, 1), strict=True):
        assert len(figure.axes) == panels
        for ax in figure.axes:
            assert ax.get_xlabel() == "cores"
            assert ax.lines
        assert "ns" in figure.axes[0].get_ylabel()
    assert curves(figures[0].axes[0]) == [([1, 2], [8.0, 6.0]), ([1, 2], [8.0, 4.0])]  # measured, ideal
    assert curves(figures[1].axes[0]) == [([1, 2], ys) for ys in ([8, 6], [8, 4], [0.5, 5], [0.5, 5.5])]
    assert [ys for _, ys in curves(figures[2].axes[0])] == [[3], [3], [8, 6], [8, 4]]  # orders 4 and 6
    assert curves(figures[3].axes[0]) == [([1, 2, 4], [8, 10, 10]), ([1, 2, 4], [8, 8, 8])]
    assert [text.get_text() for text in figures[1].legends[0].get_texts()] == list(PARTS)
    texts = {"title": "Strong", "lead": "", "command": "halocline"}
    text = page(Report([], []), figures, [], facts=facts_of_measurements(found), **texts)
    assert text.count("<svg") == 4
    assert "scheme rk3, steps 10, warm up 2, settings nu=1" in text


def test_a_line_of_a_table_holds_no_lists():
    rows = list(csv.DictReader(io.StringIO(as_csv([made(1.0), made(2.0, ranks=2, checksum=None)]))))
    assert [(row["shape"], row["ns_per_cell_step"], row["checksum"]) for row in rows] == [
        ("256x256x256", "1.0", "0" * 32),
        ("256x256x256", "2.0", ""),
    ]
    assert not {"series", "parameters", "diagnostics"} & set(rows[0])


# -- energy and peak -----------------------------------------------------------------------------------


def test_counters_that_begin_anew():
    assert Counter(100, 10**9).until(Counter(2_000_100, 10**9), 0.001) == pytest.approx(2.0)
    assert Counter(999_000_000, 10**9).until(Counter(1_000_000, 10**9), 0.1) == pytest.approx(2.0)
    assert Counter(0, 10**9).until(Counter(5, 10**9), 2.0) is None  # as much as 2000 J may have passed


def test_counters_that_begin_anew_during_a_run_are_read_in_time(monkeypatch):
    readings = []

    def read() -> list[Counter]:  # one watt, on a counter that begins anew each 0.04 s
        readings.append(15_000 * len(readings))
        return [Counter(readings[-1] % 40_000, 40_000)]

    monkeypatch.setattr(energy, "MOST_POWER", 1.0)
    monkeypatch.setattr(energy, "processors", read)
    monkeypatch.setattr(energy, "perf_counter", lambda: 0.015 * len(readings))  # 15 ms from one to the next
    meter = EnergyMeter(Communicator())
    with meter.on():
        deadline = time.monotonic() + HANG
        while len(readings) < 12 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert meter.total is not None
    assert len(readings) >= 12
    assert meter.total.joules == pytest.approx(1e-6 * readings[-1])


def zone(folder: Path, number: int, name: str, energy: int | None) -> None:
    (folder / f"intel-rapl:{number}").mkdir()
    (folder / f"intel-rapl:{number}" / "name").write_text(f"{name}\n")
    (folder / f"intel-rapl:{number}" / "max_energy_range_uj").write_text("262143328850\n")
    if energy is not None:
        (folder / f"intel-rapl:{number}" / "energy_uj").write_text(f"{energy}\n")


def test_processors_are_read_once_each(tmp_path):
    zone(tmp_path, 0, "package-0", 5)
    zone(tmp_path, 1, "package-1", 7)
    zone(tmp_path, 2, "psys", 100)  # of the whole system: the packages again
    (tmp_path / "intel-rapl:0:0").mkdir()  # cores of a package
    assert [each.microjoules for each in processors(tmp_path)] == [5, 7]
    zone(tmp_path, 3, "package-2", None)
    assert processors(tmp_path) == []  # a part would be taken for the whole
    assert processors(tmp_path / "nothing") == []


class Nvml(SimpleNamespace):
    """Two GPUs."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__(energies={"GPU-a": 1000, "GPU-b": 4000})

    nvmlInit = nvmlShutdown = staticmethod(lambda: None)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in self.energies:
            raise self.NVMLError
        return uuid

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        self.energies[handle] += 500
        return self.energies[handle]


def test_energy_of_gpus(monkeypatch):
    assert [each.microjoules for each in gpus(["GPU-b"], Nvml())] == [4_500_000]
    assert gpus(["MIG-c"], Nvml()) == []
    monkeypatch.setattr(energy, "processors", lambda: [])
    device = SimpleNamespace(interface="cuda", identity="GPU-a")
    meter = EnergyMeter(Communicator(), [device, device], Nvml())
    with meter.on():
        pass
    assert meter.total == energy.Energy(0.5, ("devices",))
    without = EnergyMeter(Communicator(), [SimpleNamespace(interface="opencl", identity="x")])
    with without.on():
        pass
    assert without.total is None


def test_a_run_tells_its_energy_where_the_host_does(monkeypatch):
    readings = itertools.count(step=3_000_000)
    monkeypatch.setattr(energy, "processors", lambda: [Counter(next(readings), 2**40)])
    record = Problem("alfven-decay", [16]).run(steps=6, every=2, warm_up=2, threads=1).record
    assert record.joules_of == ("processors",)
    assert record.joules_per_cell_step == pytest.approx(2 * 3.0 / (16 * 4))  # two pieces were timed
    monkeypatch.setattr(energy, "processors", lambda: [])
    record = Problem("alfven-decay", [16]).run(steps=2, threads=1).record
    assert (record.joules_per_cell_step, record.joules_of) == (None, ())


def test_the_peak_of_a_core():
    one = multiply_add_peak(Communicator(), 1)
    assert one is not None
    assert 1e9 < one < 1e12
    assert multiply_add_peak(Communicator(), 4) > 1.5 * one  # of four threads; other work slows it


# -- runs ----------------------------------------------------------------------------------------------


def test_steps_that_warm_up_change_nothing_but_the_clock():
    cold, warm = (Problem("alfven-decay", [16]).run(steps=5, warm_up=w, threads=1).record for w in (0, 3))
    assert (warm.checksum, warm.steps, warm.series) == (cold.checksum, 5, cold.series)
    assert warm.warm_up == 3
    each = Problem("alfven-decay", [16]).run(steps=5, warm_up=3, every=2, threads=1).record
    assert [at["step"] for at in each.series] == [0, 2, 4, 5]
    # the clock stops before the end of a run that is shorter than expected
    short = Problem("alfven-decay", [16]).run(until=1e-3, warm_up=3, threads=1).record
    assert (short.steps, short.warm_up, short.ns_per_cell_step) == (1, 1, None)
    assert short.series[-1]["time"] == 1e-3


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"only": "waiting"}, "compute, exchange"),
        ({"only": "compute", "steps": 0}, "steps is 0"),
        (
            {"only": "compute", "steps": 2, "warm_up": 2},
            "warm_up is 2; expected a whole number from 0, fewer",
        ),
    ],
)
def test_parts_that_cannot_be_timed(how, words):
    with pytest.raises(InputError, match=re.escape(words)):
        Problem("alfven-decay", [16]).run(**how)


def test_parts_of_a_run_tell_times_and_nothing_else(tmp_path):
    run = "run alfven-decay --n 24 --steps 4 --ranks 2 --threads 1 --warm-up 1 --json r.json"
    nothing = ("time", "time_step", "limiter", "checksum", "checksums", "diagnostics", "series")
    for only, bound in (("compute", True), ("exchange", False)):
        found = halocline(f"{run} --only {only}", tmp_path)
        assert found.returncode == 0, found.stderr
        told = json.loads((tmp_path / "r.json").read_text())
        assert (told["only"], told["halo"], told["steps"], told["warm_up"]) == (only, "read", 4, 1)
        assert told["ns_per_cell_step"] > 0
        assert [told[name] for name in nothing] == [None] * len(nothing)
        assert (told["share_of_bound"] is not None, told["share_of_peak"] is not None) == (bound, bound)
        assert re.search(rf"^timed +.*{'comput' if bound else 'exchange'}.* alone, no ", found.stdout, re.M)
        assert "checksum" not in found.stdout
        assert "diagnostics" not in found.stdout


def test_all_schemes_run():
    times = {s: Problem("alfven-decay", [16], {"dt": 0.01}, scheme=s).run(steps=2, threads=1) for s in
             ("euler", "rk2", "rk3", "rk4", "ssprk3")}  # fmt: skip
    ends = {scheme: result.record.diagnostics["u_rms"] for scheme, result in times.items()}
    assert len({result.record.checksum for result in times.values()}) == 5
    assert ends["rk3"] == pytest.approx(ends["rk4"], rel=1e-7)
    assert ends["rk3"] == pytest.approx(ends["ssprk3"], rel=1e-9)


# -- the program and its explanation -------------------------------------------------------------------


def test_the_program_that_is_explained_is_the_one_that_runs():
    ready, again = Problem("alfven-decay", [16]), Problem("alfven-decay", [16])
    told = compile_program(ready.program, ready.grid)
    sim = again.run(steps=0, device="cpu").simulation
    assert told == sim.schedule


def operations(kernel: Kernel, nest: Statement) -> int:
    """Floating-point operations of what a loop computes for a cell, each value once."""
    varies: dict[int, bool] = {}  # whether a value is made of fields, so that each cell has its own

    def visit(number: int) -> int:
        if number in varies:
            return 0
        value = kernel.values[number]
        below = sum(visit(arg) for arg in value.args)
        varies[number] = value.op == "load" or any(varies[arg] for arg in value.args)
        own = {"fma": 2, "neg": 0}.get(value.op, 1) if value.args and varies[number] else 0
        return below + own

    return sum(map(visit, roots((nest,))))


def test_edges_that_travel_are_those_of_the_equations():
    """Mixed derivatives: of u by ∇∇·u and of A by ∇∇·A, each component along its own axis and another."""
    ready = Problem("mhd-benchmark", [32])
    told = explain_program(ready.program, ready.grid, ranks=8)
    edges = {f"{a}{s}{b}{t}" for a, b in ("xy", "xz", "yz") for s in "-+" for t in "-+"}
    corners = {f"x{s}y{t}z{u}" for s in "-+" for t in "-+" for u in "-+"}
    for step in told.loop:
        for halo in step.halos:
            places = {place for place, _ in halo.width}
            assert not places & corners
            axis = halo.field[-1] if halo.field[:2] in ("u_", "A_") else None
            assert places & edges == {edge for edge in edges if axis is not None and axis in edge}
            assert set(halo.travels) == places
            assert {width for _, width in halo.width} == {3}
    assert {route["bytes"] for route in told.routes} == {3 * 8 * 8 * 3 * 16 * 16, 3 * 8 * 4 * 9 * 16}
    # 80 arrays: the register is not read in the first stage, and not written in the last
    assert told.bytes_per_cell == 640
    kernels = [nests.kernel for nests in arranged(ready.program, ready.grid).nests.values()]
    assert told.flops_per_cell == sum(operations(k, nest) for k in kernels for nest in k.body)
    text = "\n".join(lines(told, None))
    assert "u_x, A_x: each reads 3 layers on x-, x+" in text
    # 24 arrays instead of 16, and why
    assert text.count("  (next ") == 8
    assert "second buffer, its next values, where it is written while neighbours are still read" in text
    assert "start1 = t; t = t + (0.333333 * dt)" in text  # the name of the time at the start of a step
    assert "'" not in text[text.index("Operations") : text.index("One pass")]


def test_cases_are_explained_by_the_command(tmp_path):
    found = halocline("explain mhd-benchmark --n 16 --ranks 8 --order 2 --json e.json", tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("mhd-benchmark, 16 x 16 x 16 cells, order 2, rk3; a pass is a step\n")
    assert "8 ranks of 1 thread: 2 x 2 x 2 subdomains, optimal" in found.stdout
    told = json.loads((tmp_path / "e.json").read_text())
    assert (told["case"], told["shape"], told["order"], told["ranks"]) == ("mhd-benchmark", [16] * 3, 2, 8)
    assert told["parameters"]["nu"] == 5e-3
    assert told["pass"]["sweeps"] == 3


# -- studies -------------------------------------------------------------------------------------------


def test_a_measurement_is_what_the_command_gives():
    case = Command("run", "alfven-decay", {"order": 4, "steps": 3}, ("nu=0.1", "eta=0.1"))
    found = measure(case, (16,), ranks=1, threads=1, repeat=2)
    assert found["command"] == (
        "halocline run alfven-decay --n 16 --order 4 --steps 3 --ranks 1 --threads 1 --set nu=0.1 "
        "--set eta=0.1"
    )
    assert (found["shape"], found["parameters"]["nu"], found["settings"]) == ([16], 0.1, "nu=0.1 eta=0.1")
    assert len(found["times"]) == 2
    json.dumps(found, allow_nan=False)


def test_study_of_strong_scaling(tmp_path):
    found = halocline(
        "study strong alfven-decay --n 24 --ranks 1,2 --steps 3 --orders 2 --json s.json --csv s.csv "
        "--html s.html",
        tmp_path,
    )
    assert found.returncode == 0, found.stderr
    told = json.loads((tmp_path / "s.json").read_text())
    kinds = [(m["ranks"], m["order"], m["only"]) for m in told["measurements"]]
    assert kinds == [(1, 6, None), (1, 2, None), (2, 6, None), (2, 2, None), (2, 6, "exchange")]
    assert told["theory"]["measured_on"] == 2
    assert told["theory"]["per_byte"] > 0
    whole = [m for m in told["measurements"] if m["only"] is None]
    assert {(m["steps"], m["warm_up"]) for m in whole} == {(3, 2)}
    for order in (2, 6):
        assert len({m["checksum"] for m in whole if m["order"] == order}) == 1
        assert f"24, order {order}, 3 steps: 2 runs, all with the same bits" in found.stdout
    for title in ("Time of a cell and step", "On the most cores or devices", "Orders"):
        assert f"\n{title}\n" in found.stdout
    assert "paper" not in found.stdout
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 6
    page = (tmp_path / "s.html").read_text()
    assert page.count("<svg") == 2
    assert "Strong scaling: alfven-decay" in page


@pytest.mark.long
def test_study_of_the_parts_of_a_step(tmp_path):
    found = halocline("study strong alfven-decay --n 24 --ranks 2 --steps 2 --parts --pictures p", tmp_path)
    assert found.returncode == 0, found.stderr
    runs = re.findall(r"^\[\d/4\] 24 cells, order 6, ranks 2, threads 1(.*)$", found.stderr, re.MULTILINE)
    assert runs == ["", ", compute alone", ", exchange alone", ", exchange alone, with corners"]
    assert "\nA step and its parts\n" in found.stdout
    assert {path.name for path in (tmp_path / "p").iterdir()} == {"strong.png", "parts.png"}


@pytest.mark.long
def test_study_of_the_parts_of_the_benchmark(tmp_path):
    found = halocline(
        "study strong mhd-benchmark --n 16 --ranks 2 --steps 2 --parts --orders 2,6 --json s.json", tmp_path
    )
    assert found.returncode == 0, found.stderr
    told = json.loads((tmp_path / "s.json").read_text())["measurements"]
    assert {(m["order"], m["only"], m["halo"]) for m in told} == {
        (2, None, "read"), (6, None, "read"), (6, "compute", "read"), (6, "exchange", "read"),
        (6, "exchange", "uniform"),
    }  # fmt: skip
    assert "\nA step and its parts\n" in found.stdout
    for order in (2, 6):
        ready = Problem("mhd-benchmark", [16], order=order)
        moved = [
            sum(r["bytes"] for r in explain_program(ready.program, ready.grid, ranks=2, halo=halo).routes)
            for halo in ("read", "uniform")
        ]
        assert moved[0] < moved[1], order


def test_study_of_weak_scaling(tmp_path):
    found = halocline(
        "study weak alfven-decay --n 16 --ranks 1,2 --steps 2 --json w.json --pictures p", tmp_path
    )
    assert found.returncode == 0, found.stderr
    told = json.loads((tmp_path / "w.json").read_text())["measurements"]
    assert [(m["n"], m["shape"], m["ranks"], m["only"]) for m in told] == [
        (16, [16], 1, None),
        (16, [32], 2, None),
        (16, [32], 2, "exchange"),
    ]
    assert "2 ranks of 1 thread  32" in found.stdout
    assert [path.name for path in (tmp_path / "p").iterdir()] == ["weak.png"]


WRONG = [
    ("study strong mhd-benchmrk", "case 'mhd-benchmrk' is unknown (did you mean 'mhd-benchmark'?)"),
    ("study weak poison", "case 'poison' is unknown (did you mean 'poisson'?); known: mhd-benchmark"),
    ("explain poison --n 8", "case 'poison' is unknown (did you mean 'poisson'?)"),
    ("study strong mhd-benchmark --n 16,x", "--n 16,x"),
    ("study strong alfven-decay --n 4 --ranks 1,2", "the grid cannot be cut into 2 subdomains"),
    ("study strong alfven-decay --ranks 0", "--ranks 0"),
    ("study strong alfven-decay --threads 1,1", "twice"),
    ("study strong alfven-decay --orders 2,3", "order 3 is not an order of central differences"),
    ("study strong alfven-decay --scheme rk5", "scheme 'rk5'"),
    ("study strong alfven-decay --set nuu=1", "no parameter 'nuu' (did you mean 'nu'?)"),
    ("study strong alfven-decay --steps 0", "'--steps': 0; expected a whole number from 1"),
    ("study weak alfven-decay --steps 4 --warm-up 4", "--warm-up 4: expected a whole number from 0, fewer"),
    ("study weak alfven-decay --repeat 0", "'--repeat': 0; expected a whole number from 1"),
    ("study weak alfven-decay --html /proc/halocline/w.html", "cannot write /proc/halocline/w.html"),
    ("explain mhd-benchmark --ranks 0", "'--ranks': 0; expected a whole number from 1 to 10,000,000"),
    ("explain mhd-benchmark --n 8 --ranks 2 --rank 2", "rank 2 of 2"),
    ("explain mhd-benchmark --set nu", "expected nu=NUMBER"),
    ("run alfven-decay --only waiting", "--only waiting: expected compute or exchange"),
    ("run alfven-decay --only compute --csv a.csv", "--csv a.csv: with --only compute"),
    ("run alfven-decay --only exchange --until 1", "--until 1.0: with --only exchange"),
    ("run alfven-decay --only exchange --every 1", "leave --every out"),
    ("run alfven-decay --only exchange --pictures p", "leave --pictures out"),
    ("run alfven-decay --steps 3 --warm-up 3", "warm_up is 3"),
    ("run alfven-decay --warm-up -1", "'--warm-up': -1; expected a whole number from 0"),
]


@pytest.mark.parametrize(("line", "words"), WRONG)
def test_wrong_use(line, words, monkeypatch, tmp_path):
    from halocline.cli.app import run

    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(words)):
        run(line.split())
