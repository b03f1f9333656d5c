"""`halocline new`."""

from __future__ import annotations

from pathlib import Path

from halocline.cli.output import check_files, first, note
from halocline.errors import InputError
from halocline.problems.files import case_names, path_of
from halocline.run.host.files import write_file
from halocline.words import near

START = '''"""Heat in a periodic box: a wave along x decays.

Source: separation of variables.
"""

import math

import halocline as hc

# cells and parameters, which --n, --dim and --set replace
shape = hc.cells(64, 64, also=[(64,)])
kappa = hc.setting("kappa", 0.1, "length²/time", "thermal diffusivity", above=0.0)
until = 1.0

grid = hc.Grid(shape, periodic=True)
T = grid.field("T")


def heat(kappa):
    """Return the time derivative of each field."""
    return {T: kappa * hc.laplacian(T)}


def exact(time):
    """Return the exact solution, for the error of a run."""
    k = 2 * math.pi
    return {T: math.exp(-kappa * k**2 * time) * hc.sin(k * grid.x)}


def diagnostics():
    """Return numbers over the grid, which --every prints."""
    return {"mean": hc.sum(T) / grid.size, "largest": hc.max(abs(T))}


def check(sim, record):
    """Return the checks of a finished run, for --check."""
    return [hc.Check("error", record.error, most=10.0 / min(shape) ** 2)]


shown = ("largest",)
sim = hc.Simulation(
    grid, heat, parameters={"kappa": kappa}, scheme=hc.RK3(), dt=0.1 / (kappa * shape[0] ** 2), order=4
)
sim[T] = exact(0.0)[T]
sim.run(until=until)
'''


def new(name: str, case: str | None) -> None:
    """Write a problem file: a copy of a case, or a short one to start from."""
    path = Path(name if name.endswith(".py") else f"{name}.py")
    if path.exists():
        raise InputError(f"{path} exists already: choose another name, or remove it")
    text = START
    if case is not None:
        known = case_names()
        if case not in known:
            raise InputError(
                f"--from {case}: there is no such case{near(case, known)}; cases: {', '.join(known)}"
            )
        text = path_of(case).read_text()
    check_files(path)
    if first():
        write_file(path, text)
    note(f"wrote {path}; run it with: halocline run {path}")
