"""Studies: tables, pages and explanations; the measurements themselves are made by the real command."""

from __future__ import annotations

import csv
import io
import json
import re
import time
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import halocline as hc
from halocline.errors import InputError, RunError
from halocline.explanation.explain import explain_program
from halocline.io.table import Table, table_of
from halocline.papers.umbc import poisson_convergence
from halocline.physics.poisson import Poisson
from halocline.study.measuring.command import Command, as_csv, measure
from halocline.study.reporting import solves as convergence
from halocline.study.reporting.page import facts_of_measurements, page
from halocline.study.reporting.quantities import speedup
from halocline.study.reporting.report import Group, Report, report
from halocline.study.studies.strong import SOLVES
from halocline.words import amount, clock, duration, gigabytes, in_seconds
from loops import some


def measurement(n: int, ranks: int = 1, threads: int = 1, seconds: float = 1.0, **other: object) -> dict:
    """A measurement as `measure` returns it."""
    machine = {
        "host": "h", "system": "s", "cpu": "c <&>", "cores": 2, "hardware_threads": 2, "numa_nodes": 1,
        "simd_bits": 512, "memory_bytes": 10**10, "caches": [{"level": 1, "bytes": 49152, "shared_by": 1}],
        "compiler": "g++", "compiler_version": "12", "mpi_library": "m", "mpi_version": "v", "commit": None,
    }  # fmt: skip
    record = {
        "n": n, "dof": n * n, "iterations": 3 * n // 2, "converged": True, "error_max": 3.28 / (n + 1) ** 2,
        "seconds": seconds, "seconds_per_iteration": seconds / n, "residual_relative": 9e-7,
        "checksum": "0" * 32, "ranks": ranks, "threads": threads, "cores_or_devices": ranks * threads,
        "devices": [], "memory_bytes": 2**30,
        "bytes_per_iteration": 64.0 * n * n, "bandwidth_share": 0.5, "case": "poisson", "dim": 2,
        "method": "cg-fused", "rtol": 1e-6, "max_iterations": None, "decomposition": "optimal", "patch": None,
        "device": "cpu", "command": "halocline solve poisson", "started": "2020-01-01T00:00:00+00:00",
        "times": [seconds],
        "environment": {"OMP_PROC_BIND": "close", "OMP_PLACES": None}, "machine": machine,
    }  # fmt: skip
    return {**record, **other}


def strong(measurements: list[dict]) -> Report:
    """What the study of strong scaling shows of solves."""
    return report((SOLVES,), Group(measurements))


# -- numbers as text -----------------------------------------------------------------------------------------


def test_clock_is_that_of_the_paper():
    """UMBC HPCF-2018-10, Table 3.1, has both forms of each time."""
    both = {
        6.65: "00:00:07", 85.98: "00:01:26", 764.39: "00:12:44", 6393.86: "01:46:34", 52192.29: "14:29:52",
        1195.35: "00:19:55", 9491.42: "02:38:11", 0.0: "00:00:00", 3599.6: "01:00:00",
    }  # fmt: skip
    assert {seconds: clock(seconds) for seconds in both} == both


def test_short_times_have_three_digits_and_long_ones_those_of_the_paper():
    texts = {
        0.0: "0.00", 4.206e-5: "0.0000421", 0.004212: "0.00421", 0.3: "0.300", 0.9994: "0.999",
        0.9996: "1.00", 1.0: "1.00", 6.65: "6.65", 764.39: "764.39", 52192.29: "52,192.29",
    }  # fmt: skip
    assert {seconds: in_seconds(seconds) for seconds in texts} == texts
    ms = [measurement(64, 1, t, s) for t, s in ((1, 0.00421), (2, 0.0021))] + [measurement(64, 2, 1, 0.0025)]
    wall, ups, _, _, hybrid = strong(ms).tables
    assert [row[1].split() for row in wall.rows] == [["00:00:00", "0.00421"], ["00:00:00", "0.00210"]]
    assert [row[1] for row in ups.rows] == ["1.00", "2.00"]
    assert [row[3] for row in hybrid.rows] == ["0.00210", "0.00250"]
    assert convergence.table(ms[:1]).rows[0][7] == "0.00421"


def test_amounts():
    assert [gigabytes(b) for b in (2**31, 2**28, 2**10, 0)] == ["2.00", "0.250", "< 0.001", "0.000"]
    assert [amount(b) for b in (512, 1536, 2_500_000, 3.2e12)] == ["512 B", "1.54 kB", "2.5 MB", "3200 GB"]
    assert [duration(s) for s in (12.3, 0.0123, 4.5e-6)] == ["12.3 s", "12.3 ms", "4.5 µs"]


def test_published_rows_are_printed_as_the_paper_has_them():
    text = (Path(__file__).parents[2] / "data" / "poisson_convergence.csv").read_text()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    assert list(poisson_convergence()) == [int(row["n"]) for row in rows]
    for row in rows:
        _, printed = convergence.table([measurement(int(row["n"]))]).rows
        seconds = float(row["seconds"])
        assert printed == (
            *("", "paper", "", row["error_max"], row["ratio"], f"{int(row['iterations']):,}"),
            *(clock(seconds), f"{seconds:,.2f}", "", row["memory_observed_gb"] or "< 1"),
        )


def test_published_errors_fall_as_the_paper_says():
    found = poisson_convergence()
    # the paper's own ratios of consecutive errors; one of them is not that of the errors it prints (4.007)
    errors = [r["error_max"] for r in found.values()]
    for row, coarse in some(zip(list(found.values())[1:], errors, strict=False)):
        assert coarse / row["error_max"] == pytest.approx(row["ratio"], abs=0.07)


# -- tables --------------------------------------------------------------------------------------------------


def test_a_table_has_a_row_for_each_record_and_a_column_for_each_function() -> None:
    columns = {"name": lambda record: record[0], "twice": lambda record: f"{2 * record[1]}"}
    table = table_of("Title", [("a", 1), ("b", 20)], columns, left=1, note="so")
    assert table == Table("Title", ("name", "twice"), (("a", "2"), ("b", "40")), left=1, note="so")


def test_table_as_text():
    table = Table("Title", ("name", "two\nlines"), (("a", "1"), ("bcd", "1000000")), note="so")
    assert table.text().splitlines() == [
        "Title",
        "",
        "          two",
        "name    lines",
        "─────────────",
        "a           1",
        "bcd   1000000",
        "",
        "so",
    ]


def test_convergence_puts_the_published_row_below_ours():
    ms = [measurement(512), measurement(1024, iterations=1582, error_max=3.1266e-6, seconds=6.65)]
    rows = convergence.table(ms).rows
    assert [row[:2] for row in rows] == [("512", "here"), ("1024", "here"), ("", "paper")]
    assert rows[1][3:8] == (
        "3.1266e-06",
        f"{ms[0]['error_max'] / 3.1266e-6:.2f}",
        "1,582",
        "00:00:07",
        "6.65",
    )
    assert rows[2][3:] == ("3.1266e-06", "", "1,581", "00:00:07", "6.65", "", "< 1")
    assert rows[1][8:] == ("0.031", "1.00")  # 4 N² numbers of 8 bytes in units of 1024³; VmRSS
    said = "\n".join(convergence.verdicts(ms))
    assert "N = 1024: 1,582 iterations, +1" in said
    assert "in all its digits" in said


@pytest.mark.parametrize(
    "other", [{"dim": 3}, {"rtol": 1e-8}, {"converged": False}, {"case": "other"}, {"n": 1000}]
)
def test_only_the_same_problem_is_compared_with_the_published_one(other):
    assert convergence.published_for(measurement(1024)) is not None
    assert convergence.published_for({**measurement(1024), **other}) is None


def test_strong_scaling():
    times = {(1, 1): 8.0, (1, 2): 4.0, (2, 1): 5.0, (2, 2): 2.5}
    ms = [measurement(64, r, t, s) for (r, t), s in times.items()]
    wall, ups, efficiency, share, hybrid = strong(ms).tables
    assert wall.heads == ("", "1 rank", "2 ranks")
    assert [row[0] for row in wall.rows] == ["1 thread a rank", "2 threads a rank"]
    assert wall.rows[0][1].split() == ["00:00:08", "8.00"]
    assert wall.rows[1][2].split() == ["00:00:03", "2.50"]
    assert [row[1:] for row in ups.rows] == [("1.00", "1.60"), ("2.00", "3.20")]
    assert [row[1:] for row in efficiency.rows] == [("1.00", "0.80"), ("1.00", "0.80")]
    assert share.rows[0][1] == "50%"
    assert [(row[0], row[1], row[-1]) for row in hybrid.rows] == [
        ("1 rank of 2 threads", "2", "1.00"),
        ("2 ranks of 1 thread", "2", "1.25"),
    ]
    said = strong(ms).said
    assert "all with the same bits" in said[0]
    assert "fastest with 2 ranks of 2 threads, 2.5 s: 3.20 times as fast as 1 rank of 1 thread" in said[1]
    assert "2 different results" in strong([*ms, measurement(64, 3, checksum="1" * 32)]).said[0]


def test_strong_scaling_without_a_run_on_one_core():
    ms = [measurement(64, 2, 1, 4.0), measurement(64, 4, 1, 2.0)]
    assert Group(ms).base is ms[0]
    assert speedup(ms[1], ms[0]) == 4.0


def test_what_scales_over_devices_is_counted_in_devices():
    one, two = [{"device": 0}], [{"device": 0}, {"device": 1}]
    ms = [measurement(64, 1, seconds=8.0, devices=one, cores_or_devices=1),
          measurement(64, 2, seconds=8.0, devices=one, cores_or_devices=1),
          measurement(64, 4, seconds=4.0, devices=two, cores_or_devices=2)]  # fmt: skip
    _, ups, efficiency, _, hybrid = strong(ms).tables
    assert ups.rows[0][1:] == ("1.00", "1.00", "2.00")
    assert efficiency.rows[0][1:] == ("1.00", "1.00", "1.00")
    assert hybrid.heads[1] == "devices"
    assert [row[1] for row in hybrid.rows] == ["1", "1"]


def test_csv_has_a_line_per_run_and_the_facts():
    rows = list(csv.DictReader(io.StringIO(as_csv([measurement(64), measurement(128, seconds=2.5)]))))
    assert [(r["n"], r["seconds"], r["host"], r["omp_proc_bind"], r["omp_places"]) for r in rows] == [
        ("64", "1.0", "h", "close", ""),
        ("128", "2.5", "h", "close", ""),
    ]
    assert {"compiler_version", "mpi_version", "commit", "checksum", "ranks", "threads", "method"} <= set(
        rows[0]
    )


# -- pages ---------------------------------------------------------------------------------------------------


class Checker(HTMLParser):
    """Fails where an element is not closed; keeps what could reach outside the page."""

    VOID = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.outside += [
            v for k, v in attrs if k in ("src", "href") and v and not v.startswith(("data:", "#"))
        ]
        self.outside += [tag] * (tag in ("script", "link", "iframe"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", ["convergence", "strong"])
def test_page_is_complete_in_itself(kind, tmp_path):
    picture = tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG")
    ms = [measurement(512), measurement(1024, ranks=2, seconds=0.7)]
    facts, commands = facts_of_measurements(ms), [m["command"] for m in ms]
    if kind == "strong":
        found = strong(ms)
        figures = list(found.figures().values())
    else:
        found, figures = Report([convergence.table(ms)], convergence.verdicts(ms)), [convergence.plot(ms)]
    texts = {"title": "A <title>", "lead": "lead", "command": "a & b"}
    text = page(found, figures, [picture], facts=facts, commands=commands, **texts)
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert checker.outside == []
    assert "A &lt;title&gt;" in text
    assert "c &lt;&amp;&gt;" in text
    assert "a &amp; b" in text
    for table in found.tables:
        assert all(cell.split()[0] in text for row in table.rows for cell in row if cell)
    svg = text[text.index("<svg") : text.index("</svg>") + 6]
    assert len(ElementTree.fromstring(svg).findall(".//*")) > 50
    assert "sans-serif" not in svg  # its text is in the font of the page


# -- measurements --------------------------------------------------------------------------------------------


def test_measure_runs_the_command(monkeypatch):
    monkeypatch.setenv("OMP_PLACES", "cores")
    case = Command("run", "poisson", {"dim": 1, "steps": 9}, ("method=cg",))
    found = measure(case, 40, ranks=1, threads=1, repeat=2)
    assert (found["n"], found["dof"], found["iterations"], found["converged"]) == (40, 40, 9, False)
    assert found["command"] == (
        "halocline run poisson --n 40 --dim 1 --steps 9 --ranks 1 --threads 1 --set method=cg"
    )
    assert len(found["times"]) == 2
    assert found["seconds"] == sum(found["times"]) / 2
    assert found["environment"]["OMP_PLACES"] == "cores"
    assert found["machine"]["compiler_version"]
    json.dumps(found, allow_nan=False)


def test_measure_raises_what_the_command_said():
    with pytest.raises(InputError, match=r"rtol is -1\b.*above 0") as raised:
        measure(Command("run", "poisson", {}, ("rtol=-1.0",)), 8, ranks=1, threads=1)
    assert "Traceback" not in str(raised.value)
    assert str(raised.value).startswith("halocline run poisson --n 8")
    assert issubclass(InputError, Exception)
    assert not issubclass(InputError, RunError)


# -- explanations --------------------------------------------------------------------------------------------


def poisson(n: int, dim: int, method: str = "cg-fused", **options: object):
    equations = Poisson.on(n, dim)
    return explain_program(equations.program(method), equations.grid, **options)


def test_messages_of_all_ranks_are_the_cuts_of_the_grid():
    told = [poisson(96, 2, ranks=12, rank=k, decomposition="3x4") for k in range(12)]
    sweep = [t.loop[0] for t in told]
    cuts = [2 * 4, 3 * 3]  # inner sides along x, along y
    assert sum(s.messages for s in sweep) == 2 * sum(cuts)
    assert sum(s.bytes_sent for s in sweep) == 2 * 8 * (2 * 96 + 3 * 96)
    assert sum(t.plan.subdomains[0].box.size for t in told) == 96 * 96


def test_what_travels_and_what_does_not():
    told = poisson(1024, 2, ranks=64)
    first, second = told.loop
    r, p = first.halos
    assert (r.field, r.travels, r.walls) == ("r", ("x-", "x+", "y-", "y+"), ())
    assert (p.field, p.travels) == ("p", ())
    assert "this sweep computes it in the halo" in p.why
    assert second.messages == 0
    assert "sweep 3 computes it in the halo" in second.halos[0].why
    assert told.bytes_per_cell == 64
    assert (first.messages, first.bytes_sent) == (4, 4 * 128 * 8)
    assert "conjugate gradients: curvature = dot(p, A(p))" in first.statements
    corner = poisson(1024, 2, ranks=64, rank=0)
    assert corner.loop[0].halos[0].travels == ("x+", "y+")
    assert corner.loop[0].halos[0].walls == ("x-", "y-")
    assert poisson(64, 2).loop[0].halos[0].travels == ()


def test_one_rank_of_many_costs_no_more():
    tracemalloc.start()
    begun = time.process_time()
    told = poisson(4096, 3, ranks=100_000)
    seconds, (_, peak) = time.process_time() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert told.plan.decomposition.count == 100_000
    assert seconds < 3
    assert peak < 30e6


def test_bound_is_bytes_over_bandwidth():
    told = poisson(256, 2, ranks=4)
    bound = told.bound()
    assert bound.seconds_per_pass == pytest.approx(64 * 128 * 128 / bound.bandwidth)
    assert json.loads(json.dumps(told.as_dict()))["pass"]["bytes_per_cell"] == 64


@pytest.mark.parametrize(
    ("options", "latencies", "crossings"),
    [
        ({"methods": "mpi"}, 1, 4),
        ({"methods": "rma,mpi"}, 3, 4),
        ({}, 1, 2),  # one node: colocated
        ({"ranks_per_node": 1}, 1, 4),
        ({"ranks": 1, "subdomains_per_rank": 4}, 0, 2),  # peer, and no reduction over ranks
    ],
)
def test_the_prediction_counts_by_transfer_method(options, latencies, crossings):
    """Of 2 x 2 subdomains each has two neighbours and gets 128 numbers of r from each."""
    told = poisson(256, 2, **{"ranks": 4, **options})
    bound, own = told.bound(), len(told.plan.subdomains)
    hops = 2 * 2 if own == 1 else 0
    latency = bound.latency * (own * 2 * latencies + hops)
    moved = own * 2 * 128 * 8 * crossings / bound.bandwidth
    assert bound.predicted - bound.seconds_per_pass == pytest.approx(latency + moved)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ranks": 4, "rank": 4}, "rank 4 of 4"),
        ({"ranks": 10**6}, "10000"),
        ({"threads": 0}, "threads is 0"),
        ({"patch": 0}, "patch"),
        ({"ranks": 3, "decomposition": "2x1"}, "2x1"),
    ],
)
def test_wrong_plans_are_named(options, words):
    with pytest.raises(InputError, match=re.escape(words)):
        poisson(10, 2, **options)


def test_a_simulation_is_explained_as_it_runs_and_as_it_would_on_more_ranks() -> None:
    grid = hc.Grid((64, 32), periodic=True)
    grid.field("u")
    options = {"threads": 2, "decomposition": "1d-y", "patch": 8}
    sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5, **options)
    told = hc.explain(sim)
    assert (told.plan.decomposition.count, told.plan.threads) == (1, 2)
    assert len(told.plan.subdomains[0].patches.table) == 8 * 4
    assert hc.explain(sim, ranks=4).plan.decomposition.parts == (1, 4)
    text = str(hc.explain(sim, ranks=4, decomposition="optimal", threads=1))
    assert "4 ranks of 1 thread: 4 x 1 subdomains, optimal" in text
    assert "predicted:" in text
    u = grid.named("u")
    assert "sweep 2" in str(hc.explain(hc.LinearProblem(lambda u: u - hc.laplacian(u), u, 1.0)))
