"""Fluxes of ideal magnetohydrodynamics: waves, Riemann solvers and slopes, compared with NumPy.

The tested formulas process thousands of pairs of states at once, one in each cell of a row. The reference
uses other methods: eigenvalues of matrices, derivatives by complex steps, Python's `if`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import halocline as hc
from halocline.physics.mhd_tvd.gas import Normal, State
from halocline.physics.mhd_tvd.reconstruct import central, plm, states, sweby
from halocline.physics.mhd_tvd.riemann import RIEMANN, mhdtvd
from halocline.physics.mhd_tvd.waves import Waves, viscosity

Array = NDArray[np.float64]

GAMMA = 5 / 3
EACH = 400  # number of states of each kind
SOLVERS = sorted(RIEMANN)
EPSILON = {"epsilon_fast": 0.2, "epsilon_alfven": 0.15, "epsilon_slow": 0.3, "epsilon_entropy": 0.1}
EQUAL = dict.fromkeys(EPSILON, 0.2)
# in the order of ascending eigenvalues
FAMILY = ("fast", "alfven", "slow", "entropy", "slow", "alfven", "fast")
RHO, U, V, W, BY, BZ, P = range(7)
MIRROR = np.array([-1, 1, -1, -1, -1, -1, -1.0])[:, None]  # signs of the flux in a mirror


# -- states --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """States on both sides of many faces, (7, n) each, and the field across these faces."""

    left: Array
    right: Array
    bn: Array

    @property
    def mirrored(self) -> Pair:
        def turn(w: Array) -> Array:
            w = w.copy()
            w[U] *= -1
            return w

        return Pair(turn(self.right), turn(self.left), -self.bn)

    def __getitem__(self, index: Any) -> Pair:
        return Pair(self.left[:, index], self.right[:, index], self.bn[index])


def gas(draw: np.random.Generator, n: int) -> Array:
    w = draw.normal(size=(7, n))
    w[RHO], w[P] = np.exp(w[RHO]), np.exp(1.5 * w[P])
    return w


def kinds() -> dict[str, Pair]:
    """Return pairs of states of all kinds."""
    draw = np.random.default_rng(11)
    result = {}

    def kind(name: str) -> tuple[Array, Array, Array]:
        left, right, bn = gas(draw, EACH), gas(draw, EACH), draw.normal(size=EACH)
        result[name] = Pair(left, right, bn)
        return left, right, bn

    kind("any")
    left, right, bn = kind("near")
    right[:] = left * (1 + 1e-3 * draw.normal(size=left.shape))
    kind("nothing across")[2][:] = 0
    left, right, bn = kind("nothing along")
    left[[BY, BZ]] = right[[BY, BZ]] = 0
    left, right, bn = kind("no field")
    left[[BY, BZ]] = right[[BY, BZ]] = bn[:] = 0
    left, right, bn = kind("nothing along the left")
    left[[BY, BZ]] = 0
    left, right, bn = kind("opposite fields")  # their average vanishes
    right[RHO] = left[RHO]
    right[[BY, BZ]] = -left[[BY, BZ]]
    left, right, bn = kind("sound as fast as Alfvén waves")
    right[:] = left
    left[[BY, BZ]] = right[[BY, BZ]] = 0
    bn[:] = np.sqrt(GAMMA * left[P])
    right[RHO] *= 1 + 0.1 * draw.uniform(size=EACH)
    left, right, bn = kind("equal densities")
    right[RHO] = left[RHO]
    left, right, bn = kind("far")
    left[P] *= 1e3
    left[RHO] *= 1e2
    left, right, bn = kind("cold")
    left[P], right[P] = 1e-4 * left[P], 1e-4 * right[P]
    left, right, bn = kind("a wall")  # the contact is at rest on the face
    right[:] = left
    right[U] *= -1
    bn[::2] = 0
    return result


KINDS = kinds()
ALL = Pair(
    np.hstack([k.left for k in KINDS.values()]),
    np.hstack([k.right for k in KINDS.values()]),
    np.hstack([k.bn for k in KINDS.values()]),
)
N = ALL.bn.size
KIND = np.repeat(list(KINDS), EACH)


# -- NumPy's formulas ----------------------------------------------------------------------------------


def energy_of(w: Any, bn: Any) -> Any:
    return w[P] / (GAMMA - 1) + w[RHO] * (w[U] ** 2 + w[V] ** 2 + w[W] ** 2) / 2 + field_energy(w, bn)


def field_energy(w: Any, bn: Any) -> Any:
    return (bn**2 + w[BY] ** 2 + w[BZ] ** 2) / 2


def conserved_of(w: Any, bn: Any) -> Any:
    return np.stack([w[RHO], *(w[RHO] * w[k] for k in (U, V, W)), w[BY], w[BZ], energy_of(w, bn)])


def flux_of(w: Any, bn: Any) -> Any:
    """Return the flux as printed, with the total pressure."""
    total = w[P] + field_energy(w, bn)
    E, along = energy_of(w, bn), bn * w[U] + w[BY] * w[V] + w[BZ] * w[W]
    return np.stack(
        [
            w[RHO] * w[U],
            w[RHO] * w[U] ** 2 + total - bn**2,
            w[RHO] * w[U] * w[V] - bn * w[BY],
            w[RHO] * w[U] * w[W] - bn * w[BZ],
            w[BY] * w[U] - bn * w[V],
            w[BZ] * w[U] - bn * w[W],
            (E + total) * w[U] - bn * along,
        ]
    )


def fast_of(w: Array, bn: Array) -> Array:
    a2, b2 = GAMMA * w[P] / w[RHO], 2 * field_energy(w, bn) / w[RHO]
    root = np.sqrt(np.maximum((a2 + b2) ** 2 - 4 * a2 * bn**2 / w[RHO], 0))
    return np.sqrt((a2 + b2 + root) / 2)


def sizes(pair: Pair) -> tuple[Array, Array, Array]:
    """Return the scales of conserved quantities, of their fluxes, and of the speed."""
    rho = np.maximum(pair.left[RHO], pair.right[RHO])
    speeds = [np.abs(w[U : W + 1]).max(0) + fast_of(w, pair.bn) for w in (pair.left, pair.right)]
    speed = np.maximum(*speeds)
    field, E = np.sqrt(rho) * speed, rho * speed**2
    q = np.stack([rho, *[rho * speed] * 3, field, field, E])
    return q, q * speed, speed


def derivative(f: Callable[[Any, Any], Any], w: Array, bn: Array, dtype: Any = complex) -> Array:
    """Return ∂f/∂w, (n, 7, 7), to machine precision, by a step along the imaginary axis."""
    columns = []
    for k in range(7):
        at = w.astype(dtype)
        at[k] += 1e-30j
        columns.append(f(at, bn).imag / 1e-30)
    return np.moveaxis(np.stack(columns, axis=1), 2, 0)


def solution_of(A: Array, b: Array) -> Array:
    """Return x of A x = b, (n, 7) each, with the precision of A and b, which exceeds that of LAPACK."""
    rough = A.astype(float)
    x = np.zeros_like(b)
    for _ in range(3):
        left = b - np.einsum("nij,nj->ni", A, x)
        x = x + np.linalg.solve(rough, left.astype(float)[:, :, None])[:, :, 0]
    return x


def jacobian(w: Array, bn: Array) -> Array:
    return derivative(flux_of, w, bn) @ np.linalg.inv(derivative(conserved_of, w, bn))


def roe_matrix(pair: Pair) -> Array:
    """Return A with A Δq = ΔF, from the jumps of products with averages of Roe's kind."""
    l, r, bn = pair.left, pair.right, pair.bn
    root_l, root_r = np.sqrt(l[RHO]), np.sqrt(r[RHO])
    part = root_r / (root_l + root_r)
    with_mass = lambda a, b: (1 - part) * a + part * b  # noqa: E731
    rho, (u, v, w) = root_l * root_r, with_mass(l[U : W + 1], r[U : W + 1])
    By, Bz = with_mass(r[[BY, BZ]], l[[BY, BZ]])
    X = ((r[[BY, BZ]] - l[[BY, BZ]]) ** 2).sum(0) / (2 * (root_l + root_r) ** 2)
    H = with_mass(*((energy_of(s, bn) + s[P] + field_energy(s, bn)) / s[RHO] for s in (l, r)))
    o, one = np.zeros_like(u), np.ones_like(u)
    C = [  # of Δw = (Δρ, Δu, Δv, Δw, ΔBy, ΔBz, Δp)
        [one, o, o, o, o, o, o],
        [u, rho, o, o, o, o, o],
        [v, o, rho, o, o, o, o],
        [w, o, o, rho, o, o, o],
        [o, o, o, o, one, o, o],
        [o, o, o, o, o, one, o],
        [(u**2 + v**2 + w**2) / 2 + X, rho * u, rho * v, rho * w, By, Bz, one / (GAMMA - 1)],
    ]
    held = [c + d for c, d in zip(C[6], [X, o, o, o, By, Bz, one], strict=True)]  # Δ(ρH)
    D = [
        [u, rho, o, o, o, o, o],
        [u**2 + X, 2 * rho * u, o, o, By, Bz, one],
        [u * v, rho * v, rho * u, o, -bn, o, o],
        [u * w, rho * w, o, rho * u, o, -bn, o],
        [o, By, -bn, o, u, o, o],
        [o, Bz, o, -bn, o, u, o],
        [u * h for h in held],
    ]
    change = [o, rho * H - bn**2, -bn * By, -bn * Bz, -bn * v, -bn * w, o]
    D[6] = [d + c for d, c in zip(D[6], change, strict=True)]
    C, D = (np.moveaxis(np.array(m), 2, 0) for m in (C, D))
    return D @ np.linalg.inv(C)


def hll_of(pair: Pair) -> Array:
    l, r, bn = pair.left, pair.right, pair.bn
    speeds = np.linalg.eigvals(roe_matrix(pair)).real
    up = np.maximum(0, np.maximum(speeds.max(1), r[U] + fast_of(r, bn)))
    down = np.minimum(0, np.minimum(speeds.min(1), l[U] - fast_of(l, bn)))
    dq = conserved_of(r, bn) - conserved_of(l, bn)
    return (up * flux_of(l, bn) - down * flux_of(r, bn) + up * down * dq) / (up - down)


def roe_of(pair: Pair, epsilon: dict[str, float]) -> Array:
    l, r, bn = pair.left, pair.right, pair.bn
    nudge = np.array([0, 0, 0, 0, 1e-8, 3e-8, 0])[:, None]  # separates equal wave speeds
    speeds, R = np.linalg.eig(roe_matrix(Pair(l + nudge, r + nudge, bn + 2e-8)))
    order = np.argsort(speeds.real, axis=1)
    speeds = np.take_along_axis(speeds.real, order, 1)
    R = np.take_along_axis(R, order[:, None, :], 2)
    c = (speeds[:, 6] - speeds[:, 0]) / 2
    edge = 2 * np.array([epsilon[f"epsilon_{f}"] for f in FAMILY]) * c[:, None]
    size, edge = np.abs(speeds), np.maximum(edge, 1e-300)
    size = np.where(size < edge, size**2 / (2 * edge) + edge / 2, size)
    dq = conserved_of(r, bn) - conserved_of(l, bn)
    jump = np.linalg.solve(R, dq.T[:, :, None].astype(R.dtype))
    return (flux_of(l, bn) + flux_of(r, bn)) / 2 - (R @ (size[:, :, None] * jump))[:, :, 0].real.T / 2


def hlld_of(l: Sequence[float], r: Sequence[float], bn: float) -> list[float]:
    """Return the HLLD flux (Miyoshi and Kusano 2005), from one flux and the jumps at the waves."""
    c = max(float(fast_of(np.array(s), np.array(bn))) for s in (l, r))
    S_L, S_R = min(l[U], r[U]) - c, max(l[U], r[U]) + c
    U_, F_ = {}, {}
    for name, s in (("L", l), ("R", r)):
        U_[name] = np.array(conserved_of(np.array(s), bn))
        F_[name] = np.array(flux_of(np.array(s), bn))
    if S_L >= 0:
        return list(F_["L"])
    if S_R <= 0:
        return list(F_["R"])
    pT = {n: s[P] + field_energy(s, bn) for n, s in (("L", l), ("R", r))}
    m_l, m_r = (S_L - l[U]) * l[RHO], (S_R - r[U]) * r[RHO]
    S_M = (m_r * r[U] - m_l * l[U] - pT["R"] + pT["L"]) / (m_r - m_l)
    p_star = (m_r * pT["L"] - m_l * pT["R"] + m_l * m_r * (r[U] - l[U])) / (m_r - m_l)
    star = {}
    for name, s, S in (("L", l, S_L), ("R", r, S_R)):
        rho = s[RHO] * (S - s[U]) / (S - S_M)
        low = s[RHO] * (S - s[U]) * (S - S_M) - bn**2
        if low <= 1e-12 * bn**2:
            v, w, By, Bz = s[V], s[W], s[BY], s[BZ]
        else:
            lift, bend = bn * (S_M - s[U]) / low, (s[RHO] * (S - s[U]) ** 2 - bn**2) / low
            v, w, By, Bz = s[V] - s[BY] * lift, s[W] - s[BZ] * lift, s[BY] * bend, s[BZ] * bend
        before, after = (
            bn * s[U] + s[V] * s[BY] + s[W] * s[BZ],
            bn * S_M + v * By + w * Bz,
        )
        E = (S - s[U]) * U_[name][6] - pT[name] * s[U] + p_star * S_M + bn * (before - after)
        star[name] = np.array([rho, rho * S_M, rho * v, rho * w, By, Bz, E / (S - S_M)])
    root_l, root_r = math.sqrt(star["L"][0]), math.sqrt(star["R"][0])
    A_L, A_R = S_M - abs(bn) / root_l, S_M + abs(bn) / root_r
    if A_L >= 0:
        return list(F_["L"] + S_L * (star["L"] - U_["L"]))
    if A_R <= 0:
        return list(F_["R"] + S_R * (star["R"] - U_["R"]))
    sign, root_sum = math.copysign(1, bn), root_l + root_r
    transverse = {n: (star[n][2:4] / star[n][0], star[n][4:6]) for n in "LR"}
    (v_l, B_l), (v_r, B_r) = transverse["L"], transverse["R"]
    v = (root_l * v_l + root_r * v_r + (B_r - B_l) * sign) / root_sum
    B = (root_l * B_r + root_r * B_l + root_l * root_r * (v_r - v_l) * sign) / root_sum
    name, S, A, toward, root = ("L", S_L, A_L, -1, root_l) if S_M >= 0 else ("R", S_R, A_R, 1, root_r)
    v_k, B_k = transverse[name]
    E = star[name][6] + toward * root * sign * (v_k @ B_k - v @ B)
    inner = np.array([star[name][0], star[name][0] * S_M, *(star[name][0] * v), *B, E])
    return list(F_[name] + A * inner - (A - S) * star[name] - S * U_[name])


def limited_of(a: Array, b: Array, beta: float) -> Array:
    """Return the larger of two minmods, each of which favours one side."""

    def minmod(x: Array, y: Array) -> Array:
        return (np.sign(x) + np.sign(y)) / 2 * np.minimum(abs(x), abs(y))

    one, other = minmod(beta * a, b), minmod(a, beta * b)
    return np.where(abs(one) > abs(other), one, other)


# -- tested code ---------------------------------------------------------------------------------------


class Machine:
    """Program that computes output fields from input fields, on a row of cells."""

    def __init__(
        self, inputs: Sequence[str], outputs: int, function: Callable[..., Any], **parameters: float
    ):
        grid = hc.Grid((N,), periodic=True)
        self.inputs = [grid.field(n, location="face-x" if n == "bn" else "cell") for n in inputs]
        self.outputs = [grid.field(f"out_{i}") for i in range(outputs)]

        def step() -> None:
            values = function(*(f[0] for f in self.inputs))
            hc.assign(dict(zip(self.outputs, values, strict=True)))

        self.sim = hc.Simulation(grid, hc.program(step), parameters=parameters, threads=1)

    def __call__(self, *values: Array, **parameters: float) -> Array:
        for name, value in parameters.items():
            self.sim.parameters[name] = value
        for field, value in zip(self.inputs, values, strict=True):
            self.sim[field] = value
        self.sim.run()
        return np.stack([np.array(self.sim[field]) for field in self.outputs])


SIDES = [f"{side}_{k}" for side in "lr" for k in range(7)] + ["bn"]


def split(components: Array) -> Iterator[Array]:
    return (components[7 * k : 7 * k + 7] for k in range(len(components) // 7))


@pytest.fixture(scope="module")
def solved() -> Callable[..., dict[str, Array]]:
    """Return a function that computes the fluxes of all solvers between pairs of states."""

    def step(*q: Any) -> list[Any]:
        left, right, bn = Normal(*q[:7]), Normal(*q[7:14]), q[14].expr
        return [f for name in SOLVERS for f in RIEMANN[name](left, right, bn)]

    machine = Machine(SIDES, 7 * len(SOLVERS), step, gamma=GAMMA, **EPSILON)

    def of(pair: Pair, epsilon: dict[str, float] = EPSILON) -> dict[str, Array]:
        result = machine(*pair.left, *pair.right, pair.bn, **epsilon)
        return dict(zip(SOLVERS, split(result), strict=True))

    return of


@pytest.fixture(scope="module")
def waves() -> Callable[[Pair], list[Array]]:
    """Return a function that computes speeds, Σ α R and Σ a α R."""

    def step(*q: Any) -> list[Any]:
        left, right, bn = Normal(*q[:7]), Normal(*q[7:14]), q[14].expr
        result = Waves.between(left, right, bn)
        alpha = result.strengths(left, right)
        transported = alpha.map(lambda x, a: x * a, result.speeds)
        return [*result.speeds, *result.superpose(alpha), *result.superpose(transported)]

    machine = Machine(SIDES, 21, step, gamma=GAMMA)
    return lambda pair: list(split(machine(*pair.left, *pair.right, pair.bn)))


CELLS = ["rho", "vx", "vy", "vz", "Bx", "By", "Bz", "p", "bn"]
RATIO = 0.07  # Δt/Δx


@pytest.fixture(scope="module")
def rows() -> Callable[..., list[Array]]:
    """Return a function of a row: the fluxes "mhdtvd" and "plm" with HLLD, and the states of "plm"."""

    def step(*q: Any) -> list[Any]:
        w = State(q[0].expr, hc.Vector(c.expr for c in q[1:4]), hc.Vector(c.expr for c in q[4:7]), q[7].expr)
        bn, ratio = q[8].expr, hc.parameter("ratio")
        sides = states(w, w.B[0], 0, ratio, "sides", sweby)
        flux_functions = (mhdtvd, "t"), (plm(RIEMANN["hlld"]), "p")
        fluxes = [F(w, bn, 0, ratio, name, sweby) for F, name in flux_functions]
        return [c for part in (*fluxes, *sides) for c in part]

    machine = Machine(CELLS, 28, step, gamma=GAMMA, ratio=RATIO, limiter=1.5, **EPSILON)
    return lambda w, Bx, bn: list(split(machine(w[RHO], w[U], w[V], w[W], Bx, w[BY], w[BZ], w[P], bn)))


def close(result: Array, expected: Array, size: Array, tolerance: float) -> None:
    worst = np.abs(result - expected) / size
    assert np.isfinite(worst).all()
    at = np.unravel_index(np.argmax(worst), worst.shape)
    assert worst[at] <= tolerance, f"{worst[at]} in quantity {at[0]}, {KIND[at[1]]}"


# -- waves ---------------------------------------------------------------------------------------------


def test_wave_strengths_and_eigenvectors_sum_to_the_jumps(waves: Any) -> None:
    _, jump, flux_jump = waves(ALL)
    q, F, _ = sizes(ALL)
    close(jump, conserved_of(ALL.right, ALL.bn) - conserved_of(ALL.left, ALL.bn), q, 1e-11)
    close(flux_jump, flux_of(ALL.right, ALL.bn) - flux_of(ALL.left, ALL.bn), F, 1e-11)


def test_speeds_of_equal_states_are_eigenvalues(waves: Any) -> None:
    same = Pair(ALL.left, ALL.left, ALL.bn)
    speeds, *_ = waves(same)
    assert (np.diff(speeds, axis=0) >= -1e-14 * sizes(same)[2]).all()
    expected = np.sort(np.linalg.eigvals(jacobian(same.left, same.bn)).real, axis=1).T
    generic = np.isin(KIND, ["any", "near", "far", "equal densities"])
    _, _, size = sizes(same)
    close(speeds[:, generic], expected[:, generic], size[generic], 1e-9)
    close(speeds, expected, size, 1e-5)  # equal eigenvalues lose half of the digits


def test_speeds_between_states_are_eigenvalues_of_a_matrix_of_roe(waves: Any) -> None:
    A, (_, F, size) = roe_matrix(ALL), sizes(ALL)
    dq = conserved_of(ALL.right, ALL.bn) - conserved_of(ALL.left, ALL.bn)
    dF = flux_of(ALL.right, ALL.bn) - flux_of(ALL.left, ALL.bn)
    close(np.einsum("nij,jn->in", A, dq), dF, F, 1e-10)  # it is one
    speeds, *_ = waves(ALL)
    close(speeds, np.sort(np.linalg.eigvals(A).real, axis=1).T, size, 1e-5)


# -- solvers -------------------------------------------------------------------------------------------


def test_the_flux_between_equal_states_is_exact(solved: Any) -> None:
    for side in (ALL.left, ALL.right):
        same = Pair(side, side, ALL.bn)
        for result in solved(same).values():
            close(result, flux_of(side, ALL.bn), sizes(same)[1], 1e-13)


def test_hll_agrees_with_its_formula(solved: Any) -> None:
    close(solved(ALL)["hll"], hll_of(ALL), sizes(ALL)[1], 1e-8)


def test_hlld_agrees_with_its_formula(solved: Any) -> None:
    expected = [hlld_of(l, r, bn) for l, r, bn in zip(ALL.left.T, ALL.right.T, ALL.bn, strict=True)]
    close(solved(ALL)["hlld"], np.array(expected).T, sizes(ALL)[1], 1e-11)


def test_roe_agrees_with_its_formula(solved: Any) -> None:
    """Each family has an ε of its own; families of equal speed have the same ε."""
    generic = np.isin(KIND, ["any", "near", "far", "equal densities"])
    size = sizes(ALL)[1]
    close(solved(ALL)["roe"][:, generic], roe_of(ALL[generic], EPSILON), size[:, generic], 1e-7)
    result = solved(ALL, EQUAL)["roe"]
    close(result, roe_of(ALL, EQUAL), size, 1e-7)
    without = dict.fromkeys(EPSILON, 0.0)
    close(solved(ALL, without)["roe"], roe_of(ALL, without), size, 1e-7)


@pytest.mark.parametrize("up", [True, False])
def test_supersonic_gas_has_the_upwind_flux(solved: Any, up: bool) -> None:
    """Both states move together, so fast that no wave moves against them."""
    _, _, size = sizes(ALL)
    shifted = Pair(ALL.left.copy(), ALL.right.copy(), ALL.bn)
    for w in (shifted.left, shifted.right):
        w[U] += (10 if up else -10) * size
    side = shifted.left if up else shifted.right
    for result in solved(shifted).values():
        close(result, flux_of(side, ALL.bn), sizes(shifted)[1], 1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_mirrored_states_have_mirrored_fluxes(solved: Any, name: str) -> None:
    assert np.array_equal(solved(ALL.mirrored)[name], MIRROR * solved(ALL)[name])


@pytest.mark.parametrize("name", SOLVERS)
def test_no_mass_flows_through_a_wall(solved: Any, name: str) -> None:
    result, bn = solved(ALL)[name][:, KIND == "a wall"], KINDS["a wall"].bn
    assert (result[RHO] == 0).all()  # not a bit of mass
    assert (result[:, bn == 0][[V, W, BY, BZ, P]] == 0).all()
    assert (result[:, bn == 0][U] > 0).any()


def test_hlld_keeps_a_contact_and_an_alfven_wave(solved: Any) -> None:
    """Contacts at rest and rotations of the field at a moving wave are kept."""
    draw = np.random.default_rng(3)
    left, bn = gas(draw, N), draw.normal(size=N)
    left[U] = 0
    right = left.copy()
    right[RHO] *= np.exp(draw.normal(size=N))
    contact = Pair(left, right, bn)
    close(solved(contact)["hlld"], flux_of(left, bn), sizes(contact)[1], 1e-13)
    # at the upper Alfvén wave v changes by -ΔB/√ρ sign(bn); here it moves down, and the flux is that above it
    left[U] = -1.01 * np.abs(bn) / np.sqrt(left[RHO])
    right = left.copy()
    angle = draw.uniform(0, 2 * np.pi, N)
    right[BY] = np.cos(angle) * left[BY] - np.sin(angle) * left[BZ]
    right[BZ] = np.sin(angle) * left[BY] + np.cos(angle) * left[BZ]
    for v, B in ((V, BY), (W, BZ)):
        right[v] = left[v] - (right[B] - left[B]) / np.sqrt(left[RHO]) * np.sign(bn)
    turned = Pair(left, right, bn)
    close(solved(turned)["hlld"], flux_of(right, bn), sizes(turned)[1], 1e-12)


# -- slopes --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def row() -> tuple[Array, Array, Array]:
    """Return cells in a row, smooth in one part and random in the other, with a field across their faces."""
    draw = np.random.default_rng(5)
    x = 2 * np.pi * np.arange(N) / N
    w = 0.4 * np.sin(x[None] * draw.integers(20, 200, (7, 1)) + draw.uniform(0, 6, (7, 1)))
    w += 0.8 * draw.normal(size=(7, N)) * (x > 4)
    w[RHO], w[P] = np.exp(2 * w[RHO]), np.exp(3 * w[P])
    w[U] *= np.where(x > 5, 6, 1)  # gas that separates so fast that a vacuum would form
    bn = 0.7 + 0.1 * np.sin(3 * x)
    return w, (bn + np.roll(bn, -1)) / 2, bn


def test_states_at_faces_agree_with_their_formula(rows: Any, row: Any) -> None:
    w, Bx, _ = row
    *_, left, right = rows(*row)
    slopes = limited_of(w - np.roll(w, 1, 1), np.roll(w, -1, 1) - w, 1.5)
    C, D = (derivative(f, w, Bx, np.clongdouble) for f in (conserved_of, flux_of))
    change = solution_of(C, np.einsum("nij,nj->ni", D, slopes.T)).T
    sides = []
    for sign in (0.5, -0.5):
        side = w + sign * slopes - RATIO / 2 * change
        bad = (side[RHO] <= 0) | (side[P] <= 0)
        assert 0 < bad.sum() < N // 10
        sides.append(np.where(bad, w, side))
    size = 1 + np.abs(w) + np.abs(change)
    close(left, np.roll(sides[0], 1, 1), np.roll(size, 1, 1), 1e-13)
    close(right, sides[1], size, 1e-13)


def test_plm_solves_between_the_states_at_faces(rows: Any, row: Any, solved: Any) -> None:
    _, flux, left, right = rows(*row)
    pair = Pair(left, right, row[2])
    close(flux, solved(pair)["hlld"], sizes(pair)[1], 1e-13)


@pytest.mark.parametrize("scheme", [0, 1], ids=["mhdtvd", "plm"])
def test_a_mirrored_row_has_mirrored_fluxes(rows: Any, row: Any, scheme: int) -> None:
    w, Bx, bn = row
    flip = lambda at_faces: np.roll(at_faces[..., ::-1], 1, -1)  # noqa: E731
    turned = w[:, ::-1].copy()
    turned[U] *= -1
    plain, mirrored = rows(w, Bx, bn)[scheme], rows(turned, -Bx[::-1], -flip(bn))[scheme]
    assert np.isfinite(plain).all()
    assert np.array_equal(flip(mirrored), MIRROR * plain)


@pytest.mark.parametrize("scheme", [0, 1], ids=["mhdtvd", "plm"])
def test_uniform_gas_has_the_exact_flux(rows: Any, scheme: int) -> None:
    w = np.repeat(gas(np.random.default_rng(2), 1), N, axis=1)
    bn = np.full(N, 0.6)
    close(rows(w, bn, bn)[scheme], flux_of(w, bn), sizes(Pair(w, w, bn))[1], 1e-14)


# -- viscosity and limiter -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Callable[..., Array]:
    """Return viscosity(a, epsilon), sweby(a, b, limiter) and central(a, b, limiter)."""

    def step(a: Any, b: Any) -> list[Any]:
        beta = hc.parameter("limiter")
        limited = [limit(a.expr, b.expr, beta) for limit in (sweby, central)]
        return [viscosity(a.expr, hc.parameter("epsilon_fast")), *limited]

    return Machine(["a", "b"], 3, step, limiter=1.0, epsilon_fast=0.1)


def test_viscosity_is_the_absolute_value_smoothed_near_zero(small: Any) -> None:
    epsilon = 0.125
    a = np.linspace(-1, 1, N)
    edge = 2 * epsilon
    a[:5] = np.nextafter(edge, 0), edge, np.nextafter(edge, 1), -edge, 0
    Q, *_ = small(a, a, epsilon_fast=epsilon)
    is_outside = np.abs(a) >= edge
    assert np.array_equal(Q[is_outside], np.abs(a[is_outside]))
    close(Q[None], (np.where(is_outside, np.abs(a), a**2 / (2 * edge) + epsilon))[None], 1, 1e-15)
    assert Q[4] == epsilon
    assert Q[:4] == pytest.approx(edge, rel=1e-15)  # continuous
    # the slope of Q is continuous too, and at most 1
    assert np.abs(np.diff(Q[5:])).max() <= (a[6] - a[5]) * (1 + 1e-9)
    assert (np.abs(a) <= Q).all()
    Q, *_ = small(a, a, epsilon_fast=0.0)
    assert np.array_equal(Q, np.abs(a))


def mean_of(a: Array, b: Array, beta: float) -> Array:
    """Return the mean of both arguments, at most beta times the smaller one."""
    size = np.minimum(np.abs(a + b) / 2, beta * np.minimum(np.abs(a), np.abs(b)))
    return np.where(a * b > 0, np.sign(a) * size, 0.0)


@pytest.mark.parametrize("beta", [1.0, 1.3, 2.0])
@pytest.mark.parametrize(
    ("limiter_index", "known"), [(1, limited_of), (2, mean_of)], ids=["sweby", "central"]
)
def test_the_limiter_agrees_with_its_formula(
    small: Any, limiter_index: int, known: Callable[..., Array], beta: float
) -> None:
    draw = np.random.default_rng(8)
    a, b = draw.normal(size=(2, N)) * np.exp(3 * draw.normal(size=(2, N)))
    a[:4], b[:4] = (0, 1, 0, 2), (1, 0, 0, 2)
    result = small(a, b, limiter=beta)[limiter_index]
    assert np.array_equal(result, small(b, a, limiter=beta)[limiter_index])
    assert np.array_equal(-result, small(-a, -b, limiter=beta)[limiter_index])
    assert (result[a * b <= 0] == 0).all()
    close(result[None], known(a, b, beta)[None], np.abs(a) + np.abs(b) + 1e-300, 1e-15)
    same_sign = a * b > 0
    less, more = np.minimum(abs(a), abs(b))[same_sign], np.maximum(abs(a), abs(b))[same_sign]
    if beta == 1:
        assert np.array_equal(np.abs(result[same_sign]), less)
    if beta == 2 and known is limited_of:  # superbee
        assert np.array_equal(np.abs(result[same_sign]), np.where(2 * less < more, 2 * less, more))
    assert result[3] == 2
