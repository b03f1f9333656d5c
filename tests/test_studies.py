"""Studies as declarations, tables of papers, jobs and joined reports."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import preloaded
from halocline.cli.app import run
from halocline.errors import InputError
from halocline.physics.cases import cases
from halocline.plan.growth import grown, grown_as_cut
from halocline.plan.machine import load_machine
from halocline.problems.case import PARTS
from halocline.study import joining
from halocline.study.engine import plan, reported
from halocline.study.measuring.command import Command, measure
from halocline.study.papers import SHARES, papers
from halocline.study.reporting.published import FOLDER, published
from halocline.study.studies.hybrid import factors
from halocline.study.study import Asked, Study, Sweep, studies

SOURCE = Path(__file__).parents[1] / "src" / "halocline" / "study"


def halocline(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return preloaded.halocline(*words, cwd=cwd, timeout=300)


def found(*words: str, cwd: Path) -> Any:
    done = halocline(*words, "--json", "found.json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads((cwd / "found.json").read_text())


# -- declarations --------------------------------------------------------------------------------------------


def test_a_new_study_is_one_short_file() -> None:
    """Those that compare one option, as a new one would."""
    for name in ("ablation", "affinity", "libraries", "nodes"):
        text = (SOURCE / "studies" / f"{name}.py").read_text()
        assert len(text.splitlines()) <= 60
    named = {path.stem for path in (SOURCE / "studies").glob("*.py")} - {"__init__"}
    for folder in (SOURCE, SOURCE.parent / "cli"):
        for path in folder.rglob("*.py"):
            if path.parent.name != "studies" and path.name != "studies.py":
                assert not re.search(r"study\.studies\.(affinity|libraries|nodes|patches)", path.read_text())
    assert {"strong", "weak", "hybrid", "patches", "convergence", "umbc"} <= named
    names = {*studies(), *cases()} - set(PARTS)  # `--only exchange` is about a part of a step
    compared = re.compile(rf'[=!]= "({"|".join(sorted(names))})"')
    for path in (*SOURCE.glob("*.py"), *(SOURCE.parent / "cli").rglob("*.py")):
        assert not compared.search(path.read_text()), f"{path}: no line is about one study or case"


def test_a_study_runs_each_option_on_each_layout() -> None:
    own = Study(
        "packed", "Packed", "", "", (),
        sweeps=(Sweep("packing", "--packings P,P", "", "all,none"),),
        variants=({}, {"overlap": "off"}),
    )  # fmt: skip
    asked = Asked(own, Command("run", "heat", {"steps": 4, "dim": 1}), (16, 32), (1, 2), (1,))
    runs = plan(asked)
    assert [(r.n, r.ranks, r.command.packing, r.command.overlap) for r in runs[:4]] == [
        (16, 1, "all", "auto"), (16, 1, "none", "auto"), (16, 1, "all", "off"), (16, 1, "none", "off"),
    ]  # fmt: skip
    assert len(runs) == 2 * 2 * 2 * 2
    assert {r.command.warm_up for r in runs} == {2}
    assert runs[-1].command.words()["--packing"] == "none"


def test_grids_grow_with_ranks() -> None:
    assert [grown((8, 8, 8), count) for count in (1, 2, 4, 12)] == [
        (8, 8, 8), (16, 8, 8), (16, 16, 8), (16, 16, 24),
    ]  # fmt: skip
    assert grown_as_cut((8, 8, 8), 4, "1d-z") == (8, 8, 32)
    assert grown_as_cut((8, 8, 8), 8, "3d") == (16, 16, 16)


def test_cores_are_shared_out_in_every_way() -> None:
    assert factors([2], [2]) == [(1, 4), (2, 2), (4, 1)]
    assert factors([1], [6]) == [(1, 6), (2, 3), (3, 2), (6, 1)]


def test_a_solve_has_the_keys_of_steps(tmp_path: Path) -> None:
    one = measure(Command("run", "poisson", {"dim": 3}), 8, ranks=1, threads=1)
    assert (one["shape"], one["cells"], one["steps"]) == ([8, 8, 8], 512, one["iterations"])
    assert one["ns_per_cell_step"] == pytest.approx(1e9 * one["seconds_per_iteration"] / 512)
    assert one["ssspnt"] == pytest.approx(1e-7 * 512 / one["seconds_per_iteration"])


# -- every problem in every verb -----------------------------------------------------------------------------


def test_a_linear_problem_is_a_case(tmp_path: Path) -> None:
    solved = found("solve", "poisson", "--n", "32", "--threads", "1", cwd=tmp_path)
    case = found("run", "poisson", "--n", "32", "--threads", "1", "--ranks", "2", cwd=tmp_path)
    assert (case["iterations"], case["error_max"]) == (solved["iterations"], solved["error_max"])
    assert case["checksum"] == case["checksums"]["u"] == solved["checksum"]
    assert solved.keys() <= case.keys()
    assert (case["steps"], case["time"], case["converged"]) == (solved["iterations"], None, True)
    loose = found("run", "poisson", "--n", "32", "--set", "rtol=0.1", "--set", "method=cg", cwd=tmp_path)
    assert loose["iterations"] < case["iterations"]
    part = found("run", "poisson", "--n", "32", "--only", "compute", "--steps", "3", cwd=tmp_path)
    assert (part["only"], part["checksum"]) == ("compute", None)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run poisson --n 8 --until 1", "until: poisson is a linear problem"),
        ("run poisson --n 8 --order 4", "order is 4, but poisson is a program"),
        ("run poisson --n 8,4", "expected as many points along each axis"),
        ("run poisson --n 8 --only compute", "has no number of steps by default"),
        ("study strong poisson --steps 3", "--steps 3: poisson is a linear problem, which has none"),
        ("study strong heat --method cg", "--method cg: heat is no linear problem"),
        ("study weak poisson --n 16 --growth 2", "--growth 2: poisson has one number for its size"),
        ("study weak heat --n 16 --growth 3", "'--growth': 3; expected 1 or 2"),
        ("study exchange exchange --dim 2", "--dim 2: the study decides that of exchange"),
        ("study orders poisson --n 8", "order is 2"),
        ("study hybrid heat --nodes 2", "--nodes 2: it is for the jobs of --submit"),
        ("study strong heat --submit slurm --html a.html", "--html a.html: the page and tables are made of"),
        ("study strong heat --submit slurm --ranks 2 --per-node 2", "--ranks 2: --per-node says how many"),
        ("study strong heat --steps 4 --overwrite", "--overwrite: it is for the jobs of --submit"),
        ("study exchange heat", "this study is of the exchange alone"),
        ("study libraries heat --steps 3 --pythons /nowhere/python", "there is no file /nowhere/python"),
        ("study paper umbc-9.9", "table or figure 'umbc-9.9' is unknown"),
        ("study paper umbc-4.1 --n 100", "--n 100: umbc-4.1 has 1024, 2048, 4096"),
        ("study paper wombat-fig4 --n 100", "--n 100: wombat-fig4 is not over n: leave it out"),
        (
            "study paper wombat-fig5 --machine summit",
            "--machine summit: the model predicts nothing of wombat",
        ),
        ("study paper umbc-4.1 --machine nowhere", "nowhere"),
        ("study paper umbc-4.1 --not-here --ranks 2", "--ranks 2: --not-here measures nothing"),
        ("study paper umbc-3.1 --ranks 1,2", "--ranks 1,2: study convergence takes one number"),
        ("study strong heat --submit lsf --steps 4", "--submit lsf: expected slurm or pbs"),
        ("study report /proc/nothing.json", "cannot read /proc/nothing.json"),
    ],
)
def test_what_a_problem_does_not_take_is_refused(line: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        run(line.split())


def test_overlap_is_measured_of_cases_and_files(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import halocline as hc\nn = 16\ngrid = hc.Grid((n, n), periodic=True)\nu = grid.field('u')\n"
        "sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5)\n"
        "sim[u] = 1.0\nsim.run(steps=2)\n"
    )
    for name in ("wave", "poisson", "own.py"):
        told = found("study", "overlap", name, "--n", "16", "--ranks", "2", "--repeat", "1", cwd=tmp_path)
        assert {own["name"] for own in told["methods"]} == {"colocated", "mpi", "rma"}, name
        assert all(own["step"] > 0 for own in told["methods"])
        assert told["case"] == name


COMPARED: list[Any] = [
    ("hybrid", "poisson", ["--n", "24", "--ranks", "1", "--threads", "2"], 2),
    ("patches", "heat", ["--n", "16", "--patches", "8,16", "--threads", "1", "--steps", "4"], 2),
    ("affinity", "heat", ["--n", "16", "--threads", "1", "--steps", "4"], 3),
    ("nodes", "heat", ["--n", "16", "--steps", "4"], 2),
    ("exchange", "exchange", ["--n", "8"], 5),
    ("libraries", "heat", ["--n", "16", "--ranks", "1", "--steps", "4"], 1),
    pytest.param("ablation", "heat", ["--n", "16", "--steps", "4", "--dim", "2"], 10, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("name", "problem", "words", "count"), COMPARED, ids=lambda each: str(each)[:12])
def test_studies_that_compare(name: str, problem: str, words: list[str], count: int, tmp_path: Path) -> None:
    told = found("study", name, problem, *words, "--repeat", "1", "--html", "s.html", cwd=tmp_path)
    measured = told if isinstance(told, list) else told["measurements"]
    assert len(measured) == count
    assert {m["study"] for m in measured} == {name}
    sums = {m["checksum"] for m in measured}
    assert len(sums) == 1  # no option changes a bit
    assert studies()[name].title in (tmp_path / "s.html").read_text()


# -- papers --------------------------------------------------------------------------------------------------


def test_every_data_file_says_where_it_comes_from() -> None:
    names = sorted(path.name.removesuffix(".csv") for path in FOLDER.iterdir() if path.name.endswith(".csv"))
    assert len(names) > 50
    for name in names:
        data = published(name)
        assert data.source, name
        assert data.place, name
        assert data.about, name
    assert set(papers()) <= set(names)


@pytest.mark.parametrize("name", list(papers()))
def test_tables_of_papers_hold_what_is_published(name: str) -> None:
    own, data = papers()[name], published(name)
    places = own.places_of(None, None)
    tables = own.tables(places, None)
    assert own.study is None or own.study in studies()
    shown = [table for table in tables if table.title.startswith("Published")]
    assert bool(shown) == bool(data.rows)
    assert shown or data.place in " ".join(own.said)
    for table in shown:
        assert data.place in table.note.replace("\n", " ")
        assert ("Machine: " in table.note) == (not data.machine.startswith("none"))
    if own.value is None:
        rows = {tuple({**row, "bound": None}.items()) for row in data.rows}
        cells = " ".join(cell for table in shown for row in table.rows for cell in row).replace(",", "")
        for row in rows:
            for column, value in row:
                if isinstance(value, float | int) and column not in SHARES:
                    assert f"{value:g}" in cells or f"{value:.0f}" in cells or f"{value:.2f}" in cells, column
    else:
        values = [row for row in places if row.get(own.value) is not None]
        assert len([cell for table in shown for row in table.rows for cell in row[1:] if cell]) == len(values)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("astaroth-fig11", "256 16 64 6 50%"),
        ("astaroth-fig12", "256 6 corners 0.03% to 10%"),
        ("astaroth-fig15a", "large 1024 16 64 Puhti and Mahti 20 to 60"),
        ("pearson-fig12b", "8653 256 6 1536 +kernel staged 1.16"),
        ("cavity-fig11", "Cascades 16 MVAPICH2 about 1%"),
        ("cavity-table2", "1d-i 256 x 256 x 256 512 x 256 x 256 1024 x 256 x 256"),
        ("cavity-table4", "512 256 256 1 2 baseline no 2 1 1 21.4 11.4%"),
        ("umbc-3.1", "4096 16,777,216 1 1 1 1.9366e-07 4.03 6452 00:12:44 764.39"),
        ("umbc-5.1", "maya 2009 00:17:05 (1.00) 00:05:55 (2.89) 00:00:35 (29.29) 00:00:08 (128.13)"),
        ("wombat-fig5", "XCBDW 27 32 at least 4,500,000"),
    ],
)
def test_published_rows(name: str, words: str) -> None:
    own = papers()[name]
    text = own.tables(own.places_of(None, None), None)[0].text()
    assert words in [" ".join(line.split()) for line in text.splitlines()] or words in " ".join(text.split())


def test_growth_is_that_of_the_tables() -> None:
    for name in ("cavity-table1", "cavity-table2"):
        places = papers()[name].places_of(None, None)
        assert len(places) == 24
        assert all(row["computed"] == row["shape"] for row in places)


def test_halo_sizes() -> None:
    """Pekkilä et al. (2022), Fig. 5: more axes that are cut, less to exchange, from eight subdomains on."""
    found: dict[str, dict[int, int]] = {}
    for row in papers()["astaroth-fig5"].places_of(None, None):
        found.setdefault(row["cut"], {})[row["subdomains"]] = row["computed"]
    for count in (8, 16, 32, 64, 128):
        assert found["1d"][count] > found["2d"][count] > found["3d"][count] >= found["optimal"][count]
    assert found["1d"][2] == found["2d"][2] == found["3d"][2]
    assert found["3d"][8] == 2 * ((256 + 6) ** 3 - 256**3)
    assert found["1d"][256] is None, "slabs of less than three cells cannot be"
    assert found["1d"][128] == 2 * ((4 + 6) * 518**2 - 4 * 512**2)
    assert found["3d"][512] == 2 * ((64 + 6) ** 3 - 64**3)


def test_theoretical_scaling() -> None:
    expected = json.loads((Path(__file__).parent / "data" / "model_strong_scaling.json").read_text())
    own = papers()["astaroth-fig11"]
    found = {(row["n"], row["devices"]): row["computed"] for row in own.places_of(None, None)}
    for n, efficiency in expected["ideal_parallel_efficiency"].items():
        assert found[int(n), 1] / 64 / found[int(n), 64] == pytest.approx(efficiency, abs=6e-4)
    (computed,) = (t for t in own.tables(own.places_of(None, None), None) if t.title.startswith("Computed"))
    assert "35.5%" in computed.rows[0][-1]


def _predicted(name: str, **where: Any) -> list[dict[str, Any]]:
    own = papers()[name]
    rows = [row for row in own.places_of(None, None) if all(row[key] in each for key, each in where.items())]
    return own.predict(rows, own.there(None))  # type: ignore[arg-type]


def test_node_aware_placement_is_faster() -> None:
    """1440 x 1452 x 700 cells on a node of Summit: published are 20 %."""
    times = {row["placement"]: row["predicted"] for row in _predicted("pearson-fig11")}
    assert times["aware"] < 0.95 * max(times["trivial"], times["random"])
    assert [row["shape"] for row in _predicted("pearson-fig11")] == [[1440, 1452, 700]] * 3


def test_the_grid_of_an_exchange_grows_with_the_nodes() -> None:
    one, many = _predicted("pearson-fig12c", nodes=(1, 4), transfer=("+self",))
    assert (one["shape"], many["shape"]) == ([1363] * 3, [2163] * 3)
    assert "gpu_aware" in one["methods"]
    assert many["predicted"] > one["predicted"]


def test_growth_along_the_cuts_scales_better() -> None:
    """Xue and Roy, Fig. 10: "type 2 performs better; with type 1 three axes are best"."""
    found = {
        (row["growth"], row["decomposition"]): row["predicted"]
        for row in _predicted("cavity-fig10", devices=(8,))
    }
    assert found[2, "1d-i"] > 1.2 * found[1, "1d-i"]
    assert found[1, "3d"] == max(found[1, cut] for cut in ("3d", "2d", "1d-k", "1d-i"))


def test_the_ranks_of_a_node_share_its_memory() -> None:
    times = [row["predicted"] for row in _predicted("cavity-fig5", scaling=("strong",))]
    assert times == sorted(times)


def test_one_device_keeps_its_published_pace() -> None:
    (one,) = _predicted("cavity-table3", devices=(1,))[:1]
    assert one["predicted"] == pytest.approx(93.8, rel=0.01)


def test_columns_of_names_are_not_drawn() -> None:
    for name in ("pearson-fig11", "umbc-5.1", "cavity-table3"):
        own = papers()[name]
        assert own.draw(own.places_of(None, None)) is None


def test_what_was_exchanged_is_said() -> None:
    own = papers()["umbc-6.3"]
    tables = own.tables([{**row, "predicted": 1.0} for row in own.places_of(None, None)], own.there(None))
    assert "its network exchanged for 1.25 GB/s and 20 µs" in tables[-1].note.replace("\n", " ")
    assert "Machine: zenith" in tables[0].note


def test_a_prediction_stands_beside_what_is_published() -> None:
    own = papers()["umbc-4.1"]
    (row,) = own.predict(own.places_of([4096], [1])[:1], own.there(None))  # type: ignore[arg-type]
    # one core of Stampede2: the bytes of cg at what one core draws from memory, which is from Table 3.1
    assert row["predicted"] == pytest.approx(764, rel=0.1)
    assert row["seconds"] == 784
    many = own.predict(own.places_of([4096], [1])[-1:], own.there(None))[0]  # type: ignore[arg-type]
    assert many["ranks_per_node"] == 32
    assert 30 < many["predicted"] < 60 == many["seconds"]  # at the bandwidth of a data sheet


def test_a_slower_network_takes_longer() -> None:
    fast, slow = (papers()[f"umbc-6.{number}"] for number in (1, 3))
    times = [
        own.predict(own.places_of([1024], [16])[-1:], own.there(None))[0]["predicted"]  # type: ignore[arg-type]
        for own in (fast, slow)
    ]
    assert times[1] > 1.5 * times[0]


def test_a_paper_is_measured_here_too(tmp_path: Path) -> None:
    words = ["study", "paper", "umbc-4.1", "--n", "1024", "--nodes", "1", "--html", "p.html"]
    told = found(*words, "--not-here", "--pictures", "drawn", cwd=tmp_path)
    assert (tmp_path / "drawn" / "umbc-4.1.png").stat().st_size > 10_000
    assert "Kritesh Arora" in (tmp_path / "p.html").read_text()
    assert {row["ranks_per_node"] for row in told["places"]} == {1, 2, 4, 8, 16, 32}
    assert all(row["predicted"] > 0 for row in told["places"])
    measured = found(
        "study", "paper", "wombat-fig9", "--ranks", "1", "--threads", "1", "--html", "w.html", cwd=tmp_path
    )
    assert {m["schedule"] for m in measured["measurements"]} == {"guided", "static"}
    assert "Mendygral" in (tmp_path / "w.html").read_text()


# -- clusters ------------------------------------------------------------------------------------------------


STRONG = ("study", "strong", "heat", "--n", "16", "--dim", "2", "--ranks", "1,2", "--steps", "4")


@pytest.mark.parametrize(
    ("system", "end", "head"), [("slurm", "sh", "#SBATCH --nodes=4"), ("pbs", "pbs", "select=4")]
)
def test_job_scripts(system: str, end: str, head: str, tmp_path: Path) -> None:
    words = f"study weak heat --n 16 --steps 4 --submit {system} --nodes 1,4 --per-node 8"
    done = halocline(*words.split(), "--time", "00:10:00", "--account", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    stem = "weak-heat-n-16-steps-4-1-thread-8-per-node"
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{stem}-1-node.{end}",
        f"{stem}-4-nodes.{end}",
    }
    text = (tmp_path / f"{stem}-4-nodes.{end}").read_text()
    assert head in text
    assert "mine" in text
    assert "00:10:00" in text
    assert f"study weak heat --n 16 --steps 4 --ranks 32 --json {stem}-4-nodes.json" in text
    assert f"halocline study report {stem}-1-node.json {stem}-4-nodes.json" in done.stdout


def test_measurement_files_are_joined(tmp_path: Path) -> None:
    found(
        "study", "strong", "heat", "--n", "16", "--dim", "2", "--ranks", "1,2", "--steps", "4", cwd=tmp_path
    )
    here = tmp_path / "found.json"
    there = json.loads(here.read_text())
    for m in there["measurements"]:
        m["machine"] = {**m["machine"], "cpu": "Another", "mpi_version": "Open MPI v4.1.4"}
        m["ns_per_cell_step"] *= 2
    (tmp_path / "there.json").write_text(json.dumps(there))
    done = halocline("study", "report", "found.json", "there.json", "--html", "j.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Machines, MPI libraries and commits" in done.stdout
    assert done.stdout.count("Time of a cell and step") == 2
    assert "Another, Open MPI v4.1.4" in done.stdout
    assert "please report" not in done.stdout
    assert "heat, 16²: fastest on" in done.stdout
    alone = halocline("study", "report", "found.json", cwd=tmp_path)
    assert "Time of a cell and step" in alone.stdout
    assert "of the formula" in alone.stdout.replace("\n", " ") or "formula" in alone.stdout
    (tmp_path / "empty.json").write_text("{}")
    with pytest.raises(InputError, match="holds no measurements of a study"):
        joining.joined([tmp_path / "empty.json"])


def test_problems_are_not_compared_with_each_other(tmp_path: Path) -> None:
    """Jobs of a cluster begin on other hosts, and files hold several problems: one page has all."""
    line = ("--n", "16", "--dim", "2", "--ranks", "1", "--steps", "4")
    found("study", "strong", "heat", *line, cwd=tmp_path)
    heat = json.loads((tmp_path / "found.json").read_text())
    older = [{k: v for k, v in m.items() if k != "cores_or_devices"} for m in heat["measurements"]]
    (tmp_path / "found.json").write_text(json.dumps({**heat, "measurements": older}))
    for case, host, ranks, ns in (("heat", "node7", 2, 0.6), ("wave", "node7", 1, 9.0)):
        made = [
            {
                **m,
                "case": case,
                "checksum": case,
                "ranks": ranks,
                "cores_or_devices": m["threads"] * ranks,
                "ns_per_cell_step": ns * m["ns_per_cell_step"],
            }
            | {"machine": {**m["machine"], "host": host}}
            for m in heat["measurements"]
        ]
        if case == "heat":
            made = [{**m, "checksum": heat["measurements"][0]["checksum"]} for m in made]
        (tmp_path / f"{case}{host}.json").write_text(json.dumps({**heat, "measurements": made}))
    files = ("found.json", "heatnode7.json", "wavenode7.json")
    options = ("--json", "all.json", "--csv", "all.csv", "--html", "all.html")
    done = halocline("study", "report", *files, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "please report" not in done.stdout
    assert "Machines, MPI libraries" not in done.stdout, "one machine"
    assert done.stdout.count("Time of a cell and step") == 2
    assert "2 runs, all with the same bits" in done.stdout
    assert "1.67 times as fast as 1 rank of" in done.stdout
    assert len(json.loads((tmp_path / "all.json").read_text())["measurements"]) == 3
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 4
    page = (tmp_path / "all.html").read_text()
    assert "Strong scaling: heat" in page
    assert "Strong scaling: wave" in page


def test_the_formula_comes_from_the_file(tmp_path: Path) -> None:
    found(
        "study", "strong", "heat", "--n", "16", "--dim", "2", "--ranks", "1,2", "--steps", "4", cwd=tmp_path
    )
    measured, again = joining.joined([tmp_path / "found.json"])
    formula = [row[4] for row in again.tables[0].rows]
    assert all(formula)
    assert reported(studies()["strong"], measured, None).tables[0].rows[0][4] == ""


def test_one_core_draws_no_more_than_it_can() -> None:
    from halocline.model import Rates

    machine = load_machine("stampede2-skx")
    assert Rates.of(machine, 1, threads=1).bandwidth == 1.25e10
    assert Rates.of(machine, 1, threads=48).bandwidth == Rates.of(machine, 1).bandwidth
