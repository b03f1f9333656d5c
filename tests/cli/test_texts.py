"""Texts of options: numbers of cells, patches, overlap and parts of steps."""

from __future__ import annotations

import pytest

from halocline.cli.texts import cells_of, check_part, overlap_of, patch_edges
from halocline.errors import InputError
from halocline.run.tuning.patches import BY_CACHES, TUNE


def test_cells_are_parsed() -> None:
    assert [cells_of(text) for text in (None, "64", "64, 32,1")] == [None, [64], [64, 32, 1]]
    for text in ("0", "-3", "8,", "8x8", "1.5", ""):
        with pytest.raises(InputError, match=f"--n {text}: expected positive whole numbers of cells"):
            cells_of(text)


def test_patches_are_edges_or_words() -> None:
    assert [patch_edges(text) for text in (None, "32", "8,16", TUNE)] == [None, 32, [8, 16], TUNE]
    assert patch_edges(BY_CACHES) == BY_CACHES
    for text in ("x", "8,,8", "0", "1.5"):
        with pytest.raises(InputError, match=f"--patch {text}: "):
            patch_edges(text)


def test_overlap_is_on_off_or_automatic() -> None:
    assert [overlap_of(text) for text in ("on", "off", "auto")] == [True, False, "auto"]
    with pytest.raises(InputError, match="--overlap yes: expected auto, on or off"):
        overlap_of("yes")


def test_a_part_of_a_step_has_no_checksum() -> None:
    check_part("compute", {"json": None})
    with pytest.raises(InputError, match="--only all: expected "):
        check_part("all", {})
    for value, text in ((True, "--check:"), ("a.csv", "--check a.csv:")):
        with pytest.raises(InputError, match=rf"{text} --only compute .* Leave --check out\."):
            check_part("compute", {"check": value})
