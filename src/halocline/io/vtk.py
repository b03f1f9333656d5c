"""VTK files for ParaView: a rectilinear grid for each output time, and a collection of these grids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from halocline.archive.reader import ArrayInfo

TYPES = {"float64": "Float64", "float32": "Float32", "int64": "Int64"}


def write_grid(
    path: Path,
    coordinates: Sequence[NDArray[np.float64]],
    values: Sequence[tuple[ArrayInfo, Iterable[tuple[int, NDArray[Any]]]]],
) -> None:
    """Write values at the points of a rectilinear grid.

    Parameters
    ----------
    path : path
        Name that ends in .vtr.
    coordinates : sequence of three arrays
        Coordinates along each axis.
    values : sequence of (ArrayInfo, iterable of (int, array))
        Arrays with their slabs. Slabs are in the order of the last axis of the array, which is the first axis
        of a slab.
    """
    lines = [np.asarray(line, dtype="<f8") for line in coordinates]
    shape = [len(line) for line in lines]
    extent = " ".join(f"0 {n - 1}" for n in shape)
    arrays = [("Float64", name, 8 * n) for name, n in zip("xyz", shape, strict=True)]
    arrays += [(TYPES[info.dtype], info.name, info.bytes(shape)) for info, _ in values]
    elements, offset = [], 0
    for kind, name, size in arrays:
        elements.append(
            f'<DataArray type="{kind}" Name={quoteattr(name)} format="appended" offset="{offset}"/>'
        )
        offset += 8 + size
    head = (
        '<?xml version="1.0"?>\n'
        '<VTKFile type="RectilinearGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
        f'<RectilinearGrid WholeExtent="{extent}"><Piece Extent="{extent}">\n'
        f"<Coordinates>{''.join(elements[:3])}</Coordinates>\n"
        f"<PointData>{''.join(elements[3:])}</PointData>\n"
        '</Piece></RectilinearGrid>\n<AppendedData encoding="raw">\n_'
    )
    with path.open("wb") as file:
        file.write(head.encode())
        for line in lines:
            file.write(np.uint64(line.nbytes).tobytes() + line.tobytes())
        for info, slabs in values:
            file.write(np.uint64(info.bytes(shape)).tobytes())
            for _, slab in slabs:  # the first axis runs fastest in the file
                file.write(np.ascontiguousarray(slab, dtype=np.dtype(info.dtype).newbyteorder("<")).data)
        file.write(b"\n</AppendedData></VTKFile>\n")


def write_collection(path: Path, files: Sequence[tuple[float, int, str]]) -> None:
    """Write the file that lists grids by their time.

    Parameters
    ----------
    path : path
        Name that ends in .pvd.
    files : sequence of (float, int, str)
        Time, number of the part, and file relative to the folder of `path`.
    """
    lines = [
        f'<DataSet timestep="{time!r}" part="{part}" file={quoteattr(file)}/>' for time, part, file in files
    ]
    path.write_text(
        '<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0" byte_order="LittleEndian">\n'
        "<Collection>\n" + "\n".join(lines) + "\n</Collection>\n</VTKFile>\n"
    )
