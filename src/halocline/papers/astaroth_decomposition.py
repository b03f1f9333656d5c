"""Decompositions of Astaroth (Pekkilä et al. 2022, Sections 3.2 and 3.3, Figs. 5 and 6, Tables A.1 and A.2).

All results are for periodic boundaries and a halo of three layers, which is exchanged completely. The paper
does not state the radius. For Figs. 5 and 6, it does not state the size of the grid either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from halocline.papers.derived import Listing
from halocline.papers.paper import BOUND_FORMATS, Paper, Row
from halocline.papers.published import published
from halocline.plan.decompose import Decomposition, decompose
from halocline.plan.layout import lay_out
from halocline.plan.traffic import Traffic, exchange_cost

RADIUS, PERIODIC = 3, (True,) * 3
TRAFFIC = Traffic.of_radius(RADIUS, 3)


def parts_text(numbers: Any) -> str:
    """Return numbers along the axes as text, such as "4 x 2 x 1"."""
    return " x ".join(map(str, numbers))


# -- Fig. 5 --------------------------------------------------------------------------------------------------


def _decompositions(count: int, max_decomposed_axes: int) -> Iterator[tuple[int, int, int]]:
    """Yield the decompositions into `count` parts along at most `max_decomposed_axes` of three axes."""
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    for a, b in product(divisors, divisors):
        parts = a, b, count // (a * b)
        if prod(parts) == count and sum(p > 1 for p in parts) <= max_decomposed_axes:
            yield parts


def halo_cells(row: Row) -> int:
    """Return the minimum number of halo cells of a subdomain, C_M' - C_N' = Q / 2 (Eqs. 2, 3 and 7)."""
    cost = exchange_cost(TRAFFIC, (row["n"],) * 3, PERIODIC, "node")
    return min(cost(parts) for parts in _decompositions(row["subdomains"], row["free"])) // 2


# -- Fig. 6 --------------------------------------------------------------------------------------------------


def off_node(decomposition: Decomposition, per_node: int) -> tuple[list[int], int, int]:
    """Return the halo sizes of one node. The ranks of a node are consecutive, and its subdomains form a box.

    All nodes must have boxes of the same shape.

    Returns
    -------
    faces : list of int
        Number of faces with a neighbour on another node, for each rank of the node.
    off, on : int
        Numbers of halo cells that one rank receives from other nodes, and from its own node. The numbers are
        those of the rank that receives the most cells from other nodes.
    """
    first = decomposition.count // per_node // 2 * per_node
    faces, cells = [], []
    for rank in range(first, first + per_node):
        shape, received_cells = decomposition.box(rank).shape, Counter[bool]()
        face_count = 0
        for direction, layers in TRAFFIC.weights:
            is_off_node = decomposition.neighbour(rank, direction) not in range(first, first + per_node)
            face_count += is_off_node and sum(map(abs, direction)) == 1
            area = prod(1 if d else n for n, d in zip(shape, direction, strict=True))
            received_cells[is_off_node] += layers * area
        faces.append(face_count)
        cells.append((received_cells[True], received_cells[False]))
    return faces, *max(cells)


def node_mapping(row: Row) -> dict[str, Any]:
    """Return the decomposition of a configuration of Fig. 6, and the halo sizes of one node."""
    strategy, per_node = row["strategy"], row["ranks_per_node"]
    decomposition = lay_out(
        (row["n"],) * 3, row["ranks"], ranks_per_node=per_node, strategy=strategy, traffic=TRAFFIC
    ).decomposition
    all_coordinates = [decomposition.coordinates(rank) for rank in range(per_node)]
    box = [len({coordinates[axis] for coordinates in all_coordinates}) for axis in range(3)]
    faces, off, on = off_node(decomposition, per_node)
    return {
        "parts": decomposition.parts,
        "parts_of_node": box,
        "faces": (min(faces), max(faces)),
        "cells_of_other_nodes": off,
        "cells_of_own_node": on,
    }


def published_faces(row: Row) -> str:
    """Return the published number of faces of a rank with a neighbour on another node, as text.

    The published number applies to many nodes. For fewer than 100 nodes, the text is empty.
    """
    if row["ranks"] < 100 * row["ranks_per_node"]:
        return ""
    data = [
        (entry["bound"], entry["faces"])
        for entry in published("astaroth-fig6").rows
        if (entry["strategy"], entry["ranks_per_node"]) == (row["strategy"], row["ranks_per_node"])
    ]
    if not data:
        return ""
    return BOUND_FORMATS[tuple(bound for bound, _ in data)].format(*(faces for _, faces in data))


def _range(values: tuple[int, int]) -> str:
    minimum, maximum = values
    return f"{minimum}" if minimum == maximum else f"{minimum} to {maximum}"


# -- Tables A.1 and A.2 --------------------------------------------------------------------------------------


def compare_costs(row: Row) -> dict[str, Any]:
    """Return the decomposition of minimum cost (Eqs. 7, 12), its cost, and the cost of the published one."""
    shape, level = [row[f"n_{axis}"] for axis in range(3)], "node" if "nodes" in row else "device"
    cost = exchange_cost(TRAFFIC, shape, PERIODIC, level)
    best = decompose(shape, row["nodes" if level == "node" else "devices"], traffic=TRAFFIC, level=level)
    published_cost = cost([row[f"parts_{axis}"] for axis in range(3)])
    return {
        "least_cost_parts": best.parts,
        "cost": best.cost,
        "published_cost": published_cost,
        "ratio": published_cost / best.cost,
    }


def _table(name: str, title: str, about: str, count: str) -> Listing:
    """Return the declaration of Table A.1 or A.2."""
    return Listing(
        name,
        title,
        about,
        configurations=published(name).rows,
        formula=compare_costs,
        entries={
            "cells": lambda row: parts_text(row[f"n_{axis}"] for axis in range(3)),
            count: lambda row: f"{row[count]}",
            "published\ndecomposition": lambda row: parts_text(row[f"parts_{axis}"] for axis in range(3)),
            "published\ncost": lambda row: f"{row['published_cost']:,}",
            "decomposition of\nminimum cost": lambda row: parts_text(row["least_cost_parts"]),
            "minimum\ncost": lambda row: f"{row['cost']:,}",
            "published /\nminimum": lambda row: f"{row['ratio']:.3f}",
        },
    )


PAPERS = (
    Paper(
        "astaroth-fig5",
        "Size of the halo",
        "Number of halo cells of a subdomain, C_M' - C_N', for decompositions along one, two and three axes. "
        "An exchange transfers twice as many cells (Q of Eq. 7). The paper states neither the grid nor the "
        "radius. The values are for 512³ cells and three layers.",
        configurations=[
            {"n": 512, "cut": f"{axes}D", "free": axes, "subdomains": 2**k}
            for axes in (1, 2, 3)
            for k in range(10)
        ],
        formula=halo_cells,
        row_key="cut",
        column_key="subdomains",
        format_value="{:,}".format,
        unit="halo cells",
    ),
    Listing(
        "astaroth-fig6",
        "Mapping of subdomains to nodes",
        "Mapping of the subdomains of 1024³ cells to nodes: row by row, in Z-order (morton, P*), and by the "
        "minimum cost on two levels (optimal). The table contains the number of faces of a subdomain with a "
        "neighbour on another node. The halo cells are those of the rank that receives the most cells "
        "from other nodes. The published numbers of faces are for many more ranks than a node has.",
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
            "ranks\nper node": lambda row: f"{row['ranks_per_node']}",
            "subdomains": lambda row: parts_text(row["parts"]),
            "subdomains\nof a node": lambda row: parts_text(row["parts_of_node"]),
            "faces to\nother nodes": lambda row: _range(row["faces"]),
            "\npublished": published_faces,
            "halo cells from\nother nodes": lambda row: f"{row['cells_of_other_nodes']:,}",
            "halo cells from\nits own node": lambda row: f"{row['cells_of_own_node']:,}",
        },
    ),
    _table(
        "astaroth-a.1",
        "Decompositions over nodes with the minimum cost",
        "The cost is Q = 2 (C_M' - C_N'), Eq. 7, in cells. If several decompositions have the minimum cost, "
        "the table contains one of them.",
        "nodes",
    ),
    _table(
        "astaroth-a.2",
        "Decompositions within a node with the minimum cost",
        "The cost is C_M'' - C_L'', Eq. 12, in cells. If several decompositions have the minimum cost, the "
        "table contains one of them.",
        "devices",
    ),
)
