"""Findings on CUDA and OpenCL devices, their compilers, and the links between devices."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from halocline.cli.doctor.finding import Finding, native_code_loads, problem_and_advice
from halocline.errors import CompileError
from halocline.native import native
from halocline.run.devices.devices import label, present_devices
from halocline.run.host.machine import Machine
from halocline.words import counted

if TYPE_CHECKING:
    from halocline.run.devices.topology import Topology

# keys of a device in the JSON record, with the attributes of the native device object
FACTS = {
    **{
        name: name
        for name in ("interface", "index", "platform", "name", "driver", "identity", "architecture")
    },
    **{"memory": "memory", "local_memory": "local_memory", "largest_group": "max_threads_per_block"},
    **{"units": "units", "doubles": "doubles"},
}


def cuda(machine: Machine) -> Iterator[Finding]:
    """Yield findings on CUDA devices, the compiler of their kernels, and the links between them."""
    devices = yield from _devices("cuda", "CUDA")
    yield nvrtc(is_required=bool(devices))
    if not devices:
        yield Finding("NVML", "absent", "not queried, because only links between CUDA devices need it")
        return
    from halocline.run.devices.topology import read_topology

    topology, reason = read_topology([device.identity for device in devices])
    if topology is None:
        text, _, advice = reason.partition("; ")
        yield Finding("NVML", "missing", f"{text}; all links are treated as equal", advice)
        return
    yield Finding("NVML", "found", f"driver {topology.driver}", facts=asdict(topology))
    if len(devices) > 1:
        yield _links(topology, [label(device) for device in devices])


def nvrtc(is_required: bool) -> Finding:
    """Return the finding on the compiler of kernels for CUDA devices."""
    from halocline.compile.nvrtc import find_nvrtc

    try:
        library = find_nvrtc()
    except CompileError as error:
        if not is_required:
            return Finding("NVRTC", "absent", "not found, but only CUDA devices need it")
        return Finding("NVRTC", "missing", *problem_and_advice(error))
    architectures = f"sm_{min(library.architectures)} to sm_{max(library.architectures)}"
    return Finding("NVRTC", "found", f"{'.'.join(map(str, library.version))}, compiles for {architectures}")


def _links(topology: Topology, names: Sequence[str]) -> Finding:
    """Return the finding on the bandwidths between devices."""
    from halocline.run.devices.topology import bandwidths, link

    places = range(len(names))
    rates = [
        [None if a == b else rate for b, rate in enumerate(row)] for a, row in enumerate(bandwidths(topology))
    ]
    kinds = {link(topology, a, b) for a in places for b in places if a < b}
    wide = max(8, *map(len, names)) + 2
    lines = [
        "GB/s in one direction, while all devices send",
        " " * wide + "".join(f"{n:>{wide}}" for n in names),
    ]
    for name, row in zip(names, rates, strict=True):
        cells = ("–" if rate is None else f"{rate / 1e9:.1f}" for rate in row)
        lines.append(f"{name:{wide}}" + "".join(f"{cell:>{wide}}" for cell in cells))
    for kind in sorted(kinds, key=lambda kind: (-kind.bandwidth, kind.kind)):
        lines.append(f"{kind.bandwidth / 1e9:.1f}: {kind.kind}")
    equal = len({kind.bandwidth for kind in kinds}) == 1
    order = "in order, since all links are equal" if equal else "by these links"
    lines.append(f"subdomains are placed on devices {order}")
    return Finding("links", "found", "\n".join(lines), facts={"devices": list(names), "bandwidth": rates})


def opencl(machine: Machine) -> Iterator[Finding]:
    """Yield findings on OpenCL devices."""
    yield from _devices("opencl", "OpenCL")


def _devices(interface: str, title: str) -> Generator[Finding, None, list[Any]]:
    """Yield a finding for each device of an interface. The first call loads the library of the interface."""
    if not native_code_loads():
        return []
    try:
        devices = present_devices(interface)
    except RuntimeError as error:
        yield Finding(title, "missing", *problem_and_advice(error))
        return []
    if not devices:
        yield Finding(title, "absent", native().why_no_devices(interface) or "no devices")
        return []
    platforms = list(dict.fromkeys(device.platform for device in devices))
    selection = "" if len(platforms) == 1 else f" selects the platform {platforms[0]}"
    yield Finding(title, "found", f"{counted(len(devices), 'device')}, --device {interface}{selection}")
    for device in devices:
        facts = {name: getattr(device, attribute) for name, attribute in FACTS.items()}
        model = [device.name, device.platform if len(platforms) > 1 else "", device.architecture]
        sizes = [f"{device.memory / 1e9:.1f} GB", counted(device.units, "compute unit")]
        doubles = "float64" if device.doubles else "no float64 with multiply-add (required by all runs)"
        parts = [*model, *sizes, doubles, f"driver {device.driver}"]
        yield Finding(label(device), "found", ", ".join(filter(None, parts)), facts=facts)
    return devices


def mpi_with_devices(machine: Machine) -> Iterator[Finding]:
    """Yield the finding on MPI with device memory. Only a run can verify that MPI supports device memory."""
    text = "not tested here: at its start, a run with --device tests MPI with a small message"
    yield Finding("MPI with devices", "absent", text)
