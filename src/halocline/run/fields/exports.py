"""Fields for other array libraries: views without copies, by DLPack and the CUDA array interface."""

from __future__ import annotations

from typing import Any, Protocol
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.grid import Field, Grid, Vector
from halocline.native import native
from halocline.run.devices.arrays import Kind
from halocline.run.devices.devices import copier, device_errors, label
from halocline.run.domain.domain import Domain
from halocline.run.memory.store import FieldStore, Place
from halocline.words import short_repr

DLPACK = 1, 0  # oldest version with flags


class ExportError(InputError, BufferError):
    """Error for a request of a consumer that a field in device memory cannot fulfil."""


class FieldAccess(Protocol):
    """Protocol of the fields of a simulation; see `halocline.run.fields.fields`."""

    grid: Grid
    domain: Domain
    store: FieldStore

    def components(self, field: Any) -> tuple[Any, ...] | None:
        """Return the components of a vector, or None if `field` is not a vector."""

    def field_with_values(self, field: Any) -> Field:
        """Return the field for a Field object or a name, and check that the field has values."""

    def note_write_access(self, field: Field) -> None:
        """Record that the user or another library receives a writable view of a field."""

    def local_view(self, field: Field, offset: Place, values: NDArray[Any]) -> NDArray[Any]:
        """Return points of this rank as an array whose errors explain wrong indices and forbidden writes."""

    def __getitem__(self, field: Any) -> Any:
        """Return the points of a field on this rank."""


class FieldViews:
    """Views of fields on this rank, by name or Field object.

    ``sim.views[T]`` is a view for other array libraries, and ``sim.views(T)`` a list of the subdomains.
    """

    def __init__(self, fields: FieldAccess) -> None:
        self._fields = fields

    def __call__(self, field: Field | Vector | str) -> Any:
        """Return the points of a field in each subdomain of this rank.

        The result is a list with one pair per subdomain: the global index of the first point, and a NumPy
        view that is valid until the next run. For a vector, the result is a tuple of such lists, one for each
        component. Views of fields on devices are read-only copies; assign the whole field instead.
        """
        fields = self._fields
        components = fields.components(field)
        if components is not None:
            return tuple(self(component) for component in components)
        target = fields.field_with_values(field)
        if not fields.domain.devices:
            fields.note_write_access(target)
        return [
            (offset, fields.local_view(target, offset, view))
            for offset, view in zip(fields.domain.offsets, fields.store.views(target), strict=True)
        ]

    def __getitem__(self, field: Field | Vector | str) -> Any:
        """Return the points of a field on this rank as a writable view, without a copy and without halo.

        On the CPU, the view is a NumPy array that is valid until the next run. On a CUDA device, it is a
        `DeviceView`. PyTorch, CuPy and other libraries import both by ``from_dlpack``. For a vector, the
        result is a tuple of views, one for each component.

        Raises
        ------
        InputError
            The field has no values; this rank has several subdomains or none; the grid has inactive blocks;
            or the field is on an OpenCL device.
        """
        components = self._fields.components(field)
        if components is not None:
            return tuple(self[component] for component in components)
        target = self._fields.field_with_values(field)
        device = _check_exportable(self._fields, target)
        return self._fields[target] if device is None else DeviceView(self._fields, target)

    def __setitem__(self, field: Field | Vector | str, value: Any) -> None:
        if isinstance(value, np.ndarray) and self._is_view(field, value):
            return  # the last step of `sim.views[T] *= 2`, which has changed the field
        name = field if isinstance(field, str) else getattr(field, "name", "u")
        raise InputError(
            f"views[{name}] cannot be set. Set the whole field by sim[{name}] = values. On the CPU, "
            f"sim.views[{name}][...] = values sets the points of this rank."
        )

    def _is_view(self, field: Field | Vector | str, array: NDArray[Any]) -> bool:
        view = self[field]
        return isinstance(view, np.ndarray) and view.__array_interface__ == array.__array_interface__


def _check_exportable(fields: FieldAccess, field: Field) -> Any:
    """Return the native device of a field, or None for host memory.

    Raises
    ------
    InputError
        There is no view of the field without a copy.
    """
    domain, count = fields.domain, len(fields.domain.subdomains)
    if fields.store.blocks is not None:
        raise InputError(
            f"field {field.name!r} has inactive blocks, so it has no view. Use sim[{field.name}], which "
            "returns a copy."
        )
    if count != 1:
        raise InputError(
            f"field {field.name!r} has {count} subdomains on rank {domain.comm.rank}; a view needs exactly "
            f"1. Use one subdomain and one device per rank, or sim.views({field.name}), which returns one "
            "array per subdomain."
        )
    if not domain.devices:
        return None
    device = domain.device_of(0)
    if device.interface != "cuda":
        raise InputError(
            f"field {field.name!r} is on device {label(device)}, and array libraries import only CUDA or "
            f"host memory. Use sim[{field.name}], which returns a copy, or device='cuda' or 'cpu'."
        )
    return device


class DeviceView:
    """Points of a field on this rank in memory of a CUDA device, for other array libraries.

    ``torch.from_dlpack(view)`` and ``cupy.from_dlpack(view)`` return arrays that share this memory. The view
    itself remains valid: each export refers to the current memory of the field. An exported array is valid
    until the next run, because a run may swap the memory of fields. Its memory is freed with the last array.

    Halocline finishes its own work before each export, and waits for the work of other libraries on the
    device before it uses a field again. Consumers therefore need no synchronisation.

    Parameters
    ----------
    fields : FieldAccess
        Fields of a simulation, to which only a weak reference is stored.
    field : Field
        Field on this rank with exactly one subdomain.
    """

    def __init__(self, fields: FieldAccess, field: Field) -> None:
        self._fields, self._field = ref(fields), field
        device = fields.domain.device_of(0)
        self._device = int(device.index)
        self._label = label(device)
        self._arrays: dict[int, Any] = {}  # arrays that consumers may read, by address

    def __repr__(self) -> str:
        return f"<view of field {self._field.name!r}: {self.dtype}, {self._label}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points along each axis."""
        fields = self._living_fields()
        (storage,) = fields.store.of(self._field)
        return tuple(storage.shape)[3 - fields.grid.ndim :]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of an element."""
        return np.dtype(self._field.dtype)

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise InputError(
            f"field {self._field.name!r} is on device {self._label}, and NumPy cannot read this memory. Use "
            f"sim[{self._field.name}], which returns a copy on the host."
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the kind of memory and the index of the device, in the numbering of DLPack."""
        return int(Kind.CUDA), self._device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule.

        Parameters
        ----------
        stream : int, optional
            Stream of the consumer: None or 1 is the legacy default stream, 2 the default stream per thread,
            -1 requests no synchronisation, and larger numbers are addresses of streams. All values have the
            same effect, because the work of Halocline is complete.
        max_version : (int, int), optional
            Newest version of DLPack that the consumer reads. By default, the capsule has no version.
        dl_device : (int, int), optional
            Kind and index of the memory for the result: that of the field, or (1, 0) for host memory.
        copy : bool, optional
            True for a contiguous copy, False if a copy is an error. By default, memory of another kind is
            copied.

        Raises
        ------
        ExportError
            The device is unknown, or `copy` is False for another device.
        InputError
            The stream is invalid, or the simulation no longer exists.
        """
        _check_stream(stream)
        fields, home = self._living_fields(), self.__dlpack_device__()
        target = home if dl_device is None else tuple(map(int, dl_device))
        if target == (Kind.CPU, 0):
            if copy is False:
                raise ExportError(
                    f"{self!r} cannot be exported to the host without a copy. Leave out copy=False."
                )
            return np.array(fields[self._field]).__dlpack__(max_version=max_version)
        if target != home:
            raise ExportError(
                f"{self!r} cannot be exported to device {target} of DLPack; expected {home}, or (1, 0) for "
                "the host. Leave out dl_device, and copy the array in the other library."
            )
        version = max_version if max_version is not None and tuple(max_version) >= DLPACK else None
        if not copy:
            return self._current(self._exporting()).__dlpack__(max_version=version)
        capsule = self.copy().__dlpack__(max_version=version)
        if version is not None:
            native().mark_copied(capsule)
        return capsule

    def copy(self) -> Any:
        """Return a contiguous copy in memory of the same device, for libraries that import no strides.

        The result is an object with DLPack, as in ``jax.dlpack.from_dlpack(view.copy())``.
        """
        fields = self._living_fields()
        (storage,) = fields.store.of(self._field)
        fields.store.await_other_libraries()
        with device_errors(f"field {self._field.name!r} cannot be copied"):
            return native().device_copy(storage, copier(fields.domain.device_of(0)), self.ndim)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Description of the memory for CuPy, Numba and PyTorch.

        The view keeps this memory alive. The stream is None, because the work of Halocline is complete.
        """
        fields = self._exporting()
        (storage,) = fields.store.of(self._field)
        array, size = self._current(fields), ITEMSIZE[self._field.dtype]
        address = native().array_facts(array.__dlpack__())[0]
        self._arrays[address] = array
        strides = [stride * size for stride in (*tuple(storage.layout)[1:], 1)]
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (address, False),
            "strides": tuple(strides[3 - self.ndim :]),
            "stream": None,
            "version": 3,
        }

    def _current(self, fields: FieldAccess) -> Any:
        """Return an array over the current memory of the field."""
        (storage,) = fields.store.of(self._field)
        return native().device_view(storage, self.ndim)

    def _exporting(self) -> FieldAccess:
        """Return the fields before an export, and note that other libraries may write to the field."""
        fields = self._living_fields()
        fields.store.is_exported = True
        fields.note_write_access(self._field)
        return fields

    def _living_fields(self) -> FieldAccess:
        """Return the fields of the simulation.

        Raises
        ------
        InputError
            The simulation no longer exists, or there is no view of the field any more.
        """
        fields = self._fields()
        if fields is None:
            raise InputError(
                f"the simulation of {self!r} no longer exists. Keep a reference to the simulation while you "
                "use its views."
            )
        fields.field_with_values(self._field)
        _check_exportable(fields, self._field)
        return fields


def _check_stream(stream: Any) -> None:
    """Raise InputError for a number that is no stream of CUDA in the numbering of DLPack."""
    is_number = isinstance(stream, int) and not isinstance(stream, bool)
    if stream is not None and (not is_number or stream < -1 or stream == 0):
        raise InputError(
            f"stream is {short_repr(stream)}; expected None, 1 (legacy default stream), 2 (default stream "
            "per thread), -1 (no synchronisation) or the address of a stream"
        )
