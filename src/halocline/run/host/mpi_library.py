"""Selection of the MPI library, among those of the system and that of the Python package mpich.

The engine and mpi4py load an MPI library at run time, so that one installation serves all MPI libraries.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from importlib import metadata, util
from itertools import chain, product
from pathlib import Path
from typing import Any

from halocline.errors import InputError, RunError
from halocline.words import short_repr

MPI_VARIABLE = "HALOCLINE_MPI"  # path of a library, or PACKAGE
PACKAGE = "package"
MPI4PY_VARIABLE = "MPI4PY_LIBMPI"  # paths of libraries or their folders; mpi4py loads the first that exists
# Names of the programs that start ranks, with links resolved.
PROGRAMS = {
    "Open MPI": ("mpiexec.openmpi", "mpirun", "orterun", "prterun"),
    "MPICH": ("mpiexec.mpich", "mpiexec.hydra"),
}
LIBRARY_FILES = {
    "Open MPI": ("libmpi.so.40",),
    "MPICH": ("libmpi.so.12", "libmpich.so.12"),  # libmpich: of Debian
}
SIZE_VARIABLES = {"Open MPI": "OMPI_COMM_WORLD_SIZE", "MPICH": "PMI_SIZE"}  # variables of launchers


def kind_of(library: str | Path) -> str | None:
    """Return "MPICH" or "Open MPI" by the name of the file of an MPI library, or None for other libraries."""
    name = os.path.basename(os.path.realpath(library))
    if ".so.12" in name:
        return "MPICH"
    return "Open MPI" if ".so.40" in name else None


def launcher_kind(environment: Mapping[str, str]) -> str | None:
    """Return the kind of MPI library to which the launcher of several processes belongs, or None.

    None also means that there is no such launcher, or that it serves all kinds, as srun does.
    """
    if "SLURM_PROCID" in environment:
        return None
    sizes = {kind: environment.get(variable, "") for kind, variable in SIZE_VARIABLES.items()}
    kinds = [kind for kind, size in sizes.items() if size]
    return kinds[0] if len(kinds) == 1 and sizes[kinds[0]].isdigit() and int(sizes[kinds[0]]) > 1 else None


def mpi_library() -> str:
    """Return the path of the MPI library of this process. Does not initialise MPI.

    Raises
    ------
    InputError
        The variable HALOCLINE_MPI does not name a library.
    RunError
        There is no MPI library.
    """
    engine = sys.modules.get("halocline._native")
    if engine is not None and engine.mpi_library():
        return str(engine.mpi_library())
    if "mpi4py.MPI" in sys.modules or not mpi4py_selects_library():
        return library_of_mpi4py()
    return str(selected_library(os.environ))


def selected_library(environment: Mapping[str, str]) -> Path:
    """Return the MPI library for an environment.

    The variable HALOCLINE_MPI has precedence, then MPI4PY_LIBMPI. Otherwise the library is of the kind of the
    launcher that started several processes. Libraries of the system precede that of the package mpich.
    """
    variable = MPI_VARIABLE if environment.get(MPI_VARIABLE) else MPI4PY_VARIABLE
    setting = environment.get(variable, "")
    if setting and setting != PACKAGE:
        paths = [Path(path) for path in setting.split(os.pathsep)]
        files = (file for path in paths for file in (path, *_in_folders([path], list(LIBRARY_FILES))))
        library = next(filter(Path.is_file, files), None)
        if library is None:
            alternative = ", or package" if variable == MPI_VARIABLE else ""
            raise InputError(
                f"{variable} is {short_repr(setting)}, but this file does not exist. Set it to the path "
                f"of an MPI library, such as /usr/lib/libmpi.so.40{alternative}"
            )
        return library.absolute()  # the loader searches a name without a folder elsewhere
    packaged = packaged_library()
    libraries = [] if setting == PACKAGE else [*dict.fromkeys(system_libraries(environment))]
    libraries += [packaged] if packaged is not None else []
    if not libraries:
        problem = f"{MPI_VARIABLE} is package" if setting else "the system has none"
        raise RunError(
            f"no MPI library: {problem}, and the Python package mpich is not installed; pip install mpich"
        )
    kind = launcher_kind(environment)
    if kind is None:
        return libraries[0]
    return next((library for library in libraries if kind == kind_of(library)), libraries[0])


def packaged_library() -> Path | None:
    """Return the MPI library of the installed Python package mpich, or None."""
    try:
        files = metadata.files("mpich") or []
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())).resolve() for file in files if file.name == "libmpi.so.12")
    return next((path for path in paths if path.is_file()), None)


def system_libraries(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the MPI libraries of the system, without those in environments of Python.

    They belong to the programs mpiexec on PATH, in this order, or are in the folders of LD_LIBRARY_PATH.
    """
    programs = ("mpiexec", *chain.from_iterable(PROGRAMS.values()))
    for folder, name in product(environment.get("PATH", os.defpath).split(os.pathsep), programs):
        program = shutil.which(name, path=folder) if folder else None
        if program and not is_packaged(Path(folder)):
            real = Path(program).resolve()
            kinds = [kind for kind, names in PROGRAMS.items() if real.name in names] or list(LIBRARY_FILES)
            prefix = real.parent.parent
            folders = [
                prefix / "lib" / str(sysconfig.get_config_var("MULTIARCH")),
                prefix / "lib",
                prefix / "lib64",
                prefix / "lib" / "release",  # of Intel MPI
            ]
            yield from _in_folders(folders, kinds)
    for folder in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if folder and not is_packaged(Path(folder)):
            yield from _in_folders([Path(folder)], list(LIBRARY_FILES))


def is_packaged(folder: Path) -> bool:
    """Return True if a folder of programs or libraries belongs to an environment with the package mpich."""
    return any(folder.resolve().parent.glob("lib*/python3*/*-packages/mpich-*.dist-info"))


def _in_folders(folders: list[Path], kinds: list[str]) -> Iterator[Path]:
    names = [name for kind in kinds for name in LIBRARY_FILES[kind]]
    yield from (file for folder in folders for name in names if (file := folder / name).is_file())


def mpi4py_selects_library() -> bool:
    """Return True if mpi4py selects an MPI library at run time, as its wheel does."""
    package = util.find_spec("mpi4py")
    folders = (package.submodule_search_locations if package else None) or []
    return all(any(Path(f).glob(f"MPI.{kind}.*")) for f in folders for kind in ("mpich", "openmpi"))


def opened(library: str, function: str) -> ctypes.CDLL:
    """Load an MPI library, or a library that uses one, and return it.

    Raises
    ------
    RunError
        The file cannot be loaded, or does not have the function.
    """
    try:
        result = ctypes.CDLL(library)
        getattr(result, function)
    except (OSError, AttributeError) as error:
        raise RunError(
            f"{library} is not a usable MPI library ({error}). Set {MPI_VARIABLE} to another one"
        ) from error
    return result


class _SymbolInfo(ctypes.Structure):
    """Structure Dl_info of dladdr(3)."""

    _fields_ = (
        ("dli_fname", ctypes.c_char_p),
        ("dli_fbase", ctypes.c_void_p),
        ("dli_sname", ctypes.c_char_p),
        ("dli_saddr", ctypes.c_void_p),
    )


def library_of_mpi4py() -> str:
    """Return the path of the library that contains the MPI_Comm_rank of mpi4py."""
    module: Any = sys.modules.get("mpi4py.MPI")
    spec = util.find_spec("mpi4py.MPI") if module is None else None
    file = module.__file__ if module is not None else spec.origin if spec is not None else None
    if file is None:
        raise RunError("mpi4py has no module MPI: pip install --force-reinstall mpi4py")
    function = opened(file, "MPI_Comm_rank").MPI_Comm_rank
    try:
        dladdr = ctypes.CDLL(None).dladdr
    except AttributeError:  # before glibc 2.34, a separate library contains dladdr
        dladdr = ctypes.CDLL("libdl.so.2").dladdr
    dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_SymbolInfo))
    info = _SymbolInfo()
    if not dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info)):
        raise RunError("cannot find out which MPI library mpi4py uses: dladdr does not know MPI_Comm_rank")
    return os.fsdecode(info.dli_fname)
