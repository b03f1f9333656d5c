"""Multiply-add selection: the code generator chooses every fused multiply-add, the compiler none."""

from __future__ import annotations

from collections import Counter

from halocline.lang.expression import Expr, fold, node, unary, walk, with_arguments


def depth(root: Expr, memo: dict[int, int]) -> int:
    """The innermost axis that a value varies along: 0 for none, 1 + axis for coordinates, 3 for fields."""
    return fold(root, memo, _depth)


def _depth(current: Expr, inner: list[int]) -> int:
    if current.op in ("read", "stage"):
        return 3
    if current.op == "index":
        grid = current.grid
        assert grid is not None
        return 1 + int(current.attribute[0]) + 3 - grid.ndim
    return 0 if current.op == "reduce" else max(inner, default=0)


def contract(roots: list[Expr]) -> list[Expr]:
    """The expressions with a*b + c replaced by fma(a, b, c) wherever the product is used once.

    Where both summands are such products, the digest decides which one is fused, so that the choice depends
    on the formula alone; of a difference it is the first, so that differences along all axes are alike. A
    product that varies along fewer axes than the sum is left alone: it is computed once outside.
    """
    uses: Counter[int] = Counter(id(r) for r in roots)
    for current in walk(roots):
        uses.update(id(a) for a in current.args)
    depths: dict[int, int] = {}
    memo: dict[int, Expr] = {}

    def product(candidate: Expr, inside: Expr) -> bool:
        e = candidate.args[0] if candidate.op == "neg" else candidate
        return (
            e.op == "mul"
            and uses[id(e)] == 1
            and uses[id(candidate)] == 1
            and depth(e, depths) == depth(inside, depths)
        )

    for current in walk(roots):
        args = tuple(memo[id(a)] for a in current.args)
        made = None
        if current.op in ("add", "sub"):
            left, right = current.args
            fused = [i for i in (0, 1) if product((left, right)[i], current)]
            if len(fused) == 2 and current.op == "add":
                fused.sort(key=lambda i: (left, right)[i].digest)
            if fused:
                which = fused[0]
                e = current.args[which]
                negative = e.op == "neg"
                factor = memo[id(e.args[0])] if negative else memo[id(e)]
                a, b = factor.args
                other = args[1 - which]
                if current.op == "sub":
                    # a*b - c  or  c - a*b
                    if which == 0:
                        other = unary("neg", other)
                    else:
                        negative = not negative
                made = node("fma", (unary("neg", a) if negative else a, b, other))
        if made is None:
            made = with_arguments(current, args) if current.args else current
        memo[id(current)] = made
    return [memo[id(r)] for r in roots]


def count_flops(roots: list[Expr]) -> int:
    """Floating-point operations per cell: an fma is two, a comparison or a selection none, a function one."""
    total = 0
    depths: dict[int, int] = {}
    for current in walk(roots):
        if depth(current, depths) == 3:
            if current.op == "fma":
                total += 2
            elif current.op in (
                "add",
                "sub",
                "mul",
                "div",
                "sqrt",
                "exp",
                "log",
                "sin",
                "cos",
                "pow",
                "random",
                "sum2",
                "min",
                "max",
            ):
                total += 1
    return total
