"""Problem of the flow in a cavity: settings, grid, initial state, diagnostics and checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halocline.errors import InputError
from halocline.lang.dtype import default_dtype
from halocline.lang.grid import AXES, Grid
from halocline.lang.program import parameter, program
from halocline.physics.cavity.equations import LIMITS, STEADY, Cavity, Results, gain, stable_steps
from halocline.run.fields.fields import Fields
from halocline.run.simulation.checks import Check
from halocline.run.simulation.settings import setting

PAPER = "the buoyancy-driven cavity of Virginia Tech, MPI and OpenACC"
REFERENCE_SPEED = 0.3  # Minimum speed of artificial sound, divided by the free-fall speed √(g σ ΔT L).
SLOWEST = 5.0  # Minimum speed of artificial sound in units of α / L, if diffusion is faster than buoyancy.
MOST_STAGES = 16
MORE_WORK = 1.2  # work of one stage of a step with several stages, divided by that of a forward step

# tolerance of Nusselt numbers and velocities: EXACT + COARSE √Ra Δx², with Δx over the width
EXACT = 0.01
COARSE = 0.3

FASTEST2 = 10.0  # V² above which a run counts as diverging, divided by V² of free fall over the height
CONVERGING = ("nusselt_hot", "nusselt_mid", "u_max", "v_max")
RESIDUAL = "residual_"
# default tolerances; in float32, rounding errors leave residuals up to 1.4e-5 (measured on 10 to 79 points)
TOLERANCES = {"float64": 1e-7, "float32": 3e-5}

Published = Callable[[tuple[int, ...], Mapping[str, Any]], Mapping[str, float]]


def stages_for(diffusion: float, sound: float) -> int:
    """Return the number of stages that allows the longest time step per unit of work.

    With more stages, diffusion allows longer steps, but waves of artificial sound do not.
    """

    def pace(stages: int) -> float:
        work = stages if stages == 1 else stages * MORE_WORK
        return min(gain(stages) * diffusion, sound) / work

    return max(range(1, MOST_STAGES + 1), key=pace)


def settings(rayleigh: float) -> dict[str, Any]:
    """Declare the settings of a cavity in the problem file, and return their values.

    Parameters
    ----------
    rayleigh : float
        Default Rayleigh number.
    """
    values: dict[str, Any] = {}

    def declare(name: str, default: float, unit: str, about: str, **range: Any) -> None:
        values[name] = setting(name, default, unit, about, **range)

    declare("Ra", rayleigh, "1", "Rayleigh number g σ ΔT L³ / (ν α)", above=0.0, maximum=1e12, origin=PAPER)
    declare("Pr", 0.71, "1", "Prandtl number ν / α", above=0.0, origin=PAPER)
    declare("L", 1.0, "length", "width from the hot to the cold wall; 0.05 m in the paper", above=0.0)
    declare("alpha", 1.0, "length²/time", "thermal diffusivity", above=0.0)
    declare("rho", 1.0, "mass/length³", "density", above=0.0)
    declare("T_hot", 0.5, "temperature", "temperature of the wall x = 0")
    declare("T_cold", -0.5, "temperature", "temperature of the wall x = L")
    automatic = f"{REFERENCE_SPEED:g} times the free-fall velocity √(g σ ΔT L)"
    declare("V_ref", 0.0, "length/time", f"reference velocity of β²; 0: automatic, {automatic}", minimum=0.0)
    declare("r", 1.0, "1", "factor r in β², which is V² but at least r V_ref²", above=0.0)
    declare(
        "damping",
        0.01,
        "1",
        "coefficient C of the fourth difference of the pressure",
        minimum=0.0,
        maximum=0.0625,
    )
    declare("courant", 0.9, "1", "time step, relative to the largest stable one", above=0.0, maximum=100.0)
    at_walls = (
        "clustering a of points at the walls: the spacing is 1 - a times the mean spacing at a wall, and "
        "1 + a times the mean spacing in the middle"
    )
    declare("gathered", 0.0, "1", at_walls, minimum=0.0, maximum=0.9)
    about = "number of stages of a step; 1: forward Euler; 0: automatic, from the spacing"
    declare("stages", 0, "1", about, minimum=0, maximum=MOST_STAGES, whole=True)
    declare(
        "watch",
        100,
        "1",
        "number of iterations between two computations of the residuals",
        minimum=1,
        maximum=1e6,
        whole=True,
    )
    tolerance, about = TOLERANCES[default_dtype()], "largest residual of a steady state"
    declare("tolerance", tolerance, "1", about, minimum=0.0)
    return values


class Flow:
    """Flow in a cavity, ready for `halocline.Simulation`.

    Parameters
    ----------
    shape : tuple of int
        Cells along each of two or three axes.
    values : mapping of str to float
        Values of `settings`.
    published : callable, optional
        ``published(shape, values)`` returns published results by name. The mapping is empty if none exist.

    Attributes
    ----------
    grid : Grid
    cavity : Cavity
    program : program
        One iteration.
    parameters : dict of str to float
        Parameters of the program.
    scalars : dict of str to float
        Initial values of the scalars of the program.
    scheme_name : str
    automatic : dict of str to float
        Number of stages, if it was chosen automatically from the spacing; otherwise empty.
    ends : tuple of str
        Stop reasons with which a run ends successfully.

    Raises
    ------
    InputError
        `values` are inconsistent.
    """

    ends = (STEADY,)

    def __init__(
        self, shape: tuple[int, ...], values: Mapping[str, Any], published: Published | None = None
    ) -> None:
        self.values, self._published = values, published
        L, alpha, warmer = values["L"], values["alpha"], values["T_hot"] - values["T_cold"]
        if not warmer > 0.0:
            raise InputError(
                f"T_hot is {values['T_hot']:g} and T_cold {values['T_cold']:g}; expected T_hot above T_cold"
            )
        nu = values["Pr"] * alpha
        fall = values["Ra"] * nu * alpha / L**3  # g σ ΔT
        slow = SLOWEST * alpha / L
        usual = max(REFERENCE_SPEED * math.sqrt(fall * L), slow)
        beta2_min = values["r"] * (values["V_ref"] or usual) ** 2
        if not (0.0 < beta2_min < math.inf and 0.0 < fall < math.inf):
            raise InputError(
                f"with these Ra, Pr, alpha, L, V_ref and r, the minimum of β² is {beta2_min:g} and g σ ΔT is "
                f"{fall:g}; expected positive finite numbers. Use other units."
            )
        extent = tuple(L * (n + 1) / (shape[0] + 1) for n in shape)
        gathered = values["gathered"]
        stretch = {AXES[a]: _wall_clustering(e, gathered) for a, e in enumerate(extent)} if gathered else None
        self.grid = grid = Grid(shape, extent=extent, walls="node", stretch=stretch)
        self.cavity = cavity = Cavity(grid)
        squares = sum(1 / h**2 for h in grid.spacing)
        slow_flow = (
            min(nu, alpha),
            max(nu, alpha),
            nu,
            beta2_min,
            beta2_min,
            squares,
        )  # flow at the speed of the slowest sound
        _, diffusion, sound = stable_steps(*slow_flow, stages=1)
        self.stages = stages = int(values["stages"]) or stages_for(diffusion, sound)
        steps = (gain(stages) * diffusion, sound)
        watch = int(values["watch"])
        self._fall2 = fall * grid.extent[-1]

        @program
        def iterate(t: Any) -> None:
            cavity.iterate(t, stages, watch)

        self.program = iterate
        self.parameters = {
            "nu": nu,
            "alpha": alpha,
            "rho": values["rho"],
            "buoyancy": fall / warmer,
            "T_hot": values["T_hot"],
            "T_cold": values["T_cold"],
            "T_mean": 0.5 * (values["T_hot"] + values["T_cold"]),
            "beta2_min": beta2_min,
            "squares": squares,
            "damping": values["damping"],
            "courant": values["courant"],
            "tolerance": values["tolerance"],
            "speed2_most": FASTEST2 * self._fall2,
            "usual_p": values["rho"] * max(beta2_min, usual**2) * usual / L,
            "usual_V": fall,
            "usual_T": warmer * usual / L,
        }
        self.scalars = {
            "p_centre": 0.0,
            "dt_next": values["courant"] * min(steps),
            "limiter_next": float(1 + steps.index(min(steps))),
            **dict.fromkeys((residual.name for residual in cavity.residuals()), math.inf),
        }
        residuals = tuple(f"{RESIDUAL}{f.name}" for f in cavity.fields)
        self.key_diagnostics = ("nusselt_hot", "nusselt_mid", "u_max", "v_max", *residuals)
        self.scheme_name = "euler" if stages == 1 else f"legendre, {stages} stages"
        self.automatic = {} if values["stages"] else {"stages": stages}

    def start(self, sim: Fields) -> None:
        """Set scalars and fields to the initial state: a fluid at rest, with the conductive temperature."""
        warmer = self.values["T_hot"] - self.values["T_cold"]
        sim[self.cavity.p] = 0.0
        for component in self.cavity.V:
            sim[component] = 0.0
        sim[self.cavity.T] = self.values["T_hot"] - warmer / self.values["L"] * self.grid.x
        sim.values |= self.scalars

    def diagnostics(self) -> dict[str, Any]:
        """Return the expressions of Nusselt numbers, velocities and residuals by name."""
        residuals = {f"{RESIDUAL}{f.name}": parameter(f"{RESIDUAL}{f.name}") for f in self.cavity.fields}
        return Results(self.cavity).numbers() | residuals

    def limit(self, scalars: Mapping[str, float]) -> str:
        """Return the limit of the last time step."""
        return LIMITS[int(scalars["limiter"])]

    def progress(self, scalars: Mapping[str, float]) -> str:
        """Return the residuals of all equations as text. The program updates them each `watch` iterations."""
        residuals = ((f.name, scalars.get(f"{RESIDUAL}{f.name}", math.inf)) for f in self.cavity.fields)
        return "residuals " + ", ".join(f"{name} {residual:.1e}" for name, residual in residuals)

    def advice(self, scalars: Mapping[str, float]) -> str:
        """Return a message with the stability limit that the steps of a failed run exceeded.

        Steps become shorter as the flow becomes faster, so the last step is not informative. If the Courant
        number is above 1, the message states the limit for the slowest artificial sound, which applies to the
        first steps. Otherwise it states the limit for a flow at the free-fall speed.
        """
        nu, alpha = scalars["nu"], scalars["alpha"]
        values, stages, fall2 = self.values, self.stages, self._fall2

        def largest(speed2: float) -> tuple[float, str]:
            beta2 = max(speed2, scalars["beta2_min"])
            steps = stable_steps(
                min(nu, alpha), max(nu, alpha), nu, speed2, beta2, scalars["squares"], stages
            )
            return min(steps), LIMITS[steps.index(min(steps))]

        if values["courant"] > 1.0:
            stable, name = largest(scalars["beta2_min"])
            times = f"{values['courant']:g}"
            return (
                f"courant is {times}, so the time step is {times} times the largest stable one (at first "
                f"{stable:.4g}, limited by {name}); expected courant below 1"
            )
        stable, name = largest(fall2)
        beyond = f"at the free-fall velocity the largest stable time step is {stable:.4g}, limited by {name}"
        if values["V_ref"]:
            return (
                f"V_ref is {values['V_ref']:g}, but the free-fall velocity is {math.sqrt(fall2):.4g}: "
                f"{beyond}; leave V_ref out"
            )
        fewer = f"more points, or fewer stages than {stages}" if stages > 1 else "more points"
        return f"{beyond}: use {fewer}"

    def check(self, sim: Fields, record: Any) -> Sequence[Check]:
        """Return the checks of a steady flow.

        They test that the residuals are small, and that the heat flux through the mid-plane equals the flux
        through the hot wall. They also compare the results with published ones, within the error expected for
        the spacing.
        """
        after = record.series[-1]
        # the thickness of wall layers is proportional to Ra^-1/4, and differences are of second order
        most = EXACT + COARSE * math.sqrt(self.values["Ra"]) / (self.grid.shape[0] + 1) ** 2
        residuals = [_number(after[name]) for name in after if name.startswith(RESIDUAL)]
        checks = [
            Check("residual", max(residuals), maximum=self.values["tolerance"], about="the largest residual")
        ]
        flux, halfway = _number(after["nusselt_hot"]), _number(after["nusselt_mid"])
        about = (
            "difference between the heat fluxes through the mid-plane and through the hot wall, relative to "
            "the flux through the hot wall"
        )
        checks.append(Check("heat conservation", abs(halfway / flux - 1), maximum=most, about=about))
        known = {} if self._published is None else self._published(self.grid.shape, self.values)
        if not known:
            checks.append(Check.not_compared("nusselt_hot", "no published results for this Ra, Pr and shape"))
        for name, published in known.items():
            deviation = abs(_number(after[name]) / published - 1)
            about = f"relative difference from the published {published:g}"
            checks.append(Check(name, deviation, maximum=most, about=about))
        return checks


def findings(after: Mapping[str, float | None], steps: int) -> dict[str, Any]:
    """Return Nusselt numbers, velocities, the number of iterations, and the residual of each equation."""
    numbers = {name: value for name, value in after.items() if not name.startswith(RESIDUAL)}
    residuals = {n.removeprefix(RESIDUAL): value for n, value in after.items() if n.startswith(RESIDUAL)}
    return numbers | {"iterations": steps, "residuals": residuals}


def noise(values: Mapping[str, Any]) -> float:
    """Return the expected relative difference between the results at the end of a run and in steady state."""
    return float(values["tolerance"])


def published_of_air(
    known: Mapping[float, Mapping[str, float]], shape: tuple[int, ...], values: Mapping[str, Any]
) -> Mapping[str, float]:
    """Return the published results for air in a square or cube; an empty mapping for other problems.

    `known` contains the published results by Rayleigh number.
    """
    if len({*shape}) > 1 or values["Pr"] != 0.71:
        return {}
    return known.get(values["Ra"], {})


def _wall_clustering(extent: float, gathered: float) -> Callable[[Any], Any]:
    """Return a map of an axis that concentrates points at both walls."""
    import numpy as np

    wave = 2.0 * math.pi / extent

    def stretched(x: Any) -> Any:
        return x - gathered / wave * np.sin(wave * x)

    return stretched


def _number(value: float | None) -> float:
    return math.nan if value is None else value
