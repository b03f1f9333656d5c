"""Studies of layouts: differences of fields, processors and devices, processes of a node."""

from __future__ import annotations

import numpy as np
import pytest

from case_measurements import measurement, report_of
from halocline.errors import RunError
from halocline.study.measuring.command import Command
from halocline.study.studies import devices, layouts, processes
from halocline.study.study import StudyRequest


def test_the_maximum_difference_is_shown():
    result = [measurement(1.0, ulps=0.0), measurement(1.0, ranks=2, decomposition="1d", ulps=2.0)]
    (table,) = report_of(layouts.STUDY.contents[1], result).tables
    assert [row[1:] for row in table.rows] == [("optimal", "0"), ("1d", "2")]


def test_one_process_simulates_subdomains_of_several():
    request = StudyRequest(processes.STUDY, Command("run", "heat", {"steps": 4}), (16,), (3,), (2,))
    ways = [(*run.layout[:2], run.command.subdomains_per_rank) for run in processes.STUDY.runs(request)]
    assert ways == [(3, 2, 1), (1, 6, 3)]
    result = [measurement(4.0, ranks=2, methods="mpi"), measurement(3.0, threads=2, methods="peer,self")]
    (table,) = report_of(processes.STUDY.contents[1], result).tables
    assert [row[0] for row in table.rows] == ["one process, copies", "processes, MPI"]


def test_devices_are_compared_with_cores():
    on_device = {"devices": [{"device": "cuda:0", "name": "V100"}], "device": "cuda", "cores_or_devices": 1}
    result = [measurement(8.0), measurement(4.0, ranks=2), measurement(0.5, **on_device)]
    table = report_of(devices.STUDY.contents[1], result).tables[0]
    assert [(row[0], row[3]) for row in table.rows] == [("cpu", "0.50"), ("cpu", "1.00"), ("cuda", "8.00")]


def test_nonfinite_values_on_one_layout_are_an_error(tmp_path):
    request = StudyRequest(
        layouts.STUDY, Command("run", "heat", {"steps": 4}), (16,), (1, 2), (1,), scratch=tmp_path
    )
    runs = layouts.STUDY.runs(request)[:2]
    for run, value in zip(runs, (1.0, np.nan), strict=True):
        np.savez(run.extra["--state"], u=np.ones(2), v=np.array([1.0, value]))
    with pytest.raises(
        RunError, match="a value is finite in this run or in the first run on the same grid, but not in both"
    ):
        layouts.STUDY.add_derived_results(runs, [measurement(1.0), measurement(1.0, ranks=2)])
