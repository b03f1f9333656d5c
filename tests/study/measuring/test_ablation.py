"""The ablation study: each part of the exchange is removed in turn."""

from __future__ import annotations

import pytest

from halocline.plan.machine import load_machine
from halocline.plan.transfer import SETS
from halocline.run.ranks.mpi import world
from halocline.study.measurement import Measurement
from halocline.study.measuring import ablation


@pytest.mark.ranks(2)
def test_every_variant_has_its_options() -> None:
    result = ablation.measure((24, 24, 24), fields=2, radius=2, repeats=2, threads=1, subdomains_per_rank=2)
    groups: dict[str, list[Measurement]] = {}
    for measured in result:
        groups.setdefault(measured["group"], []).append(measured)
        assert measured["seconds"] > 0
        assert measured["ratio"] == groups[measured["group"]][0]["seconds"] / measured["seconds"]
    assert world().size == 2
    methods = {m["name"]: set(m["bytes_by_method"]) for m in groups["transfer methods"]}
    assert methods["+remote"] == {"mpi"}
    assert methods["+colo"] == {"colocated", "mpi"}
    assert methods["+peer"] == {"colocated", "peer"}
    assert methods["+kernel"] == {"colocated", "peer", "self"}
    assert methods["mailboxes"] == {"rma", "peer", "self"}
    alone = [m for m in result if m["group"] != "decompositions" and not m["whole"]]
    sums = {m["name"]: sum(m["bytes_by_method"].values()) for m in alone}
    assert len({sums[name] for name in SETS}) == 1, "methods move the same halos"
    assert sum(groups["overlap"][0]["bytes_by_method"].values()) < sums["without"], (
        "kernels wrap rows themselves"
    )
    assert sums["without"] < sums["with"] == sums["uniform"]
    assert sums["per field (2, 1)"] < sums["uniform"]
    assert [m["name"] for m in groups["decompositions"]] == list(ablation.DECOMPOSITIONS)
    assert groups["decompositions"][2]["parts"] == (4, 1, 1)
    assert [(m["name"], m["whole"]) for m in groups["overlap"]] == [("without", True), ("with", True)]
    uniform, read = groups["halos of a program"]
    assert sum(uniform["bytes_by_method"].values()) > sum(read["bytes_by_method"].values())
    assert (uniform["whole"], read["whole"]) == (True, True)


def test_placement_is_faster_in_the_worst_case_of_the_paper() -> None:
    """1440 x 1452 x 700 cells over the six GPUs of a Summit node (Pearson et al. 2020, Section IV)."""
    result = ablation.predict_placements(load_machine("summit"), (1440, 1452, 700))
    assert all(m["predicted"] and m["parts"] == (2, 3, 1) for m in result)
    seconds = {m["name"].partition(",")[0]: m["seconds"] for m in result}
    assert seconds["aware"] < 0.95 * max(seconds["trivial"], seconds["random"])
