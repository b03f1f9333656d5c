"""Options of a run: valid combinations, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.errors import InputError
from halocline.run.domain.execution import Execution


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"patch": "large"}, "patch 'large': expected edge lengths in cells, 'tune' or 'caches'"),
        ({"schedule": "random"}, "schedule 'random' is unknown; known: guided, static, dynamic"),
        ({"halo": "wide"}, "halo 'wide' is unknown; known: "),
        ({"packing": "some"}, "packing 'some' is unknown; known: all, last, none"),
        ({"overlap": "on"}, "overlap 'on': expected \"auto\", True or False"),
        ({"gpudirect": 1}, "gpudirect 1: expected True or False"),
        ({"gpudirect": True}, "gpudirect needs the option communication. Without this option, add"),
        ({"methods": "smoke"}, "transfer method 'smoke' is unknown"),
        ({"device": "tpu"}, "tpu"),
        ({"threads": 0}, "threads"),
        ({"subdomains_per_rank": 0}, "subdomains_per_rank"),
        ({"mailboxes": 0}, "mailboxes"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        Execution(**options)
    assert words in str(caught.value)


def test_named_patch_choices_set_no_shape() -> None:
    assert [Execution(patch=patch).patch_shape for patch in (None, "tune", "caches")] == [None] * 3
    assert Execution(patch=(8, 16)).patch_shape == (8, 16)


def test_the_environment_selects_devices_without_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HALOCLINE_DEVICE", raising=False)
    assert Execution().devices == Execution(device="cpu").devices
    monkeypatch.setenv("HALOCLINE_DEVICE", "opencl:1")
    assert Execution().devices == Execution(device="opencl:1").devices
    assert Execution(device="cpu").devices != Execution().devices
    monkeypatch.setenv("HALOCLINE_DEVICE", "tpu")
    with pytest.raises(InputError, match="HALOCLINE_DEVICE: "):
        _ = Execution().devices


def test_methods_are_sorted_by_priority() -> None:
    assert Execution(methods="mpi,self").allowed_methods == ("self", "mpi")
    assert Execution(methods=("rma",)).allowed_methods == ("rma", "mpi")


@pytest.mark.parametrize(
    ("name", "chosen"), [("v1", ("faces", "last", False)), ("v3", ("read", "all", False))]
)
def test_a_named_communication_chooses_its_options(name: str, chosen: tuple[Any, ...]) -> None:
    execution = Execution(communication=name)
    assert (execution.halo, execution.packing, execution.overlap) == chosen
    with pytest.raises(InputError, match=f"packing is 'none', but communication {name} sets it. Leave"):
        Execution(communication=name, packing="none")
