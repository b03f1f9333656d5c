"""Job scripts that run a study on a cluster, a job for each number of nodes."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Template

from halocline.errors import InputError

if TYPE_CHECKING:
    from halocline.study.study import Asked

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
cd "$PBS_O_WORKDIR"
"""
SYSTEMS = {"slurm": (SLURM, "sh", "sbatch"), "pbs": (PBS, "pbs", "qsub")}  # head, end of a name, command
OWN = (  # options that a job has of its own; the page is made of all jobs
    *("--submit", "--nodes", "--per-node", "--time", "--partition", "--account"),
    *("--ranks", "--json", "--csv", "--html", "--pictures"),
)
BODY = """
# what runs in the job: each run of the study starts its own ranks on the nodes of the job
export OMP_PLACES=cores OMP_PROC_BIND=close
{{ command }}
"""


def scripts(
    asked: Asked, line: Sequence[str], system: str, nodes: Sequence[int], how: Mapping[str, Any]
) -> dict[Path, str]:
    """A script for each number of nodes, by its file.

    Parameters
    ----------
    asked : Asked
    line : sequence of str
        The command that asked for the scripts.
    system : {"slurm", "pbs"}
    nodes : sequence of int
    how : mapping
        "per_node" (ranks), "time", "partition", "account".

    Raises
    ------
    InputError
        Another system.
    """
    if system not in SYSTEMS:
        raise InputError(f"--submit {system}: expected {' or '.join(SYSTEMS)}")
    head, end, _ = SYSTEMS[system]
    per_node, threads = how.get("per_node") or max(asked.ranks), max(asked.threads)
    words = [sys.executable, "-m", "halocline.cli", *_without(line, OWN)[1:]]
    made = {}
    for count in nodes:
        ranks = count * per_node
        stem = f"{asked.study.name}-{Path(asked.command.name).stem}-{count}-node{'' if count == 1 else 's'}"
        facts = {
            **{"name": stem, "nodes": count, "ranks": ranks, "per_node": per_node, "threads": threads},
            **{name: how.get(name) for name in ("partition", "account")},
            "time": how.get("time") or "01:00:00",
            "command": shlex.join([*words, "--ranks", f"{ranks}", "--json", f"{stem}.json"]),
        }
        made[Path(f"{stem}.{end}")] = Template(head + BODY).render(facts).rstrip() + "\n"
    return made


def _without(line: Sequence[str], options: Sequence[str]) -> list[str]:
    """A command line without some options and their values."""
    kept, words = [], iter(line)
    for word in words:
        name, equals, _ = word.partition("=")
        if name in options:
            if not equals:
                next(words, None)
            continue
        kept.append(word)
    return kept


def advice(system: str, files: Sequence[Path]) -> str:
    """What to do with the scripts."""
    names = " ".join(shlex.quote(str(path)) for path in files)
    results = " ".join(shlex.quote(f"{path.stem}.json") for path in files)
    command = SYSTEMS[system][2]
    return (
        f"Submit them:  for job in {names}; do {command} $job; done\n"
        f"Then join what they leave:  halocline study report {results} --html report.html"
    )
