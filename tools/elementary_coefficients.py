"""Derive the numbers in native/include/halocline/elementary.hpp.

    python tools/elementary_coefficients.py            print them
    python tools/elementary_coefficients.py --check    name those that the header lacks

Each polynomial is the minimax approximation by Remez's exchange algorithm (E. Ya. Remez, 1934; J.-M. Muller,
Elementary Functions, 3rd ed. 2016, ch. 3), in an arithmetic of 320 bits. Rounding all coefficients at once
would cost accuracy. Hence the first ones, which carry the most weight, are rounded one at a time. The rest is
fitted again with those fixed (cf. N. Brisebarre and S. Chevillard, ARITH 18, 2007). The printed error is that
of the rounded polynomial, relative to the function that uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mpmath import cos, exp, factorial, floor, log, log1p, lu_solve, matrix, mp, mpf, pi, polyval, sqrt

HEADER = Path(__file__).parents[1] / "native" / "include" / "halocline" / "elementary.hpp"
Function = Callable[[mpf], mpf]
mp.prec = 320


@dataclass(frozen=True)
class Polynomial:
    """Polynomial p(t) of `terms` coefficients near `function` on `interval`.

    An error e of p is a relative error weight(t) * e of the function that uses p. The first `fixed`
    coefficients are rounded one at a time.
    """

    name: str
    function: Function
    weight: Function
    interval: tuple[mpf, mpf]
    terms: int
    fixed: int

    def coefficients(self) -> tuple[list[mpf], mpf]:
        """Return the rounded coefficients, lowest order first, and the largest weighted error."""
        rounded: list[mpf] = []
        while len(rounded) < self.terms:
            fit = self.rest(rounded)
            rounded += [mpf(float(c)) for c in (fit[:1] if len(rounded) < self.fixed else fit)]
        error = max(
            abs(self.weight(t) * (self.function(t) - polyval(rounded[::-1], t)))
            for t in nodes(self.interval, 2000)
        )
        return rounded, error

    def rest(self, known: list[mpf]) -> list[mpf]:
        """Return the best coefficients after known ones."""
        order = len(known)
        return remez(
            lambda t: (self.function(t) - polyval(known[::-1], t)) / t**order,
            lambda t: self.weight(t) * t**order,
            self.interval,
            self.terms - order,
        )


def nodes(interval: tuple[mpf, mpf], count: int) -> list[mpf]:
    """Return Chebyshev nodes in ascending order; an even count avoids the middle (weights may vanish)."""
    low, high = interval
    return [(low + high) / 2 - (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def remez(function: Function, weight: Function, interval: tuple[mpf, mpf], terms: int) -> list[mpf]:
    """Return the polynomial of `terms` coefficients with the minimum weighted error on the interval."""
    grid = nodes(interval, 40 * (terms + 1))
    values, weights = [function(t) for t in grid], [abs(weight(t)) for t in grid]
    reference = [20 + 40 * i for i in range(terms + 1)]
    for _ in range(30):
        system = matrix(terms + 1, terms + 1)
        right = matrix(terms + 1, 1)
        for row, i in enumerate(reference):
            for column in range(terms):
                system[row, column] = weights[i] * grid[i] ** column
            system[row, terms] = (-1) ** row
            right[row] = weights[i] * values[i]
        *coefficients, level = lu_solve(system, right)
        errors = [
            w * (v - polyval(coefficients[::-1], t)) for t, v, w in zip(grid, values, weights, strict=True)
        ]
        if max(map(abs, errors)) <= abs(level) * mpf("1.0001"):
            return coefficients
        reference = alternation(errors, terms + 1)
    raise RuntimeError(f"Remez's exchange did not converge for {terms} terms on {interval}")


def alternation(errors: list[mpf], count: int) -> list[int]:
    """Return the positions of `count` extrema of alternating sign."""
    extrema = [0]
    for i, error in enumerate(errors):
        if (error > 0) != (errors[extrema[-1]] > 0):
            extrema.append(i)
        elif abs(error) > abs(errors[extrema[-1]]):
            extrema[-1] = i
    while (surplus := len(extrema) - count) > 0:
        least = min(range(len(extrema)), key=lambda i: abs(errors[extrema[i]]))
        if surplus > 1 and 0 < least < len(extrema) - 1:  # its neighbours have the same sign: keep the larger
            around = extrema[least - 1], extrema[least + 1]
            extrema[least - 1 : least + 2] = [max(around, key=lambda i: abs(errors[i]))]
        else:
            del extrema[0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1]
    return extrema


def series(term: Callable[[int], mpf]) -> Function:
    """Return the power series of these coefficients, to more digits than the arithmetic has."""
    coefficients = [term(k) for k in range(80)][::-1]
    return lambda t: polyval(coefficients, t)


LN2 = log(2)
HALF = LN2 / 2 * (1 + mpf(2) ** -10)  # of the reduced argument of exp
QUARTER = pi / 4 * (1 + mpf(2) ** -10)  # of the reduced argument of sin and cos
MANTISSA = sqrt(mpf(2)) / 2 - 1, sqrt(mpf(2)) - 1  # of m - 1
ATANH = mpf(0), ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2  # of s^2 with s = (m - 1) / (m + 1)

sin_rest = series(lambda k: (-1) ** (k + 1) / factorial(2 * k + 3))  # sin(r) = r + r^3 p(r^2)
cos_rest = series(lambda k: (-1) ** k / factorial(2 * k + 4))  # cos(r) = 1 - r^2/2 + r^4 p(r^2)
sinc = series(lambda k: (-1) ** k / factorial(2 * k + 1))
cosine = series(lambda k: (-1) ** k / factorial(2 * k))


def exp_polynomial(name: str, order: int, terms: int, fixed: int) -> Polynomial:
    """Return the polynomial of exp(r) = 1 + r + ..., from r^order on."""
    rest = series(lambda k: 1 / factorial(k + order))
    return Polynomial(name, rest, lambda r: r**order / exp(r), (-HALF, HALF), terms, fixed)


def sin_polynomial(name: str, terms: int) -> Polynomial:
    return Polynomial(name, sin_rest, lambda z: z / sinc(z), (mpf(0), QUARTER**2), terms, 2)


def cos_polynomial(name: str, terms: int) -> Polynomial:
    return Polynomial(name, cos_rest, lambda z: z**2 / cosine(z), (mpf(0), QUARTER**2), terms, 2)


def atanh_polynomial(name: str, order: int, terms: int) -> Polynomial:
    """Return the polynomial of log(m) = 2s + 2/3 s^3 + ... = 2 atanh(s), from s^(2 order + 1) on."""
    rest = series(lambda k: mpf(2) / (2 * (k + order) + 1))
    return Polynomial(name, rest, lambda z: z**order / 2, ATANH, terms, 2)


def log_polynomial(name: str, terms: int) -> Polynomial:
    """Return the polynomial p of log(1 + f) = f + f^2 p(f)."""
    return Polynomial(name, lambda f: (log1p(f) - f) / f**2, lambda f: f**2 / log1p(f), MANTISSA, terms, 0)


POLYNOMIALS = (
    exp_polynomial("exp", 3, 10, 0),
    exp_polynomial("expf", 2, 7, 1),
    atanh_polynomial("log", 1, 7),
    atanh_polynomial("pow", 2, 8),
    sin_polynomial("sin", 6),
    cos_polynomial("cos", 6),
    sin_polynomial("sinf", 4),
    cos_polynomial("cosf", 4),
    log_polynomial("logf", 11),
    log_polynomial("powf", 16),
)


def parts(value: mpf, bits: list[int]) -> list[mpf]:
    """Return `value` as a sum of numbers with the given bits each."""
    results = []
    for width in bits:
        unit = mpf(2) ** (floor(log(abs(value), 2)) + 1 - width)
        results.append(mp.nint(value / unit) * unit)
        value -= results[-1]
    return results


def lines() -> Iterator[tuple[str, list[str]]]:
    """Return a title and numbers in the spelling of the header."""
    for polynomial in POLYNOMIALS:
        coefficients, error = polynomial.coefficients()
        yield f"{polynomial.name}: error 2^{float(log(error, 2)):.1f}", [float(c).hex() for c in coefficients]
    for title, value, bits in (
        ("ln 2", LN2, [53]),
        ("ln 2 in parts", LN2, [42, 53]),
        ("1 / ln 2", 1 / LN2, [53]),
        ("pi / 2", pi / 2, [53, 53, 53]),
        ("2 / pi", 2 / pi, [53]),
        ("2 / 3", mpf(2) / 3, [53, 53]),
    ):
        yield title, [float(part).hex() for part in parts(value, bits)]
    with mp.workprec(1400):
        words = int(floor(2 / pi * mpf(2) ** (64 * 19)))
    yield (
        "2 / pi in words of 64 bits",
        [f"0x{words >> 64 * (18 - i) & (1 << 64) - 1:016x}" for i in range(19)],
    )


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    header = HEADER.read_text() if check else ""
    missing = 0
    for title, numbers in lines():
        expected = [n for n in numbers if n.removeprefix("-") not in header]
        if expected:
            missing += len(expected)
            print(title, *expected, sep="\n    ")
    return 1 if check and missing else 0


if __name__ == "__main__":
    sys.exit(main())
