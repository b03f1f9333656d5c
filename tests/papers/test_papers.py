"""Tables of papers, and the predictions next to them."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.cli.app import run as command
from halocline.errors import InputError
from halocline.papers import wombat
from halocline.papers.paper import SHARES
from halocline.papers.published import FOLDER, published
from halocline.plan.machine import load_machine
from halocline.study.registry import papers
from halocline.study.study import studies
from step_measurements import runs_of
from suites import cases

# -- every problem in every command --------------------------------------------------------------------------


PLANNED = {
    f"{study.problem} {study.measured_studies}": name for name, study in papers().items() if study.study
}


# papers of each model, and cases with few kernels
@cases(
    "name",
    PLANNED.values(),
    lambda name: (
        name.startswith(("pearson", "umbc"))
        or name in ("astaroth-fig14", "cavity-table1", "cavity-fig7", "cavity-fig8", "wombat-fig8b")
    ),
)
def test_local_measurements_of_papers_can_be_planned(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halocline.papers.paper.Paper.predict", lambda self, places, *rest: places)
    assert runs_of(["study", "paper", name], monkeypatch) > 0


# -- papers --------------------------------------------------------------------------------------------------


def test_every_data_file_has_a_source() -> None:
    names = sorted(path.name.removesuffix(".csv") for path in FOLDER.iterdir() if path.name.endswith(".csv"))
    assert len(names) > 50
    for name in names:
        data = published(name)
        assert data.source, name
        assert data.place, name
        assert data.about, name
    assert set(papers()) <= set(names)


@pytest.mark.parametrize("name", list(papers()))
def test_tables_of_papers_contain_the_published_values(name: str) -> None:
    study, data = papers()[name], published(name)
    places = study.select_configurations(None, None)
    tables = study.tables(places, None)
    assert study.study is None or study.study in studies()
    published_tables = [table for table in tables if table.title.startswith("Published")]
    assert bool(published_tables) == bool(data.rows)
    assert published_tables or data.place in " ".join(study.sentences)
    for table in published_tables:
        assert data.place in table.note.replace("\n", " ")
        assert ("Machine: " in table.note) == (not data.machine.startswith(("none", "not stated")))
    if study.value_key is None:
        rows = {tuple({**row, "bound": None}.items()) for row in data.rows}
        cells = " ".join(cell for table in published_tables for row in table.rows for cell in row).replace(
            ",", ""
        )
        for row in rows:
            for column, value in row:
                if isinstance(value, float | int) and column not in SHARES:
                    assert f"{value:g}" in cells or f"{value:.0f}" in cells or f"{value:.2f}" in cells, column
    else:
        values = [row for row in places if row.get(study.value_key) is not None]
        assert len(
            [cell for table in published_tables for row in table.rows for cell in row[1:] if cell]
        ) == len(values)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("astaroth-fig11", "256 16 64 6 50%"),
        ("astaroth-fig12", "256 6 corners 0.03% to 10%"),
        ("astaroth-fig15a", "large 1024 16 64 Puhti and Mahti 20 to 60"),
        ("pearson-fig12b", "8653 256 6 1536 +kernel staged 1.16"),
        ("cavity-fig11", "Cascades 16 MVAPICH2 about 1%"),
        ("cavity-table2", "1d-i 256 x 256 x 256 512 x 256 x 256 1024 x 256 x 256"),
        ("cavity-table4", "baseline 161.6 (86.1%) 21.4 (11.4%)"),
        ("umbc-3.1", "4096 16,777,216 1 1 1 1.9366e-07 4.03 6452 00:12:44 764.39"),
        ("umbc-5.1", "maya 2009 00:17:05 (1.00) 00:05:55 (2.89) 00:00:35 (29.29) 00:00:08 (128.13)"),
        ("wombat-fig5", "XCBDW 27 32 at least 4,500,000"),
        ("wombat-fig7", "16224 1 16 66,000,000,000 10 60%"),
        ("wombat-table4", "CCE 8.5.4 20 74 0.96 14.1%"),
    ],
)
def test_published_rows_are_printed(name: str, words: str) -> None:
    study = papers()[name]
    text = study.tables(study.select_configurations(None, None), None)[0].text()
    assert words in [" ".join(line.split()) for line in text.splitlines()] or words in " ".join(text.split())


def test_growth_agrees_with_the_published_tables() -> None:
    for name in ("cavity-table1", "cavity-table2"):
        places = papers()[name].select_configurations(None, None)
        assert len(places) == 24
        assert all(row["computed"] == row["shape"] for row in places)


def _predicted(name: str, **conditions: Any) -> list[dict[str, Any]]:
    study = papers()[name]
    rows = [
        row
        for row in study.select_configurations(None, None)
        if all(row[key] in values for key, values in conditions.items())
    ]
    return study.predict(rows, study.prediction_machine(None))  # type: ignore[arg-type]


def test_node_aware_placement_is_faster() -> None:
    """1440 x 1452 x 700 cells on a node of Summit are faster with node-aware placement."""
    rows = _predicted("pearson-fig11")
    times = {row["placement"]: row["predicted"] for row in rows}
    assert times["aware"] == min(times.values())
    assert [row["shape"] for row in rows] == [[1440, 1452, 700]] * 3


def test_predictions_on_one_device_agree_with_the_published_time() -> None:
    (one,) = _predicted("cavity-table3", devices=(1,))[:1]
    assert one["predicted"] == pytest.approx(93.8, rel=0.01)


def test_columns_of_names_are_not_drawn() -> None:
    for name in ("pearson-fig11", "umbc-5.1", "cavity-table3"):
        study = papers()[name]
        assert study.draw(study.select_configurations(None, None)) is None


def test_replaced_parts_of_a_machine_are_reported() -> None:
    study = papers()["umbc-6.3"]
    tables = study.tables(
        [{**row, "predicted": 1.0} for row in study.select_configurations(None, None)],
        study.prediction_machine(None),
    )
    assert "with a network of 1.25 GB/s and a latency of 20 µs" in tables[-1].note.replace("\n", " ")
    assert "Machine: zenith" in tables[0].note


def test_predictions_are_shown_next_to_published_values() -> None:
    study = papers()["umbc-4.1"]
    (row,) = study.predict(study.select_configurations([4096], [1])[:1], study.prediction_machine(None))  # type: ignore[arg-type]
    # one core of Stampede2: the bytes of cg at the memory bandwidth of one core
    assert row["predicted"] == pytest.approx(764, rel=0.1)
    assert row["seconds"] == 784
    many = study.predict(study.select_configurations([4096], [1])[-1:], study.prediction_machine(None))[0]  # type: ignore[arg-type]
    assert many["ranks_per_node"] == 32
    assert 30 < many["predicted"] < 60 == many["seconds"]  # at the bandwidth of a data sheet


@cases("name", ["umbc-3.1", "umbc-5.1", "cavity-table3"], default=["cavity-table3"])
def test_predictions_are_divided_by_published_values(name: str) -> None:
    study = papers()[name]
    rows = study.predict(study.select_configurations(None, None), study.prediction_machine(None))  # type: ignore[arg-type]
    assert (study.compared_key, study.value_key) in {("seconds", None), (None, "seconds"), (None, "ssspnt")}
    divided = [row for row in rows if "predicted_ratio" in row]
    assert len(divided) >= 4
    for row in divided:
        assert row["predicted_ratio"] == row["predicted"] / row[study.compared_key or study.value_key]
    data = published(name).rows
    assert [row.get("ratio") for row in rows] == [row.get("ratio") for row in data], (
        "columns of the data file"
    )


def test_measurements_of_a_paper_fit_the_cores_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options other than --ranks do not change the bound on ranks times threads."""
    from halocline.run.host.process import cores
    from halocline.study import engine

    planned: list[int] = []
    monkeypatch.setattr("halocline.papers.paper.Paper.predict", lambda self, places, *rest: places)

    def plan(request: Any) -> Any:
        planned.extend(layout.ranks * layout.threads for layout in request.study.layouts(request))
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "plan_runs", plan)
    for more in ([], ["--threads", "1"], ["--device", "cpu"]):
        with pytest.raises(KeyboardInterrupt):
            command(["study", "paper", "umbc-4.1", *more])
    assert len(planned) >= 3
    assert max(planned) <= len(cores())


def test_options_without_effect_on_a_paper_are_rejected() -> None:
    with pytest.raises(InputError, match="study convergence does not compare MPI libraries"):
        command(["study", "paper", "umbc-3.1", "--mpis", "package"])
    with pytest.raises(InputError, match=r"--nodes 1,3: umbc-4\.1 has only 1, 2, 4, 8, 16"):
        command(["study", "paper", "umbc-4.1", "--nodes", "1,3", "--not-here"])


@pytest.mark.parametrize(("cores", "threads"), [(1, "1"), (2, "1,2"), (6, "1,2,4,6"), (8, "1,2,4,8")])
def test_thread_counts_end_with_all_cores_of_a_node(
    cores: int, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wombat, "cores", lambda: set(range(cores)))
    measured = {name: papers()[name].measured_studies for name in ("wombat-fig3", "wombat-fig4")}
    assert [options["threads"] for ((_, options),) in measured.values()] == [f"{cores}", threads]


def test_the_network_of_a_paper_is_that_of_its_machine() -> None:
    study = papers()["umbc-6.3"]
    assert study.prediction_machine(None).network.bandwidth == 1.25e9  # type: ignore[union-attr]
    assert study.prediction_machine("summit").network == load_machine("summit").network  # type: ignore[union-attr]
