"""Named communication schemes: conflicts with other options."""

from __future__ import annotations

from typing import Any

import pytest

import halocline as hc
from halocline.run.domain.execution import Execution


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"communication": "v4"}, "communication 'v4' is unknown; known: baseline, v1"),
        ({"communication": "v2", "halo": "uniform"}, "halo is 'uniform', but communication v2 sets it"),
        (
            {"communication": "v2", "methods": "self,mpi"},
            "methods is ('self', 'mpi'), but communication v2 set",
        ),
        ({"communication": "v3", "overlap": True}, "overlap is True, but communication v3 sets it"),
        ({"communication": 3}, "communication 3 is unknown"),
        ({"gpudirect": True}, "gpudirect needs the option communication. Without this option, add"),
        ({"gpudirect": 1, "communication": "v3"}, "gpudirect 1: expected True or False"),
        ({"packing": "first"}, "packing 'first' is unknown; known: all, last, none"),
    ],
)
def test_contradictory_options_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(hc.InputError) as caught:
        Execution(**options)
    assert words in str(caught.value)


def test_consistent_methods_are_accepted() -> None:
    assert Execution(communication="v2", methods="mpi").methods == ("mpi",)


def test_packing_without_matching_messages_is_reported() -> None:
    (notice,) = Execution(packing="none", device="cpu").ignored_options
    assert notice.startswith("packing none applies only to MPI messages, but self, peer, colocated have")
    assert Execution(packing="none", methods="mpi", device="cpu").ignored_options == ()
    assert Execution(communication="baseline", device="cpu").ignored_options == ()
