"""Every command accepts every problem, or rejects the options that a problem does not support."""

from __future__ import annotations

import re

import pytest

from halocline.cli.app import run
from halocline.errors import InputError

# -- every problem in every command --------------------------------------------------------------------------


def test_a_part_of_a_solve_is_timed_for_as_many_iterations_as_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(["run", "poisson", "--n", "8", "--threads", "1", "--only", "compute"])
    text = capsys.readouterr().out
    assert re.search(
        "^timed part +compute +computation alone, without messages, 10 iterations;", text, re.MULTILINE
    )
    assert "exchange 0%" not in text  # shares belong to the solve before, not to its part


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run poisson --n 8 --until 1", "--until 1.0: poisson is a linear problem"),
        ("run poisson --n 8 --order 4", "order is 4, but poisson is a program"),
        ("run poisson --n 8,4", "expected the same number of points along each axis"),
        ("study strong poisson --steps 3", "--steps 3: poisson is a linear problem without time steps"),
        ("study strong heat --method cg", "--method cg: heat is not a linear problem"),
        ("study weak poisson --n 16 --growth 2", "--growth 2: the size of poisson is a single number"),
        (
            "study weak heat --n 16 --growth 3",
            "--growth 3: a number is 3; expected a whole number from 1",
        ),
        ("study exchange exchange --dim 2", "--dim 2: the study sets this option for exchange"),
        ("study orders poisson --n 8", "order is 2"),
        ("study hybrid heat --exclusive", "--exclusive: the option applies only to jobs of --submit"),
        ("study strong heat --ranks 2 --nodes 2", "--ranks 2: --per-node sets the ranks of each node"),
        ("study convergence heat --nodes 1,2", "study convergence accepts only one number of nodes"),
        (
            "study strong heat --submit slurm --html a.html",
            "--html a.html: halocline study report writes the results of all jobs",
        ),
        ("study strong heat --submit slurm --ranks 2 --per-node 2", "--ranks 2: --per-node sets the ranks"),
        (
            "study strong heat --steps 4 --overwrite",
            "--overwrite: the option applies only to jobs of --submit",
        ),
        ("study exchange heat", "this study times the exchange alone"),
        ("study strong heat --steps 3 --mpis /nowhere/libmpi.so", "there is no file /nowhere/libmpi.so"),
        ("study paper umbc-9.9", "table or figure 'umbc-9.9' is unknown"),
        ("study paper umbc-4.1 --n 100", "--n 100: umbc-4.1 has only 1024, 2048, 4096"),
        (
            "study paper wombat-fig4 --n 100",
            "--n 100: wombat-fig4 does not depend on n. Leave the option out.",
        ),
        (
            "study paper wombat-fig4 --machine summit",
            "--machine summit: there is no prediction of wombat",
        ),
        (
            "study paper wombat-fig5 --machine summit",
            "--machine summit: the configurations of wombat-fig5 define their machines (xeil, xcbdw, xcknl)",
        ),
        ("study paper umbc-4.1 --machine nowhere", "nowhere"),
        (
            "study paper umbc-4.1 --not-here --ranks 2",
            "--ranks 2: with --not-here, the command measures nothing",
        ),
        ("study paper umbc-3.1 --ranks 1,2", "--ranks 1,2: study convergence accepts only one number"),
        ("study strong heat --submit lsf --steps 4", "--submit lsf: expected slurm or pbs"),
        ("study report /proc/nothing.json", "cannot read /proc/nothing.json"),
    ],
)
def test_options_without_effect_on_a_problem_are_rejected(line: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        run(line.split())
