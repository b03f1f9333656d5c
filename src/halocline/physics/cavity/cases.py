"""The cavities that can be run by name, and what is known of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from halocline.errors import InputError
from halocline.lang.grid import AXES, Grid
from halocline.lang.program import parameter, program
from halocline.physics.case import Case, Check, Checked, Extrapolated, Family, Parameter, Setup
from halocline.physics.cavity import figures
from halocline.physics.cavity.equations import LIMITS, STEADY, Cavity, gain, stable_steps
from halocline.physics.cavity.results import Results

PAPER = "the buoyancy-driven cavity of Virginia Tech, MPI and OpenACC"
REFERENCE_SPEED = 0.3  # of artificial sound at least, over the speed of free fall √(g σ ΔT L)
SLOWEST = 5.0  # the same in units of α / L: where diffusion is faster than buoyancy
MOST_STAGES = 16
MORE_WORK = 1.2  # in a stage of several, over a forward step, which does not read the stage before
# of Nusselt numbers and velocities: what exact ones may be off, and points more than this far apart
EXACT = 0.01
COARSE = 0.3
FASTEST2 = 10.0  # V² of a run that runs away, over that of free fall from the hot to the cold end

# Pr = 0.71, by Rayleigh number: de Vahl Davis 1983, Int. J. Numer. Methods Fluids 3, 249: mean at the hot
# wall, greatest velocities on the planes halfway between walls
PLANAR: Mapping[float, Mapping[str, float]] = {
    1e3: {"nusselt_hot": 1.117, "u_max": 3.649, "v_max": 3.697},
    1e4: {"nusselt_hot": 2.238, "u_max": 16.178, "v_max": 19.617},
    1e5: {"nusselt_hot": 4.509, "u_max": 34.73, "v_max": 68.59},
    1e6: {"nusselt_hot": 8.817, "u_max": 64.63, "v_max": 219.36},
}
# Tric, Labrosse and Betrouni 2000, Int. J. Heat Mass Transf. 43, 4043: mean at the hot wall
CUBIC: Mapping[float, Mapping[str, float]] = {
    1e3: {"nusselt_hot": 1.0700},
    1e4: {"nusselt_hot": 2.0542},
    1e5: {"nusselt_hot": 4.3370},
    1e6: {"nusselt_hot": 8.6407},
}
KNOWN = {2: PLANAR, 3: CUBIC}
CONVERGING = ("nusselt_hot", "nusselt_mid", "u_max", "v_max")


def stages_for(diffusion: float, sound: float) -> int:
    """The number of stages that comes farthest for its work: diffusion allows longer steps with more of them,
    waves of artificial sound do not."""

    def pace(stages: int) -> float:
        work = stages if stages == 1 else stages * MORE_WORK
        return min(gain(stages) * diffusion, sound) / work

    return max(range(1, MOST_STAGES + 1), key=pace)


def _make(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
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
            f"Ra, Pr, alpha, L, V_ref and r make β² at least {beta2_min:g} and g σ ΔT {fall:g}; expected "
            "positive numbers: take other units"
        )
    extent = tuple(L * (n + 1) / (shape[0] + 1) for n in shape)
    gathered = values["gathered"]
    stretch = {AXES[a]: _to_walls(e, gathered) for a, e in enumerate(extent)} if gathered else None
    grid = Grid(shape, extent=extent, walls="node", stretch=stretch)
    cavity = Cavity(grid)
    squares = sum(1 / h**2 for h in grid.spacing)
    slow_flow = (min(nu, alpha), max(nu, alpha), nu, beta2_min, beta2_min, squares)  # as the slowest sound
    _, diffusion, sound = stable_steps(*slow_flow, stages=1)
    stages: int = int(values["stages"]) or stages_for(diffusion, sound)
    steps = (gain(stages) * diffusion, sound)
    watch = int(values["watch"])
    mean = 0.5 * (values["T_hot"] + values["T_cold"])

    @program
    def iterate(t: Any) -> None:
        cavity.iterate(t, stages, watch)

    return Setup(
        grid=grid,
        equations=iterate,
        parameters={
            "nu": nu,
            "alpha": alpha,
            "rho": values["rho"],
            "buoyancy": fall / warmer,
            "T_hot": values["T_hot"],
            "T_cold": values["T_cold"],
            "T_mean": mean,
            "beta2_min": beta2_min,
            "squares": squares,
            "damping": values["damping"],
            "courant": values["courant"],
            "tolerance": values["tolerance"],
            "speed2_most": FASTEST2 * fall * grid.extent[-1],
            "usual_p": values["rho"] * max(beta2_min, usual**2) * usual / L,
            "usual_V": fall,
            "usual_T": warmer * usual / L,
        },
        dt=None,
        start={
            cavity.p: 0.0,
            **dict.fromkeys(cavity.V, 0.0),
            cavity.T: values["T_hot"] - warmer / L * grid.x,
        },
        diagnostics=lambda: _diagnostics(cavity),
        limit=lambda scalars: LIMITS[int(scalars["limiter"])],
        progress=lambda scalars: _residuals(scalars, cavity),
        advice=lambda scalars: _advice(scalars, values, fall * grid.extent[-1], stages),
        shown=(
            "nusselt_hot",
            "nusselt_mid",
            "u_max",
            "v_max",
            *(f"residual_{f.name}" for f in cavity.fields),
        ),
        scheme_name="euler" if stages == 1 else f"legendre, {stages} stages",
        scalars={
            "p_centre": 0.0,
            "dt_next": values["courant"] * min(steps),
            "limiter_next": float(1 + steps.index(min(steps))),
            **dict.fromkeys((each.name for each in cavity.residuals()), math.inf),
        },
        ends=(STEADY,),
        automatic={} if values["stages"] else {"stages": stages},
    )


def _residuals(scalars: Mapping[str, float], cavity: Cavity) -> str:
    """The residual of each equation, which the iterations since the last `watch` have not changed."""
    found = ((f.name, scalars.get(f"residual_{f.name}", math.inf)) for f in cavity.fields)
    return "residuals " + ", ".join(f"{name} {residual:.1e}" for name, residual in found)


def _advice(scalars: Mapping[str, float], values: Mapping[str, Any], fall2: float, stages: int) -> str:
    """Which limit the steps of a run that failed were beyond. Steps become shorter as a flow becomes faster,
    so that the last one says little: limits are those for the slowest sound, which the first steps had, or
    for a flow as fast as in free fall, of which `fall2` is the square of the speed."""
    nu, alpha = scalars["nu"], scalars["alpha"]

    def largest(speed2: float) -> tuple[float, str]:
        beta2 = max(speed2, scalars["beta2_min"])
        steps = stable_steps(min(nu, alpha), max(nu, alpha), nu, speed2, beta2, scalars["squares"], stages)
        return min(steps), LIMITS[steps.index(min(steps))]

    if values["courant"] > 1.0:
        stable, name = largest(scalars["beta2_min"])
        times = f"{values['courant']:g}"
        return (
            f"courant is {times}: steps were {times} times the largest stable ones, at first {stable:.4g}, "
            f"the limit of {name}; take courant below 1"
        )
    stable, name = largest(fall2)
    beyond = f"in free fall the largest stable step is {stable:.4g}, the limit of {name}"
    if values["V_ref"]:
        return (
            f"V_ref is {values['V_ref']:g}, and free fall {math.sqrt(fall2):.4g}: {beyond}; leave V_ref out"
        )
    fewer = f"more points, or fewer stages than {stages}" if stages > 1 else "more points"
    return f"{beyond}: take {fewer}"


def _to_walls(extent: float, gathered: float) -> Callable[[Any], Any]:
    """A map of an axis that gathers points at both walls."""
    import numpy as np

    wave = 2.0 * math.pi / extent

    def where(x: Any) -> Any:
        return x - gathered / wave * np.sin(wave * x)

    return where


def _diagnostics(cavity: Cavity) -> dict[str, Any]:
    residuals = {f"residual_{f.name}": parameter(f"residual_{f.name}") for f in cavity.fields}
    return Results(cavity).numbers() | residuals


def _check(done: Checked) -> list[Check]:
    """Steady; as much heat halfway as at the hot wall; and what is published for the Rayleigh number, as far
    as the mesh can tell."""
    after = done.series[-1]
    # layers at the walls are as thin as Ra^-1/4, and differences of second order
    most = EXACT + COARSE * math.sqrt(done.values["Ra"]) / (done.shape[0] + 1) ** 2
    residuals = [_number(after[name]) for name in after if name.startswith("residual_")]
    found = [Check("residual", max(residuals), most=done.values["tolerance"], about="the greatest")]
    flux, halfway = _number(after["nusselt_hot"]), _number(after["nusselt_mid"])
    about = "difference of the heat flux halfway from that at the hot wall, over that"
    found.append(Check("heat kept", abs(halfway / flux - 1), most=most, about=about))
    known = _published(done.shape, done.values)
    if not known:
        found.append(Check.not_compared("nusselt_hot", "nothing is known of this Ra, Pr and shape"))
        return found
    for name, published in known.items():
        off = abs(_number(after[name]) / published - 1)
        about = f"difference from the published {published:g}, over that"
        found.append(Check(name, off, most=most, about=about))
    return found


def _findings(after: Mapping[str, float | None], steps: int) -> dict[str, Any]:
    """Nusselt numbers and velocities, iterations, and the residual of each equation."""
    residual = "residual_"
    numbers = {name: value for name, value in after.items() if not name.startswith(residual)}
    residuals = {n.removeprefix(residual): value for n, value in after.items() if n.startswith(residual)}
    return numbers | {"iterations": steps, "residuals": residuals}


def _published(shape: tuple[int, ...], values: Mapping[str, Any]) -> Mapping[str, float]:
    """What is known at this Rayleigh number: of squares and cubes of air alone."""
    if len({*shape}) > 1 or values["Pr"] != 0.71:
        return {}
    return KNOWN[len(shape)].get(values["Ra"], {})


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _parameters(rayleigh: float) -> dict[str, Parameter]:
    return {
        "Ra": Parameter(
            rayleigh, "1", "Rayleigh number g σ ΔT L³ / (ν α)", above=0.0, most=1e12, origin=PAPER
        ),
        "Pr": Parameter(0.71, "1", "Prandtl number ν / α", above=0.0, origin=PAPER),
        "L": Parameter(1.0, "length", "width from the hot to the cold wall; 0.05 m in the paper", above=0.0),
        "alpha": Parameter(1.0, "length²/time", "thermal diffusivity", above=0.0),
        "rho": Parameter(1.0, "mass/length³", "density", above=0.0),
        "T_hot": Parameter(0.5, "temperature", "of the wall x = 0"),
        "T_cold": Parameter(-0.5, "temperature", "of the wall x = L"),
        "V_ref": Parameter(
            0.0,
            "length/time",
            f"reference velocity of β²; 0: automatic, {REFERENCE_SPEED:g} of that of free fall, √(g σ ΔT L)",
            least=0.0,
        ),
        "r": Parameter(1.0, "1", "β² is V², but at least r V_ref²", above=0.0),
        "damping": Parameter(
            0.01, "1", "C, of the fourth difference of the pressure", least=0.0, most=0.0625
        ),
        "courant": Parameter(0.9, "1", "time step, over the largest stable one", above=0.0, most=100.0),
        "gathered": Parameter(
            0.0,
            "1",
            "a: points gather at the walls, where the spacing is 1 - a of the mean, and 1 + a in the middle",
            least=0.0,
            most=0.9,
        ),
        "stages": Parameter(
            0,
            "1",
            "of a step; 1: forward Euler; 0: automatic, by the spacing",
            least=0,
            most=MOST_STAGES,
            whole=True,
        ),
        "watch": Parameter(100, "1", "iterations between two residuals", least=1, most=1e6, whole=True),
        "tolerance": Parameter(1e-7, "1", "of the residuals, at which it is steady", least=0.0),
    }


def _case(
    about: str, shape: tuple[int, ...], rayleigh: float, published: str, sizes: tuple[int, ...]
) -> Case:
    return Case(
        about=about,
        origin=f"{PAPER}; {published}",
        shape=shape,
        steps=1_000_000,
        parameters=_parameters(rayleigh),
        make=_make,
        check=_check,
        findings=_findings,
        figures={
            "temperature-contours": figures.temperature,
            "pressure-contours": figures.pressure,
            "streamlines": figures.streamlines,
        },
        extrapolated=Extrapolated(CONVERGING, _published, published, lambda values: values["tolerance"]),
        families=(Family("Steady state", len(shape), sizes),),
        order=2,
    )


CASES: Mapping[str, Case] = {
    "cavity": _case(
        "Flow in a cube between a hot and a cold wall, driven by buoyancy, to its steady state.",
        (40, 40, 40),
        1e5,
        "Tric, Labrosse and Betrouni 2000, Int. J. Heat Mass Transf. 43, 4043",
        (19, 39, 79),
    ),
    "cavity-2d": _case(
        "Flow in a square between a hot and a cold wall, driven by buoyancy, to its steady state.",
        (64, 64),
        1e5,
        "de Vahl Davis 1983, Int. J. Numer. Methods Fluids 3, 249",
        (31, 63, 127),
    ),
}
