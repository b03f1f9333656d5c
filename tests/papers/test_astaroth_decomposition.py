"""Decompositions of Pekkilä et al. 2022: Figs. 5 and 6, Tables A.1 and A.2."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import pytest

from halocline.papers.astaroth_decomposition import TRAFFIC, off_node
from halocline.plan.layout import lay_out
from halocline.study.registry import papers


def places(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = papers()[name].select_configurations(None, None)
    return rows


def test_halo_sizes_agree_with_the_paper() -> None:
    """More cut axes give a smaller halo, from eight subdomains on (Fig. 5)."""
    result: dict[str, dict[int, int]] = {}
    for row in places("astaroth-fig5"):
        result.setdefault(row["cut"], {})[row["subdomains"]] = row["computed"]
    for count in (8, 16, 32, 64, 128, 256, 512):
        assert result["1D"][count] > result["2D"][count] > result["3D"][count]
    assert {facts[1] for facts in result.values()} == {518**3 - 512**3} == {4_774_104}
    assert result["1D"][2] == result["2D"][2] == result["3D"][2]
    assert result["3D"][8] == (256 + 6) ** 3 - 256**3
    assert result["1D"][512] == (1 + 6) * 518**2 - 512**2
    assert result["3D"][512] == (64 + 6) ** 3 - 64**3


def test_numbers_of_faces_between_nodes_agree_with_the_paper() -> None:
    """A node of eight devices has 4 to 5 faces to other nodes by rows, and 3 in Z-order (Section 3.3)."""
    study = papers()["astaroth-fig6"]
    rows = study.select_configurations(None, None)
    result = {(row["strategy"], row["ranks_per_node"], row["ranks"]): row for row in rows}
    assert result["row", 8, 4096]["faces"] == (4, 5)
    assert result["morton", 8, 4096]["faces"] == (3, 3)
    assert result["morton", 8, 4096]["parts_of_node"] == [2, 2, 2]
    assert result["morton", 4, 64]["parts_of_node"] == [2, 2, 1]
    assert {facts["parts"] for (_, _, ranks), facts in result.items() if ranks == 64} == {(4, 4, 4)}
    assert [result[name, 8, 4096]["cells_of_other_nodes"] for name in ("row", "morton")] == [68_568, 42_237]
    (table,) = study.tables(rows, None)
    published = [row[5:7] for row in table.rows if row[6]]
    assert published == [("4 to 5", "4 to 5"), ("3", "3")]


@pytest.mark.parametrize("strategy", ["row", "morton", "optimal"])
def test_all_nodes_send_the_same_number_of_cells(strategy: str) -> None:
    cut = lay_out((256,) * 3, 64, ranks_per_node=4, strategy=strategy, traffic=TRAFFIC).decomposition
    worst = 0
    for rank in range(64):
        cells = Counter[bool]()
        for direction, layers in TRAFFIC.weights:
            off = cut.neighbour(rank, direction) // 4 != rank // 4  # type: ignore[operator]
            cells[off] += layers * prod(1 if d else 64 for d in direction)
        worst = max(worst, cells[True])
    assert off_node(cut, 4)[1] == worst
    assert worst == (56_280 if strategy == "row" else 55_704)


@pytest.mark.parametrize("name", ["astaroth-a.1", "astaroth-a.2"])
def test_published_decompositions_are_among_the_best(name: str) -> None:
    rows = places(name)
    assert len(rows) == 21
    assert {row["ratio"] for row in rows} == {1.0}
    assert all(prod(row["least_cost_parts"]) == row.get("nodes", row.get("devices")) for row in rows)
    text = papers()[name].tables(rows, None)[0].text()
    assert "1024 x 512 x 512" in text
    assert "1.000" in text
