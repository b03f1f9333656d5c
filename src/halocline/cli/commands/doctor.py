"""The command `halocline doctor`."""

from typing import Annotated

from halocline.cli import options
from halocline.cli.commands import command, group

app = group("")


@command(app, "doctor")
def doctor(json: Annotated[str | None, options.JSON] = None) -> None:
    """Look whether everything is there: compiler, MPI, cores, memory bandwidth, cache folder, GPUs. Says what
    to do about what is missing; exit status 0 where a solve can run.

    Examples
    --------
    halocline doctor
    halocline doctor --json machine.json
    """
    from halocline.cli.doctor.examine import examine

    examine(json)
