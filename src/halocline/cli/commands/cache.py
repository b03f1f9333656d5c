"""Show the cache of compiled kernels, and carry it to other machines.

Examples
--------
halocline cache info
halocline cache export kernels.tar.gz
halocline cache import kernels.tar.gz
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.output import check_files, is_first_rank, print_results, say
from halocline.words import counted

if TYPE_CHECKING:
    from halocline.compile.cache_archive import Contents

app = group(__doc__)


@command(app, "info")
def info(json: Annotated[str | None, options.JSON] = None) -> None:
    """Show the folder of the cache, and how much compiled code it contains.

    The variable HALOCLINE_CACHE selects the folder. You may remove the folder at any time.

    Examples
    --------
    halocline cache info
    """
    from halocline.compile.cache import cache_folder
    from halocline.compile.cache_archive import contents

    check_files(json)
    if is_first_rank():
        folder, code = cache_folder(), contents()
        print_results(f"{folder}: {_text(code)}", json, {"folder": str(folder), **asdict(code)})


@command(app, "export")
def export(
    target: Annotated[Path, typer.Argument(metavar="FILE")],
    overwrite: Annotated[bool, options.OVERWRITE] = False,
) -> None:
    """Write the compiled code of the cache to an archive.

    The archive is for machines without a compiler. They use the code for their model of CPU or CUDA device.
    They also use libraries for a level of instruction sets that they have, such as x86-64-v3.

    Parameters
    ----------
    target
        File to write. It ends in .tar, .tar.gz or .tar.xz.

    Examples
    --------
    halocline cache export kernels.tar.gz
    """
    from halocline.compile.cache_archive import export_code

    check_files(target)
    if is_first_rank():
        say(f"{target}: {_text(export_code(target, overwrite=overwrite))}")


@command(app, "import")
def import_(source: Annotated[Path, typer.Argument(metavar="FILE")]) -> None:
    """Add the compiled code of an archive to the cache.

    Later runs execute this code with your permissions. Import only archives of a person whom you trust.

    Parameters
    ----------
    source
        Archive of `halocline cache export`.

    Examples
    --------
    halocline cache import kernels.tar.gz
    """
    from halocline.compile.cache import cache_folder
    from halocline.compile.cache_archive import import_code

    if is_first_rank():
        code = import_code(source)
        say(f"{source}: {_text(code)} added to {cache_folder()}")


def _text(code: "Contents") -> str:
    return f"{counted(code.files, 'file')} of compiled code, {code.bytes / 1e6:.1f} MB"
