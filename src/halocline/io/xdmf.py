"""HDF5 files, with XDMF descriptions for ParaView and VisIt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from halocline.archive.reader import ArrayInfo


def write_data(
    path: Path,
    infos: Sequence[ArrayInfo],
    times: Sequence[float],
    coordinates: Mapping[str, NDArray[np.float64]],
    slabs: Callable[[ArrayInfo, int], Iterable[tuple[int, NDArray[Any]]]],
) -> None:
    """Write arrays over time into an HDF5 file.

    Parameters
    ----------
    path : path
    infos : sequence of ArrayInfo
    times : sequence of float
    coordinates : mapping of str to array
        Coordinates by dimension.
    slabs : callable
        ``slabs(info, n)`` yields slabs of an array at the time of index `n`. Each slab comes with the index
        of its first plane along the last axis of the array. This axis is the first axis of a slab.
    """
    import h5py

    with h5py.File(path, "w") as file:
        file["time"] = list(times)
        for name, line in coordinates.items():
            file[name] = line
        for info in infos:  # the last dimension of XDMF's grids is x
            data = file.create_dataset(info.name, (len(times), *_reversed_shape(info)), info.dtype)
            for n in range(len(times)):
                for lo, slab in slabs(info, n):
                    data[n, lo : lo + len(slab)] = slab


def _reversed_shape(info: ArrayInfo) -> list[int]:
    return [info.count(d) for d in reversed(info.space)]


def described(
    data: str,
    times: Sequence[float],
    groups: Mapping[tuple[str, ...], Sequence[ArrayInfo]],
    coordinates: Mapping[str, NDArray[np.float64]],
    axes: Mapping[tuple[str, ...], Sequence[str | float]],
) -> str:
    """Return the XDMF text for the arrays of all groups, which `write_data` writes to the file `data`.

    Parameters
    ----------
    axes : mapping of dimensions to three of str or float
        For each of x, y and z of a group: one of its dimensions, or the coordinate of a slice.
    """
    text = ['<?xml version="1.0"?>', '<Xdmf Version="3.0"><Domain>']
    for dimensions, infos in groups.items():
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
            text += [_attribute(data, info, n, len(times), extent) for info in infos]
            text.append("</Grid>")
        text.append("</Grid>")
    return "\n".join([*text, "</Domain></Xdmf>", ""])


def _attribute(data: str, info: ArrayInfo, n: int, count: int, extent: str) -> str:
    shape = _reversed_shape(info)
    first = " ".join(map(str, (n, *(0 for _ in shape))))
    ones = " ".join("1" for _ in (count, *shape))
    size = " ".join(map(str, (1, *shape)))
    dimensions = " ".join(map(str, (count, *shape)))
    precision = 4 if info.dtype == "float32" else 8
    return (
        f'<Attribute Name={quoteattr(info.name)} AttributeType="Scalar" Center="Node">'
        f'<DataItem ItemType="HyperSlab" Dimensions="{extent}" Type="HyperSlab">'
        f'<DataItem Dimensions="3 {1 + len(shape)}" Format="XML">{first} {ones} {size}</DataItem>'
        f'<DataItem Dimensions="{dimensions}" NumberType="Float" Precision="{precision}" Format="HDF">'
        f"{data}:/{info.name}</DataItem></DataItem></Attribute>"
    )
