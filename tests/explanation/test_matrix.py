"""The communication matrix: every received byte, counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

import halocline as hc
from halocline.cli.app import run
from halocline.errors import InputError
from halocline.explanation.matrix import traffic
from halocline.plan.layout import lay_out
from halocline.plan.traffic import Traffic
from halocline.plan.transfer import Transfers
from halocline.study.measuring.exchange import exchange_schedule


def test_the_matrix_contains_every_byte_of_every_halo() -> None:
    grid = hc.Grid((16, 12), periodic=True)
    schedule = exchange_schedule(grid, 2, "float64", 2)
    layout = lay_out(
        grid.shape,
        4,
        ranks_per_node=2,
        subdomains_per_rank=2,
        strategy="2d",
        traffic=Traffic.of_schedule(schedule),
        thickness=2,
    )
    result = traffic(schedule, Transfers(layout))
    ((x, y),) = {layout.decomposition.box(n).shape for n in range(8)}
    halo = ((x + 4) * (y + 4) - x * y) * 2 * 8
    for receiver in range(8):
        assert sum(size for (_, to), (_, size) in result.items() if to == receiver) == halo
    for (a, b), (method, size) in result.items():
        assert result[b, a] == (method, size)
        ranks = layout.home(a)[0], layout.home(b)[0]
        nodes = tuple(map(layout.node, ranks))
        is_possible = {
            "self": a == b,
            "peer": ranks[0] == ranks[1],
            "colocated": nodes[0] == nodes[1],
            "mpi": True,
        }
        assert method == next(name for name, holds in is_possible.items() if holds)


def test_the_command_draws_the_matrix(tmp_path: Path) -> None:
    file = tmp_path / "matrix.png"
    line = f"explain poisson --n 64 --ranks 8 --ranks-per-node 4 --subdomains-per-rank 2 --picture {file}"
    assert run(line.split()) == 0
    assert file.stat().st_size > 5000
    with pytest.raises(InputError, match="the picture would show 200 subdomains; expected at most 128"):
        run(["explain", "poisson", "--n", "640", "--ranks", "200", "--picture", str(file)])
