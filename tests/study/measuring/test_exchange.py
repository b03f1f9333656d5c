"""The exchange alone: the output of its benchmark."""

from __future__ import annotations

from typing import Any

import pytest

from halo_checks import METHODS_IN_TURN, check_exchange
from halocline.errors import InputError
from halocline.run.ranks.mpi import world
from halocline.study.measuring import exchange
from halocline.study.measuring.exchange import distribute_subdomains, measure, weak_shape
from loops import some


def test_an_invalid_check_variable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_CHECK", "yes")
    with pytest.raises(ValueError, match="HALOCLINE_CHECK is yes, expected 0 or 1"):
        check_exchange((12, 13), 1, "float64", 1, True, threads=1)


@pytest.mark.ranks(1, 2, long=(1,))
def test_the_measurement_has_the_expected_values() -> None:
    whole, interior = 20**3, 16**3
    for methods in some(METHODS_IN_TURN):
        actual = measure(
            (16, 16, 16), radius=2, fields=3, dtype="float64", repeats=2, threads=1, methods=methods
        )
        assert actual["seconds"] > 0
        assert actual["ranks"] == world().size
        assert actual["hosts"] == 1
        assert set(actual["methods_used"]) == set(actual["bytes_by_method"])
        if actual["ranks"] == 1:
            around = next(m for m in ("self", "peer", "rma", "mpi") if m in methods)
            assert actual["messages"] == (around in ("rma", "mpi"))
            assert actual["bytes_by_method"] == {around: (whole - interior) * 3 * 8}
        else:
            assert actual["parts"] == (2, 1, 1)
            across = 2 * 2 * 20 * 20
            around = 12 * 20 * 20 - 8 * 16 * 16 - across
            expected: dict[str, int] = {}
            for method, cells in (
                (next(m for m in ("colocated", "rma", "mpi") if m in methods), across),
                (next(m for m in ("self", "peer", "rma", "mpi") if m in methods), around),
            ):
                expected[method] = expected.get(method, 0) + cells * 3 * 8
            assert actual["bytes_by_method"] == expected
        assert actual["rate"] == sum(actual["bytes_by_method"].values()) / actual["seconds"]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("methods", ["mpi", "colocated,mpi", "rma,mpi"])
def test_only_cut_axes_are_exchanged(axis: int, methods: str) -> None:
    """Only cut axes are exchanged if no other axis is periodic; benchmarks/exchange.py relies on it."""
    cut = tuple(2 if a == axis else 1 for a in range(3))
    result = measure(
        tuple(8 * parts for parts in cut),
        radius=3,
        fields=2,
        corners=False,
        periodic=[parts == 2 for parts in cut],
        repeats=1,
        threads=1,
        decomposition=cut,
        methods=methods,
    )
    assert result["parts"] == cut
    assert result["bytes_by_method"] == {methods.partition(",")[0]: 2 * 3 * 8 * 8 * 2 * 4}


def test_weak_scaling_grows_the_grid() -> None:
    assert weak_shape(750, 1) == (750, 750, 750)
    assert weak_shape(750, 6) == (1363,) * 3  # Pearson et al. (2020): round(750 count^(1/3))³
    assert weak_shape(100, 4, 2) == (200, 200)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"radius": 0}, "radius is 0; expected a whole number from 1"),
        ({"fields": 0}, "fields is 0; expected a whole number from 1"),
        ({"repeats": 0}, "repeats is 0; expected a whole number from 1"),
        ({"dtype": "float16"}, "dtype 'float16' is unknown"),
        ({"radius": 9}, "reach 9 cells"),
    ],
)
def test_invalid_numbers_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        measure((8, 8), **options)


def test_subdomains_are_distributed_over_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert distribute_subdomains(None, 3, "cpu") == (3, 1)
    assert [distribute_subdomains(6, ranks, "cpu") for ranks in (1, 2, 6)] == [(6, 6), (6, 3), (6, 1)]
    with pytest.raises(InputError, match=r"6 subdomains .* evenly over 4 ranks. Use a multiple of 4"):
        distribute_subdomains(6, 4, "cpu")
    monkeypatch.setattr(exchange, "select_local_devices", lambda choice: ["a", "b"])
    # one rank drives both devices, two ranks have one device each, and six ranks share them
    assert [distribute_subdomains(6, ranks, "opencl") for ranks in (1, 2, 6)] == [(6, 3), (6, 3), (6, 1)]
    assert distribute_subdomains(None, 1, "opencl") == (2, 1)
    with pytest.raises(InputError, match=r"over 1 rank of 2 devices\. Use a multiple of 2"):
        distribute_subdomains(3, 1, "opencl")
