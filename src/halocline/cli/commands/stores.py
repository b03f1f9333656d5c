"""Commands `halocline ls`, `halocline view` and `halocline export`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.options import general_option, whole_number
from halocline.cli.output import check_files, print_results, report_written
from halocline.errors import InputError
from halocline.run.simulation.progress import progress

app = group("")
FIELDS = general_option("--fields NAME,NAME,...", help="Fields to use. Default: all.")


@command(app, "ls")
def ls(
    path: Annotated[Path, typer.Argument(metavar="PATH")],
    equations: Annotated[bool, general_option("--equations")] = False,
    json: Annotated[str | None, options.JSON] = None,
) -> None:
    """Describe an output store, a checkpoint, or a folder of checkpoints.

    The report contains the arrays with dimensions, units and sizes. It also contains the stored output times
    and the parameters. For a folder, it lists the checkpoints and marks the newest one.

    Parameters
    ----------
    path
        Path of an output store, a checkpoint, or a folder of checkpoints.
    equations
        Also print the equations of the run that wrote the store.

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
        raise InputError(f"--equations: {path} is a folder of checkpoints; expected a single checkpoint")
    print_results(TEXTS[listing["kind"]](listing, equations), json, listing)


@command(app, "view")
def view(
    path: Annotated[Path, typer.Argument(metavar="STORE")],
    target: Annotated[Path, typer.Argument(metavar="TARGET")],
    names: Annotated[str | None, FIELDS] = None,
    time: Annotated[float | None, general_option("--time T")] = None,
    at: Annotated[list[str], general_option("--at AXIS=COORDINATE")] = options.NO_TEXTS,
    spectrum: Annotated[bool, general_option("--spectrum")] = False,
    every: Annotated[int, general_option("--every K", whole_number(ranges.SOME_STEPS))] = 1,
) -> None:
    """Draw an output store or a checkpoint as a picture or film.

    Fields are drawn as planes or lines. Numbers, and fields at single points, are drawn as time series. A
    target that ends in [bold].gif[/] or [bold].mp4[/] is a film of all output times. A film in .mp4
    requires ffmpeg.

    Parameters
    ----------
    path
        Output store of a run, or a checkpoint.
    target
        File to write. It ends in .png, .pdf, .svg, .gif or .mp4.
    time
        Simulated time to draw; the nearest stored time is used. Default: the last time.
    at
        Coordinate of the plane or line to draw, such as z=0.5 for a plane normal to z. The option may be
        given twice. Default: the middle of z.
    spectrum
        Draw the power spectrum of complete fields, summed over shells of wavenumbers.
    every
        Draw only every K-th output time in a film.

    Examples
    --------
    halocline view heat.zarr heat.png
    halocline view heat.zarr T.png --fields T --time 0.3 --at z=0.25
    halocline view heat.zarr spectrum.png --fields u_x,u_y --spectrum
    halocline view heat.zarr heat.gif
    halocline view heat.zarr heat.mp4 --fields T --every 10
    """
    from halocline.archive.reader import Store
    from halocline.io.views import Selection, view

    store = Store(path)
    selection = Selection(_names(names), time, _cuts(at), spectrum, every)
    with progress(f"{path} to {target}", "frames") as on_progress:
        view(store, target, selection, on_progress)
    report_written([target])


def _cuts(texts: Sequence[str]) -> dict[str, float]:
    """Return the coordinate of each cut, by the axis normal to the cut."""
    cuts: dict[str, float] = {}
    for text in texts:
        axis, _, value = text.partition("=")
        name = axis.strip()
        if name in cuts:
            raise InputError(f"--at {text}: the coordinate of axis {name} is already {cuts[name]:g}")
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
    """Export the fields of an output store to VTK or XDMF files.

    The suffix of the target sets the format. [bold].pvd[/]: a collection of VTK files, one per output
    time. [bold].vtr[/]: one VTK file of the last output time. [bold].xdmf[/]: an XDMF file with an HDF5 file.
    ParaView reads all formats.

    Parameters
    ----------
    path
        Output store of a run.
    target
        File to write. It ends in .pvd, .vtr or .xdmf.

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
    report_written(files)
