"""Joined measurement files."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halocline.errors import InputError
from halocline.io.table import Table
from halocline.plan.machine import load_machine
from halocline.problems.record import Record
from halocline.study import joining
from halocline.study.engine import build_report
from halocline.study.measurement import CONDITIONS, join_repeats
from halocline.study.measuring.command import EXECUTION, RUN
from halocline.study.reporting.report import Report
from halocline.study.study import studies
from step_measurements import halocline, run_json, step


@pytest.fixture(scope="module")
def strong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a strong scaling study on one rank and two."""
    folder = tmp_path_factory.mktemp("strong")
    run_json(
        "study", "strong", "heat", "--n", "16", "--dim", "2", "--ranks", "1,2", "--steps", "4", cwd=folder
    )
    return folder / "result.json"


def test_measurement_files_are_joined(strong: Path, tmp_path: Path) -> None:
    shutil.copy(strong, tmp_path)
    first_file = tmp_path / "result.json"
    second = json.loads(first_file.read_text())
    for m in second["measurements"]:
        m["machine"] = {**m["machine"], "cpu": "Another", "mpi_version": "Open MPI v4.1.4"}
        m["ns_per_cell_step"] *= 2
    (tmp_path / "there.json").write_text(json.dumps(second))
    done = halocline("study", "report", "result.json", "there.json", "--html", "j.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Machines, MPI libraries and commits" in done.stdout
    assert done.stdout.count("Time per cell and step") == 2
    assert "Another, Open MPI v4.1.4" in done.stdout
    assert "please report" not in done.stdout
    (sentence,) = re.findall(r"heat, n = 16: (.*) is (\d\.\d+|\d) times as fast as (.*) \(", done.stdout)
    one, ratio, other = sentence
    assert one.startswith("AMD") != other.startswith("AMD") or "Another" in one + other
    assert float(ratio) == pytest.approx(0.5 if one.startswith("Another") else 2.0)
    alone = halocline("study", "report", "result.json", cwd=tmp_path)
    assert "Time per cell and step" in alone.stdout
    assert "of the formula" in alone.stdout.replace("\n", " ") or "formula" in alone.stdout
    (tmp_path / "empty.json").write_text("{}")
    with pytest.raises(InputError, match="contains no measurements of a study"):
        joining.join_files([tmp_path / "empty.json"])
    with pytest.raises(InputError, match=r"result\.json is given twice"):
        joining.join_files([tmp_path / "result.json", tmp_path / "." / "result.json"])


def test_problems_are_not_compared_with_each_other(tmp_path: Path) -> None:
    """A page shows all problems of several files, which jobs on different hosts wrote, in separate tables."""
    line = ("--n", "16", "--dim", "2", "--ranks", "1", "--steps", "4")
    run_json("study", "strong", "heat", *line, cwd=tmp_path)
    heat = json.loads((tmp_path / "result.json").read_text())
    older = [{k: v for k, v in m.items() if k != "cores_or_devices"} for m in heat["measurements"]]
    (tmp_path / "result.json").write_text(json.dumps({**heat, "measurements": older}))
    for case, host, ranks, ns in (("heat", "node7", 2, 0.6), ("wave", "node7", 1, 9.0)):
        measurements = [
            {
                **m,
                "case": case,
                "checksum": case,
                "ranks": ranks,
                "cores_or_devices": m["threads"] * ranks,
                "ns_per_cell_step": ns * m["ns_per_cell_step"],
            }
            | {"machine": {**m["machine"], "host": host}}
            for m in heat["measurements"]
        ]
        if case == "heat":
            measurements = [{**m, "checksum": heat["measurements"][0]["checksum"]} for m in measurements]
        (tmp_path / f"{case}{host}.json").write_text(json.dumps({**heat, "measurements": measurements}))
    files = ("result.json", "heatnode7.json", "wavenode7.json")
    options = ("--json", "all.json", "--csv", "all.csv", "--html", "all.html")
    done = halocline("study", "report", *files, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "please report" not in done.stdout
    assert "Machines, MPI libraries" not in done.stdout, "one machine"
    assert done.stdout.count("Time per cell and step") == 2
    assert "2 runs, all with the same bits" in done.stdout
    assert "1.67 times as fast as 1 rank of" in done.stdout
    assert len(json.loads((tmp_path / "all.json").read_text())["measurements"]) == 3
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 4
    page = (tmp_path / "all.html").read_text()
    assert "Strong scaling: heat" in page
    assert "Strong scaling: wave" in page


DIFFERENT: dict[str, tuple[Any, ...]] = {  # conditions, and their possible values
    "ranks": (1, 2), "threads": (1, 2), "nodes": (1, 2), "n": (16, 24), "shape": ([16, 24], [24, 16]),
    "decomposition": ("optimal", "1d-x"), "methods": (None, "mpi"), "settings": ("", "kappa=2"),
    "steps": (4, 8), "order": (2, 6), "ranks_per_node": (None, 1), "patch": (None, "8"),
    "environment": ({"OMP_PROC_BIND": None}, {"OMP_PROC_BIND": "close"}), "scheme": ("rk3", "euler"),
    "schedule": ("guided", "static"), "overlap": ("auto", "off"), "case": ("heat", "wave"),
}  # fmt: skip
SHOWN_IN_ROWS = ("strong", "weak", "hybrid", "patches", "orders")
SOURCES = ("c", "d")


@st.composite
def measurement_files(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Draw files of one study with several conditions and machines, and some repeated measurements."""
    study = draw(st.sampled_from(SHOWN_IN_ROWS))
    names = draw(st.lists(st.sampled_from(sorted(DIFFERENT)), unique=True, max_size=4))
    places = st.fixed_dictionaries({name: st.sampled_from(DIFFERENT[name]) for name in names})
    choices = draw(st.lists(st.tuples(places, st.sampled_from(SOURCES)), min_size=2, max_size=8))
    measured = []
    for number, (place, cpu) in enumerate(choices):
        base = step()
        shape = {"shape": [place["n"]] * 2} if "n" in place and "shape" not in place else {}
        seconds = 100.0 + 2 * number  # means of two values are whole numbers
        times = [seconds] * draw(st.integers(1, 3))
        measured.append(
            step(
                **{"study": study, **place, **shape, "seconds": seconds, "times": times},
                machine={**base["machine"], "cpu": cpu},
            )
        )
    cuts = sorted(draw(st.lists(st.integers(0, len(measured)), max_size=2)))
    return [measured[a:b] for a, b in pairwise([0, *cuts, len(measured)])]


def _report_of(files: list[list[dict[str, Any]]]) -> tuple[list[dict[str, Any]], Report]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.json") for number in range(len(files))]
        for path, measured in zip(paths, files, strict=True):
            path.write_text(json.dumps({"measurements": measured}))
        return joining.join_files(paths)


def _cells(tables: Sequence[Table]) -> list[str]:
    return [word for table in tables for row in table.rows for cell in row for word in cell.split()]


@given(measurement_files())
@settings(deadline=None)
def test_every_measurement_appears_in_a_joined_report(files: list[list[dict[str, Any]]]) -> None:
    measurements = [m for measured in files for m in measured]
    joined, report = _report_of(files)
    assert joined == measurements
    distinct = join_repeats(measurements)
    assert sum(m.get("repeats", 1) for m in distinct) == len(measurements)
    assert sorted(t for m in distinct for t in m["times"]) == sorted(
        t for m in measurements for t in m["times"]
    )
    words = set(_cells(report.tables))
    for m in distinct:
        seconds = f"{m['seconds']:.2f}" if m["study"] == "hybrid" else f"{m['seconds']:.0f}"
        assert seconds in words
    repeated = [m for m in distinct if "repeats" in m]
    counts = [
        int(result)
        for text in report.sentences
        for result in re.findall(r"(\d+) measurements of \d+ run", text)
    ]
    assert sum(counts) == sum(m["repeats"] for m in repeated)


PARTS_TIMED = ((None, "read"), ("compute", "read"), ("exchange", "read"), ("exchange", "uniform"))


def _parts(n: int, seconds: float, **other: Any) -> list[dict[str, Any]]:
    return [
        step(only=only, halo=halo, shape=[n, n], n=n, seconds=seconds + k, checksum=None, **other)
        for k, (only, halo) in enumerate(PARTS_TIMED)
    ]


def test_files_of_the_same_layouts_are_joined_as_repeats() -> None:
    """Two files of strong scaling on two grids do not count as the parts of a step."""
    file = [step(shape=[n, n], n=n, ranks=ranks, seconds=n / ranks) for n in (16, 32) for ranks in (1, 2)]
    slower = [{**m, "seconds": 3 * m["seconds"], "times": [3 * m["seconds"]] * 2} for m in file]
    result, report = _report_of([file, slower])
    assert len(result) == 8
    assert "A step and its parts" not in [table.title for table in report.tables]
    (times,) = (t for t in report.tables if t.title == "Time per cell and step" and "16²" in t.heading)
    assert len(times.rows) == 2
    assert report.sentences[0].startswith("8 measurements of 4 runs are repeats")
    assert [m["seconds"] for m in join_repeats(result)] == [3 * m["seconds"] for m in file]


def test_tables_show_the_median_of_repeats_in_two_files() -> None:
    """Each cell shows the median of two files whose times differ by a factor of 2, in both directions."""
    speed = {"ssspnt": 3.0, "share_of_bound": 0.3, "share_of_peak": 0.3}
    file = [step(ranks=ranks, seconds=100.0 / ranks, **speed) for ranks in (1, 2)]
    slower = []
    for m, factor in zip(file, (2.0, 0.5), strict=True):
        faster = {name: value / factor for name, value in speed.items()}
        seconds = factor * m["seconds"]
        slower.append({**m, **faster, "seconds": seconds, "ns_per_cell_step": seconds, "times": [seconds]})
    result, report = _report_of([file, slower])
    joined = join_repeats(result)
    assert [(m["seconds"], m["ns_per_cell_step"]) for m in joined] == [(150.0, 150.0), (37.5, 37.5)]
    for m, one in zip(joined, file, strict=True):
        for name, value in speed.items():  # both have the same bytes and operations
            assert m[name] * m["seconds"] == pytest.approx(value * one["seconds"])
    (times,) = (t for t in report.tables if t.title == "Time per cell and step")
    words = _cells([times])
    assert {"150", "37.5"} <= {*words}
    assert report.sentences[0] == (
        "4 measurements of 2 runs are repeats with the same bits. Times are medians over the repeats, "
        "whose times differ by a factor of up to 2.00."
    )


def test_parts_of_a_step_are_shown_only_for_complete_grids() -> None:
    for study in ("strong", "parts"):
        _, report = _report_of([_parts(16, 100.0, study=study), _parts(32, 200.0, study=study)[:2]])
        (table,) = (table for table in report.tables if table.title == "A step and its parts")
        assert [row[2:7] for row in table.rows] == [("100", "101", "102", "", "103")]


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("settings", ("", "kappa=2"), ["settings kappa=2", "settings not set"]),
        ("methods", (None, "mpi"), ["methods mpi", "methods not set"]),
        ("steps", (4, 8), ["steps 4", "steps 8"]),
        ("patch", (None, "8"), ["patch 8", "patch not set"]),
    ],
)
def test_fixed_conditions_separate_joined_files(name: str, values: tuple[Any, ...], words: list[str]) -> None:
    files = [[step(ranks=ranks, **{name: value}) for ranks in (1, 2)] for value in values]
    _, report = _report_of(files)
    headings = [table.heading for table in report.tables if table.title == "Time per cell and step"]
    assert len(headings) == 2
    for word in words:
        assert sum(f", {word}:" in heading for heading in headings) == 1, headings


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("decomposition", ("optimal", "1d-x"), {"optimal", "1d-x"}),
        (
            "environment",
            ({"OMP_PROC_BIND": None}, {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}),
            {"binding none", "binding close"},
        ),
        ("communication", ("v2", "v3"), {"v2", "v3"}),
        ("gpudirect", ("off", "on"), {"no GPUDirect", "GPUDirect"}),
        ("parts", ([4, 1], [2, 2]), {"4 x 1", "2 x 2"}),
        ("methods_used", (["peer"], ["mpi"]), {"by peer", "by mpi"}),
    ],
)
def test_configurations_of_joined_files_are_rows_of_one_table(
    name: str, values: tuple[Any, ...], words: set[str]
) -> None:
    all_by_mpi = {"communication": "v3", name: values[0]}
    files = [[step(ranks=ranks, **{**all_by_mpi, name: value}) for ranks in (2, 4)] for value in values]
    _, report = _report_of(files)
    (table,) = (t for t in report.tables if t.title == "Nanoseconds per cell and step")
    assert {row[0] for row in table.rows} == words
    assert all(all(row) for row in table.rows)
    assert len(table.rows) == 2


def test_names_of_files_separate_equal_configurations() -> None:
    """Names of files separate networks of the same nodes (UMBC HPCF-2018-10, Table 6.1), or clusters."""
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for label, factor in (("Ethernet", 3.0), ("Omni-Path", 1.0)):
            file = Path(folder, f"{label}.json")
            measurements = [step(ranks=r, seconds=factor / r, times=[factor / r]) for r in (1, 2, 4)]
            file.write_text(json.dumps({"measurements": measurements}))
            files[file] = label
        result, made_report = joining.join_files(files)
        assert len(join_repeats(result)) == 6
        (sentence,) = (text for text in made_report.sentences if "times as fast as Omni-Path" in text)
        assert sentence == "heat, n = 16: Ethernet is 0.333 times as fast as Omni-Path (median of 3 runs)."
        unnamed, _ = joining.join_files(list(files))
        assert len(join_repeats(unnamed)) == 3
    assert joining.parse_label("a=b.json") == ("a", Path("b.json"))
    assert joining.parse_label("b.json") == ("", Path("b.json"))


def test_configurations_with_other_methods_are_not_repeats() -> None:
    """A name of communication decides the methods; otherwise the methods separate runs."""
    named = [step(ranks=2, communication="v3", methods=methods) for methods in ("mpi", "gpu_aware,mpi")]
    assert len(join_repeats(named)) == 2
    _, report = _report_of([[step(ranks=2, methods="mpi")], [step(ranks=2)]])
    assert len([t for t in report.tables if t.title == "Time per cell and step"]) == 2


SOLVE = {  # facts in the record of a linear solve
    "dof": 256,
    "dim": 2,
    "method": "cg",
    "iterations": 10,
    "bandwidth_share": 0.5,
    "case": "poisson",
}


def test_each_number_of_nodes_has_a_column() -> None:
    files = [[step(ranks=4, nodes=nodes, seconds=100.0 + nodes, **SOLVE)] for nodes in (1, 2, 4)]
    _, report = _report_of(files)
    assert report.tables[0].heads == ("", "1 node", "2 nodes", "4 nodes")
    times = {row[0]: " ".join(row[1:]).split()[1] for row in report.tables[0].rows}
    assert times == {"4 ranks per node": "101.00", "2 ranks per node": "102.00", "1 rank per node": "104.00"}


def test_groups_on_one_host_are_not_nodes() -> None:
    """Cells never merge runs that differ in nodes, hosts or ranks of a node."""
    places = [(nodes, per_node, hosts) for nodes in (1, 2) for per_node in (1, 2) for hosts in {1, nodes}]
    files = [
        [
            step(
                **SOLVE,
                **{"ranks": nodes * per_node, "nodes": nodes, "ranks_per_node": per_node, "hosts": hosts},
                seconds=100.0 + number,
            )
        ]
        for number, (nodes, per_node, hosts) in enumerate(places)
    ]
    _, report = _report_of(files)
    assert report.tables[0].heads == ("", "1 node", "2 nodes\n(on 1 host)", "2 nodes")
    cells = [cell for row in report.tables[0].rows for cell in row[1:]]
    assert len(cells) == len(files) == 6
    assert not any(";" in cell for cell in cells)


def test_measurements_with_different_bits_are_not_repeats() -> None:
    _, report = _report_of([[step(checksum=c * 32, seconds=s, **SOLVE)] for c, s in (("0", 1.0), ("1", 2.0))])
    assert report.tables[0].rows[0][1] == "00:00:01      1.00; 00:00:02      2.00"
    assert "2 different results" in report.sentences[0]


def test_every_key_of_a_record_is_a_condition_or_a_result() -> None:
    """A new option separates measurements, and a new result does not."""
    results = {
        *("cells", "time", "time_step", "limiter", "seconds", "ns_per_cell_step", "ssspnt"),
        *("flops_per_cell_step", "bytes_per_cell_step", "share_of_bound", "share_of_peak"),
        *("joules_per_cell_step", "joules_of", "checksum", "checksums", "diagnostics", "series", "error"),
        *("events", "balances", "memory_bytes", "written_bytes", "writing_seconds", "waiting_seconds"),
        "ranks_of_node",  # the observed value of `ranks_per_node`, which is among the conditions
        *("parameters", "devices"),  # `settings` and the source of a measurement contain them
    }
    keys = {field.name for field in fields(Record)}
    assert keys - results <= set(CONDITIONS)
    assert results <= keys
    assert {*EXECUTION, *RUN} <= {*CONDITIONS}


def test_the_formula_comes_from_the_file(strong: Path) -> None:
    measured, again = joining.join_files([strong])
    formula = [row[4] for row in again.tables[0].rows]
    assert all(formula)
    assert build_report(studies()["strong"], measured, None).tables[0].rows[0][4] == ""


def test_one_core_has_a_maximum_bandwidth() -> None:
    from halocline.model import Rates

    machine = load_machine("stampede2-skx")
    assert Rates.of(machine, 1, threads=1).bandwidth == pytest.approx(1.18e10)
    assert Rates.of(machine, 1, threads=48).bandwidth == pytest.approx(Rates.of(machine, 1).bandwidth)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"machine": "0123456789ab"}, {"machine": "0123456789ab+"}),
        ({}, {"python": "/other/bin/python"}),
        ({"environment": {"FI_PROVIDER": "tcp"}}, {"environment": {"FI_PROVIDER": None}}),
        ({"decomposition": "1d-x"}, {"decomposition": "1d-y"}),
        ({"methods_used": ["mpi"]}, {"methods_used": ["peer"]}),
        ({"nodes": 2, "hosts": 1}, {"nodes": 2, "hosts": 2}),
        ({"ranks_of_node": 2}, {"ranks_of_node": 1}),
    ],
)
def test_different_runs_are_not_repeats(one: dict[str, Any], other: dict[str, Any]) -> None:
    """A modified tree, another MPI of the same version, another network or another cut is another run."""

    def measurement(facts: dict[str, Any]) -> dict[str, Any]:
        base = step(ranks=2)
        if "machine" in facts:
            return {**base, "machine": {**base["machine"], "commit": facts["machine"]}}
        return {**base, **facts}

    assert len(join_repeats([measurement(one), measurement(other)])) == 2
    assert len(join_repeats([measurement(one), measurement(one)])) == 1


def test_ranks_of_a_node_count_as_observed() -> None:
    """Runs with the same ranks of one host are equal, with or without --per-node."""
    measurements = [
        step(ranks=4, ranks_of_node=4, ranks_per_node=ranks_per_node) for ranks_per_node in (None, 4)
    ]
    assert len(join_repeats(measurements)) == 1
