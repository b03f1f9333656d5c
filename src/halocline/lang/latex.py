"""Formulas in LaTeX: expressions, time derivatives, and the statements of programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

from halocline.lang import program as lang
from halocline.lang.axes import AXES
from halocline.lang.expression import Expr, postorder, without_location
from halocline.lang.grid import CELLS, Field
from halocline.lang.trace import INTERNAL

SUM, PRODUCT, ATOM = range(3)  # kinds of text: a sum needs parentheses as a factor, a product as a base
LONG = 60  # repeated expressions with more characters get a name
GREEK = {
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"),
    *("nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
    *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"),
}
RELATIONS = {
    "lt": "<", "le": r"\le", "gt": ">", "ge": r"\ge", "eq": "=", "ne": r"\ne", "and": r"\land", "or": r"\lor",
}  # fmt: skip
FUNCTIONS = {"log": r"\ln", "sin": r"\sin", "cos": r"\cos", "tanh": r"\tanh", "min": r"\min", "max": r"\max"}
CHAINS = {"add": "sum", "sub": "sum", "neg": "sum", "mul": "product", "div": "product"}

Written = tuple[str, int]  # LaTeX and its kind: SUM, PRODUCT or ATOM


@dataclass(frozen=True)
class Equations:
    """Equations in LaTeX, which notebooks show as formulas; ``str`` returns the LaTeX source.

    The programs of `halocline.physics` have no rows, because they contain no statements of the user.

    Attributes
    ----------
    rows : tuple of str
        One equation per row, with ``&`` before its relation.
    """

    rows: tuple[str, ...]

    def __str__(self) -> str:
        rows = " \\\\\n".join(self.rows)
        return f"\\begin{{aligned}}\n{rows}\n\\end{{aligned}}"

    def _repr_latex_(self) -> str | None:
        return f"$$\n{self}\n$$" if self.rows else None


def formula(root: Expr) -> str:
    """Return an expression in LaTeX."""
    root = without_location(root)
    writer = Writer([root], lang.Versions())
    text = writer.text(root)
    definitions = r",\ ".join(f"{name} = {definition}" for name, definition in writer.definitions)
    return rf"{text}\quad\text{{where }} {definitions}" if definitions else text


def time_derivatives(slopes: Mapping[Field, Expr]) -> Equations:
    """Return the equations of time derivatives by field."""
    roots = [without_location(slope) for slope in slopes.values()]
    writer = Writer(roots, lang.Versions())
    rows = [
        rf"\partial_t {symbol(field.name)} &= {writer.text(root)}"
        for field, root in zip(slopes, roots, strict=True)
    ]
    return Equations((*rows, *_defined(writer)))


def statements(program: lang.Program) -> Equations:
    """Return the statements of a program that the user has written, without those of the framework."""
    return Equations(tuple(_rows(program.statements, lang.Versions())))


def _rows(body: Sequence[lang.Statement], versions: lang.Versions, indent: str = "") -> Iterator[str]:
    for statement in body:
        is_of_user = bool(statement.line.file)
        if isinstance(statement, lang.Repeat):
            versions.enter_loop(lang.assigned(statement.body))
            if is_of_user:
                yield f"{indent}&{_head(statement, versions)}"
            yield from _rows(statement.body, versions, rf"{indent}\quad " if is_of_user else indent)
            continue
        if is_of_user and not isinstance(statement, lang.StopWhen):
            targets: Mapping[str, Expr] = (
                {field.name: value for field, value in statement.values.items()}
                if isinstance(statement, lang.Assign)
                else {statement.scalar.name: statement.expression}
            )
            writer = Writer([*targets.values()], versions)
            for name, value in targets.items():
                yield rf"{indent}{symbol(name)} &\leftarrow {writer.text(value)}"
            yield from _defined(writer)
        for thing in lang.assigned([statement]):
            versions.set(thing)


def _head(loop: lang.Repeat, versions: lang.Versions) -> str:
    """Return the first row of a loop, or of statements with a condition."""
    if loop.until is not None and loop.often is not None:  # a pass of `hc.when`
        return rf"\text{{if }} {Writer([~loop.until], versions).text(~loop.until)}"
    text = r"\text{repeat"
    if loop.until is not None:
        text += rf" until }} {Writer([loop.until], versions).text(loop.until)} \text{{"
    if loop.limit is not None:
        text += rf", at most }} {Writer([loop.limit], versions).text(loop.limit)} \text{{ times"
    return text + "}"


def _defined(writer: Writer) -> list[str]:
    """Return the rows that define the names of a writer."""
    return [f"{name} &= {definition}" for name, definition in writer.definitions]


def symbol(name: str) -> str:
    """Return a name in LaTeX: Greek letters by their names, and subscripts after an underscore."""
    if name.startswith(CELLS):
        return f"N_{{{name.removeprefix(CELLS)}}}"
    if name[:2] == "h_" and name[2:] in AXES:
        return rf"\Delta {name[2:]}"
    if name == "dt":
        return r"\Delta t"
    base, *below = [part for part in name.replace(INTERNAL, "").split("_") if part] or [r"\_" * len(name)]
    subscript = ", ".join(map(_word, below))
    return f"{_word(base)}_{{{subscript}}}" if subscript else _word(base)


def _word(word: str) -> str:
    return f"\\{word}" if word in GREEK else word if len(word) == 1 else rf"\mathrm{{{word}}}"


def _number(value: float) -> Written:
    """Return a number; a fraction of small whole numbers is written as a fraction."""
    ratio = Fraction(value).limit_denominator(64) if isfinite(value) else Fraction(0)
    plain = f"{value:.6g}"
    if float(plain) != value and float(ratio) == value:
        sign = "-" if ratio < 0 else ""
        return rf"{sign}\frac{{{abs(ratio.numerator)}}}{{{ratio.denominator}}}", SUM if sign else PRODUCT
    mantissa, _, exponent = plain.partition("e")
    if exponent:
        power = f"10^{{{int(exponent)}}}"
        plain = {"1": power, "-1": f"-{power}"}.get(mantissa, rf"{mantissa} \cdot {power}")
    plain = plain.replace("inf", r"\infty")
    return plain, SUM if value < 0 else PRODUCT if exponent else ATOM


def _operands(e: Expr) -> tuple[Expr, ...]:
    """Return the operands that the formula of a node shows."""
    if e.notation is not None:
        return e.notation[2]
    return (without_location(e.attribute[0].definition),) if e.op == "stage" else e.args


def _kind(e: Expr) -> str | None:
    """Return "sum" or "product" for a node of a chain of sums or products, otherwise None."""
    return None if e.notation is not None else CHAINS.get(e.op)


class Writer:
    """LaTeX of expressions, in which each long repeated part is written once.

    Parameters
    ----------
    roots : sequence of Expr
    versions : Versions
        Present versions of fields and scalars. Earlier values have a mark.

    Attributes
    ----------
    definitions : list of (str, str)
        Names of repeated parts and stages with their formulas.
    """

    def __init__(self, roots: Sequence[Expr], versions: lang.Versions) -> None:
        self.definitions: list[tuple[str, str]] = []
        self._versions = versions
        self._written: dict[Expr, Written] = {}
        nodes = postorder(roots, _operands)
        uses: dict[Expr, int] = {}
        for e in nodes:
            for operand in set(_operands(e)):
                uses[operand] = uses.get(operand, 0) + 1
        # A chain is written as a whole by its last node, unless another formula uses a node inside it.
        inside = {
            operand
            for e in nodes
            if _kind(e) is not None and len({*e.args}) == len(e.args)  # x * x is a power
            for operand in e.args
            if _kind(operand) == _kind(e) and uses[operand] == 1
        }
        self._inside = inside
        initials = {name[0] for e in nodes if e.op in ("read", "scalar", "stage") for name in [_name(e)]}
        self._letter = next((letter for letter in "abcdfgklmnpqrsw" if letter not in initials), "X")
        for e in nodes:
            if e in inside:
                continue
            text, kind = self._node(e)
            if e.op == "stage" and e.notation is None:
                self._define(symbol(_name(e)), self._written[_operands(e)[0]][0])
            elif uses.get(e, 0) > 1 and len(text) > LONG:
                name = f"{self._letter}_{{{len(self.definitions) + 1}}}"
                self._define(name, text)
                text, kind = name, ATOM
            self._written[e] = text, kind

    def text(self, root: Expr) -> str:
        """Return the formula of a root."""
        return self._written[without_location(root)][0]

    def _define(self, name: str, definition: str) -> None:
        if (name, definition) not in self.definitions:
            self.definitions.append((name, definition))

    def _as(self, e: Expr, least: int) -> str:
        """Return the formula of a node, in parentheses if its kind is below `least`."""
        text, kind = self._written[e]
        return text if kind >= least else rf"\left({text}\right)"

    def _node(self, e: Expr) -> Written:
        if e.notation is not None:
            return self._operator(*e.notation)
        if e.op in ("add", "sub", "neg"):
            return self._sum(e)
        if e.op in ("mul", "div"):
            return self._product(e)
        if e.op == "const":
            return _number(e.attribute)
        if e.op in ("scalar", "read", "stage"):
            return self._variable(e), ATOM
        if e.op == "index":
            axis, step = e.attribute
            index = "ijk"[axis]
            return (index, ATOM) if not step else (f"{index} {'+' if step > 0 else '-'} {abs(step)}", SUM)
        if e.op in RELATIONS:
            left, right = (self._as(arg, ATOM if arg.condition else SUM) for arg in e.args)
            return f"{left} {RELATIONS[e.op]} {right}", SUM
        return self._function(e)

    def _operator(self, name: str, detail: object, operands: Sequence[Expr]) -> Written:
        """Return the formula of an operator of the language."""
        if name == "coordinate":
            assert isinstance(detail, int)
            return AXES[detail], ATOM
        if name == "div":
            return rf"\nabla\cdot {self._vector(operands)}", PRODUCT
        (operand,) = operands
        if name == "to":
            return rf"\overline{{{self._as(operand, SUM)}}}", ATOM
        is_operator = operand.notation is not None and operand.notation[0] in ("derivative", "laplacian")
        text = self._as(operand, PRODUCT if is_operator else ATOM)
        if name == "laplacian":
            return rf"\nabla^2 {text}", PRODUCT
        assert isinstance(detail, tuple)
        if name == "difference":
            axis, count = detail
            return rf"\delta_{AXES[axis]}^{{{count}}} {text}", PRODUCT
        if len(detail) == 2 and detail[0] == detail[1]:
            return rf"\partial_{AXES[detail[0]]}^2 {text}", PRODUCT
        return "".join(rf"\partial_{AXES[axis]} " for axis in detail) + text, PRODUCT

    def _vector(self, components: Sequence[Expr]) -> str:
        """Return a vector: its name if it is a vector of fields, otherwise its components."""
        fields = [e.attribute[0] if e.op == "read" and not any(e.attribute[2]) else None for e in components]
        grid = next((e.grid for e in components if e.grid is not None), None)
        for vector in () if grid is None else grid.vectors.values():
            if len(vector) == len(fields) and all(a is b for a, b in zip(vector, fields, strict=True)):
                return rf"\mathbf{{{symbol(vector.name)}}}"
        return rf"\left({', '.join(self._as(e, SUM) for e in components)}\right)"

    def _terms(self, e: Expr) -> list[tuple[bool, Expr]]:
        """Return the terms of a sum, as pairs of "is subtracted" and the term."""
        terms: list[tuple[bool, Expr]] = []
        stack = [(False, e)]
        while stack:
            minus, node = stack.pop()
            if node is not e and (node not in self._inside or _kind(node) != "sum"):
                terms.append((minus, node))
            elif node.op == "neg":
                stack.append((not minus, node.args[0]))
            else:
                left, right = node.args
                stack += [(minus != (node.op == "sub"), right), (minus, left)]
        return terms

    def _sum(self, e: Expr) -> Written:
        # Expressions do not keep the order of terms: positive terms are first, and then the text decides.
        parts = [(minus, self._as(term, PRODUCT if minus else SUM)) for minus, term in self._terms(e)]
        text = ""
        for minus, part in sorted(parts):
            text += f" - {part}" if minus else part if not text else f" + {part}"
        return (f"-{text[3:]}" if text.startswith(" - ") else text), SUM

    def _factors(self, e: Expr) -> tuple[list[Expr], list[Expr]]:
        """Return the factors of a product: those of the numerator and those of the denominator."""
        above: list[Expr] = []
        below: list[Expr] = []
        stack = [(False, e)]
        while stack:
            is_below, node = stack.pop()
            is_power = node.op == "mul" and node.args[0] is node.args[1]
            if not is_power and (node is e or (node in self._inside and _kind(node) == "product")):
                left, right = node.args
                stack += [(is_below != (node.op == "div"), right), (is_below, left)]
            else:
                base, exponent = self._power(node)
                (below if is_below else above).extend([base] * exponent)
        return above, below

    def _power(self, e: Expr) -> tuple[Expr, int]:
        """Return the base and the exponent of a product of equal factors."""
        exponent = 1
        while _kind(e) == "product" and e.op == "mul" and e.args[0] is e.args[1]:
            e, exponent = e.args[0], 2 * exponent
        return e, exponent

    def _product(self, e: Expr) -> Written:
        above, below = (sorted(factors, key=self._rank) for factors in self._factors(e))
        top = self._powers(above)
        if not below:
            return top, PRODUCT
        single = above[0] if len(above) == 1 else None  # needs no parentheses above the line
        single_below = below[0] if len(below) == 1 else None
        over = self._as(single, SUM) if single is not None else top or "1"
        under = self._as(single_below, SUM) if single_below is not None else self._powers(below)
        return rf"\frac{{{over}}}{{{under}}}", PRODUCT

    def _rank(self, e: Expr) -> tuple[int, str]:
        """Return the position of a factor: numbers, scalars, values at a point, sums, derivatives."""
        text, kind = self._written[e]
        if e.notation is not None and e.notation[0] not in ("coordinate", "to"):
            return 4, text
        return (0 if e.op == "const" else 1 if not e.varies else 3 if kind == SUM else 2), text

    def _powers(self, factors: Sequence[Expr]) -> str:
        """Return a product, in which a repeated factor is a power."""
        counts: dict[Expr, int] = {}
        for factor in factors:
            counts[factor] = counts.get(factor, 0) + 1
        parts = [
            self._as(e, PRODUCT) if count == 1 else f"{self._as(e, ATOM)}^{{{count}}}"
            for e, count in counts.items()
        ]
        return r" \, ".join(part for part in parts if part != "1" or len(parts) == 1)

    def _variable(self, e: Expr) -> str:
        """Return a field, scalar or stage, with its offset and the mark of an earlier value."""
        text, thing = symbol(_name(e)), e.attribute[0]
        if e.op != "stage" and not self._versions.is_current(thing, e.attribute[1]):
            text = rf"{{{text}^{{({e.attribute[1]})}}}}"  # a power may follow
        offset = e.attribute[-1] if e.op != "scalar" else ()
        return f"{text}[{', '.join(map(str, offset))}]" if any(offset) else text

    def _function(self, e: Expr) -> Written:
        inner = [self._written[arg][0] for arg in e.args]
        if e.op == "cast":
            return self._written[e.args[0]]
        if e.op == "sqrt":
            return rf"\sqrt{{{inner[0]}}}", ATOM
        if e.op == "abs":
            return rf"\left|{inner[0]}\right|", ATOM
        if e.op == "exp":
            return f"e^{{{inner[0]}}}", PRODUCT
        if e.op == "pow":
            return f"{self._as(e.args[0], ATOM)}^{{{inner[1]}}}", PRODUCT
        if e.op == "not":
            return rf"\lnot {self._as(e.args[0], ATOM)}", PRODUCT
        if e.op in ("where", "branch"):
            condition, then, otherwise = inner
            rows = rf"{then} & \text{{if }} {condition} \\ {otherwise} & \text{{otherwise}}"
            return rf"\begin{{cases}} {rows} \end{{cases}}", SUM
        if e.op == "reduce":
            kind, cell, _ = e.attribute
            names = {"sum": r"\sum", "max": r"\max", "min": r"\min"}
            place = "" if cell is None else rf"\text{{ at }}({', '.join(map(str, cell))})"
            return rf"{names.get(kind, _operator_name(kind))}\left({inner[0]}{place}\right)", PRODUCT
        return rf"{FUNCTIONS.get(e.op, _operator_name(e.op))}\left({', '.join(inner)}\right)", PRODUCT


def _operator_name(name: str) -> str:
    return rf"\operatorname{{{name}}}"


def _name(e: Expr) -> str:
    """Return the name of a field, scalar or stage."""
    thing = e.attribute[0]
    return thing if isinstance(thing, str) else thing.name
