"""Parts of a step."""

from __future__ import annotations

import json
import re

from case_measurements import halocline
from halocline.explanation.explain import explain_program
from halocline.problems.problem import Problem


def test_a_study_times_the_parts_of_a_step(tmp_path):
    result = halocline("study strong alfven-decay --n 24 --ranks 2 --steps 2 --parts --pictures p", tmp_path)
    assert result.returncode == 0, result.stderr
    runs = re.findall(r"^\[\d/6\] 24 cells, order 6, ranks 2, threads 1(.*)$", result.stderr, re.MULTILINE)
    exchanges = [f", exchange alone{more}" for more in ("", ", with all edges", ", with corners")]
    assert runs == ["", ", compute alone", *exchanges, ", synchronisation alone"]
    assert "\nA step and its parts\n" in result.stdout
    assert {path.name for path in (tmp_path / "p").iterdir()} == {"strong.png", "parts.png"}


def test_a_study_times_the_parts_of_the_benchmark(tmp_path):
    result = halocline(
        "study strong mhd-benchmark --n 16 --ranks 2 --steps 2 --parts --orders 2,6 --json s.json", tmp_path
    )
    assert result.returncode == 0, result.stderr
    measurements = json.loads((tmp_path / "s.json").read_text())["measurements"]
    assert {(m["order"], m["only"], m["halo"]) for m in measurements} == {
        (2, None, "read"), (6, None, "read"), (6, "compute", "read"), (6, "exchange", "read"),
        (6, "exchange", "edges"), (6, "exchange", "uniform"), (6, "synchronisation", "read"),
    }  # fmt: skip
    assert "\nA step and its parts\n" in result.stdout
    for order in (2, 6):
        ready = Problem("mhd-benchmark", [16], order=order)
        exchanged_bytes = [
            sum(r["bytes"] for r in explain_program(ready.program, ready.grid, ranks=2, halo=halo).routes)
            for halo in ("read", "edges", "uniform")
        ]
        assert exchanged_bytes[0] < exchanged_bytes[1] < exchanged_bytes[2], order


def test_parts_of_a_run_report_only_times(tmp_path):
    run = "run alfven-decay --n 24 --steps 4 --ranks 2 --threads 1 --warm-up 1 --json r.json"
    nothing = ("time", "time_step", "limiter", "checksum", "checksums", "diagnostics", "series")
    for only, bound in (("compute", True), ("exchange", False), ("synchronisation", False)):
        result = halocline(f"{run} --only {only}", tmp_path)
        assert result.returncode == 0, result.stderr
        record = json.loads((tmp_path / "r.json").read_text())
        assert (record["only"], record["halo"], record["steps"], record["warm_up"]) == (only, "read", 4, 1)
        assert record["ns_per_cell_step"] > 0
        assert [record[name] for name in nothing] == [None] * len(nothing)
        assert (record["share_of_bound"] is not None, record["share_of_peak"] is not None) == (bound, bound)
        assert re.search(rf"^timed +.*{only.removesuffix('e')}\w* alone, ", result.stdout, re.M)
        assert "checksum" not in result.stdout
        assert "diagnostics" not in result.stdout
