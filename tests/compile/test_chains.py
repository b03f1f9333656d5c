"""Chains of stages, and their extent."""

from __future__ import annotations

from halocline.compile.chains import chains
from halocline.compile.compiler import arranged
from halocline.problems.problem import Problem


def test_the_longest_chain_of_stages_determines_the_halo_width() -> None:
    ready = Problem("orszag-tang", (20, 20))
    (kernel_nests,) = (
        candidate
        for candidate in arranged(ready.program, ready.grid).nests.values()
        if chains(candidate.staged)
    )
    stage_chains = chains(kernel_nests.staged)
    assert {(chain.axis, chain.side): chain.links[-1].layers for chain in stage_chains} == {
        (0, -1): 5, (0, 1): 6, (1, -1): 5, (1, 1): 6,
    }  # fmt: skip
    for chain in stage_chains:
        layers = [link.layers for link in chain.links]
        assert layers == sorted(layers)
        names = [link.name for link in chain.links]
        assert any(name.startswith("G_") for name in names), names  # maximum extent: second fluxes
        assert any(name.startswith("F_") for name in names), names
