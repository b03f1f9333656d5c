"""Reports of exchanges: configurations, speed-ups, and notes on the methods that were not used."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.plan.transfer import AWARE_SETS, SETS
from halocline.study.reporting.report import Group
from halocline.study.reporting.transfers import (
    configuration,
    notes,
    placement_tables,
    sentences,
    set_name,
    tables,
)
from step_measurements import step

SECONDS = {"+remote": 6e-3, "+colo": 3e-3, "+peer": 2e-3, "+kernel": 1e-3}
PLACES = [{"rank": 0, "subdomain": n, "device": "cuda:0", "name": "H", "driver": "1"} for n in range(2)]


def exchange(name: str, *, aware: bool = False, **other: Any) -> dict[str, Any]:
    methods = (AWARE_SETS if aware else SETS)[name]
    facts = {
        "study": "exchange", "case": "exchange", "shape": [58] * 3, "parts": [3, 2, 1], "ranks": 6, "n": 32,
        "fields": 4, "dtype": "float32", "radius": 3, "methods_asked": methods, "methods": methods.split(","),
        "seconds": SECONDS[name], "bytes_by_method": {"mpi": 1000}, "unavailable": {}, "links": "",
        "link_time": None, "placement": "aware",
    }  # fmt: skip
    return step(**facts | other)


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({}, "1n/6r/6g/58"),
        ({"ranks": 1}, "1n/1r/6g/58"),
        ({"nodes": 3}, "3n/2r/2g/58"),
        ({"nodes": 3, "hosts": 3}, "3n/2r/2g/58"),
        ({"nodes": 3, "hosts": 1}, "3n/2r/2g/58 (on 1 host)"),
        ({"shape": [8, 9, 7]}, "1n/6r/6g/8x9x7"),
        ({"aware": True}, "1n/6r/6g/58/ca"),
    ],
)
def test_configurations_are_written_as_in_the_paper(other: dict[str, Any], text: str) -> None:
    assert configuration(exchange("+remote", **other)) == text


def test_an_unnamed_set_is_labelled_by_its_methods() -> None:
    assert set_name(exchange("+kernel", aware=True)) == "+kernel"
    assert set_name(exchange("+kernel") | {"methods_asked": "self,peer,rma,mpi"}) == "self,peer,rma,mpi"


def test_methods_are_added_in_turn_and_compared_with_mpi_alone() -> None:
    group = Group([exchange(name, ranks=ranks) for ranks in (6, 1) for name in reversed(SETS)])
    times, volumes = tables(group)
    assert times.heads[1:] == tuple(SETS)
    assert [row[0] for row in times.rows] == ["1n/1r/6g/58", "1n/6r/6g/58"]
    assert times.rows[1][1:] == ("6 ms (1.00)", "3 ms (2.00)", "2 ms (3.00)", "1 ms (6.00)")
    assert volumes.rows[0][1] == "1 kB mpi"
    assert list(sentences(group)) == [
        f"1n/{ranks}r/6g/58: with all methods, an exchange is 6.00 times as fast as with MPI alone."
        for ranks in (1, 6)
    ]


def test_unused_methods_are_reported() -> None:
    (note, shared) = notes(Group([exchange("+remote")]))
    assert note == "CUDA-aware MPI (ca) is not measured: fields are in host memory."
    assert shared == "1n/6r/6g/58: 6 threads of a host share its 2 cores."
    _, shared = notes(Group([exchange("+remote", nodes=3, hosts=1)]))
    assert shared == "3n/2r/2g/58 (on 1 host): 6 threads of a host share its 2 cores."
    assert len(notes(Group([exchange("+remote", nodes=3, hosts=3)]))) == 1  # 2 threads of each
    reasons = {"gpu_aware": "the library does not say so"}
    alone = exchange("+remote", ranks=2, devices=PLACES)
    lacking = exchange("+remote", aware=True, ranks=2, devices=PLACES, methods=["mpi"], unavailable=reasons)
    assert "no run has a set of methods with gpu_aware" in notes(Group([alone]))[0]
    opencl = alone | {"devices": [place | {"device": "opencl:0"} for place in PLACES]}
    assert "MPI libraries cannot read the memory of OpenCL devices" in notes(Group([opencl]))[0]
    assert notes(Group([alone, lacking])) == [
        "1n/2r/6g/58/ca: gpu_aware is unavailable: the library does not say so."
    ]
    times, volumes = tables(Group([alone, lacking]))
    assert [row[1] for row in times.rows] == ["6 ms (1.00)", "unavailable"]
    assert len(volumes.rows) == 1


def test_equal_links_need_no_placement() -> None:
    trivial = exchange("+kernel", placement="trivial", seconds=2e-3, links="all links are equal")
    aware = exchange("+kernel", placement="aware", seconds=1e-3, links="all links are equal")
    (table,) = placement_tables(Group([aware, trivial]))
    assert [row[0] for row in table.rows] == ["trivial", "aware"]
    assert [row[-1] for row in table.rows] == ["1.00", "2.00"]
    assert table.note.startswith("All links are equal. Both placements assign the subdomains in order")
    measurements = [m | {"link_time": 1.0 if m["placement"] == "trivial" else 0.81} for m in (trivial, aware)]
    (table,) = placement_tables(Group(measurements))
    assert [row[2] for row in table.rows] == ["1", "0.81"]
    assert "Σ w d" in table.note
