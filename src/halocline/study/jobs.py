"""Job scripts that run a study on a cluster, with one job for each layout of the ranks."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Template

from halocline.errors import InputError

if TYPE_CHECKING:
    from halocline.study.layout import Layout
    from halocline.study.study import StudyRequest

SLURM = """#!/bin/bash
#SBATCH --job-name={{ name }}
#SBATCH --nodes={{ nodes }}
#SBATCH --ntasks={{ ranks }}
#SBATCH --ntasks-per-node={{ per_node }}
#SBATCH --cpus-per-task={{ threads }}
#SBATCH --time={{ time }}
#SBATCH --output={{ name }}.log
{%- if partition %}
#SBATCH --partition={{ partition }}
{%- endif %}
{%- if account %}
#SBATCH --account={{ account }}
{%- endif %}
{%- if exclusive %}
#SBATCH --exclusive
{%- endif %}
{%- for line in directive %}
#SBATCH {{ line }}
{%- endfor %}
"""
PBS = """#!/bin/bash
#PBS -N {{ name }}
#PBS -l select={{ nodes }}:ncpus={{ per_node * threads }}:mpiprocs={{ per_node }}:ompthreads={{ threads }}
#PBS -l walltime={{ time }}
#PBS -j oe
#PBS -o {{ name }}.log
{%- if partition %}
#PBS -q {{ partition }}
{%- endif %}
{%- if account %}
#PBS -A {{ account }}
{%- endif %}
#PBS -l place=scatter{{ ":excl" if exclusive }}
{%- for line in directive %}
#PBS {{ line }}
{%- endfor %}
cd "$PBS_O_WORKDIR"
"""
SYSTEMS = {
    "slurm": (SLURM, "sh", "sbatch"),
    "pbs": (PBS, "pbs", "qsub"),
}  # header, file name extension, command
# options of jobs, and options of layouts; each of these options takes a value
JOB_OPTIONS = ("--submit", "--time", "--partition", "--account", "--directive")
LAYOUT_OPTIONS = ("--ranks", "--threads", "--nodes", "--per-node")
OVERWRITE = "--overwrite"
FLAGS = (OVERWRITE, "--exclusive")
DIRECTIVE = re.compile(r"-[A-Za-z0-9_.,:;@+/=%\[\]-]*( [A-Za-z0-9_.,:;@+/=%\[\]-]+)*")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:@+/-]*")  # name of a partition, queue or account
CLOCK = r"[0-9]{1,4}:[0-5][0-9]:[0-5][0-9]"
TIMES = {  # time limit of a job: pattern and description
    "slurm": (
        re.compile(rf"{CLOCK}|[0-9]{{1,3}}-([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]|[0-9]{{1,6}}"),
        "hours, minutes and seconds (such as 01:30:00), days and a time (such as 1-12:00:00), or minutes "
        "(such as 90)",
    ),
    "pbs": (re.compile(CLOCK), "hours, minutes and seconds (such as 01:30:00)"),
}
# A file name joins all words by hyphens. It is unambiguous if the options match this pattern.
UNAMBIGUOUS_OPTIONS = re.compile(r"(--[a-z]+(-[a-z]+)* [A-Za-z0-9.]+ ?)*")
MAX_STEM = 120  # maximum length of a file name in characters; a digest replaces the options of a longer name
BODY = """
# Each run of the study starts its own ranks on the nodes of the job
{%- if not affinity %}
export OMP_PLACES=cores OMP_PROC_BIND=close
{%- endif %}
{{ command }}
"""


def scripts(
    request: StudyRequest, line: Sequence[str], system: str, job_options: Mapping[str, Any]
) -> dict[Path, str]:
    """Return the job scripts, one for each layout, as a mapping from path to text.

    The file name contains the options of the study. Jobs of different studies therefore have different files.

    Parameters
    ----------
    request : StudyRequest
    line : sequence of str
        Command line that requested the scripts.
    system : {"slurm", "pbs"}
    job_options : mapping
        Options of the job: "time", "partition", "account", "exclusive", "directive".

    Raises
    ------
    InputError
        The system is unknown, or a text is not valid in a script.
    """
    if system not in SYSTEMS:
        raise InputError(f"--submit {system}: expected {' or '.join(SYSTEMS)}")
    _check_directives(system, job_options)
    head, end, _ = SYSTEMS[system]
    words = _remove_options(line, (*JOB_OPTIONS, *LAYOUT_OPTIONS))[1:]
    for word in words:
        _check_word(word)
    template, files = Template(head + BODY), {}
    for layout in request.layouts:
        per_node = layout.per_node or layout.ranks
        stem = _stem(request, words, layout)
        layout_options = {"--nodes": layout.nodes, "--per-node": per_node, "--threads": layout.threads}
        json_options = [
            *(f"{word}" for item in layout_options.items() for word in item),
            "--json",
            f"{stem}.json",
        ]
        index = words.index("--") if "--" in words else len(words)
        command = [sys.executable, "-m", "halocline.cli", *words[:index], *json_options, *words[index:]]
        facts = {
            **job_options,
            **{"name": stem, "nodes": layout.nodes, "ranks": layout.ranks, "per_node": per_node},
            **{
                "threads": layout.threads,
                "affinity": request.command.environment or request.study_options.get("affinity"),
            },
            "time": job_options.get("time") or "01:00:00",
            "command": shlex.join(command),
        }
        files[Path(f"{stem}.{end}")] = template.render(facts).rstrip() + "\n"
    return files


def check_new(files: Mapping[Path, str], *, overwrite: bool) -> None:
    """Check that neither the scripts nor the result files of their jobs replace other files.

    Raises
    ------
    InputError
        A different script or a result file exists already, and `overwrite` is false.
    """
    for path, text in files.items():
        for file in (path, results_of(path)):
            is_same = file == path and file.is_file() and file.read_bytes() == text.encode()
            if not overwrite and not is_same and (file.exists() or file.is_symlink()):
                raise InputError(f"{file} exists already. Move it, or replace it with {OVERWRITE}.")


def results_of(script: Path) -> Path:
    """Return the file to which the job of a script writes its measurements."""
    return script.with_name(f"{script.stem}.json")


def _check_directives(system: str, job_options: Mapping[str, Any]) -> None:
    """Raise InputError for a text that a scheduler directive cannot contain. Directives have no quoting."""
    for option in ("partition", "account"):
        text = job_options.get(option)
        if text is not None and not NAME.fullmatch(text):
            raise InputError(
                f"--{option} {text!r}: expected a name with the letters A to Z, digits and _ . , : @ + / -. "
                "The first character is a letter, a digit or _."
            )
    for text in job_options.get("directive") or ():
        if not DIRECTIVE.fullmatch(text):
            raise InputError(
                f"--directive {text!r}: expected an option of {SYSTEMS[system][2]}, such as "
                "--constraint=skx, with letters, digits, spaces and _ . , : ; @ + / = % [ ] -"
            )
    time = job_options.get("time")
    form, words = TIMES[system]
    if time is not None and not (form.fullmatch(time) and time.strip("0:-")):
        raise InputError(f"--time {time!r}: expected {words}")


def _check_word(word: str) -> None:
    """Raise InputError for a word of the command that contains characters not supported in a script."""
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in word):
        raise InputError(
            f"{word!r} contains a control character or invalid UTF-8, which job scripts do not support. "
            "Choose another name."
        )


def _stem(request: StudyRequest, words: Sequence[str], layout: Layout) -> str:
    """Return the name of a job, which consists of the study, the problem, its options and the layout.

    If these parts are ambiguous or too long, the name also contains a digest of the command.
    """
    sizes = () if request.sizes is None else ("n", *request.sizes)
    nodes, threads = layout.nodes, (layout.threads, "thread" if layout.threads == 1 else "threads")
    node_words = (layout.per_node or layout.ranks, "per-node", nodes, "node" if nodes == 1 else "nodes")
    options = list(_remove_options(words, ("--n",)))
    for word in ("study", request.study.name, request.command.name, "--"):
        if word in options:
            options.remove(word)
    problem = Path(request.command.name).stem[: MAX_STEM // 2]
    digest = hashlib.sha256(shlex.join(words).encode()).hexdigest()[:8]
    is_unambiguous = request.command.name == problem and UNAMBIGUOUS_OPTIONS.fullmatch(" ".join(options))
    choices = ((*sizes, *options), (*sizes, *options, digest), (digest,))
    for option_words in choices[0 if is_unambiguous else 1 :]:
        parts = (request.study.name, problem, *option_words, *threads, *node_words)
        stem = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(map(str, parts))).strip("-.")
        if len(stem) <= MAX_STEM:
            break
    return stem


def _remove_options(line: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return a command line without these options and their values, and without the options in FLAGS."""
    remaining: list[str] = []
    words = iter(line)
    for word in words:
        if word == "--":
            return [*remaining, word, *words]
        name, separator, _ = word.partition("=")
        if name in options:
            if not separator:
                next(words, None)
        elif word not in FLAGS:
            remaining.append(word)
    return remaining


def advice(system: str, files: Sequence[Path]) -> str:
    """Return the commands that submit the scripts and join their results, as text."""
    names = " ".join(shlex.quote(str(path)) for path in files)
    results = " ".join(shlex.quote(str(results_of(path))) for path in files)
    command = SYSTEMS[system][2]
    return (
        f'Submit the jobs:  for job in {names}; do {command} "$job"; done\n'
        f"Join the results:  halocline study report {results} --html report.html"
    )
