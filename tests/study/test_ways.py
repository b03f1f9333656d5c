"""Comparison of several options of a run."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.errors import InputError
from halocline.study.engine import plan_runs
from halocline.study.layout import AFFINITIES
from halocline.study.measuring.command import Command
from halocline.study.reporting.report import Group
from halocline.study.study import StudyRequest, studies
from halocline.study.ways import VARIANT_COMPARISON, labels, unless_varied, varied_keys
from step_measurements import step


def request(study: str, options: dict[str, Any], ranks: tuple[int, ...] = (1, 2)) -> StudyRequest:
    command = Command("run", "heat", {"steps": 4, "dim": 2})
    return StudyRequest(studies()[study], command, (16,), ranks, (1,), options)


def test_each_configuration_runs_on_each_layout() -> None:
    """Each option is run on each layout, except on one subdomain, which exchanges no halos."""
    runs = plan_runs(request("strong", {"communication": "baseline,v3", "decomposition": "1d-x,1d-y"}))
    runs_of_study = [(r.layout.ranks, r.command.communication, r.command.decomposition) for r in runs]
    assert runs_of_study == [
        *((1, "baseline", "1d-x"), (2, "baseline", "1d-x"), (2, "baseline", "1d-y")),
        *((2, "v3", "1d-x"), (2, "v3", "1d-y")),
    ]
    assert all("communication v3" in r.description for r in runs[-2:])


def test_bindings_are_compared_on_one_subdomain_too() -> None:
    runs = plan_runs(request("strong", {"affinity": "close,scatter"}, ranks=(1,)))
    assert [r.command.environment.get("KMP_AFFINITY") for r in runs] == [None, "scatter"]
    assert runs[0].command.environment["OMP_PLACES"] == "cores"
    assert runs[1].command.environment["OMP_PROC_BIND"] is None, "removed"


def test_grids_of_growth_2_follow_each_cut() -> None:
    """Growth 2 extends the axes that are cut (the cavity code, Table 2)."""
    runs = plan_runs(request("weak", {"growth": "1,2", "decomposition": "1d-x,1d-y"}))
    shapes = [(r.layout.ranks, r.facts["growth"], r.command.decomposition, r.shape) for r in runs]
    assert shapes == [
        (1, 1, "1d-x", (16, 16)),
        (2, 1, "1d-x", (32, 16)),
        (2, 1, "1d-y", (32, 16)),
        (2, 2, "1d-x", (32, 16)),
        (2, 2, "1d-y", (16, 32)),
    ]


def ways() -> list[dict[str, Any]]:
    """Return one subdomain, and two subdomains by two versions."""
    base = {"communication": "v2", "ns_per_cell_step": 8.0, "ssspnt": 4.0}
    return [
        step(ranks=1, **base),
        step(ranks=2, **{**base, "ns_per_cell_step": 5.0, "ssspnt": 3.2}),
        step(ranks=2, **{**base, "communication": "v3", "ns_per_cell_step": 4.0, "ssspnt": 4.0}),
    ]


def test_efficiency_is_relative_to_the_measured_single_subdomain() -> None:
    """The base of the efficiency is the measured single subdomain (the cavity code, Tables 3 and 4)."""
    times, rates, ratios = VARIANT_COMPARISON.tables(Group(ways()))
    assert [row[0] for row in times.rows] == ["one subdomain", "v2", "v3"]
    assert [row[1:] for row in rates.rows] == [("4 (100%)", ""), ("", "3.2 (80%)"), ("", "4 (100%)")]
    assert [row[2] for row in ratios.rows] == ["", "1.00", "0.80"]
    (sentence,) = VARIANT_COMPARISON.sentences(Group(ways()))
    assert sentence == "n = 16, 2 ranks of 1 thread: fastest is v3; v2 takes 1.25 times as long."


def test_efficiency_needs_the_single_subdomain() -> None:
    _, rates, _ = VARIANT_COMPARISON.tables(Group(ways()[1:]))
    assert [row[1] for row in rates.rows] == ["3.2", "4"]
    assert "which was not measured" in rates.note.replace("\n", " ")


def test_unused_gpudirect_is_reported() -> None:
    runs = [
        step(ranks=2, communication="v3", gpudirect=switch, methods_used=["mpi"]) for switch in ("off", "on")
    ]
    assert any(
        "MPI cannot send from device memory on this machine" in text
        for text in VARIANT_COMPARISON.sentences(Group(runs))
    )


@pytest.mark.parametrize("name", list(AFFINITIES))
def test_a_binding_has_the_name_of_its_option(name: str) -> None:
    other = "spread" if name == "none" else "none"
    runs = [step(ranks=2, environment=dict(AFFINITIES[binding])) for binding in (name, other)]
    group = Group(runs)
    assert labels(group)[id(runs[0])] == f"binding {name}"
    assert varied_keys(group) == ["environment"]


def test_other_variables_are_shown_with_the_binding() -> None:
    close = dict(AFFINITIES["close"])
    runs = [step(ranks=2, environment={**close, "FI_PROVIDER": provider}) for provider in (None, "tcp")]
    assert list(labels(Group(runs)).values()) == ["binding close", "binding close FI_PROVIDER=tcp"]


def test_other_tables_are_omitted_if_configurations_are_compared() -> None:
    assert unless_varied(VARIANT_COMPARISON).select_group(Group(ways())).members == []
    assert VARIANT_COMPARISON.select_group(Group(ways()[:2])).members == []


def test_the_baseline_of_efficiency_has_the_same_binding() -> None:
    rates = {"close": (4.0, 4.0), "spread": (8.0, 4.0)}
    runs = [
        step(ranks=ranks, ssspnt=rate, environment=dict(AFFINITIES[name]))
        for name, pair in rates.items()
        for ranks, rate in zip((1, 2), pair, strict=True)
    ]
    _, table, _ = VARIANT_COMPARISON.tables(Group(runs))
    assert [row[1:] for row in table.rows] == [("4 (100%)", "4 (100%)"), ("8 (100%)", "4 (50%)")]


def test_orders_are_not_compared_as_configurations() -> None:
    runs = [
        step(ranks=2, order=order, communication=name, ns_per_cell_step=100.0 * order)
        for order in (2, 4)
        for name in ("v2", "v3")
    ]
    tables = list(VARIANT_COMPARISON.tables(VARIANT_COMPARISON.select_group(Group(runs))))
    assert len(tables) == 3
    assert not any(";" in cell for table in tables for row in table.rows for cell in row)


def test_grids_of_one_size_have_separate_tables() -> None:
    runs = [
        step(ranks=2, n=16, shape=shape, communication=name)
        for shape in ([16, 24], [24, 16])
        for name in ("v2", "v3")
    ]
    times = [table for table in VARIANT_COMPARISON.tables(Group(runs)) if table.heading]
    assert [table.heading.partition(":")[0] for table in times] == ["n = 16, 16 x 24", "n = 16, 24 x 16"]
    assert all(len(table.rows) == 2 and ";" not in table.rows[0][1] for table in times)


def test_missing_values_of_records_are_reported() -> None:
    """Records of earlier versions have no transfer methods, and the report says so."""
    runs = [step(ranks=2), step(ranks=2, methods_used=["mpi"])]
    assert list(labels(Group(runs)).values()) == ["methods not recorded", "by mpi"]


def test_devices_are_separate_configurations() -> None:
    runs = [step(ranks=2, device=device) for device in ("cpu", "opencl:0")]
    assert list(labels(Group(runs)).values()) == ["cpu", "opencl"]


def test_subdomains_of_a_rank_are_included_in_the_exchange() -> None:
    """One rank with four subdomains exchanges halos, so that it is no base of an efficiency."""
    runs = [step(ranks=1, parts=[2, 2], decomposition=cut, ssspnt=1.0) for cut in ("1d-x", "2d")]
    _, rates, _ = VARIANT_COMPARISON.tables(Group(runs))
    assert [row[:2] for row in rates.rows] == [("1d-x", "1"), ("2d", "1")]


def test_exclusive_options_are_detected_before_any_run() -> None:
    with pytest.raises(InputError, match="gpudirect needs the option communication"):
        plan_runs(request("strong", {"gpudirect": "off,on"}))
    with pytest.raises(InputError, match="--communication v3,v3: a value is given twice"):
        plan_runs(request("strong", {"communication": "v3,v3"}))
