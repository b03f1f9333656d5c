"""Communication of solvers: messages without packing."""

from __future__ import annotations

import json

import pytest

from halocline.cli.app import run
from halocline.problems.problem import Problem


@pytest.mark.ranks(2)
def test_unpacked_cells_are_not_overwritten_while_sent() -> None:
    """Long messages of stages in place are not overwritten, although MPI reads them only on request."""
    from mpi4py import MPI

    case = Problem("cavity-2d", (8, 20_000), {"stages": 3, "watch": 5})
    options = {"communication": "baseline", "decomposition": "1d-x", "threads": 2, "patch": (4, 500)}
    checksum = case.run(steps=4, **options).record.checksum
    assert checksum == case.run(steps=4, threads=1, communicator=MPI.COMM_SELF).record.checksum


def test_explain_shows_unpacked_messages(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--n", "16", "--ranks", "8", "--set", "stages=1", "--json", "-"]
    sent = {}
    for name in ("v2", "v3"):
        assert run(["explain", "cavity", *options, "--communication", name]) == 0
        explanation = json.loads(capsys.readouterr().out)
        sent[name] = explanation["pass"]["bytes_sent"], explanation["pass"]["bytes_not_packed"]
    assert sent["v2"][0] == sent["v3"][0] > sent["v2"][1] > sent["v3"][1] == 0
    assert run(["explain", "cavity", *options[:-2], "--communication", "v2"]) == 0
    assert " without packing" in capsys.readouterr().out


@pytest.mark.usefixtures("opencl")
@pytest.mark.ranks(2)
def test_devices_copy_rows_without_packing() -> None:
    from mpi4py import MPI

    case = Problem("cavity-2d", (20, 18), {"stages": 1, "watch": 5})
    alone = case.run(steps=4, threads=1, communicator=MPI.COMM_SELF, device="cpu").record.checksum
    for name, cut in (("baseline", "1d-y"), ("baseline", "1d-x"), ("v1", "1d-x"), ("v1", "1d-y")):
        options = {"communication": name, "decomposition": cut, "device": "opencl:0"}
        assert case.run(steps=4, **options).record.checksum == alone, options
