"""Labels of the sweeps of programs, and numbers in explanations of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import halocline as hc
from halocline.compile.lower import lower, sweeps
from halocline.explanation.explain import explain_program
from halocline.lang.expression import walk
from halocline.lang.origin import Line
from halocline.lang.program import Program, expressions_of
from halocline.problems.problem import problem_of

SOURCE = Path(hc.__file__).parent
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")


def framework_text() -> set[str]:
    """Return all source lines of the framework."""
    folders = [SOURCE / name for name in ("lang", "solvers", "run", "compile", "physics")]
    lines = {line.strip() for folder in folders for f in folder.rglob("*.py") for line in f.open()}
    assert len(lines) > 10_000
    return lines


def labels_of(program: Program) -> list[list[Line]]:
    """Return the origins of each sweep, in order and once each."""
    labels = []
    for sweep in sweeps(lower(program)):
        origins = [sweep.origins[key] for key in (*sweep.sets, *sweep.reductions)]
        labels.append(list(dict.fromkeys(origins)))
    return labels


def check(program: Program, forbidden: set[str]) -> int:
    """Check all labels of a program, and return their number."""
    count = 0
    for origins in labels_of(program):
        assert origins
        for line in origins:
            assert line.text
            assert line.text not in forbidden
            if line.file:
                file = Path(line.file).resolve()
                assert SOURCE not in file.parents or file.parent == SOURCE / "cases", line
                lines = file.read_text().splitlines()
                assert 1 <= line.number <= len(lines)
                assert line.label == f"{line.text}  ({file.name}:{line.number})"
            else:
                assert line.label == line.description
            count += 1
    return count


def programs(names: tuple[str, ...]) -> Iterator[Program]:
    """Yield the programs of cases."""
    for name in names:
        yield problem_of(name).program


def check_numbers(name: str) -> int:
    """Check that the scalars, stops and loops in an explanation have the constants of the program.

    Returns
    -------
    int
        Number of different constants in the explanation.
    """
    problem = problem_of(name)
    statements = tuple(problem.program.all_statements())
    constants = {e.attribute for s in statements for e in walk(expressions_of(s)) if e.op == "const"}
    constants |= {1 / s.often for s in statements if getattr(s, "often", None)}  # "(one time in 1000)"
    steps = explain_program(problem.program, problem.grid).steps
    texts = [text for step in steps if step.kind not in ("sweep", "exchange") for text in step.statements]
    numbers = {float(number) for text in texts for number in NUMBER.findall(text)}
    assert numbers <= constants
    assert not [text for text in texts if "(1 * " in text or " * 1)" in text]
    return len(numbers)
