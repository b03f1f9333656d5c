"""The commands `halocline ls`, `halocline view` and `halocline export`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.options import general, whole
from halocline.cli.output import check_files, finish, written
from halocline.cli.progress import progress
from halocline.errors import InputError

app = group("")
FIELDS = general("--fields NAME,NAME,...", help="By default all.")


@command(app, "ls")
def ls(
    path: Annotated[Path, typer.Argument(metavar="PATH")],
    equations: Annotated[bool, general("--equations")] = False,
    json: Annotated[str | None, options.JSON] = None,
) -> None:
    """Show what a store holds: arrays with dimensions, units and size, times, parameters; or which
    checkpoints are in a folder, and which is the newest.

    Parameters
    ----------
    path
        Of output, of a checkpoint, or of a folder of checkpoints.
    equations
        Print the equations of the run that wrote it.

    Examples
    --------
    halocline ls heat.zarr
    halocline ls heat.zarr --equations
    halocline ls out/mhd
    """
    from halocline.cli.stores import TEXTS
    from halocline.io.listing import described

    check_files(json)
    listing = described(path)
    if equations and listing["kind"] == "checkpoints":
        raise InputError(f"--equations: {path} is a folder of checkpoints: name one of them")
    finish(TEXTS[listing["kind"]](listing, equations), json, listing)


@command(app, "view")
def view(
    path: Annotated[Path, typer.Argument(metavar="STORE")],
    target: Annotated[Path, typer.Argument(metavar="TARGET")],
    names: Annotated[str | None, FIELDS] = None,
    time: Annotated[float | None, general("--time T")] = None,
    at: Annotated[list[str], general("--at AXIS=COORDINATE")] = options.NO_TEXTS,
    spectrum: Annotated[bool, general("--spectrum")] = False,
    every: Annotated[int, general("--every K", whole(ranges.SOME_STEPS))] = 1,
) -> None:
    """Draw what output holds into a picture: fields as planes or lines, numbers and single points as time
    series. Or into a film of its times: a target that ends in [bold].gif[/], or in [bold].mp4[/] where ffmpeg
    is found.

    Parameters
    ----------
    path
        Output of a run, or a checkpoint.
    target
        Ends in .png, .pdf, .svg, .gif or .mp4.
    time
        The nearest one counts; by default the last.
    at
        Where an axis is cut, z=0.5; may be given twice. By default z in the middle.
    spectrum
        Draw the power of whole fields in shells of wavenumbers.
    every
        Draw every K-th time into a film.

    Examples
    --------
    halocline view heat.zarr heat.png
    halocline view heat.zarr T.png --fields T --time 0.3 --at z=0.25
    halocline view heat.zarr spectrum.png --fields u_x,u_y --spectrum
    halocline view heat.zarr heat.gif
    halocline view heat.zarr heat.mp4 --fields T --every 10
    """
    from halocline.archive.reader import Store
    from halocline.io.views import Wanted, view

    store = Store(path)
    wanted = Wanted(_names(names), time, _cuts(at), spectrum, every)
    with progress(f"{path} to {target}", "frames") as on_progress:
        view(store, target, wanted, on_progress)
    written([target])


def _cuts(texts: Sequence[str]) -> dict[str, float]:
    """Return the axes that are cut, with the coordinate of each cut."""
    cuts: dict[str, float] = {}
    for text in texts:
        axis, _, value = text.partition("=")
        name = axis.strip()
        if name in cuts:
            raise InputError(f"--at {text}: axis {name} is cut at {cuts[name]:g} already")
        try:
            cuts[name] = float(value)
        except ValueError:
            raise InputError(f"--at {text}: expected an axis and a coordinate, such as z=0.5") from None
    return cuts


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


@command(app, "export")
def export(
    path: Annotated[Path, typer.Argument(metavar="STORE")],
    target: Annotated[Path, typer.Argument(metavar="TARGET")],
    names: Annotated[str | None, FIELDS] = None,
    overwrite: Annotated[bool, options.OVERWRITE] = False,
) -> None:
    """Write the fields of output for other programs. The name of the target says how: [bold].pvd[/], a
    collection of VTK files, one for each time; [bold].vtr[/], one VTK file of the last time; [bold].xdmf[/],
    with an HDF5 file beside it. ParaView opens all of them.

    Parameters
    ----------
    path
        Output of a run.
    target
        Ends in .pvd, .vtr or .xdmf.

    Examples
    --------
    halocline export heat.zarr heat.pvd
    halocline export heat.zarr out/heat.xdmf --fields T,u_x
    """
    from halocline.archive.reader import Store
    from halocline.io.export import export

    store = Store(path)
    with progress(f"{path} to {target}", "times") as on_progress:
        files = export(store, target, _names(names), overwrite=overwrite, on_progress=on_progress)
    written(files)
