"""Job scripts: a script contains every text of the user unchanged, or the command is rejected."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from halocline.cli.app import run
from halocline.errors import InputError
from halocline.study import jobs
from halocline.study.measuring.command import Command
from halocline.study.study import StudyRequest, studies
from loops import some
from suites import examples

HOSTILE = [
    *("a b", "a;touch pwned", "$(touch pwned)", "`touch pwned`", "a\ntouch pwned", "a\r\ntouch pwned"),
    *("a\n#SBATCH --uid=0", "'", '"', "'; touch pwned; '", "\\", "*", "~", "&", "|touch pwned", "#", "a\tb"),
    *(
        "-x",
        "--nodes=9",
        "--",
        "",
        "{{ 7 * 7 }}",
        "{% raw %}",
        "größe",
        "\u2028",
        "\x00",
        "\x1b[0m",
        "\udcff",
    ),
]
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=12) | st.text("ab01_-./: $'\"`;\n", max_size=8)
SYSTEMS = st.sampled_from(list(jobs.SYSTEMS))
FORMS = {  # the directive of each option
    "slurm": {name: f"#SBATCH --{name}={{}}" for name in ("partition", "account", "time")},
    "pbs": {"partition": "#PBS -q {}", "account": "#PBS -A {}", "time": "#PBS -l walltime={}"},
}
DIRECTIVES = {"slurm": 7, "pbs": 6}  # lines without partition and account


def asked_of(problem: str, sizes: Sequence[int] | None = None) -> StudyRequest:
    """Return the request for two ranks on one node, and for two ranks on each of two nodes."""
    numbers = None if sizes is None else tuple(sizes)
    return StudyRequest(studies()["strong"], Command("run", problem), numbers, (2,), (1,), nodes=(1, 2))


def scripts(line: Sequence[str], problem: str, system: str = "slurm", **options: Any) -> dict[Path, str]:
    return jobs.scripts(asked_of(problem), ["halocline", *line], system, options)


def scripts_or_error(*arguments: Any, **options: Any) -> tuple[dict[Path, str], str]:
    """Return the scripts, or no scripts and the error message."""
    try:
        return scripts(*arguments, **options), ""
    except InputError as error:
        return {}, str(error)


def directives(text: str) -> list[str]:
    """Return the lines that the scheduler reads; they precede the first command."""
    results = []
    for line in text.splitlines()[1:]:
        if not line.startswith("#"):
            break
        results.append(line)
    return results


@settings(max_examples=80, deadline=None)
@given(TEXTS | TEXTS.map(lambda text: f"--{text}"), SYSTEMS)
def test_a_free_directive_is_one_line_of_the_head_or_is_rejected(text: str, system: str) -> None:
    scripts, error = scripts_or_error(["study", "strong", "heat"], "heat", system, directive=[text])
    assert bool(scripts) != bool(error)
    assert scripts or error.startswith("--directive ")
    for script in scripts.values():
        assert len(directives(script)) == DIRECTIVES[system] + 1
        assert directives(script)[-1].endswith(f" {text}")
        assert script.isascii()


@settings(max_examples=80, deadline=None)
@example("1", "1", "1:00:00", "slurm")
@given(TEXTS, TEXTS, TEXTS, SYSTEMS)
def test_directives_contain_the_text_or_are_rejected(
    partition: str, account: str, time: str, system: str
) -> None:
    for option, text in (("partition", partition), ("account", account), ("time", time)):
        scripts, error = scripts_or_error(["study", "strong", "heat"], "heat", system, **{option: text})
        assert bool(scripts) != bool(error)
        assert scripts or error.startswith(f"--{option} ")
        for script in scripts.values():
            lines = directives(script)
            assert len(lines) == DIRECTIVES[system] + (option != "time")
            assert lines.count(FORMS[system][option].format(text)) == 1
            assert text.isascii()
            assert shlex.quote(text) == text, "no shell and no scheduler splits it"


def test_every_hostile_text_is_rejected_in_a_directive() -> None:
    for text in HOSTILE:
        for option in ("partition", "account", "time"):
            with pytest.raises(InputError, match=f"--{option} "):
                scripts(["study", "strong", "heat"], "heat", **{option: text or " "})


def test_times_have_the_format_of_the_scheduler() -> None:
    forms = {"slurm": ["1", "60", "1-00:00:00", "7-23:59:59", "1:00:00"], "pbs": ["1:00:00", "100:30:00"]}
    wrong = ["00:00:00", "0", "0-00:00:00", "1:60:00", "1-24:00:00", "1-1", "01:00", "\u0661:00:00", "-1"]
    rejected = {"slurm": wrong, "pbs": [*wrong, "1", "60", "1-00:00:00"]}
    slurm = "(such as 01:30:00), days and a time (such as 1-12:00:00), or minutes (such as 90)"
    expected = {"slurm": slurm, "pbs": "(such as 01:30:00)"}
    for system in some(jobs.SYSTEMS):
        for time in some(forms[system]):
            for script in some(scripts(["study", "strong", "heat"], "heat", system, time=time).values()):
                assert FORMS[system]["time"].format(time) in script.splitlines()
        for time in some(rejected[system]):
            with pytest.raises(InputError, match=r"--time .*: expected hours, minutes and seconds") as raised:
                scripts(["study", "strong", "heat"], "heat", system, time=time)
            assert str(raised.value).endswith(expected[system])


def test_each_layout_has_a_script() -> None:
    """Scripts name nodes, ranks of a node and threads (UMBC HPCF-2018-10, Tables 4.1 and 7.1)."""
    line = ["halocline", "study", "strong", "heat", "--nodes", "1,2", "--per-node=2,8", "--threads", "1,4"]
    request = replace(asked_of("heat"), ranks=(2, 8), threads=(1, 4))
    for system in some(jobs.SYSTEMS):
        scripts = jobs.scripts(request, line, system, {})
        assert len(scripts) == 8
        layouts = [script.split("halocline.cli ")[1].partition(" --json")[0] for script in scripts.values()]
        assert "study strong heat --nodes 2 --per-node 8 --threads 4" in layouts
        assert len({*layouts}) == 8
    script = jobs.scripts(request, line, "slurm", {})[Path("strong-heat-4-threads-8-per-node-2-nodes.sh")]
    facts = ("--nodes=2", "--ntasks=16", "--ntasks-per-node=8", "--cpus-per-task=4")
    assert {f"#SBATCH {fact}" for fact in facts} <= {*script.splitlines()}


def test_ranks_without_nodes_are_those_of_one_node() -> None:
    one = replace(asked_of("heat"), ranks=(4,), nodes=())
    (script,) = jobs.scripts(
        one, ["halocline", "study", "strong", "heat", "--ranks", "4"], "slurm", {}
    ).values()
    assert "#SBATCH --ntasks=4" in script.splitlines()
    assert "study strong heat --nodes 1 --per-node 4 --threads 1 --json" in script


def test_scripts_contain_exclusive_nodes_and_free_directives() -> None:
    exclusive = {"slurm": "#SBATCH --exclusive", "pbs": "#PBS -l place=scatter:excl"}
    for system in some(jobs.SYSTEMS):
        line = ["study", "strong", "heat", "--exclusive", "--directive", "--constraint=skx"]
        for script in some(
            scripts(line, "heat", system, exclusive=True, directive=["--constraint=skx"]).values()
        ):
            added = [exclusive[system], exclusive[system].split()[0] + " --constraint=skx"]
            assert directives(script)[-2:] == added
            assert "skx" not in script.splitlines()[-1]


def test_a_requested_binding_replaces_the_default() -> None:
    request = replace(asked_of("heat"), study_options={"affinity": "spread"})
    scripts = jobs.scripts(request, ["halocline", "study", "strong", "heat"], "slurm", {})
    for script in some(scripts.values()):
        assert "export" not in script


@settings(max_examples=examples(60, 200), deadline=None)
@example(["kappa=1e-3"], ["kappa=1e+3"])
@example(["a=-0.3"], ["a=0.3"])
@example(["a", "b"], ["a-b"])
@example(["a/heat.py"], ["b/heat.py"])
@given(st.lists(TEXTS, max_size=3), st.lists(TEXTS, max_size=3))
def test_names_of_different_commands_differ(one: list[str], other: list[str]) -> None:
    if one == other:
        return
    names: list[Path] = []
    for words in (one, other):
        problem = words[0] if words and words[0].endswith(".py") else "heat"
        values = [word for text in words for word in ("--set", text)]
        scripts, error = scripts_or_error(["study", "strong", *values, "--", problem], problem)
        assert scripts or "control character" in error
        names += scripts
    assert len({*names}) == len(names)


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an interpreter that writes its command-line arguments to a file."""
    path = tmp_path_factory.mktemp("bin") / "python with 'quotes'"
    path.write_text('#!/bin/bash\nprintf "%s\\0" "$@" > words\n')
    path.chmod(0o755)
    return path


def test_the_command_of_a_script_keeps_its_arguments(stub: Path, tmp_path: Path) -> None:
    """Each text of the user is passed unchanged as the name of a file and as the value of a setting."""
    texts = ["a.py", "größe.py", *HOSTILE]
    ran = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(stub))
        for text in texts:
            line = ["study", "strong", "--set", f"name={text}", "--", text]
            scripts, error = scripts_or_error(line, text)
            if error:
                assert "control character" in error
                assert not text.isprintable()
                continue
            path, script = next(iter(scripts.items()))
            assert len(path.parts) == 1
            assert shlex.quote(path.name) == path.name
            assert not path.name.startswith("-")
            (tmp_path / "job.sh").write_text(script)
            done = subprocess.run(["bash", "job.sh"], cwd=tmp_path, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")
            words = (tmp_path / "words").read_bytes().decode().split("\0")[:-1]
            options = ["--nodes", "1", "--per-node", "2", "--threads", "1", "--json", f"{path.stem}.json"]
            assert words == ["-m", "halocline.cli", *line[:4], *options, "--", text]
            assert {path.name for path in tmp_path.iterdir()} == {"job.sh", "words"}
            ran += 1
    assert ran >= len(HOSTILE) // 2


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=4), SYSTEMS)
def test_a_script_contains_one_command(words: list[str], system: str) -> None:
    """The shell reads the command line unchanged for any word."""
    line = ["study", "strong", "heat", *words]
    scripts, error = scripts_or_error(line, "heat", system)
    assert scripts or "control character" in error
    for script in scripts.values():
        command = script[script.index("OMP_PROC_BIND=close\n") :].partition("\n")[2]
        read = shlex.split(command)
        assert read[:3] == [sys.executable, "-m", "halocline.cli"]
        assert read.count("--json") == 1 + words.count("--json")
        assert len(command.splitlines()) == 1


def test_names_contain_the_varied_options() -> None:
    lines = [
        ["study", "strong", "heat", "--n", "16"],
        ["study", "strong", "heat", "--n", "32"],
        ["study", "strong", "heat", "--n", "16", "--order", "4"],
        ["study", "strong", "heat", "--n", "16", "--set", "kappa=2"],
        ["study", "strong", "heat", "--n", "16", "--set", "kappa=" + 200 * "3"],
        ["study", "strong", "heat", "--n", "16", "--set", "kappa=" + 201 * "3"],
    ]
    names = []
    for line in lines:
        for per_node in (2, 4):
            request = replace(asked_of("heat", [int(line[4])]), ranks=(per_node,))
            names += jobs.scripts(request, ["halocline", *line], "slurm", {})
    assert len({*names}) == len(names) == 24
    assert max(len(path.name) for path in names) < 130
    assert Path("strong-heat-n-16-order-4-1-thread-4-per-node-2-nodes.sh") in names


def test_files_of_another_study_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["study", "strong", "heat", "--n", "16", "--steps", "4", "--submit", "slurm", "--per-node", "2"]
    monkeypatch.setattr(sys, "argv", ["halocline", *line])
    assert run(line) == 0
    (script,) = tmp_path.iterdir()
    assert run(line) == 0, "the same script"
    text = script.read_text()
    for path in (script, script.with_suffix(".json")):
        path.write_text("of another study")
        with pytest.raises(InputError, match=rf"{path.name} exists already\. .*--overwrite"):
            run(line)
        assert path.read_text() == "of another study"
        monkeypatch.setattr(sys, "argv", ["halocline", *line, "--overwrite"])
        assert run([*line, "--overwrite"]) == 0
        assert script.read_text() == text
        monkeypatch.setattr(sys, "argv", ["halocline", *line])
