"""`halocline ls`, `halocline view` and `halocline export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halocline.cli.commands import examples, group
from halocline.cli.options import Json, Overwrite

stores = group("Stores that runs have left.")

StorePath = Annotated[
    Path, typer.Argument(metavar="PATH", help="Of output, of a checkpoint, or of a folder of checkpoints.")
]


@stores.command(
    "ls",
    help="Show what a store holds: arrays with dimensions, units and size, times, parameters; or which "
    "checkpoints are in a folder, and which is the newest.",
    epilog=examples("halocline ls heat.zarr", "halocline ls heat.zarr --equations", "halocline ls out/mhd"),
)
def list_store(
    path: StorePath,
    equations: Annotated[
        bool, typer.Option("--equations", help="Print the equations of the run that wrote it.")
    ] = False,
    json: Json = None,
) -> None:
    from halocline.cli.stores import ls

    ls(path, json, equations)


@stores.command(
    "view",
    help="Draw what output holds into a picture: fields as planes or lines, numbers and single points as "
    "time series. Or into a film of its times: a target that ends in [bold].gif[/], or in [bold].mp4[/] "
    "where ffmpeg is found.",
    epilog=examples(
        "halocline view heat.zarr heat.png",
        "halocline view heat.zarr T.png --fields T --time 0.3 --at z=0.25",
        "halocline view heat.zarr spectrum.png --fields u_x,u_y --spectrum",
        "halocline view heat.zarr heat.gif",
        "halocline view heat.zarr heat.mp4 --fields T --every 10",
    ),
)
def view_store(
    path: Annotated[Path, typer.Argument(metavar="STORE", help="Output of a run, or a checkpoint.")],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Ends in .png, .pdf, .svg, .gif or .mp4.")],
    fields: Annotated[
        str | None, typer.Option("--fields", metavar="NAME,NAME,...", help="By default all.")
    ] = None,
    time: Annotated[
        float | None, typer.Option("--time", metavar="T", help="The nearest one counts; by default the last.")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="AXIS=COORDINATE",
            help="Where an axis is cut, z=0.5; may be given twice. By default z in the middle.",
        ),
    ] = None,
    spectrum: Annotated[
        bool, typer.Option("--spectrum", help="Draw the power of whole fields in shells of wavenumbers.")
    ] = False,
    every: Annotated[
        int, typer.Option("--every", metavar="K", min=1, help="Draw every K-th time into a film.")
    ] = 1,
) -> None:
    from halocline.cli.stores import view

    view(path, target, names=fields, time=time, at=at or [], spectrum=spectrum, every=every)


@stores.command(
    "export",
    help="Write the fields of output for other programs. The name of the target says how: [bold].pvd[/], a "
    "collection of VTK files, one for each time; [bold].vtr[/], one VTK file of the last time; "
    "[bold].xdmf[/], with an HDF5 file beside it. ParaView opens all of them.",
    epilog=examples(
        "halocline export heat.zarr heat.pvd",
        "halocline export heat.zarr out/heat.xdmf --fields T,u_x",
    ),
)
def export_store(
    path: Annotated[Path, typer.Argument(metavar="STORE", help="Output of a run.")],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Ends in .pvd, .vtr or .xdmf.")],
    fields: Annotated[
        str | None, typer.Option("--fields", metavar="NAME,NAME,...", help="By default all.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    from halocline.cli.stores import export

    export(path, target, fields, overwrite)
