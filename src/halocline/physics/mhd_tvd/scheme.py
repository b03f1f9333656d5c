"""Unsplit step: corner transport upwind with constrained transport (Mendygral et al. 2017, Section 5).

Mass, momentum and energy are stored in cells, and the magnetic field is stored on faces. Field components
along axes that the grid lacks are also stored in cells. All intermediate results of a step are stages. A
stage is computed at all points at which other formulas read it, also in the halo. Therefore a step needs only
one exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from halocline.errors import InputError
from halocline.lang.expression import Expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import branch, maximum, symmetric_sum, where
from halocline.lang.grid import AXES, Field, Grid, Vector, unknown_name_error
from halocline.lang.operators import shift
from halocline.lang.program import label_statements, parameter, scalar, stage
from halocline.lang.reductions import max as greatest
from halocline.physics.mhd_tvd.flags import around, beside, flag_stage
from halocline.physics.mhd_tvd.gas import (
    Conserved,
    Flux,
    State,
    face_states,
    fast_speed,
    frame,
    ordered_sum,
    pressure,
)
from halocline.physics.mhd_tvd.mixing import lacks_mass_or_heat, mix
from halocline.physics.mhd_tvd.reconstruct import LIMITERS, plm
from halocline.physics.mhd_tvd.riemann import RIEMANN, hll, mhdtvd
from halocline.physics.mhd_tvd.tally import tally
from halocline.physics.mhd_tvd.transport import (
    advance_field,
    at_cells,
    at_edges,
    component_fluxes,
    edges,
    protect_edges,
    reference,
)

FLUXES: Mapping[str, Callable[..., Flux]] = {
    "mhdtvd": mhdtvd,
    **{name: plm(solver) for name, solver in RIEMANN.items()},
}
WALLS = ("rho", "m", "E", "b")  # fields that can have boundary conditions


class Source(NamedTuple):
    """Mass, momentum and energy that a cell gains per unit volume and unit time."""

    rho: Any = 0.0
    m: Sequence[Any] = (0.0, 0.0, 0.0)
    E: Any = 0.0


@dataclass(frozen=True)
class _Step:
    """Size of a step: Δt/Δx along each axis, half of Δt/Δx, and Δt."""

    full: list[Expr]
    half: list[Expr]
    dt: Expr


class IdealMHD:
    """Fields of ideal magnetohydrodynamics on a grid, and a step of the scheme.

    `MHDSimulation` runs the scheme and checks its parameters.

    Parameters
    ----------
    grid : Grid
        Grid of one to three axes. Vectors have three components on all grids.
    flux : {"mhdtvd", "hll", "hlld", "roe"}
        Fluxes of the paper ("mhdtvd"), or the Riemann solver for linearly reconstructed states.
    limiting : {"central", "sweby"}
        Limiter of waves or slopes. The paper uses "sweby". See `reconstruct.LIMITERS`.
    boundary : mapping of str to boundary condition, optional
        Conditions at walls by field, "rho", "m", "E" or "b", in the form that `Grid.field` accepts. A vector
        has one condition, or one for each component.
    source : callable, optional
        ``source(state)`` returns the `Source` of gravity, cooling and similar effects. It can contain
        density, velocity, field and pressure of cells, coordinates and parameters.

    Attributes
    ----------
    rho, E : Field
        Density, and energy per unit volume: P/(γ-1) + ρv²/2 + B²/2.
    m : Vector
        Momentum per unit volume.
    b : Vector
        Magnetic field. Components along axes of the grid are on faces, all other components are in cells.

    Raises
    ------
    InputError
        The flux or the limiter is unknown, or `boundary` contains an unknown field.
    """

    def __init__(
        self,
        grid: Grid,
        *,
        flux: str = "mhdtvd",
        limiting: str = "central",
        boundary: Mapping[str, Any] | None = None,
        source: Callable[[State], Source] | None = None,
    ) -> None:
        if flux not in FLUXES:
            raise unknown_name_error("flux", flux, list(FLUXES))
        if limiting not in LIMITERS:
            raise unknown_name_error("limiting", limiting, list(LIMITERS))
        walls = boundary or {}
        for name in walls:
            if name not in WALLS:
                raise InputError(f"boundary has {name!r}; expected names of fields: {', '.join(WALLS)}")
        self.grid, self.axes, self.source = grid, grid.ndim, source
        self.flux, self.limiting = flux, limiting
        self._flux = partial(FLUXES[flux], limit=LIMITERS[limiting])
        self.rho = grid.field("rho", boundary=walls.get("rho"))
        self.E = grid.field("E", boundary=walls.get("E"))
        self.m = grid.vector("m", components=3, boundary=walls.get("m"))
        places = [_face(a) if a < grid.ndim else "cell" for a in range(3)]
        self.b = grid.vector("b", components=3, location=places, boundary=walls.get("b"))

    @property
    def scheme_name(self) -> str:
        """Name of the fluxes and the time integration."""
        return f"{self.flux}, CTU + CT" if self.axes > 1 else self.flux

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, in the order of the equations."""
        return (self.rho, *self.m, self.E, *self.b)

    def state(self) -> State:
        """Return density, velocity, field and pressure of cells, without the application of floors."""
        return _primitive(self._conserved())

    def _conserved(self) -> Conserved:
        return Conserved(
            self.rho.expr, Vector(c.expr for c in self.m), self.E.expr, at_cells(self.b, self.axes)
        )

    def time_step(self, courant: Any) -> Expr:
        """Return the Courant number times the minimum of Δx / (|v| + c_f) over all cells and axes.

        The paper uses the maximum speed over the grid (Section 4.1.1), and does not state a Courant number.
        """
        w = self.state()
        safe = State(
            maximum(w.rho, parameter("density_floor")), w.v, w.B, maximum(w.p, parameter("pressure_floor"))
        )
        rates = [(magnitude(w.v[a]) + fast_speed(safe, a)) / self.grid.h(a) for a in range(self.axes)]
        longest: Expr = courant / greatest(rates[0] if len(rates) == 1 else maximum(*rates))
        return longest

    def step(self, dt: Expr, step: Expr) -> None:
        """Add a time step of length `dt` and number `step` to the program.

        The step numbers in comments are those of Section 5.1 in 2D, and of Section 5.2 in 3D.
        """
        ratios = [dt / self.grid.h(a) for a in range(self.axes)]
        size = _Step(ratios, [0.5 * r for r in ratios], dt)
        b = self.b
        U, w = self._raise_to_floors()

        # Step 1: fluxes along each axis alone
        F = self._fluxes([w] * self.axes, b, size, "F")
        # Steps 2 and 3: electromotive forces in cells and on edges
        corners = at_edges(F, reference(w.v, w.B, self.axes), "e")
        # Step 4: the field on faces after half a step
        b_half = self._stage_face_field(advance_field(b, corners, F, size.half), "b_half")
        B_half = at_cells(b_half, self.axes)
        # Steps 5 to 7: for each axis, the state after half a step along the other axes, and its fluxes
        across = [self._transverse_half_step(a, U, w, F, B_half, size) for a in range(self.axes)]
        G = self._fluxes([q for q, _ in across], b_half, size, "G") if self._has_transverse_terms else F
        # Step 8: electromotive forces in cells in the middle of the step
        middle, stays = self._half_step(U, w, F, B_half, size)
        # Step 9: electromotive forces on edges
        corners = at_edges(G, reference(middle.v, middle.B, self.axes), "e_half")
        # Step 10: full step of cells, and their field after step 11
        gain = None if self.source is None else self.source(middle)
        candidate = _stage_candidate(_advance(U, G, gain, size))
        b_candidate = self._stage_face_field(advance_field(b, corners, G, size.full), "b_tried")
        flags = [flag for _, flag in across if flag is not None]
        if self._needs_half_step:
            flags.append(stays)
        bad = _flag_unphysical(candidate._replace(B=at_cells(b_candidate, self.axes)), flags)
        # first-order fluxes around cells that would be unphysical
        safe = self._first_order_fluxes(w)
        H = [
            _select_flux(S, second, beside(bad, a)) for a, (S, second) in enumerate(zip(safe, G, strict=True))
        ]
        new = _branch_states(around(bad, self.axes), _advance(U, H, gain, size), candidate)
        # Step 11: full step of faces
        corners = protect_edges(corners, safe, bad, "e_kept")
        b_new = self._stage_face_field(advance_field(b, corners, H, size.full), "b_new")
        lacks = lacks_mass_or_heat(new._replace(B=at_cells(b_new, self.axes)))
        raised = {"density_floor": U.rho != self.rho, "pressure_floor": U.E != self.E}
        counts = tally(step, {"fallback": bad > 0.0, "mixing": lacks, **raised})
        with label_statements("rho: continuity equation"):
            self.rho.set(new.rho)
        with label_statements("m: momentum equation"):
            self.m.set(new.m)
        with label_statements("E: energy equation"):
            self.E.set(new.E)
        with label_statements("b: induction equation"):
            self.b.set(b_new)
        # cells that still have no mass or no heat are mixed with their neighbours
        with label_statements("mixing: exchange next to cells without mass or heat"):
            lacked = scalar("mixing_left")
            lacked.set(counts["mixing"])
            mix(self.rho, self.m, self.E, self.b, lacked)

    @property
    def _has_transverse_terms(self) -> bool:
        """True if a half step has transverse terms. Otherwise the fluxes of step 1 are final."""
        return self.axes > 1 or self.source is not None

    @property
    def _needs_half_step(self) -> bool:
        """True if electromotive forces on edges, or sources, read the state in the middle of the step."""
        return bool(edges(self.axes)) or self.source is not None

    def _raise_to_floors(self) -> tuple[Conserved, State]:
        """Return the state of cells at the start of the step, with density and pressure raised to floors."""
        U = self._conserved()
        rho = maximum(U.rho, parameter("density_floor"))
        raw = pressure(U._replace(rho=rho))
        p = maximum(raw, parameter("pressure_floor"))
        E = where(p > raw, U.E + (p - raw) / (parameter("gamma") - 1.0), U.E)
        w = _stage_state(State(rho, Vector(c / rho for c in U.m), U.B, p), "w")
        return Conserved(w.rho, U.m, stage(E, "w_E", storage="patch"), w.B), w

    def _fluxes(self, states: Sequence[State], b: Vector, size: _Step, name: str) -> list[Flux]:
        """Return the fluxes through the lower faces across each axis, over a full step."""
        fluxes = []
        for a, (w, ratio) in enumerate(zip(states, size.full, strict=True)):
            label = f"{name}_{AXES[a]}"
            F = self._flux(w, b[a].expr, a, ratio, label)
            fluxes.append(_stage_flux(F, a, label))
        return fluxes

    def _stage_face_field(self, b: Vector, name: str) -> Vector:
        return Vector(
            stage(c, f"{name}_{AXES[a]}", location=_face(a), storage="patch") if a < self.axes else c
            for a, c in enumerate(b)
        )

    def _transverse_half_step(
        self, axis: int, U: Conserved, w: State, F: Sequence[Flux], B_half: Vector, size: _Step
    ) -> tuple[State, Expr | None]:
        """Return the state after half a step along the other axes, and the flag of unchanged cells (step 5).

        If the new state of a cell would be unphysical, the cell keeps its initial state, and its flag is 1.

        The fluxes along `axis` assume that the field along it is uniform. The missing terms are ∂B_x/∂x times
        (B, v_y, v_z, v_y B_y + v_z B_z) for momentum, field and energy (GS05, Section 4.1; GS08, Section
        3.2).
        """
        if not self._has_transverse_terms:
            return w, None
        q = _subtract_outflow(U, F, size.half, [n for n in range(self.axes) if n != axis])
        db = size.half[axis] * (shift(self.b[axis], axis) - self.b[axis])
        _, y, z = frame(axis)
        m = Vector(m + db * B for m, B in zip(q.m, w.B, strict=True))
        E = q.E + db * ordered_sum(w.v[y] * w.B[y], w.v[z] * w.B[z])
        B = Vector(B_half[c] if c == axis else q.B[c] + db * w.v[c] for c in range(3))
        q = Conserved(q.rho, m, E, B)
        if self.source is not None:
            q = _add_source(q, self.source(w), 0.5 * size.dt)
        s = _primitive(q)
        name = f"q_{AXES[axis]}"
        is_physical = _is_physical(s)
        is_old = flag_stage(~is_physical, f"{name}_kept")
        chosen = (
            where(is_physical, new, old) for old, new in zip(_components(w), _components(s), strict=True)
        )
        rho, vx, vy, vz, Bx, By, Bz, p = chosen
        return _stage_state(State(rho, Vector((vx, vy, vz)), Vector((Bx, By, Bz)), p), name), is_old

    def _half_step(
        self, U: Conserved, w: State, F: Sequence[Flux], B_half: Vector, size: _Step
    ) -> tuple[State, Expr]:
        """Return the state of cells in the middle of the step, and the flag of unchanged cells (step 8).

        The update is unsplit: it uses the fluxes along all axes. If the new state of a cell would be
        unphysical, the cell keeps its initial state, and its flag is 1.

        The update is that of GS05 (Section 3.2). The paper uses the second fluxes instead, which read one
        more cell on each side. With the second fluxes, the check of step 10 would need a halo of six cells.
        """
        q = _subtract_outflow(U, F, size.half)
        if self.source is not None:
            q = _add_source(q, self.source(w), 0.5 * size.dt)
        s = _primitive(q._replace(B=B_half))
        is_physical = _is_physical(s)
        v = stage(
            Vector(where(is_physical, new, old) for new, old in zip(s.v, w.v, strict=True)),
            "v_half",
            storage="patch",
        )
        is_old = flag_stage(~is_physical, "half_kept")
        return State(where(is_physical, s.rho, w.rho), v, B_half, where(is_physical, s.p, w.p)), is_old

    def _first_order_fluxes(self, w: State) -> list[Flux]:
        """Return the first-order fluxes of HLL (Equations A10 to A12)."""
        fluxes = []
        for a in range(self.axes):
            left, right = face_states(w, a)
            fluxes.append(_stage_flux(hll(left, right, self.b[a].expr), a, f"safe_{AXES[a]}"))
        return fluxes


def _face(axis: int) -> str:
    return f"face-{AXES[axis]}"


def _is_physical(s: State) -> Expr:
    """Return the condition that density and pressure exceed the protection floors; false if they are NaN."""
    return (s.rho > parameter("density_protection")) & (s.p > parameter("pressure_protection"))


def _primitive(U: Conserved) -> State:
    return State(U.rho, Vector(c / U.rho for c in U.m), U.B, pressure(U))


def _components(s: State) -> tuple[Expr, ...]:
    return (s.rho, *s.v, *s.B, s.p)


def _flag_unphysical(U: Conserved, flags: Sequence[Expr]) -> Expr:
    """Return the flag of unphysical cells, 1 or 0.

    The flag is 1 if the density or pressure of a cell is below the protection floors after the half step or
    after the full step.
    """
    good = _is_physical(_primitive(U))
    for flag in flags:
        good = good & (flag == 0.0)
    return flag_stage(~good, "unphysical")


def _stage_candidate(U: Conserved) -> Conserved:
    """Return the candidate state as stages."""
    return Conserved(*(stage(v, f"tried_{n}", storage="patch") for n, v in zip(U._fields, U, strict=True)))


def _select_flux(fallback: Flux, flux: Flux, is_needed: Expr) -> Flux:
    return Flux(*(where(is_needed, s, o) for s, o in zip(fallback, flux, strict=True)))


def _branch_states(is_needed: Expr, fallback: Conserved, candidate: Conserved) -> Conserved:
    """Return `fallback` where it is needed, and `candidate` elsewhere. In each cell, only one is computed."""

    def parts(U: Conserved) -> Vector:
        return Vector((U.rho, *U.m, U.E))

    rho, x, y, z, E = branch(is_needed, parts(fallback), parts(candidate))
    return Conserved(rho, Vector((x, y, z)), E, candidate.B)


def _advance(U: Conserved, F: Sequence[Flux], gain: Source | None, size: _Step) -> Conserved:
    """Return the conserved quantities of cells after the full step."""
    new = _subtract_outflow(U, F, size.full)
    return new if gain is None else _add_source(new, gain, size.dt)


def _stage_state(s: State, name: str) -> State:
    def staged_part(value: Any, part: str) -> Any:
        return stage(value, f"{name}_{part}", storage="patch")

    return State(
        staged_part(s.rho, "rho"), staged_part(s.v, "v"), staged_part(s.B, "B"), staged_part(s.p, "p")
    )


def _stage_flux(F: Flux, axis: int, name: str) -> Flux:
    return Flux(*stage(tuple(F), name, location=_face(axis), storage="patch"))


def _subtract_outflow(
    U: Conserved, F: Sequence[Flux], ratios: Sequence[Expr], axes: Sequence[int] | None = None
) -> Conserved:
    """Return conserved quantities minus the outflow along `axes` (default: all) for `ratios` = Δt/Δx."""
    along = range(len(F)) if axes is None else axes

    def remaining(value: Expr, fluxes: Sequence[tuple[int, Expr]]) -> Expr:
        outflows = [ratios[n] * (shift(f, n) - f) for n, f in fluxes if n in along]
        return value - symmetric_sum(*outflows) if outflows else value

    return Conserved(
        remaining(U.rho, [(n, f.rho) for n, f in enumerate(F)]),
        Vector(
            remaining(U.m[c], [(n, (f.mx, f.my, f.mz)[(c - n) % 3]) for n, f in enumerate(F)])
            for c in range(3)
        ),
        remaining(U.E, [(n, f.E) for n, f in enumerate(F)]),
        Vector(remaining(U.B[c], component_fluxes(F, c)) for c in range(3)),
    )


def _add_source(U: Conserved, gain: Source, dt: Expr) -> Conserved:
    """Return conserved quantities plus the gain from a source during the time `dt`."""
    m = Vector(m + dt * s for m, s in zip(U.m, gain.m, strict=True))
    return Conserved(U.rho + dt * gain.rho, m, U.E + dt * gain.E, U.B)
