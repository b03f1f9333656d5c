"""Set-up tables of papers next to the same facts of this machine, and figures that no study measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halocline.cli.app import run as command
from halocline.papers import facts
from halocline.papers.meshes import solution_and_error
from halocline.run.host.machine import this_machine
from halocline.study.registry import papers
from suites import cases


def rows_of(name: str) -> list[tuple[str, ...]]:
    """Return the rows of the first table of facts."""
    study = papers()[name]
    assert study.facts is not None
    return list(study.facts(study).tables[0].rows)


def test_this_machine_is_listed_after_those_of_the_paper() -> None:
    *published, this_machine_row = rows_of("wombat-table2")
    assert [row[0] for row in published] == ["Blue Waters", "XEIL", "XCBDW", "XCKNL"]
    machine = this_machine()
    assert this_machine_row[0] == facts.THIS_MACHINE
    assert this_machine_row[-2:] == (str(machine.simd_bits), str(machine.cores))
    assert "NUMA node" in facts.memory_in_words()


def test_compiler_flags_are_those_of_kernels() -> None:
    *published, this_machine_row = rows_of("wombat-table3")
    assert len(published) == 3
    assert "-march=native" in this_machine_row[1]
    assert "-ffp-contract=off" in facts.software_in_words()


@cases("name", ["wombat-table5", "wombat-table6", "wombat-table7"], default=["wombat-table6"])
def test_patch_shapes_are_those_of_the_plan(name: str) -> None:
    *_, this_machine_row = rows_of(name)
    assert this_machine_row[-4:] == ("2", "2", "2", "32")


def test_each_fact_of_a_node_has_its_counterpart() -> None:
    rows = rows_of("pearson-table1")
    assert [row[0] for row in rows] == ["CPU", "OS", "kernel", "GPUs", "CUDA driver", "MPI", "nvcc", "cc"]
    assert all(row[1] and row[2] for row in rows)
    assert rows[0][1] == "22-core POWER9"


def test_bandwidths_between_the_devices_of_a_node() -> None:
    study = papers()["pearson-fig10"]
    assert study.facts is not None
    links, between = study.facts(study).tables[:2]
    assert links.rows[0][1:] == ("50", "yes")
    assert len(between.rows) == 6
    assert between.rows[0][1:4] == ("", "50.0", "50.0")


def test_the_mesh_plots_have_the_points_of_the_boundary(tmp_path: Path) -> None:
    report = solution_and_error(papers()["umbc-fig3.1"])
    assert report.tables[0].rows == (("paper", "31", "about 0.0032"), ("this machine", "31", "0.00322"))
    assert "max u_h = 1.003 at (0.5, 0.5)." in report.sentences
    left, right = report.figures()["umbc-fig3.1.png"].axes
    assert (left.name, right.name) == ("3d", "3d")
    low, high = right.get_zlim()  # type: ignore[attr-defined]
    assert low < -3e-3 < 0.0 <= high < 5e-4, "u - u_h is negative"


def test_the_option_not_here_omits_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "f.json"
    assert command(["study", "paper", "pearson-table1", "--not-here", "--json", str(record)]) == 0
    assert facts.THIS_MACHINE not in capsys.readouterr().out
    assert command(["study", "paper", "wombat-table2", "--json", str(record)]) == 0
    assert facts.THIS_MACHINE in capsys.readouterr().out
    (this_machine_facts,) = json.loads(record.read_text())["here"]
    assert this_machine_facts["cores_per_node"] == this_machine().cores
