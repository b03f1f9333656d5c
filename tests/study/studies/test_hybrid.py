"""Cores of nodes that are divided among ranks and threads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from case_measurements import measurement
from halocline.study.layout import Layout
from halocline.study.reporting.report import Group, report
from halocline.study.studies.hybrid import STUDY, splits


def test_cores_are_split_in_all_ways() -> None:
    assert splits([Layout(2, 2)]) == [(1, 4, None), (2, 2, None), (4, 1, None)]
    assert splits([Layout(1, 6)]) == [(1, 6, None), (2, 3, None), (3, 2, None), (6, 1, None)]


def test_splits_are_within_each_node() -> None:
    """The splits are those of a node with 32 cores (UMBC HPCF-2018-10, Table 7.1)."""
    layouts = splits([Layout(nodes * 32, 1, 32) for nodes in (1, 2)])
    assert [layout.per_node for layout in layouts if layout.nodes == 2] == [1, 2, 4, 8, 16, 32]


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 6))
def test_no_node_has_more_threads_than_cores(nodes: int, per_node: int, threads: int) -> None:
    layouts = splits([Layout(nodes * per_node, threads, per_node)])
    assert {layout.per_node * layout.threads for layout in layouts if layout.per_node} == {per_node * threads}
    assert {layout.nodes for layout in layouts} == {nodes}


def test_the_report_names_the_fastest_split() -> None:
    runs = [measurement(2.0, ranks=1, threads=4), measurement(5.0, ranks=4, threads=1)]
    sentences = report(STUDY.contents, Group(runs)).sentences
    assert (
        "256³ on 4 cores: fastest with 1 rank of 4 threads; a run with 4 ranks of 1 thread takes 2.50 times "
        "as long." in (sentences)
    )
