"""`halocline ls`, `halocline view` and `halocline export`."""

from __future__ import annotations

from halocline.cli import options
from halocline.cli.declare import NUMBER, PATH, REQUIRED, TEXTS, Command, Option, whole
from halocline.ranges import SOME_STEPS

STORE = Option(
    None, "path PATH", "Of output, of a checkpoint, or of a folder of checkpoints.", PATH, REQUIRED
)
TARGET = Option(None, "target TARGET", "Ends in .png, .pdf, .svg, .gif or .mp4.", PATH, REQUIRED)
FIELDS = Option(None, "--fields NAME,NAME,...", "By default all.", keyword="names")

LS = Command(
    name="ls",
    does="halocline.cli.stores:ls",
    help="Show what a store holds: arrays with dimensions, units and size, times, parameters; or which "
    "checkpoints are in a folder, and which is the newest.",
    examples=["halocline ls heat.zarr", "halocline ls heat.zarr --equations", "halocline ls out/mhd"],
    takes=(
        STORE,
        Option(None, "--equations", "Print the equations of the run that wrote it."),
        options.JSON,
    ),
)
VIEW = Command(
    name="view",
    does="halocline.cli.stores:view",
    help="Draw what output holds into a picture: fields as planes or lines, numbers and single points as "
    "time series. Or into a film of its times: a target that ends in [bold].gif[/], or in [bold].mp4[/] "
    "where ffmpeg is found.",
    examples=[
        "halocline view heat.zarr heat.png",
        "halocline view heat.zarr T.png --fields T --time 0.3 --at z=0.25",
        "halocline view heat.zarr spectrum.png --fields u_x,u_y --spectrum",
        "halocline view heat.zarr heat.gif",
        "halocline view heat.zarr heat.mp4 --fields T --every 10",
    ],
    takes=(
        STORE.but("Output of a run, or a checkpoint.", form="path STORE"),
        TARGET,
        FIELDS,
        Option(None, "--time T", "The nearest one counts; by default the last.", NUMBER),
        Option(
            None,
            "--at AXIS=COORDINATE",
            "Where an axis is cut, z=0.5; may be given twice. By default z in the middle.",
            TEXTS,
        ),
        Option(None, "--spectrum", "Draw the power of whole fields in shells of wavenumbers."),
        Option(None, "--every K", "Draw every K-th time into a film.", whole(SOME_STEPS), 1),
    ),
)
EXPORT = Command(
    name="export",
    does="halocline.cli.stores:export",
    help="Write the fields of output for other programs. The name of the target says how: [bold].pvd[/], a "
    "collection of VTK files, one for each time; [bold].vtr[/], one VTK file of the last time; "
    "[bold].xdmf[/], with an HDF5 file beside it. ParaView opens all of them.",
    examples=[
        "halocline export heat.zarr heat.pvd",
        "halocline export heat.zarr out/heat.xdmf --fields T,u_x",
    ],
    takes=(
        STORE.but("Output of a run.", form="path STORE"),
        TARGET.but("Ends in .pvd, .vtr or .xdmf."),
        FIELDS,
        options.OVERWRITE,
    ),
)
