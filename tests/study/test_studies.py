"""Studies as declarations, tables of papers, jobs and joined reports."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import preloaded
from halocline.cli.app import run
from halocline.compile.compiler import compile_program
from halocline.errors import InputError
from halocline.io.table import Table
from halocline.papers.paper import SHARES
from halocline.papers.published import FOLDER, published
from halocline.plan.growth import grown, grown_as_cut
from halocline.plan.machine import load_machine
from halocline.problems.files import case_names
from halocline.problems.following import PARTS
from halocline.problems.problem import Problem, problem_of
from halocline.problems.record import Record
from halocline.study import joining, registry
from halocline.study.engine import plan, reported
from halocline.study.measurement import CONDITIONS, joined_repeats
from halocline.study.measuring import command
from halocline.study.measuring.command import EXECUTION, RUN, Command, measure
from halocline.study.registry import papers
from halocline.study.reporting.report import Group, Report
from halocline.study.studies.hybrid import factors
from halocline.study.study import Asked, Study, Sweep, studies

RUN_APART = command._run
SOURCE = Path(__file__).parents[2] / "src" / "halocline" / "study"


def halocline(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return preloaded.halocline(*words, cwd=cwd)


def found(*words: str, cwd: Path) -> Any:
    done = halocline(*words, "--json", "found.json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads((cwd / "found.json").read_text())


def step(**other: Any) -> dict[str, Any]:
    """Return a measurement of steps, as a study writes it to a file."""
    machine = {
        "host": "h", "system": "s", "cpu": "c", "cores": 2, "hardware_threads": 2, "numa_nodes": 1,
        "simd_bits": 512, "memory_bytes": 10**10, "caches": [], "compiler": "g++", "compiler_version": "12",
        "mpi_library": "m", "mpi_version": "v", "commit": None,
    }  # fmt: skip
    record = {
        "study": "strong", "case": "heat", "shape": [16, 16], "steps": 4, "order": 2, "scheme": "rk3",
        "decomposition": "optimal", "patch": None, "subdomains_per_rank": 1, "ranks_per_node": None,
        "methods": None, "mailboxes": 2, "schedule": "guided", "kernels": "auto", "overlap": "auto",
        "halo": "read", "packing": "all", "communication": None, "only": None, "warm_up": 2, "time": 0.1,
        "time_step": 0.1, "limiter": None, "seconds": 1.0, "flops_per_cell_step": 30.0,
        "bytes_per_cell_step": 40.0, "share_of_bound": None, "share_of_peak": None, "ssspnt": 1.0,
        "joules_per_cell_step": None, "joules_of": [], "checksum": "0" * 32, "error": None, "ranks": 1,
        "threads": 1, "nodes": 1, "devices": [], "settings": "", "device": "cpu", "command": "halocline",
        "started": "2020-01-01T00:00:00+00:00", "environment": {"OMP_PROC_BIND": None}, "n": 16,
        "machine": machine, "varied": {}, "base": {},
    } | other  # fmt: skip
    record.setdefault("cells", math.prod(record["shape"]))
    record.setdefault("cores_or_devices", record["ranks"] * record["threads"])
    record.setdefault("ns_per_cell_step", record["seconds"])
    record.setdefault("times", [record["seconds"]])
    return record


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
    assert {"strong", "weak", "hybrid", "patches", "convergence"} <= named
    names = {*studies(), *case_names()} - set(PARTS)  # `--only exchange` is about a part of a step
    compared = re.compile(rf'[=!]= "({"|".join(sorted(names))})"')
    for path in (*SOURCE.glob("*.py"), *(SOURCE.parent / "cli").rglob("*.py")):
        assert not compared.search(path.read_text()), f"{path}: no line is about one study or case"


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Search other packages for studies, in this process."""

    def search(*names: str) -> None:
        monkeypatch.setattr(registry, "STUDIES", names)
        registry._modules.cache_clear()

    yield search
    registry._modules.cache_clear()


def test_a_study_is_found_in_a_package_of_its_own(
    packages: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "laboratory"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (home / "packed.py").write_text(
        "from halocline.study.study import Study\n"
        "STUDY = Study('packed', 'Packed', '', '', (), variants=({'packing': 'none'},))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    packages("laboratory")
    assert list(studies()) == ["packed"]
    assert papers() == {}


def test_reports_need_no_papers(packages: Callable[..., None]) -> None:
    steps = [step(case="mhd-benchmark", order=6, shape=[256] * 3, n=256, ranks=r) for r in (1, 2)]
    with_papers = reported(studies()["strong"], steps, None).tables
    assert {row[1] for row in with_papers[1].rows} == {"here", "paper"}
    packages("halocline.study.studies")
    without = reported(studies()["strong"], steps, None).tables
    assert [table.title for table in with_papers] == [*(t.title for t in without), "Against a CPU solver"]
    assert {row[1] for row in without[1].rows} == {"here"}
    assert without[0] == with_papers[0]


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
        (
            "study strong heat --submit slurm --html a.html",
            "--html a.html: halocline study report makes the page and tables",
        ),
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


@pytest.mark.long
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


def reduced(name: str, *, ranks: str | None = None) -> list[str]:
    """Return the command line of a study on small grids, made of its declaration alone."""
    study = studies()[name]
    problem = "heat" if study.verb == "run" else "exchange"
    words = ["study", name, problem, "--repeat", "1", "--n", "8,16,32" if study.to_the_end else "16"]
    for sweep in study.sweeps:
        words += [sweep.form.partition(" ")[0], ",".join(sweep.default.split(",")[:2])]
    if problem == "heat":
        words += ["--dim", "1"] + ([] if study.to_the_end else ["--steps", "4"])
    if study.to_the_end:
        return words
    return [*words, "--ranks", ranks or study.ranks, "--threads", study.threads.rpartition(",")[2]]


def runs_of(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of runs that a study plans."""
    counts = []

    def count(*args: Any, **options: Any) -> Any:
        counts.append(len(next(runs for runs in args if isinstance(runs, list))))
        raise InputError("planned")

    with monkeypatch.context() as patched:
        for function in ("formula_of", "carry_out"):  # the study of the exchange has no formula
            patched.setattr(f"halocline.study.engine.{function}", count)
        with pytest.raises(InputError, match="planned"):
            run(words)
    return counts[0]


def _checked(name: str, told: Any, count: int) -> None:
    measured = told if isinstance(told, list) else told["measurements"]
    assert len(measured) == count > 0
    assert {m["study"] for m in measured} == {name}
    for alike in Group(measured).by(lambda m: (tuple(m["shape"]), m["order"] or 0)):
        assert len(alike.values("checksum") - {None}) <= 1  # only the order may change a bit


def _in_this_process(case: Command, words: list[str]) -> dict[str, Any]:
    """Run a command on one rank in this process; starting another process would take most of the time."""
    if words[words.index("--ranks") + 1] != "1":
        return RUN_APART(case, words)
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        file = Path(folder, "record.json")
        run([*words, "--json", str(file)])
        return json.loads(file.read_text())


@pytest.mark.parametrize("name", list(studies()))
def test_every_study_is_carried_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies run on one rank here; a long test runs them on their own numbers of ranks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_run", _in_this_process)
    # keep the SIGTERM handler
    monkeypatch.setattr("halocline.cli.commands.studies.share_terminal", lambda: None)
    words = reduced(name, ranks="1")
    count = runs_of(words, monkeypatch)
    with redirect_stdout(io.StringIO()):
        run([*words, "--json", "s.json", "--csv", "s.csv", "--html", "s.html"])
    _checked(name, json.loads(Path("s.json").read_text()), count)
    assert studies()[name].title in Path("s.html").read_text()
    assert len(Path("s.csv").read_text().splitlines()) == count + 1


@pytest.mark.long
@pytest.mark.parametrize("name", list(studies()))
def test_every_study_is_carried_out_on_its_ranks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = reduced(name)
    told = found(*words, "--html", "s.html", cwd=tmp_path)
    _checked(name, told, runs_of(words, monkeypatch))


PLANNED = {(own.study, own.problem, *own.here): name for name, own in papers().items() if own.study}


@pytest.mark.parametrize("name", PLANNED.values())
def test_local_measurements_of_papers_can_be_planned(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halocline.papers.paper.Paper.predict", lambda self, places, *rest: places)
    assert runs_of(["study", "paper", name], monkeypatch) > 0


def test_values_of_sweeps_are_checked_before_anything_runs() -> None:
    numbers = [sweep for study in studies().values() for sweep in study.sweeps if sweep.numbers is not None]
    assert {sweep.option for sweep in numbers} == {"order", "ranks_per_node"}
    for sweep in numbers:
        assert all(type(value) is int for value in sweep.values(sweep.default))
    for line, words in (
        ("study orders heat --orders 2,x", "--orders 2,x: 'x' is no whole number"),
        ("study nodes heat --ranks-of-node 0", "--ranks-of-node 0: a number is 0; expected a whole number"),
        ("study patches heat --steps 4 --schedules guidd", "'guidd' is unknown (did you mean 'guided'?)"),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            run(line.split())


# -- one algorithm for all runs ------------------------------------------------------------------------------


def _algorithm(command: Command, shape: tuple[int, ...]) -> list[tuple[float, float]]:
    """Return operations and bytes of each sweep of a step."""
    ready = problem_of(command.name, shape, command.settings, order=command.order, scheme=command.scheme)
    schedule = compile_program(ready.program, ready.grid)
    return [(sweep.flops, sweep.bytes) for sweep in schedule.pass_sweeps()]


CHEAP = ("cavity-2d", "heat", "wave")


@pytest.mark.parametrize(
    "case",
    [
        case if case in CHEAP else pytest.param(case, marks=pytest.mark.long)
        for case in case_names()
        if case != "poisson"  # which has no steps
    ],
)
def test_all_runs_of_a_study_have_the_same_algorithm(case: str) -> None:
    """Some cases choose the algorithm by the spacing; coarse and fine grids must get the same one."""
    n = Problem(case).default_cells()[0]
    runs = plan(Asked(studies()["strong"], Command("run", case, {"steps": 4}), (n // 2, 2 * n), (1,), (1,)))
    assert len({run.shape for run in runs}) == 2
    assert len({str(_algorithm(run.command, run.shape)) for run in runs}) == 1


def test_automatic_parameters_of_the_largest_grid_apply_to_all_runs() -> None:
    runs = plan(Asked(studies()["weak"], Command("run", "cavity", {"steps": 4}), (16, 64), (1, 8), (1,)))
    largest = max(runs, key=lambda run: math.prod(run.shape))
    alone = plan(Asked(studies()["weak"], Command("run", "cavity", {"steps": 4}), (64,), (8,), (1,)))
    assert alone[0].shape == largest.shape == (128, 128, 128)
    assert {run.command.settings for run in runs} == {alone[0].command.settings} == {("stages=3",)}
    small = plan(Asked(studies()["weak"], Command("run", "cavity", {"steps": 4}), (16,), (1,), (1,)))
    assert small[0].command.settings == ("stages=1",)
    given = Command("run", "cavity", {"steps": 4}, ("stages=2",))
    assert {run.command.settings for run in plan(Asked(studies()["weak"], given, (16, 64), (1,), (1,)))} == {
        ("stages=2",)
    }
    one = {**step(), "case": "cavity", **largest.facts}
    said = reported(studies()["weak"], [one], None).said
    assert said[0] == (
        "cavity: stages = 3 in all runs, as the case chooses for the largest grid, 128 x 128 x 128."
    )


def test_the_paper_takes_forward_euler_steps() -> None:
    for name, own in papers().items():
        if own.problem == "cavity":
            assert own.options["settings"] == ("stages=1",), name
            assert "Predicted and measured with stages=1, as in the paper." in own.said
    own = papers()["cavity-table3"]
    schedule, _ = own._prepared(own.places_of(None, None)[0])
    assert sum(sweep.share == 1 for sweep in schedule.pass_sweeps()) == 1


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
    expected = json.loads((Path(__file__).parents[1] / "data" / "model_strong_scaling.json").read_text())
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
        for row in _predicted("cavity-fig10", devices=(16,))
    }
    assert found[2, "1d-i"] > 1.2 * found[1, "1d-i"]
    assert found[1, "3d"] == max(found[1, cut] for cut in ("3d", "2d", "1d-k", "1d-i"))


@pytest.mark.long
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


@pytest.mark.long
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
    with pytest.raises(InputError, match=r"found\.json is given twice"):
        joining.joined([tmp_path / "found.json", tmp_path / "." / "found.json"])


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


DIFFERENT: dict[str, tuple[Any, ...]] = {  # conditions, and values that they can have
    "ranks": (1, 2), "threads": (1, 2), "nodes": (1, 2), "n": (16, 24), "shape": ([16, 24], [24, 16]),
    "decomposition": ("optimal", "1d-x"), "methods": (None, "mpi"), "settings": ("", "kappa=2"),
    "steps": (4, 8), "order": (2, 6), "ranks_per_node": (None, 1), "patch": (None, "8"),
    "environment": ({"OMP_PROC_BIND": None}, {"OMP_PROC_BIND": "close"}), "scheme": ("rk3", "euler"),
    "schedule": ("guided", "static"), "overlap": ("auto", "off"), "case": ("heat", "wave"),
}  # fmt: skip
SHOWN_IN_ROWS = ("strong", "weak", "hybrid", "patches", "nodes", "orders", "affinity", "libraries")
SOURCES = ("c", "d")


@st.composite
def measurement_files(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Draw files of one study with several conditions and machines, and some repeated measurements."""
    study = draw(st.sampled_from(SHOWN_IN_ROWS))
    names = draw(st.lists(st.sampled_from(sorted(DIFFERENT)), unique=True, max_size=4))
    places = st.fixed_dictionaries({name: st.sampled_from(DIFFERENT[name]) for name in names})
    drawn = draw(st.lists(st.tuples(places, st.sampled_from(SOURCES)), min_size=2, max_size=8))
    measured = []
    for number, (place, cpu) in enumerate(drawn):
        base = step()
        where = {"shape": [place["n"]] * 2} if "n" in place and "shape" not in place else {}
        times = [100.0 + number] * draw(st.integers(1, 3))
        measured.append(
            step(
                **{"study": study, **place, **where, "seconds": 100.0 + number, "times": times},
                machine={**base["machine"], "cpu": cpu},
            )
        )
    cuts = sorted(draw(st.lists(st.integers(0, len(measured)), max_size=2)))
    return [measured[a:b] for a, b in pairwise([0, *cuts, len(measured)])]


def _report_of(files: list[list[dict[str, Any]]]) -> tuple[list[dict[str, Any]], Report]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.json") for number in range(len(files))]
        for path, measured in zip(paths, files, strict=True):
            path.write_text(json.dumps({"measurements": measured}))
        return joining.joined(paths)


def _cells(tables: Sequence[Table]) -> list[str]:
    return [word for table in tables for row in table.rows for cell in row for word in cell.split()]


@given(measurement_files())
@settings(deadline=None)
def test_every_measurement_appears_in_a_joined_report(files: list[list[dict[str, Any]]]) -> None:
    every = [m for measured in files for m in measured]
    joined, made = _report_of(files)
    assert joined == every
    distinct = joined_repeats(every)
    assert sum(m.get("repeats", 1) for m in distinct) == len(every)
    assert sorted(t for m in distinct for t in m["times"]) == sorted(t for m in every for t in m["times"])
    words = set(_cells(made.tables))
    for m in distinct:
        seconds = f"{m['seconds']:.2f}" if m["study"] == "hybrid" else f"{m['seconds']:.0f}"
        assert seconds in words
    repeated = [m for m in distinct if "repeats" in m]
    counts = [
        int(found) for text in made.said for found in re.findall(r"(\d+) measurements of \d+ run", text)
    ]
    assert sum(counts) == sum(m["repeats"] for m in repeated)


PARTS_TIMED = ((None, "read"), ("compute", "read"), ("exchange", "read"), ("exchange", "uniform"))


def _parts(n: int, seconds: float, **other: Any) -> list[dict[str, Any]]:
    return [
        step(only=only, halo=halo, shape=[n, n], n=n, seconds=seconds + k, checksum=None, **other)
        for k, (only, halo) in enumerate(PARTS_TIMED)
    ]


def test_files_of_the_same_layouts_are_joined_as_repeats() -> None:
    """Two files of strong scaling on two grids must not be taken for the parts of a step."""
    file = [step(shape=[n, n], n=n, ranks=ranks, seconds=n / ranks) for n in (16, 32) for ranks in (1, 2)]
    again = [{**m, "seconds": 3 * m["seconds"], "times": [3 * m["seconds"]] * 2} for m in file]
    found, made = _report_of([file, again])
    assert len(found) == 8
    assert "A step and its parts" not in [table.title for table in made.tables]
    (times,) = (t for t in made.tables if t.title == "Time of a cell and step" and "16²" in t.heading)
    assert len(times.rows) == 2
    assert made.said[0].startswith("8 measurements of 4 runs are repeats")
    assert [m["seconds"] for m in joined_repeats(found)] == [3 * m["seconds"] for m in file]


def test_tables_show_the_median_of_repeats_in_two_files() -> None:
    """The times of two files differ by a factor of 2, in both directions; each cell shows the median."""
    speed = {"ssspnt": 3.0, "share_of_bound": 0.3, "share_of_peak": 0.3}
    file = [step(ranks=ranks, seconds=100.0 / ranks, **speed) for ranks in (1, 2)]
    again = []
    for m, factor in zip(file, (2.0, 0.5), strict=True):
        faster = {name: value / factor for name, value in speed.items()}
        seconds = factor * m["seconds"]
        again.append({**m, **faster, "seconds": seconds, "ns_per_cell_step": seconds, "times": [seconds]})
    found, made = _report_of([file, again])
    joined = joined_repeats(found)
    assert [(m["seconds"], m["ns_per_cell_step"]) for m in joined] == [(150.0, 150.0), (37.5, 37.5)]
    for m, one in zip(joined, file, strict=True):
        for name, value in speed.items():  # both have the same bytes and operations
            assert m[name] * m["seconds"] == pytest.approx(value * one["seconds"])
    (times,) = (t for t in made.tables if t.title == "Time of a cell and step")
    words = _cells([times])
    assert {"150", "37.5"} <= {*words}
    assert made.said[0] == (
        "4 measurements of 2 runs are repeats with the same bits: times are medians of all of their runs, "
        "which differ by up to a factor of 2.00."
    )


def test_parts_of_a_step_are_shown_only_for_complete_grids() -> None:
    for study in ("strong", "parts"):
        _, made = _report_of([_parts(16, 100.0, study=study), _parts(32, 200.0, study=study)[:2]])
        (table,) = (table for table in made.tables if table.title == "A step and its parts")
        assert [row[2:6] for row in table.rows] == [("100", "101", "102", "103")]


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("decomposition", ("optimal", "1d-x"), ["decomposition 1d-x", "decomposition optimal"]),
        ("settings", ("", "kappa=2"), ["settings kappa=2", "settings not set"]),
        ("methods", (None, "mpi"), ["methods mpi", "methods not set"]),
        ("steps", (4, 8), ["steps 4", "steps 8"]),
        (
            "environment",
            ({"OMP_PROC_BIND": None}, {"OMP_PROC_BIND": "close"}),
            ["environment OMP_PROC_BIND=close", "environment OMP_PROC_BIND=not set"],
        ),
    ],
)
def test_fixed_conditions_separate_joined_files(name: str, values: tuple[Any, ...], words: list[str]) -> None:
    files = [[step(ranks=ranks, **{name: value}) for ranks in (1, 2)] for value in values]
    _, made = _report_of(files)
    headings = [table.heading for table in made.tables if table.title == "Time of a cell and step"]
    assert len(headings) == 2
    for word in words:
        assert sum(f", {word}:" in heading for heading in headings) == 1, headings


SOLVE = {  # facts of a record of a linear solve
    "dof": 256,
    "dim": 2,
    "method": "cg",
    "iterations": 10,
    "bandwidth_share": 0.5,
    "case": "poisson",
}


def test_numbers_of_nodes_have_separate_columns() -> None:
    files = [[step(ranks=4, nodes=nodes, seconds=100.0 + nodes, **SOLVE)] for nodes in (1, 2, 4)]
    _, made = _report_of(files)
    assert made.tables[0].heads == ("", "4 ranks", "4 ranks\non 2 nodes", "4 ranks\non 4 nodes")
    assert [cell.split()[1] for cell in made.tables[0].rows[0][1:]] == ["101.00", "102.00", "104.00"]


def test_measurements_with_different_bits_are_not_repeats() -> None:
    _, made = _report_of([[step(checksum=c * 32, seconds=s, **SOLVE)] for c, s in (("0", 1.0), ("1", 2.0))])
    assert made.tables[0].rows[0][1] == "00:00:01      1.00; 00:00:02      2.00"
    assert "2 different results" in made.said[0]


def test_every_key_of_a_record_is_a_condition_or_a_result() -> None:
    """A new option must separate measurements; a new result must not."""
    results = {
        *("cells", "time", "time_step", "limiter", "seconds", "ns_per_cell_step", "ssspnt"),
        *("flops_per_cell_step", "bytes_per_cell_step", "share_of_bound", "share_of_peak"),
        *("joules_per_cell_step", "joules_of", "checksum", "checksums", "diagnostics", "series", "error"),
        *("events", "memory_bytes", "written_bytes", "writing_seconds", "waiting_seconds"),
        *("parameters", "devices"),  # `settings` and the source of a measurement hold them
    }
    keys = {field.name for field in fields(Record)}
    assert keys - results <= set(CONDITIONS)
    assert results <= keys
    assert {*EXECUTION, *RUN} <= {*CONDITIONS}


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
