"""Declarations of studies, which are found in their packages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from halocline.cli.app import run
from halocline.errors import InputError
from halocline.plan.growth import grown, grown_as_cut
from halocline.problems.files import case_names
from halocline.problems.run_options import PARTS
from halocline.ranges import RANKS
from halocline.study import registry
from halocline.study.engine import build_report, plan_runs
from halocline.study.layout import Layout
from halocline.study.measuring.command import Command, measure
from halocline.study.registry import papers
from halocline.study.study import Study, StudyRequest, VariedOption, studies
from step_measurements import step

SOURCE = Path(__file__).parents[2] / "src" / "halocline" / "study"


# -- declarations --------------------------------------------------------------------------------------------


def test_a_new_study_needs_one_short_file() -> None:
    """Studies that compare one option, as most new studies will, consist of one short file."""
    for name in ("ablation", "exchange"):
        text = (SOURCE / "studies" / f"{name}.py").read_text()
        assert len(text.splitlines()) <= 60
    named = {path.stem for path in (SOURCE / "studies").glob("*.py")} - {"__init__"}
    for folder in (SOURCE, SOURCE.parent / "cli"):
        for path in folder.rglob("*.py"):
            if path.parent.name != "studies" and path.name != "studies.py":
                assert not re.search(r"study\.studies\.(ablation|exchange|patches)", path.read_text())
    assert {"strong", "weak", "hybrid", "patches", "convergence"} <= named
    names = {*studies(), *case_names()} - set(PARTS)  # `--only exchange` concerns a part of a step
    compared = re.compile(rf'[=!]= "({"|".join(sorted(names))})"')
    for path in (*SOURCE.glob("*.py"), *(SOURCE.parent / "cli").rglob("*.py")):
        assert not compared.search(path.read_text()), f"{path}: no line is about one study or case"


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Search further packages for studies, in this process."""

    def search(*names: str) -> None:
        monkeypatch.setattr(registry, "STUDIES", names)
        registry._modules.cache_clear()

    yield search
    registry._modules.cache_clear()


def test_a_study_in_another_package_is_found(
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
    with_papers = build_report(studies()["strong"], steps, None).tables
    assert {row[1] for row in with_papers[1].rows} == {"this machine", "paper"}
    packages("halocline.study.studies")
    without = build_report(studies()["strong"], steps, None).tables
    titles = [table.title for table in without]
    assert [table.title for table in with_papers] == [*titles, "Comparison with the Pencil Code"]
    assert {row[1] for row in without[1].rows} == {"this machine"}
    assert without[0] == with_papers[0]


def test_a_study_runs_each_option_on_each_layout() -> None:
    study = Study(
        "packed", "Packed", "", "", (),
        varied_options=(VariedOption("packing", "--packings P,P", "", "all,none"),),
        variants=({}, {"overlap": "off"}),
    )  # fmt: skip
    request = StudyRequest(study, Command("run", "heat", {"steps": 4, "dim": 1}), (16, 32), (1, 2), (1,))
    runs = plan_runs(request)
    assert [(r.n, r.layout.ranks, r.command.packing, r.command.overlap) for r in runs[:4]] == [
        (16, 1, "all", "auto"), (16, 1, "none", "auto"), (16, 1, "all", "off"), (16, 1, "none", "off"),
    ]  # fmt: skip
    assert len(runs) == 2 * 2 * 2 * 2
    assert {r.command.warm_up for r in runs} == {2}
    assert runs[-1].command.arguments()["--packing"] == "none"


def test_grids_grow_with_ranks() -> None:
    assert [grown((8, 8, 8), count) for count in (1, 2, 4, 12)] == [
        (8, 8, 8), (16, 8, 8), (16, 16, 8), (16, 16, 24),
    ]  # fmt: skip
    assert grown_as_cut((8, 8, 8), 4, "1d-z") == (8, 8, 32)
    assert grown_as_cut((8, 8, 8), 8, "3d") == (16, 16, 16)


def test_a_solve_has_the_keys_of_steps(tmp_path: Path) -> None:
    one = measure(Command("run", "poisson", {"dim": 3}), 8, Layout(1, 1))
    assert (one["shape"], one["cells"], one["steps"]) == ([8, 8, 8], 512, one["iterations"])
    assert one["ns_per_cell_step"] == pytest.approx(1e9 * one["seconds_per_iteration"] / 512)
    assert one["ssspnt"] == pytest.approx(1e-7 * 512 / one["seconds_per_iteration"])


# -- every problem in every command --------------------------------------------------------------------------


def test_values_of_varied_options_are_checked_before_anything_runs() -> None:
    numbers = [
        option
        for study in studies().values()
        for option in study.varied_options
        if option.numbers is not None
    ]
    assert {option.name for option in numbers} == {"order"}
    for option in numbers:
        assert all(type(value) is int for value in option.values(option.default))
    for line, words in (
        ("study orders heat --orders 2,x", "--orders 2,x: 'x' is not a whole number"),
        ("study strong heat --communication v3,v9", "--communication v3,v9: 'v9' is unknown"),
        ("study strong heat --affinity near", "--affinity near: 'near' is unknown"),
        (
            "study strong heat --mpis no/libmpi.so",
            "there is no file no/libmpi.so; expected package, or paths of MPI libraries",
        ),
        ("study patches heat --steps 4 --schedules guidd", "'guidd' is unknown (did you mean 'guided'?)"),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            run(line.split())


def test_an_option_of_a_study_can_be_one_number() -> None:
    def number(text: str | None) -> int | None:
        options = {} if text is None else {"subdomains": text}
        request = StudyRequest(studies()["exchange"], Command("bench", "exchange"), None, (1,), (1,), options)
        return request.number("subdomains", RANKS)

    assert (number(None), number("4")) == (None, 4)
    for wrong, words in (
        ("2,4", "expected one whole number"),
        ("0", "whole number from 1"),
        ("a", "not a whole number"),
    ):
        with pytest.raises(InputError, match=f"--subdomains {wrong}: .*{words}"):
            number(wrong)
