"""Decompositions of Astaroth (Pekkilä et al. 2022, Sections 3.2 and 3.3, Figs. 5 and 6, Tables A.1 and A.2).

All results are for a halo of three layers, in which all points are exchanged, and for periodic boundaries.
The paper states no radius and, for Figs. 5 and 6, no size of the grid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from halocline.papers.derived import Listing
from halocline.papers.paper import BOUNDS, Paper, Row
from halocline.papers.published import published
from halocline.plan.decompose import Decomposition, decompose
from halocline.plan.layout import lay_out
from halocline.plan.traffic import Traffic, exchange_cost

RADIUS, PERIODIC = 3, (True,) * 3
TRAFFIC = Traffic.of_radius(RADIUS, 3)


def parts_text(numbers: Any) -> str:
    """Return the numbers of three axes as text: "4 x 2 x 1"."""
    return " x ".join(map(str, numbers))


# -- Fig. 5 --------------------------------------------------------------------------------------------------


def _parts(count: int, free: int) -> Iterator[tuple[int, int, int]]:
    """Yield numbers of parts along three axes with the product `count`; at most `free` numbers exceed 1."""
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    for a, b in product(divisors, divisors):
        parts = a, b, count // (a * b)
        if prod(parts) == count and sum(p > 1 for p in parts) <= free:
            yield parts


def halo_cells(row: Row) -> int:
    """Return the minimum number of halo cells of a subdomain, C_M' - C_N', half of Q (Eqs. 2, 3 and 7)."""
    cost = exchange_cost(TRAFFIC, (row["n"],) * 3, PERIODIC, "node")
    return min(cost(parts) for parts in _parts(row["subdomains"], row["free"])) // 2


# -- Fig. 6 --------------------------------------------------------------------------------------------------


def off_node(cut: Decomposition, per_node: int) -> tuple[list[int], int, int]:
    """Return the halo sizes of a node with consecutive ranks, if all nodes have boxes of the same shape.

    Returns
    -------
    faces : list of int
        Number of sides with a neighbour on another node, for each rank of the node.
    off, on : int
        Numbers of halo cells that one rank receives from other nodes, and from its own node. This rank is the
        one with most halo cells from other nodes.
    """
    first = cut.count // per_node // 2 * per_node
    faces, cells = [], []
    for rank in range(first, first + per_node):
        shape, received = cut.box(rank).shape, Counter[bool]()
        sides = 0
        for direction, layers in TRAFFIC.weights:
            is_off = cut.neighbour(rank, direction) not in range(first, first + per_node)
            sides += is_off and sum(map(abs, direction)) == 1
            area = prod(1 if d else n for n, d in zip(shape, direction, strict=True))
            received[is_off] += layers * area
        faces.append(sides)
        cells.append((received[True], received[False]))
    return faces, *max(cells)


def node_mapping(row: Row) -> dict[str, Any]:
    """Return the decomposition of a configuration of Fig. 6, and the halo sizes of one of its nodes."""
    strategy, per_node = row["strategy"], row["ranks_per_node"]
    cut = lay_out(
        (row["n"],) * 3, row["ranks"], ranks_per_node=per_node, strategy=strategy, traffic=TRAFFIC
    ).decomposition
    node = [cut.coordinates(rank) for rank in range(per_node)]
    box = [len({coordinates[axis] for coordinates in node}) for axis in range(3)]
    faces, off, on = off_node(cut, per_node)
    return {
        "parts": cut.parts,
        "parts_of_node": box,
        "faces": (min(faces), max(faces)),
        "cells_of_other_nodes": off,
        "cells_of_own_node": on,
    }


def stated_faces(row: Row) -> str:
    """Return the published number of faces with a neighbour on another node, as text.

    The number applies to configurations of many nodes. The text is empty for fewer than 100 nodes.
    """
    if row["ranks"] < 100 * row["ranks_per_node"]:
        return ""
    data = [
        (entry["bound"], entry["faces"])
        for entry in published("astaroth-fig6").rows
        if (entry["strategy"], entry["ranks_per_node"]) == (row["strategy"], row["ranks_per_node"])
    ]
    return BOUNDS[tuple(bound for bound, _ in data)].format(*(faces for _, faces in data)) if data else ""


def _range(values: tuple[int, int]) -> str:
    least, most = values
    return f"{least}" if least == most else f"{least} to {most}"


# -- Tables A.1 and A.2 --------------------------------------------------------------------------------------


def least_cost_cut(row: Row) -> dict[str, Any]:
    """Return the decomposition of least cost (Eqs. 7, 12), and the costs of this and of the published one."""
    shape, level = [row[f"n_{axis}"] for axis in range(3)], "node" if "nodes" in row else "device"
    cost = exchange_cost(TRAFFIC, shape, PERIODIC, level)
    cut = decompose(shape, row["nodes" if level == "node" else "devices"], traffic=TRAFFIC, level=level)
    stated = cost([row[f"parts_{axis}"] for axis in range(3)])
    return {
        "least_cost_parts": cut.parts,
        "cost": cut.cost,
        "published_cost": stated,
        "ratio": stated / cut.cost,
    }


def _table(name: str, title: str, about: str, count: str) -> Listing:
    """Return Table A.1 or A.2."""
    return Listing(
        name,
        title,
        about,
        configurations=published(name).rows,
        formula=least_cost_cut,
        entries={
            "cells": lambda row: parts_text(row[f"n_{axis}"] for axis in range(3)),
            count: lambda row: f"{row[count]}",
            "published": lambda row: parts_text(row[f"parts_{axis}"] for axis in range(3)),
            "its cost": lambda row: f"{row['published_cost']:,}",
            "of least cost": lambda row: parts_text(row["least_cost_parts"]),
            "the least\ncost": lambda row: f"{row['cost']:,}",
            "published\nover least": lambda row: f"{row['ratio']:.3f}",
        },
    )


PAPERS = (
    Paper(
        "astaroth-fig5",
        "Size of the halo",
        "Cells of the halo of a subdomain, C_M' - C_N', with one, two and three components of P free; the "
        "exchange moves twice as many (Q of Eq. 7). The paper states neither the grid nor the radius; here "
        "512³ cells and three layers.",
        configurations=[
            {"n": 512, "cut": f"{free}D", "free": free, "subdomains": 2**k}
            for free in (1, 2, 3)
            for k in range(10)
        ],
        formula=halo_cells,
        row_key="cut",
        column_key="subdomains",
        format_value="{:,}".format,
        unit="cells of the halo",
    ),
    Listing(
        "astaroth-fig6",
        "Mapping of subdomains to nodes",
        "Subdomains of 1024³ cells row by row, in Z-order (P*), and by two levels of least cost. Faces are "
        "sides of a subdomain with a neighbour on another node; cells are those of the halo of the rank with "
        "the most from other nodes. The paper states the faces for many more ranks than a node has.",
        configurations=[
            {"n": 1024, "ranks_per_node": per_node, "ranks": ranks, "strategy": strategy}
            for per_node in (4, 8)
            for ranks in (8, 64, 512, 4096)
            for strategy in ("row", "morton", "optimal")
        ],
        formula=node_mapping,
        entries={
            "mapping": lambda row: row["strategy"],
            "ranks": lambda row: f"{row['ranks']:,}",
            "ranks of\na node": lambda row: f"{row['ranks_per_node']}",
            "subdomains": lambda row: parts_text(row["parts"]),
            "those of\na node": lambda row: parts_text(row["parts_of_node"]),
            "faces off\nthe node": lambda row: _range(row["faces"]),
            "\npublished": stated_faces,
            "cells from\nother nodes": lambda row: f"{row['cells_of_other_nodes']:,}",
            "from its\nnode": lambda row: f"{row['cells_of_own_node']:,}",
        },
    ),
    _table(
        "astaroth-a.1",
        "Best decompositions over nodes",
        "The cost is Q = 2 (C_M' - C_N'), Eq. 7, in cells; the table has one of several best ones.",
        "nodes",
    ),
    _table(
        "astaroth-a.2",
        "Best decompositions within a node",
        "The cost is C_M'' - C_L'', Eq. 12, in cells; the table has one of several best ones.",
        "devices",
    ),
)
