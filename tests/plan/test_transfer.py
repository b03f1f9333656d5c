"""Transfer methods between subdomains: choice, reason, and names."""

from __future__ import annotations

import pytest

from halocline.errors import InputError
from halocline.plan.decompose import decompose
from halocline.plan.layout import Layout
from halocline.plan.transfer import (
    DEFAULT,
    METHODS,
    Transfers,
    chosen_methods,
    methods_without_ranks,
    needs_ranks,
)

# Eight subdomains along one axis: two per rank, two ranks per node.
WHOLE = decompose((16,), 8, periodic=True, radius=1)
LAYOUT = Layout(WHOLE, 2, 2, ())
PAIRS = [(0, 0), (0, 1), (0, 2), (0, 4)]  # itself, the same rank, the same node, another node


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (DEFAULT, ["self", "peer", "colocated", "mpi"]),
        (("mpi",), ["mpi"] * 4),
        (("colocated", "mpi"), ["mpi", "mpi", "colocated", "mpi"]),
        (("peer", "rma", "mpi"), ["peer", "peer", "rma", "rma"]),
        (("self", "gpu_aware", "mpi"), ["self", "gpu_aware", "gpu_aware", "gpu_aware"]),
    ],
)
def test_the_first_applicable_method_is_used(methods: tuple[str, ...], expected: list[str]) -> None:
    transfers = Transfers(LAYOUT, methods)
    assert [transfers.method(a, b) for a, b in PAIRS] == expected
    assert [transfers.method(b, a) for a, b in PAIRS] == expected
    assert [transfers.is_copied(a, b) for a, b in PAIRS] == [name in ("self", "peer") for name in expected]


def test_the_reason_names_disabled_methods() -> None:
    off = Transfers(LAYOUT, ("mpi",))
    assert [off.reason(a, b) for a, b in PAIRS] == [
        "the subdomain itself, but self and peer are off",
        "the same rank, but peer is off",
        "the same node, but colocated is off",
        "another node",
    ]
    assert [Transfers(LAYOUT).reason(a, b) for a, b in PAIRS] == [
        "the subdomain itself", "the same rank", "the same node", "another node",
    ]  # fmt: skip
    unable = {"colocated": "devices share no memory"}
    assert off.reason(0, 2, unable) == "the same node, but devices share no memory"


@pytest.mark.parametrize(
    ("packing", "packed"), [("all", [True, True]), ("last", [False, True]), ("none", [False, False])]
)
def test_messages_by_mpi_may_be_unpacked(packing: str, packed: list[bool]) -> None:
    transfers = Transfers(LAYOUT, packing=packing)
    assert [transfers.is_packed("mpi", along_last) for along_last in (False, True)] == packed
    assert transfers.is_packed("rma", False)


def test_methods_are_named_in_any_order() -> None:
    assert chosen_methods(None) == DEFAULT
    assert chosen_methods("rma, self") == ("self", "rma", "mpi")
    assert chosen_methods(("mpi", "peer")) == ("peer", "mpi")
    assert chosen_methods(list(METHODS)) == tuple(METHODS)
    with pytest.raises(InputError, match="transfer method 'smoke' is unknown; known: self, peer, "):
        chosen_methods("self,smoke")


def test_one_process_copies_without_messages() -> None:
    assert methods_without_ranks(("self", "mpi")) == ("self", "peer", "mpi")
    assert methods_without_ranks(("rma", "mpi")) == ("peer", "mpi")
    assert needs_ranks(("peer", "mpi"), WHOLE) == ""
    assert needs_ranks(("self", "mpi"), WHOLE).startswith("transfer method mpi needs several ranks")
    assert needs_ranks(("rma", "mpi"), WHOLE).startswith("transfer methods rma, mpi need several ranks")
    alone = decompose((16,), 1, periodic=True, radius=1)
    assert needs_ranks(("self", "mpi"), alone) == ""
    assert needs_ranks(("mpi",), alone) != ""
