"""Simulation of ideal magnetohydrodynamics on a grid of the user, with the checks of cases."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halocline.errors import InputError, RunError
from halocline.lang import trace
from halocline.lang.expression import Expr, Operators, as_expr
from halocline.lang.grid import Field, unknown_name_error
from halocline.lang.program import parameter, program
from halocline.physics.mhd_tvd.diagnostics import derived, relative_divergence
from halocline.physics.mhd_tvd.parameters import (
    ALL,
    check_courant,
    check_epsilon,
    courant_number,
    of_program,
)
from halocline.physics.mhd_tvd.parameters import events as counted_events
from halocline.physics.mhd_tvd.scheme import IdealMHD
from halocline.physics.mhd_tvd.setup import check_positive, conserved
from halocline.run.domain.execution import Execution
from halocline.run.engine.prepared import Outcome
from halocline.run.simulation import events
from halocline.run.simulation.settings import complete
from halocline.run.simulation.simulation import Simulation

log = logging.getLogger("halocline")

OF_SOLVER = ("flux", "limiting")  # parameters of cases that belong to `IdealMHD`

# Maximum |∇·b| relative to |b|/Δx. Rounding errors are far smaller, and the divergence of a field that is
# only sampled on faces is far larger.
MOST_DIVERGENCE = {"float64": 1e-10, "float32": 1e-4}
OPTIONS = tuple(name for name in ALL if name not in OF_SOLVER)


class MHDSimulation(Simulation):
    """Simulation of ideal magnetohydrodynamics with shocks.

    The parameters of the scheme are checked as in the cases. Before the first step, density and pressure must
    be positive in all cells. If the divergence of the magnetic field is not zero, a warning states its value.
    A run also warns if too many cells fall back to HLL fluxes, or are raised to a floor.

    Parameters
    ----------
    mhd : IdealMHD
        Fields on their grid, with fluxes, walls and a source.
    parameters : mapping of str to float, optional
        Parameters of the user by name, for sources and boundary conditions that call ``hc.parameter``.
    after_step, communicator : optional
        See `halocline.Simulation`.
    **options
        Parameters of the scheme: gamma, courant, limiter, epsilon_fast, epsilon_alfven, epsilon_slow,
        epsilon_entropy, density_protection, pressure_protection, density_floor, pressure_floor, warn_above.
        Also options of the run, see `halocline.Execution`.

    Attributes
    ----------
    numbers : dict of str to float or str
        All parameters of the scheme, with their initial values.

    Raises
    ------
    InputError
        An option is unknown, a parameter is out of range, or an entry of `parameters` has the name of a
        parameter of the scheme.
    """

    def __init__(
        self,
        mhd: IdealMHD,
        *,
        parameters: Mapping[str, float] | None = None,
        after_step: Callable[..., Any] | None = None,
        communicator: Any = None,
        **options: Any,
    ) -> None:
        if not isinstance(mhd, IdealMHD):
            raise InputError(f"mhd is {mhd!r}; expected an IdealMHD, which holds the fields of a grid")
        values, execution = _split_options(mhd, options)
        further = dict(parameters or {})
        for name in further:
            if name in values:
                place = "to IdealMHD" if name in OF_SOLVER else "as an option"
                raise InputError(
                    f"the argument parameters= contains {name!r}, which belongs to the scheme. Pass {name}= "
                    f"{place}."
                )

        @program
        def step(dt: Any, step: Any) -> None:
            mhd.step(dt, step)

        self.mhd, self.numbers = mhd, values
        self._warned: set[str] = set()
        self._to_check = True
        super().__init__(
            mhd.grid,
            step,
            parameters={**of_program(values), "courant": courant_number(values, mhd.axes), **further},
            dt=lambda: mhd.time_step(parameter("courant")),
            time_step="delayed",
            after_step=after_step,
            communicator=communicator,
            **execution,
        )
        self._counted = counted_events(values)
        events.begin(self, self._counted)

    def set_state(
        self, *, rho: Any, p: Any, v: Sequence[Any] = (0.0, 0.0, 0.0), b: Sequence[Any] = (0.0, 0.0, 0.0)
    ) -> None:
        """Set all fields from density, pressure, velocity and magnetic field.

        Each value is a number, an expression, or a traceable function of the coordinates.

        Parameters
        ----------
        rho, p
            Density and pressure of cells, positive everywhere.
        v : sequence of three
            Velocity of cells.
        b : sequence of three
            Magnetic field at the locations of `IdealMHD.b`. Its divergence must be 0, because the scheme does
            not change the divergence; see `curl`.

        Raises
        ------
        InputError
            `v` or `b` does not have three components, or a function cannot be traced.
        """
        mhd = self.mhd
        fields = conserved(
            mhd,
            _value("rho", rho, mhd.rho),
            _component_values("v", v, mhd.m),
            _value("p", p, mhd.E),
            _component_values("b", b, mhd.b),
        )
        for field, value in fields.items():
            self[field] = value
        self._to_check = True

    @property
    def quantities(self) -> dict[str, Expr]:
        """Primitive and derived quantities of cells as expressions, for `gather`, `evaluate` and pictures.

        - rho, p, v_x, v_y, v_z, B_x, B_y, B_z
        - kinetic: energy per mass
        - p_magnetic, mach
        - j_x, j_y, j_z: current, by central differences of B; only components that the axes of the grid allow
        - div_b: on two or three axes
        """
        return derived(self.mhd)

    @property
    def events(self) -> dict[str, dict[str, Any]]:
        """Events so far, by name: "HLL fallback", "mixing", "density floor", "pressure floor".

        An event has the "count" of cells, its "share" of all cell updates, and "first_cell" and "first_step".
        The latter two are None if the event has not happened.
        """
        return events.counted(self, self._counted)

    def run(self, *positional: Any, **options: Any) -> Outcome:
        """Advance in time; see `halocline.Simulation.run`.

        Raises
        ------
        InputError
            The initial density or pressure is not positive, a parameter is out of range, or
            `halocline.Simulation.run` raises this error.
        RunError
            `halocline.Simulation.run` raises this error. The message also contains the events before the
            failure.
        """
        for name, value in self.parameters.items():
            if name in ALL:
                ALL[name].check(name, value)
        check_courant(self.parameters["courant"], self.mhd.axes)
        if self._to_check:
            self.check_inputs("before the run")
            check_positive(self, self.mhd)
            self._warn_of_divergence()
            self._to_check = False
        try:
            return super().run(*positional, **options)
        except RunError as error:
            raise error.explained(events.text(self.events)) from error.__cause__
        finally:
            self._warn()

    def _warn_of_divergence(self) -> None:
        if self.mhd.axes < 2:
            return
        divergence = self.evaluate(relative_divergence(self.mhd))
        if divergence > MOST_DIVERGENCE[self.grid.dtype] and self.domain.comm.rank == 0:
            log.warning(
                "the initial magnetic field has a divergence of up to %.2g times |b|/Δx, which does not "
                "decay. Use b=curl(grid, potential) of halocline.physics.mhd_tvd for a field without "
                "divergence.",
                divergence,
            )

    def _warn(self) -> None:
        """Warn once of each event whose share of cell updates is too large."""
        counts = self.events
        often = [event for event in events.too_often(self._counted, counts) if event.name not in self._warned]
        self._warned |= {event.name for event in often}
        if self.domain.comm.rank == 0:
            events.warn(often, counts)


def _split_options(mhd: IdealMHD, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the checked parameters of the scheme, and the options of `halocline.Execution`."""
    execution = Execution.__init__.__kwdefaults__ or {}
    for name in options:
        if name not in OPTIONS and name not in execution:
            if name in OF_SOLVER:
                raise InputError(f"{name} is an option of IdealMHD, not of its simulation")
            raise unknown_name_error("option", name, [*OPTIONS, *execution])
    scheme_options = {name: value for name, value in options.items() if name in OPTIONS}
    values = complete(ALL, {**scheme_options, "flux": mhd.flux, "limiting": mhd.limiting})
    check_epsilon(values)
    return values, {name: value for name, value in options.items() if name not in scheme_options}


def _component_values(name: str, values: Any, fields: Sequence[Field]) -> list[Expr]:
    if isinstance(values, (str, Operators)) or not isinstance(values, Sequence) or len(values) != 3:
        raise InputError(f"{name} is {values!r}; expected a list or tuple of three, on all grids")
    return [_value(f"{name}_{a}", value, f) for a, value, f in zip("xyz", values, fields, strict=True)]


def _value(name: str, value: Any, field: Field) -> Expr:
    """Return a value as an expression of the coordinates of a field."""
    if callable(value) and not isinstance(value, Operators):
        try:
            return trace.trace_function(value, field.coordinates, name)
        except InputError as error:
            raise InputError(
                f"{name} is a function that fails on the coordinates of {field.grid!r}: {error}. If it "
                "cannot be traced, set the fields with arrays, as in sim[mhd.rho] = array."
            ) from error
    return as_expr(value, name)
