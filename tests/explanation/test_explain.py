"""Explanations of cases: the program that runs, and its messages."""

from __future__ import annotations

from halocline.compile.compiler import arranged, compile_program
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Statement, roots
from halocline.explanation.explain import explain_program
from halocline.explanation.text import lines
from halocline.problems.problem import Problem


def test_explain_shows_the_executed_program():
    ready, run_problem = Problem("alfven-decay", [16]), Problem("alfven-decay", [16])
    compiled = compile_program(ready.program, ready.grid)
    sim = run_problem.run(steps=0, device="cpu").simulation
    assert compiled == sim.schedule


def operations(kernel: Kernel, nest: Statement) -> int:
    """Return the floating-point operations of a loop for a cell, each value once."""
    varies: dict[int, bool] = {}  # True for values that depend on fields, so that each cell has its own value

    def visit(number: int) -> int:
        if number in varies:
            return 0
        value = kernel.values[number]
        below = sum(visit(arg) for arg in value.args)
        varies[number] = value.op == "load" or any(varies[arg] for arg in value.args)
        operation_count = {"fma": 2, "neg": 0}.get(value.op, 1) if value.args and varies[number] else 0
        return below + operation_count

    return sum(map(visit, roots((nest,))))


def test_exchanged_edges_are_those_of_the_equations():
    """Edges are exchanged for the mixed derivatives of u (∇∇·u) and A (∇∇·A) only."""
    ready = Problem("mhd-benchmark", [32])
    explanation = explain_program(ready.program, ready.grid, ranks=8)
    edges = {f"{a}{s}{b}{t}" for a, b in ("xy", "xz", "yz") for s in "-+" for t in "-+"}
    corners = {f"x{s}y{t}z{u}" for s in "-+" for t in "-+" for u in "-+"}
    for step in explanation.loop:
        for halo in step.halos:
            places = {place for place, _ in halo.width}
            assert not places & corners
            axis = halo.field[-1] if halo.field[:2] in ("u_", "A_") else None
            assert places & edges == {edge for edge in edges if axis is not None and axis in edge}
            assert set(halo.travels) == places
            assert {width for _, width in halo.width} == {3}
    assert {route["bytes"] for route in explanation.routes} == {3 * 8 * 8 * 3 * 16 * 16, 3 * 8 * 4 * 9 * 16}
    # 80 arrays: the first stage does not read the register, and the last does not write it
    assert explanation.bytes_per_cell == 640
    kernels = [nests.kernel for nests in arranged(ready.program, ready.grid).nests.values()]
    assert explanation.flops_per_cell == sum(operations(k, nest) for k in kernels for nest in k.body)
    text = "\n".join(lines(explanation, None))
    assert "halos of u_x, A_x: 3 layers on x-, x+" in text
    # 24 arrays instead of 16, and the reason
    assert text.count("  (second buffer)") == 8
    assert "writes new values to a second buffer if it still reads old values of neighbouring cells" in text
    assert "start1 = t; t = t + (0.3333333333333333 * dt)" in text  # time at the start of a step
    assert "'" not in text[text.index("Operations") : text.index("One pass")]
