"""Studies reduced to small runs."""

from __future__ import annotations

from typing import Any

from halocline.study.reporting.report import Group
from halocline.study.study import studies


def reduced_command(name: str, *, ranks: str | None = None) -> list[str]:
    """Return the command line of a study on small grids, from its declaration alone."""
    study = studies()[name]
    problem = "heat" if study.subcommand == "run" else "exchange"
    words = ["study", name, problem, "--repeat", "1", "--n", "8,16,32" if study.runs_to_end else "16"]
    for option in study.varied_options:
        if option.default is not None:
            words += [option.form.partition(" ")[0], ",".join(option.default.split(",")[:2])]
    if problem == "heat":
        words += ["--dim", "1"] + ([] if study.runs_to_end else ["--steps", "4"])
    if study.runs_to_end:
        return words
    return [*words, "--ranks", ranks or study.ranks, "--threads", study.threads.rpartition(",")[2]]


def _check_result(name: str, result: Any, count: int) -> None:
    measured = result if isinstance(result, list) else result["measurements"]
    assert len(measured) == count > 0
    assert {m["study"] for m in measured} == {name}
    for alike in Group(measured).split(lambda m: (tuple(m["shape"]), m["order"] or 0)):
        assert len(alike.values("checksum") - {None}) <= 1  # only the order may change the bits
