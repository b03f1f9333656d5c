"""Export of output stores to formats of other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.archive.files import atomic_file, atomic_folder
from halocline.archive.reader import ArrayInfo, Store
from halocline.errors import InputError, RunError
from halocline.io import vtk, xdmf
from halocline.lang.grid import unknown_name_error

Groups = Mapping[tuple[str, ...], Sequence[ArrayInfo]]  # arrays by their dimensions
SUFFIXES = (".pvd", ".vtr", ".xdmf")
SLAB = 64 << 20  # maximum bytes of an array in memory at a time
# characters with a meaning in paths, in references to datasets, or in XML
UNSAFE = frozenset("/\\:<>&\"'")


def export(
    store: Store,
    target: Path,
    names: Sequence[str] | None = None,
    *,
    overwrite: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """Write fields of a store for ParaView and similar programs, and return the written files.

    The suffix selects the format. ``.pvd`` is a collection of VTK files, one for each output time. ``.vtr``
    is a VTK file with the fields at the last output time. ``.xdmf`` is a description of an HDF5 file, which
    is also written. VTK formats use separate files for fields at different points, such as cells and faces.

    Parameters
    ----------
    store : Store
    target : path
    names : sequence of str, optional
        Names of the fields; all by default.
    overwrite : bool
        True if existing files may be replaced.
    on_progress : callable, optional
        Callback that receives the number of completed output times.

    Returns
    -------
    list of path
        Written files.

    Raises
    ------
    InputError
        A name, the target or the store is invalid.
    RunError
        A file cannot be written.
    """
    if target.suffix not in SUFFIXES:
        raise InputError(f"cannot export to {target}: expected a name that ends in {', '.join(SUFFIXES)}")
    chosen = _chosen(store, names, is_last=target.suffix == ".vtr")
    groups: dict[tuple[str, ...], list[ArrayInfo]] = {}
    for info in chosen:
        groups.setdefault(info.space, []).append(info)
    times = store.times
    if times is not None and not len(times):
        raise InputError(f"{store.path} contains no output time yet")
    time_values = [0.0] if times is None else [float(t) for t in times]
    companion = target.with_suffix(".h5" if target.suffix == ".xdmf" else "")
    files = _files(target, groups) if target.suffix == ".vtr" else [target, companion]
    for path in files:
        if path.exists() and not overwrite:
            raise InputError(
                f"{path} exists already. Choose another name, or overwrite it (overwrite=True, --overwrite)."
            )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".xdmf":
            _xdmf(store, target, companion, groups, time_values)
        elif target.suffix == ".vtr":
            with ExitStack() as stack:  # write all files or none
                for file, infos in zip(files, groups.values(), strict=True):
                    _grid(store, stack.enter_context(atomic_file(file)), infos, len(time_values) - 1)
        else:
            parts: list[tuple[float, int, str]] = []
            with atomic_file(target) as collection, atomic_folder(companion) as folder:
                for n, time in enumerate(time_values):
                    for part, (space, infos) in enumerate(groups.items()):
                        file = folder / f"{'_'.join(space)}_{n:06}.vtr"
                        _grid(store, file, infos, n)
                        parts.append((time, part, f"{companion.name}/{file.name}"))
                    if on_progress is not None:
                        on_progress(n + 1)
                vtk.write_collection(collection, parts)
        return files
    except OSError as error:
        raise RunError(f"{target} cannot be written: {error.strerror or error}") from None


def _chosen(store: Store, names: Sequence[str] | None, *, is_last: bool) -> list[ArrayInfo]:
    known = store.variables
    fields = {n: i for n, i in known.items() if 1 <= len(i.space) <= 3 and not i.is_points}
    if not fields:
        raise InputError(f"{store.path} contains no fields. Read numbers and single points with xarray.")
    for name in names or ():
        if name not in fields:
            raise unknown_name_error("field", name, sorted(fields))
    chosen = [fields[name] for name in (names or [n for n in store.results if n in fields])]
    first: dict[str, ArrayInfo] = {}
    for info in chosen:
        _check(store, info, is_last=is_last)
        for d in info.space:
            other = first.setdefault(d, info)
            if other.count(d) != info.count(d):  # possible only in stores of other programs
                raise InputError(
                    f"{store.path}: array {other.name!r} has {other.count(d)} points along {d}, and "
                    f"{info.name!r} has {info.count(d)}. Export them one by one (names=, --fields)."
                )
    return chosen


def _check(store: Store, info: ArrayInfo, *, is_last: bool) -> None:
    """Check that an array can be exported, before a file is created.

    Other programs may have used any name and type.

    Raises
    ------
    InputError
        The names are invalid for files or datasets, VTK does not support the type, or the array is damaged.
    """
    other = "choose other fields (names=, --fields)"
    for role, name in (("its name", info.name), *(("the name of its axis", d) for d in info.space)):
        if not name.isprintable() or not UNSAFE.isdisjoint(name) or ".." in name or name == ".":
            raise InputError(
                f"{store.path}: array {info.name!r} cannot be exported: {role} is {name!r}, which cannot be "
                f"a file name. Expected printable characters other than {' '.join(sorted(UNSAFE))}, and no "
                f"two consecutive dots. Rename it in the store, or {other}."
            )
    if info.dtype not in vtk.TYPES:
        raise InputError(
            f"{store.path}: array {info.name!r} cannot be exported: it has type {info.dtype}; expected "
            f"{', '.join(vtk.TYPES)}: {other}"
        )
    if not all(map(info.count, info.space)):
        raise InputError(f"{store.path}: array {info.name!r} holds no points: {other}")
    store.open(info.name, info.times - 1 if is_last and info.times else None)
    for d in info.space:
        store.coordinates(d, info)


def _axes(info: ArrayInfo) -> list[str | float]:
    """Return, for each of x, y and z, the dimension of the array or the coordinate of a slice.

    Dimensions with other names are assigned to x, y and z in order.
    """
    axes: list[str | float] = []
    for axis in "xyz":
        dimensions = [d for d in info.space if d.split("_")[0] == axis]
        place = info.attributes.get(axis, 0.0)
        axes.append(dimensions[0] if dimensions else float(place) if isinstance(place, (int, float)) else 0.0)
    if [d for d in axes if isinstance(d, str)] == list(info.space):
        return axes
    return [*info.space, *[0.0] * (3 - len(info.space))]


def _files(target: Path, groups: Groups) -> list[Path]:
    """Return the file of each group."""
    if len(groups) == 1:
        return [target]
    return [target.with_name(f"{target.stem}_{'_'.join(space)}.vtr") for space in groups]


def _grid(store: Store, file: Path, infos: Sequence[ArrayInfo], n: int) -> None:
    """Write the arrays of a group at one time."""
    lines = [store.coordinates(d, infos[0]) if isinstance(d, str) else np.array([d]) for d in _axes(infos[0])]
    vtk.write_grid(file, lines, [(info, _slabs(store, info, n)) for info in infos])


def _xdmf(store: Store, target: Path, companion: Path, groups: Groups, at: Sequence[float]) -> None:
    all_infos = [info for infos in groups.values() for info in infos]
    lines = {d: store.coordinates(d, info) for info in all_infos for d in info.space}
    axes = {space: _axes(infos[0]) for space, infos in groups.items()}
    with atomic_file(target) as description, atomic_file(companion) as data:
        xdmf.write_data(data, all_infos, at, lines, partial(_slabs, store))
        description.write_text(xdmf.described(companion.name, at, groups, lines, axes))


def _slabs(store: Store, info: ArrayInfo, n: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the values of an array at one time, in slabs of whole chunks.

    The last axis of the array is the first axis of a slab. Each slab comes with the index of its first plane
    along this axis.
    """
    *inner, count = (info.count(d) for d in info.space)
    planes = max(1, SLAB // (8 * prod(inner)) // info.chunk[-1]) * info.chunk[-1]
    for lo in range(0, count, planes):
        yield lo, store.read(info.name, n, [*(0 for _ in inner), lo], [*inner, min(count, lo + planes)]).T
