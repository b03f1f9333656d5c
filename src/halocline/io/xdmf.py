"""HDF5, and XDMF that describes it to ParaView and VisIt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# the values of one array at one time, from the index `lo` to `hi` along its last axis
Planes = Callable[[int, int, int], "NDArray[Any]"]


Groups = Mapping[tuple[str, ...], Mapping[str, tuple[str, Planes]]]


def write_data(
    path: Path,
    groups: Groups,
    times: Sequence[float],
    coordinates: Mapping[str, NDArray[np.float64]],
    *,
    planes: int = 16,
) -> None:
    """Write arrays over time into an HDF5 file.

    Parameters
    ----------
    path : path
    groups : mapping of dimensions to arrays
        Arrays by name that lie on the same points: their dtype, and what gives values.
    times : sequence of float
    coordinates : mapping of str to array
        By dimension.
    planes : int
        Indices along the last axis that are held in memory at a time.
    """
    import h5py

    with h5py.File(path, "w") as file:
        file["time"] = list(times)
        for name, line in coordinates.items():
            file[name] = line
        for dimensions, arrays in groups.items():
            shape = [len(coordinates[d]) for d in dimensions]
            for name, (dtype, read) in arrays.items():
                # the last dimension of XDMF's grids is x
                made = file.create_dataset(name, (len(times), *reversed(shape)), dtype)
                for n in range(len(times)):
                    for lo in range(0, shape[-1], planes):
                        hi = min(shape[-1], lo + planes)
                        made[n, lo:hi] = read(n, lo, hi).T


def described(
    data: str,
    times: Sequence[float],
    groups: Groups,
    coordinates: Mapping[str, NDArray[np.float64]],
    axes: Mapping[tuple[str, ...], Sequence[str | float]],
) -> str:
    """The XDMF text that describes what `write_data` has written to a file of the name `data`.

    Parameters
    ----------
    axes : mapping of dimensions to three of str or float
        What x, y and z of a group are: one of its dimensions, or the one place where it lies.
    """
    text = ['<?xml version="1.0"?>', '<Xdmf Version="3.0"><Domain>']
    for dimensions, arrays in groups.items():
        shape = [len(coordinates[d]) for d in dimensions]
        counts = [len(coordinates[d]) if isinstance(d, str) else 1 for d in axes[dimensions]]
        extent = " ".join(str(n) for n in reversed(counts))
        text.append(
            '<Grid GridType="Collection" CollectionType="Temporal" Name="' + "-".join(dimensions) + '">'
        )
        for n, time in enumerate(times):
            text.append(f'<Grid Name="{n}"><Time Value="{time!r}"/>')
            text.append(f'<Topology TopologyType="3DRectMesh" Dimensions="{extent}"/>')
            text.append('<Geometry GeometryType="VXVYVZ">')
            for count, d in zip(counts, axes[dimensions], strict=True):
                if isinstance(d, str):
                    text.append(
                        f'<DataItem Dimensions="{count}" NumberType="Float" Precision="8" Format="HDF">'
                        f"{data}:/{d}</DataItem>"
                    )
                else:
                    text.append(f'<DataItem Dimensions="1" NumberType="Float" Format="XML">{d!r}</DataItem>')
            text.append("</Geometry>")
            text += [
                _attribute(data, name, dtype, n, len(times), shape, extent)
                for name, (dtype, _) in arrays.items()
            ]
            text.append("</Grid>")
        text.append("</Grid>")
    return "\n".join([*text, "</Domain></Xdmf>", ""])


def _attribute(
    data: str, name: str, dtype: str, n: int, count: int, shape: Sequence[int], extent: str
) -> str:
    whole = [count, *reversed(shape)]
    first = " ".join(str(v) for v in (n, *(0 for _ in shape)))
    ones = " ".join("1" for _ in whole)
    size = " ".join(str(v) for v in (1, *reversed(shape)))
    precision = 4 if dtype == "float32" else 8
    dimensions = " ".join(map(str, whole))
    return (
        f'<Attribute Name={quoteattr(name)} AttributeType="Scalar" Center="Node">'
        f'<DataItem ItemType="HyperSlab" Dimensions="{extent}" Type="HyperSlab">'
        f'<DataItem Dimensions="3 {len(whole)}" Format="XML">{first} {ones} {size}</DataItem>'
        f'<DataItem Dimensions="{dimensions}" NumberType="Float" Precision="{precision}" Format="HDF">'
        f"{data}:/{name}</DataItem></DataItem></Attribute>"
    )
