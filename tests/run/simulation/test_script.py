"""Options of execution on the command line: they replace those in a user file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from halocline.cli.app import run
from halocline.errors import InputError
from user_files import SOLVE, heat, json_result, record_of_run

__all__ = ["heat"]  # a fixture


# -- execution of a file -------------------------------------------------------------------------------------


@pytest.fixture
def configured(heat: Path) -> Path:
    """Return a file that sets options of execution."""
    options = "order=4, schedule='static', halo='uniform', patch=(8, 8), overlap=False"
    heat.write_text(heat.read_text().replace("order=4", options))
    return heat


OWN = {
    "schedule": "static", "halo": "uniform", "patch": "8,8", "overlap": "off", "methods": None,
    "decomposition": "optimal", "packing": "all", "communication": None, "mailboxes": 2, "kernels": "auto",
    "subdomains_per_rank": 1, "ranks_per_node": None, "only": None, "threads": 1,
}  # fmt: skip


def of_own(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in OWN}


def test_options_of_the_command_replace_those_of_a_file(configured: Path, tmp_path: Path) -> None:
    plain = record_of_run(configured, "--threads", "1", cwd=tmp_path)
    assert of_own(plain) == OWN
    before = ["--halo", "read", "--methods", "self,peer,mpi", "--subdomains-per-rank", "2"]
    after = ["--threads", "2", "--overlap", "on", "--patch", "4,16", "--decomposition", "2x1"]
    other = record_of_run(*before, configured, *after, cwd=tmp_path)
    replaced = {
        "halo": "read", "methods": "self,peer,mpi", "subdomains_per_rank": 2, "threads": 2, "overlap": "on",
        "patch": "4,16", "decomposition": "2x1",
    }  # fmt: skip
    assert of_own(other) == {**OWN, **replaced}
    assert (other["checksum"], other["steps"]) == (plain["checksum"], plain["steps"])


def test_options_of_execution_reach_all_ranks_and_problems_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(
        SOLVE.replace("u, 1.0", "u, 1.0, packing='last'")
        + "two = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.1)\ntwo.run(steps=2)\n"
        + "how = [p.domain.execution for p in (solution.fields, two)]\n"
        + "assert all((h.packing, h.methods, h.ranks_per_node) == ('none', ('mpi',), 1) for h in how)\n"
    )
    words = [
        "--ranks",
        "2",
        "--threads",
        "1",
        "--methods",
        "mpi",
        "--packing",
        "none",
        "--ranks-per-node",
        "1",
    ]
    record = json_result("run", path, *words, cwd=tmp_path)["run"]
    assert (record["methods"], record["packing"], record["ranks_per_node"]) == ("mpi", "none", 1)


def test_invalid_execution_options_are_rejected_before_a_file_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def check(problem):\n    pass\n\nraise ValueError('begun')\n")
    for words, message in (
        (["--schedule", "some"], "schedule 'some' is unknown"),
        (["--communication", "v1", "--methods", "peer"], "Leave methods out"),
        (["--only", "some"], "--only some: expected one of compute, exchange"),
        (["--only", "compute", "--check"], r"Leave --check out\."),
        (["--only", "compute", "--state", "s.npz"], r"Leave --state out\."),
    ):
        with pytest.raises(InputError, match=message):
            run(["run", str(path), *words])


@pytest.mark.parametrize(
    "words",
    [
        ["--patch", "3"],
        ["--methods", "mpi"],
        ["--steps", "5"],
        ["--until", "1"],
        ["--every", "2"],
        ["--output", "o.zarr"],
        ["--checkpoint", "ck", "--keep", "3"],
        ["--overwrite"],
        ["--io-threads", "2"],
        ["--pictures", "p"],
        ["--state", "s.npz"],
        ["--trace", "t.json"],
    ],
)
def test_execution_options_are_rejected_for_a_file_without_a_problem(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.py"
    path.write_text("import sys\nassert sys.argv[1:] == ['--patch', '4']\n")
    with pytest.raises(
        InputError, match=rf"^{words[0]}\b.*so the option has no effect\. Leave the option out\."
    ):
        run(["run", str(path), *words, "--", "--patch", "4"])
    with pytest.raises(InputError, match="ran no problem with steps, so there is nothing to time"):
        run(["run", str(path), "--only", "compute", "--", "--patch", "4"])


def test_parts_of_the_steps_of_a_file_are_timed(
    configured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = record_of_run(configured, "--threads", "1", cwd=tmp_path)
    part = record_of_run(configured, "--threads", "1", "--only", "compute", "--halo", "read", cwd=tmp_path)
    assert capsys.readouterr().out.startswith("computation alone, without messages: ")
    assert of_own(part) == {**OWN, "only": "compute", "halo": "read"}
    assert part["steps"] == whole["steps"]
    assert part["ns_per_cell_step"] > 0
    assert (part["time"], part["checksum"], part["error"]) == (None, None, None)
    configured.write_text(SOLVE)
    part = record_of_run(configured, "--threads", "1", "--only", "exchange", cwd=tmp_path)
    assert part["steps"] > 10
    assert part["share_of_bound"] is None
