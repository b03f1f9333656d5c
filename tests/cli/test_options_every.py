"""Every option of every command takes effect or is rejected, for cases and for files.

Each option is passed to each command that lists it, with a value that is not its default. The test replaces
the functions that do the work and records their arguments. The option must change these arguments, or the
command must end with an error that names the option.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import halocline.explanation.explain  # imported before functions are replaced
import halocline.study.engine  # noqa: F401 - the same
from declared_commands import ALL
from halocline.cli.app import run
from halocline.cli.options import place
from halocline.compile.cache_archive import Contents
from halocline.errors import InputError
from halocline.problems.problem import Problem

FILE = """import halocline as hc

n = 16
kappa = 0.1
grid = hc.Grid((n, n), periodic=True)
T = grid.field("T")
sim = hc.Simulation(grid, lambda T: {T: kappa * hc.laplacian(T)}, scheme=hc.RK3(), dt=1e-3)
sim[T] = 1.0
sim.run(steps=5)


def check(sim):
    pass
"""
STORE = """import halocline as hc

grid = hc.Grid((4,), periodic=True)
T = grid.field("T")
sim = hc.Simulation(grid, lambda T: {T: T}, scheme=hc.Euler(), dt=1e-3)
sim[T] = 1.0
sim.run(steps=2, output=hc.Output("o.zarr", every=hc.steps(1)), checkpoint=hc.Checkpoint("ck"))
"""

# lines of each command: for a case, a linear problem and a file, if the command accepts them
OF_PROBLEMS = ("heat --n 8", "poisson --n 8", "own.py")
LINES = {
    "solve poisson": ["solve poisson --n 8"],
    "run": ["run heat --n 8", "run poisson --n 8", "run own.py"],
    "explain CASE": [f"explain {problem}" for problem in OF_PROBLEMS],
    "model CASE": [f"model {problem} --machine summit" for problem in OF_PROBLEMS],
    "model calibrate": ["model calibrate"],
    "bench exchange": ["bench exchange"],
    "study overlap CASE": ["study overlap wave --n 8", "study overlap poisson --n 8", "study overlap own.py"],
    "study overlap heat": ["study overlap heat"],
    "study ablation exchange": ["study ablation exchange"],
    "study paper": ["study paper umbc-4.1"],
    "study report": ["study report left.json"],
    "study convergence": [
        "study convergence linear-wave --n 16,32 --set wave=sound", "study convergence poisson --n 8",
        "study convergence own.py --n 16,32,64",
    ],
    "study exchange": ["study exchange exchange"],
    "study placement": ["study placement exchange"],
    "study orders": ["study orders heat --n 8", "study orders own.py"],
    "cases": ["cases heat"],
    "new": ["new fresh"],
    "ls": ["ls o.zarr"],
    "view": ["view o.zarr T.png", "view o.zarr T.gif"],
    "export": ["export o.zarr T.pvd"],
    "doctor": ["doctor"],
    "cache info": ["cache info"],
    "cache export": ["cache export c.tar"],
    "compile": [f"compile {problem}" for problem in OF_PROBLEMS],
    "demo": ["demo"],
}  # fmt: skip
LONG = ("study", "explain heat", "explain poisson", "model heat", "model poisson", "bench", "solve")
# lines of long commands that the default test suite includes
SHORT = ("study strong own.py", "study paper umbc-4.1", "study report left.json")
# values that are not the default; two values if the default differs between commands
VALUES = {
    **{"--n": "12", "--dim": "1", "--order": "4", "--scheme": "rk2", "--method": "cg", "--rtol": "1e-3"},
    **{"--max-iterations": "7", "--steps": "7", "--until": "0.5", "--warm-up": "1", "--only": "compute"},
    **{"--every": "3", "--ranks": "2", "--threads": "3", "--device": "cpu", "--decomposition": "1d-x"},
    **{"--patch": "4", "--subdomains-per-rank": "2", "--ranks-per-node": "1", "--methods": "mpi"},
    **{"--mailboxes": "5", "--schedule": "static", "--kernels": "direct", "--overlap": "off"},
    **{"--halo": "uniform", "--packing": "none", "--communication": "v1", "--trace": "t.json"},
    **{"--output": "out.zarr", "--output-every": "2", "--checkpoint": "new", "--checkpoint-every": "2"},
    **{"--keep": "3", "--resume": "ck", "--time-limit": "1 h", "--io-threads": "2", "--io-ranks": "1"},
    **{"--json": "j.json", "--csv": "c.csv", "--html": "h.html", "--pictures": "p", "--state": "s.npz"},
    **{"--nodes": "2", "--per-node": "3", "--time": "00:10:00", "--partition": "a", "--account": "b"},
    **{"--submit": "slurm", "--repeat": "4", "--radius": "2", "--fields": "3", "--machine": "puhti"},
    **{"--placement": "trivial", "--picture": "a.png", "--traced": "0", "--timeline": "t.png"},
    **{"--measure": "12", "--file": "f.toml", "--orders": "4", "--patches": "8", "--schedules": "dynamic"},
    **{"--vectors": "128", "--compilers": "g++"},
    **{
        "--mpis": "package,package",
        "--subdomains": "12",
        "--growth": "2",
        "--rank": "0",
        "--at": "x=0.5",
    },
    **{"--affinity": "close", "--directive": "--constraint=skx", "--gpudirect": "on"},
    **{"--watts": "300", "--balance": "5 steps", "--ranks-active": "1"},
    **{"--set": "kappa=0.3", "--from": "wave", "--dtype": "float32", "--scaling": "weak"},
    **{"--to": "shown", "--target": "sm_90"},
}
OTHERWISE = {"float32": "float64", "weak": "strong", "1": "2", "2": "1", "cg": "cg-fused"}
# other options that an option needs
BESIDE = {
    "--output-every": "--output out.zarr",
    **dict.fromkeys(("--checkpoint-every", "--keep", "--time-limit"), "--checkpoint new"),
    **dict.fromkeys(("--io-threads", "--io-ranks", "--overwrite"), "--output out.zarr"),
    "--gpudirect": "--communication v1",
    **dict.fromkeys(("--traced", "--timeline"), "--trace t.json"),
    **dict.fromkeys(("--time", "--partition", "--account", "--exclusive", "--directive"), "--submit slurm"),
}

ALIKE = {
    ("bench exchange", "--scaling"): "one rank has the whole grid either way",
    ("run", "--check"): "after the run; see problems/test_problem_checks.py",
}


class DispatchedError(BaseException):
    """Error that ends a command when it calls a function that does the work."""


def plain(value: Any) -> Any:
    """Return the text of a value without the parts that differ from run to run."""
    if isinstance(value, Problem):
        scheme_facts = value.order, value.scheme, value.requested_dtype
        return type(value).__name__, value.name, value.shape, str(value.values), *scheme_facts
    if isinstance(value, partial):
        return value.func, plain(value.args), plain(value.keywords)
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "__self__"):
        return plain(value.__self__)
    return re.sub(r"/tmp/halocline-\w+| at 0x[0-9a-f]+", "", repr(value))


@pytest.fixture
def dispatched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Any], str]]:
    """Return a function that records the calls of a command line to the work functions, and its error."""
    record: list[Any] = []

    def spy(place: str, *, ends: bool = True, result: Any = None, real: bool = False) -> None:
        module, _, name = place.partition(":")
        owner: Any = import_module(module)
        *holders, name = name.split(".")
        for holder in holders:
            owner = getattr(owner, holder)
        original = getattr(owner, name)

        def called(*arguments: Any, **options: Any) -> Any:
            record.append((place, plain(arguments), plain(options)))
            if ends:
                raise DispatchedError
            return original(*arguments, **options) if real else result

        monkeypatch.setattr(owner, name, called)

    def handed_on(line: str, *more: str, of_file: bool = False) -> tuple[list[Any], str]:
        record.clear()
        words = [*line.split(), *more]
        monkeypatch.setattr(sys, "argv", ["halocline", *words])
        out, error = io.StringIO(), ""
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            try:
                run(words)
            except DispatchedError:
                pass
            except InputError as wrong:
                error = str(wrong)
            except SystemExit as end:
                error = f"status {end.code}"
        return [*record, out.getvalue()], error

    spy("halocline.cli.output:_write_problem", ends=False)
    spy("halocline.cli.ranks:launch", ends=False, result=0)
    spy("halocline.problems.problem:Problem.run")
    spy("halocline.compile.compiler:compile_program", ends=False)
    spy("halocline.explanation.explain:explain_program", ends=False)
    spy("halocline.cli.commands.explain:_show")
    spy("halocline.study.measuring.predict:predict")
    spy("halocline.study.measuring.host:calibrate")
    spy("halocline.cli.output:write", ends=False)
    spy("halocline.problems.problem:problem_of", ends=False, real=True)
    spy("halocline.plan.machine:load_machine", ends=False, real=True)
    spy("halocline.study.joining:join_files", ends=False, result=([], None))
    spy("halocline.cli.commands.studies:_write_report")
    spy("halocline.study.engine:plan_runs", ends=False, real=True)
    spy("halocline.study.engine:exchanges_by_order", ends=False, result={})
    spy("halocline.study.engine:measure_runs")
    spy("halocline.study.jobs:check_new")
    for name in ("overlap", "ablation", "exchange"):
        spy(f"halocline.study.measuring.{name}:measure")
    monkeypatch.setattr("halocline.cli.doctor.CHECKS", ())
    spy("halocline.io.views:view")
    spy("halocline.io.export:export")
    spy("halocline.problems.precompile:compile_for")
    spy("halocline.compile.cache_archive:export_code")
    spy("halocline.compile.cache_archive:contents", ends=False, result=Contents(1, 2))
    spy("halocline.cli.commands.demo:_run")
    handed_on.spy, handed_on.record = spy, record  # type: ignore[attr-defined]
    return handed_on


def listed(command: Any) -> list[Any]:
    """Return the options of a command, without its arguments."""
    return [option for option in command.params if option.param_type_name == "option"]


def words_of(option: Any) -> list[str]:
    """Return the option with a value that is not its default."""
    name = option.opts[0]
    if option.is_flag:
        return [option.secondary_opts[0] if option.default is True else name]
    value = VALUES[name]
    return [name, OTHERWISE[value] if value == str(option.default) else value]


def is_named(option: Any, error: str) -> bool:
    """Return True if an error names the option, by its command or Python name, or its path."""
    name = option.opts[0]
    reader = getattr(option.type, "func", None)
    is_path = name != "--json" and getattr(reader, "__qualname__", "").startswith(f"{place.__name__}.")
    path = VALUES[name] if is_path else name
    path = VALUES[name].partition("=")[0] if name == "--set" else path
    known = [name, path, *([option.name] if len(option.name) > 2 else [])]
    return any(re.search(rf"(?<![\w-]){re.escape(spelling)}\b", error) for spelling in known)


def lines_of(words: str) -> list[str]:
    """Return the lines of a command, with default options."""
    lines = LINES.get(words)
    if lines is None and words.startswith("study ") and words != "study papers":
        lines = [f"{words.replace(' CASE', '')} {problem}" for problem in OF_PROBLEMS]
    return lines or []


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with output, checkpoints and measurements."""
    folder = tmp_path_factory.mktemp("left")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(STORE, {})
    return folder


def cases() -> Iterator[Any]:
    """Yield each command with its lines; lines that share their options with others are marked long."""
    for words in ALL:
        for line in lines_of(words):
            is_long = line.startswith(LONG) and line not in SHORT
            yield pytest.param(words, line, id=line, marks=[pytest.mark.long] if is_long else [])


def test_every_command_with_options_is_tested() -> None:
    assert {words for words in ALL if any(listed(ALL[words]))} == {w for w in ALL if lines_of(w)}


@pytest.mark.parametrize(("words", "line"), list(cases()))
def test_every_option_has_an_effect_or_is_rejected(
    words: str, line: str, dispatched: Any, left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(FILE)
    for path in left.iterdir():
        (tmp_path / path.name).symlink_to(path)
    silent, rejected = [], set()
    bases = {"": dispatched(line)}
    assert bases[""][1] == "", "the line alone works"
    options = list(listed(ALL[words]))
    names = {option.opts[0] for option in options}
    for option in options:
        name = option.opts[0]
        needed_options = BESIDE.get(name, "")
        needed_options = needed_options if needed_options.partition(" ")[0] in names else ""
        if needed_options not in bases:
            bases[needed_options] = dispatched(line, *needed_options.split())
        calls, error = dispatched(line, *needed_options.split(), *words_of(option))
        if (words, name) in ALIKE:
            continue
        rejected |= {name} if error else set()
        obeyed = not error and calls != bases[needed_options][0]
        if not obeyed and not is_named(option, error):
            silent.append((name, error or "no effect"))
    assert not silent, (bases[""][1], silent)
    if line == "run own.py":
        assert rejected == {"--dim", "--csv"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls ck --equations", "--equations: ck is a folder of checkpoints"),
        ("view SAVED T.png --time 1", "time 1 is requested, but .* contains no time series"),
        ("explain heat --n 8 --json - --code", "--code: with --json -, the command prints only JSON"),
        ("explain heat --n 8 --scheme cg", "scheme 'cg' is unknown"),
        ("explain heat --n 8 --method cg --scheme rk3", "--method cg: heat is not a linear problem"),
        ("model poisson --n 8 --machine summit --scheme cg", "--scheme cg: poisson is a linear problem"),
        ("explain own.py --method cg", "--method cg: own.py is a file"),
        ("run poisson --n 8 --scheme cg", "--scheme cg: poisson is a linear problem"),
        ("run poisson --n 8 --csv c.csv", r"--csv c.csv: poisson has no function diagnostics\(\)"),
        (
            "run poisson --n 8 --until 1",
            "--until 1.0: poisson is a linear problem, whose iterations have no time",
        ),
        ("run poisson --n 8 --warm-up 1", "--warm-up 1: poisson is a linear problem"),
        ("run own.py --csv c.csv", r"--csv c.csv: own.py has no function diagnostics\(\)"),
        ("run own.py --dim 2", "--dim 2: the number of axes of own.py is fixed"),
        ("run heat --n 8 extra", "unexpected extra argument"),
        ("run heat --n 8 -- --steps 3", "unexpected extra argument"),
    ],
)
def test_removed_options_are_rejected(
    line: str, words: str, left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(FILE)
    (tmp_path / "ck").symlink_to(left / "ck")
    saved = next(iter((left / "ck").glob("step-*")))
    with pytest.raises(InputError, match=words):
        run(line.replace("SAVED", str(saved)).split())
