"""Stored facts of a checkpoint: valid facts are read, and others are errors."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from halocline.run.output.saved_facts import SavedFacts

FACTS: dict[str, Any] = {
    "identity": {"grid": "g", "equations": "e"},
    "parameters": {"kappa": (0.1).hex()},
    "time": (0.5).hex(),
    "values": {}, "scalars": {}, "ran_with": {},
    "fields": {"u": {"dtype": "float64", "location": "cell", "checksum": "0" * 32}},
    "run": "r", "version": "0.1.0", "made": "2026-01-01", "command": ["halocline", "run"],
    "step": 7,
}  # fmt: skip


def test_metadata_is_read_back_unchanged() -> None:
    facts = SavedFacts.model_validate(FACTS)
    assert float.fromhex(facts.parameters["kappa"]) == 0.1
    assert (facts.step, facts.blocks, facts.case, facts.series) == (7, None, None, [])


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"step": -1}, "step"),
        ({"step": "7"}, "step"),
        ({"time": 0.5}, "time"),
        ({"time": "0.5 s"}, "time"),
        ({"parameters": {"kappa": "0x1p99999"}}, "parameters.kappa"),
        ({"identity": {"grid": "g"}}, "identity.equations"),
        ({"blocks": {"counts": [0], "active": "ff"}}, "blocks.counts.0"),
        ({"blocks": {"counts": [1], "active": "fg"}}, "blocks.active"),
        ({"series": [{"step": -1}]}, "series.0.step"),
        ({"case": {"name": "heat", "n": [0], "given": {}}}, "case.n.0"),
    ],
)
def test_invalid_metadata_is_an_error_with_its_location(change: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SavedFacts.model_validate({**FACTS, **change})
    assert [".".join(map(str, error["loc"])) for error in caught.value.errors()] == [place]


def test_missing_metadata_is_an_error() -> None:
    for name in FACTS:
        with pytest.raises(ValidationError, match=name):
            SavedFacts.model_validate({key: value for key, value in FACTS.items() if key != name})
