"""Files of VTK that ParaView opens: rectilinear grids, one for each time, and a collection of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TYPES = {"float64": "Float64", "float32": "Float32", "int64": "Int64"}
AXES = 3
# planes of one array, from the index `lo` to `hi` along its last axis
Planes = Callable[[int, int], "NDArray[Any]"]


def write_grid(
    path: Path,
    coordinates: Sequence[NDArray[np.float64]],
    values: Mapping[str, tuple[str, Planes]],
    *,
    rows: int | None = None,
    planes: int = 16,
) -> None:
    """Write values at the points of a rectilinear grid of one to three axes.

    Parameters
    ----------
    path : path
        Ends in .vtr.
    coordinates : sequence of array
        Along each axis.
    values : mapping of str to (dtype, function)
        By name: what gives the values with the indices from `lo` to `hi` along their last axis.
    rows : int, optional
        Points along the last axis of the values; by default as many as along the last one of the grid.
    planes : int
        Indices along the last axis that are held in memory at a time.
    """
    import numpy as np

    lines = [np.asarray(line, dtype="<f8") for line in coordinates]
    lines += [np.zeros(1)] * (AXES - len(lines))
    shape = [len(line) for line in lines]
    extent = " ".join(f"0 {n - 1}" for n in shape)
    sizes = [("Float64", 8 * n) for n in shape]
    sizes += [(TYPES[dtype], np.dtype(dtype).itemsize * int(np.prod(shape))) for dtype, _ in values.values()]
    names = ["x", "y", "z", *values]
    offsets = np.cumsum([0, *(8 + size for _, size in sizes)])

    def array(n: int) -> str:
        name = quoteattr(names[n])
        return f'<DataArray type="{sizes[n][0]}" Name={name} format="appended" offset="{offsets[n]}"/>'

    head = (
        '<?xml version="1.0"?>\n'
        '<VTKFile type="RectilinearGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
        f'<RectilinearGrid WholeExtent="{extent}"><Piece Extent="{extent}">\n'
        f"<Coordinates>{''.join(array(n) for n in range(AXES))}</Coordinates>\n"
        f"<PointData>{''.join(array(n) for n in range(AXES, len(names)))}</PointData>\n"
        '</Piece></RectilinearGrid>\n<AppendedData encoding="raw">\n_'
    )
    with path.open("wb") as file:
        file.write(head.encode())
        for (_, size), line in zip(sizes, lines, strict=False):
            file.write(np.uint64(size).tobytes() + line.tobytes())
        for (_, size), (dtype, read) in zip(sizes[AXES:], values.values(), strict=True):
            file.write(np.uint64(size).tobytes())
            for part in _slabs(read, rows or shape[len(coordinates) - 1], planes):
                # the first axis runs fastest there
                file.write(np.ascontiguousarray(part.T, dtype=np.dtype(dtype).newbyteorder("<")).data)
        file.write(b"\n</AppendedData></VTKFile>\n")


def _slabs(read: Planes, count: int, planes: int) -> Iterator[NDArray[Any]]:
    for lo in range(0, count, planes):
        yield read(lo, min(count, lo + planes))


def write_collection(path: Path, files: Sequence[tuple[float, int, str]]) -> None:
    """Write the file that lists grids by their time.

    Parameters
    ----------
    path : path
        Ends in .pvd.
    files : sequence of (float, int, str)
        Time, number of the part, and the file as seen from there.
    """
    lines = [
        f'<DataSet timestep="{time!r}" part="{part}" file={quoteattr(file)}/>' for time, part, file in files
    ]
    path.write_text(
        '<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0" byte_order="LittleEndian">\n'
        "<Collection>\n" + "\n".join(lines) + "\n</Collection>\n</VTKFile>\n"
    )
