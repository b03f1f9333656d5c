"""Devices of a plan: their memory, and the kernels that are launched on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from halocline.compile.schedule import Loop, Scalars, Schedule, Stop, flat
from halocline.compile.strategy import Strategy
from halocline.native import native
from halocline.plan.devices import DeviceChoice, share_devices
from halocline.plan.launches import (
    Launch,
    SweepLaunches,
    constant_launches,
    has_literal_layouts,
    sweep_launches,
)
from halocline.plan.layout import Layout
from halocline.plan.rank import RankPlan, SubdomainPlan
from halocline.run.devices.devices import label, present_devices, shared_bytes, subdomain_bytes
from halocline.run.devices.topology import DeviceLinks, links_between
from halocline.run.domain.execution import Execution


@dataclass(frozen=True)
class DevicePlan:
    """Work of a rank on its devices.

    Attributes
    ----------
    interface : {"cuda", "opencl"}
    devices : list of dict
        Devices of the rank. `device`: "cuda:0", or "cuda" if the number is unknown. `name`: model; None if
        this machine does not have the device. `subdomains`: subdomains on the device. `ranks`: number of
        ranks that share the device. `memory_bytes`: memory of this rank on the device, namely fields with
        padded rows, scratch memory, message buffers, and small amounts of other data. `free_bytes`: free
        memory at the time of the call, or None. `literal_layouts`: True if the kernels are compiled for the
        size of the subdomains, see `halocline.plan.launches.has_literal_layouts`.
    unknown : str
        Reason for incomplete information about the requested devices; empty for complete information.
    strategy : str
        Mapping of threads to the cells of sweeps; see `halocline.compile.strategy.Strategy`.
    kernels : list of dict
        Kernels in each sweep of this rank. `sweep`: number of the sweep in `explain`, from 1. `kernel`: name.
        `over`: kind of the computed cells, "cells", "halo", "boundary", or "invariants" for the values in
        constant memory. `fields`: fields of the kernel.
        `block_shape` and `planes` apply to the largest launch. `block_shape`: size of a thread block along
        x, y, z of the device, the contiguous axis first. `planes`: number of planes that a thread visits.
        `launches` and `blocks`: numbers of launches and thread blocks in one execution, summed over all
        subdomains. `reductions`: number of reductions. `scratch`: True if the kernel uses scratch memory.
        `once`: True if the kernel runs only once, at the start of a run.
    launches : dict of str to int
        Numbers of launches in one pass of the loop, by kind. "cells": kernels of sweeps. "halo": kernels of
        sweeps in the halo. "boundary": boundary conditions. "invariants": kernels that compute values for
        constant memory before each sweep. "copy": copies, packing and unpacking of halos. "reductions": last
        stages of reductions. "scalars": scalars, stops and loop conditions. With one subdomain, the device
        computes scalars, stops and loop conditions without the host. With several subdomains, this number
        is 0.
    """

    interface: str
    devices: list[dict[str, Any]]
    unknown: str
    strategy: str
    kernels: list[dict[str, Any]]
    launches: Mapping[str, int]

    @property
    def memory(self) -> int:
        """Bytes of this rank on all its devices."""
        return sum(device["memory_bytes"] for device in self.devices)

    @property
    def present(self) -> tuple[Any, ...]:
        """Native device objects of the rank; empty if this machine does not have all devices of the plan."""
        native_devices = devices_here(self.interface)
        matches = [native_devices.get(device["device"]) for device in self.devices]
        return tuple(matches) if all(matches) else ()


Labels = tuple[tuple[str, ...], ...]  # names of the devices of each rank of a node


def planned_devices(choice: DeviceChoice, ranks_of_node: int) -> tuple[Labels, str]:
    """Return, for each rank of a node, the names of its devices, and the text for `DevicePlan.unknown`."""
    interface, native_devices = choice.interface, devices_here(choice.interface)
    names = [f"{interface}:{n}" for n in choice.indices]
    lacking = [name for name in names if name not in native_devices]
    if native_devices and not lacking:
        names = [
            f"{interface}:{n}"
            for n in choice.select_visible([device.platform for device in native_devices.values()])
        ]
    if not names:
        reason = native().why_no_devices(interface)
        return (
            ((interface,),) * ranks_of_node,
            f"this machine has no devices ({reason}), so the plan assumes one device per rank",
        )
    device_shares = share_devices(len(names), ranks_of_node)
    unknown = f"not on this machine: {', '.join(lacking)}" if lacking else ""
    return tuple(tuple(names[n] for n in numbers) for numbers in device_shares), unknown


def devices_here(interface: str) -> dict[str, Any]:
    """Return the native devices of this machine, by name."""
    return {label(device): device for device in present_devices(interface)}


def shared_here(interface: str, names: Iterable[str]) -> int:
    """Return the bytes of shared memory per thread block, for the named devices of this machine."""
    native_devices = devices_here(interface)
    return shared_bytes(interface, [native_devices[name] for name in names if name in native_devices])


def planned_links(interface: str, labels: Labels, subdomains_per_rank: int) -> DeviceLinks:
    """Return the links between devices; the distance is None if this machine lacks some of the devices."""
    native_devices = devices_here(interface)
    if any(name not in native_devices for names in labels for name in names):
        return DeviceLinks(
            None, "the links are unknown, because this machine does not have all of the devices"
        )
    identities = [[native_devices[name].identity for name in names] for names in labels]
    return links_between(identities, subdomains_per_rank, interface)


def ranks_of_node(layout: Layout, rank: int) -> list[int]:
    """Return the ranks on the node of a rank."""
    node = layout.node(rank)
    return [other for other in range(layout.ranks) if layout.node(other) == node]


def device_plan(
    schedule: Schedule, plan: RankPlan, execution: Execution, strategy: Strategy, labels: Labels, unknown: str
) -> DevicePlan:
    """Return the work of a rank on its devices, for kernels with a given strategy."""
    interface, subdomains_per_device = execution.devices.interface, execution.subdomains_per_rank
    device_names = labels[ranks_of_node(plan.layout, plan.rank).index(plan.rank)]
    native_devices = devices_here(interface)
    sharing = Counter(name for names in labels for name in set(names))
    devices = []
    for n, name in enumerate(device_names):
        subdomains = plan.subdomains[n * subdomains_per_device : (n + 1) * subdomains_per_device]
        native_device = native_devices.get(name)
        devices.append(
            {
                "device": name,
                "name": None if native_device is None else native_device.name,
                "subdomains": tuple(subdomain.number for subdomain in subdomains),
                "ranks": 1 if name == interface else sharing[name],
                "memory_bytes": sum(map(subdomain_bytes, subdomains)),
                "free_bytes": None if native_device is None else native_device.free_memory,
                "literal_layouts": has_literal_layouts(schedule, subdomains),
            }
        )
    return DevicePlan(
        interface, devices, unknown, str(strategy), *_kernels(schedule, plan, subdomains_per_device)
    )


def _kernels(
    schedule: Schedule, plan: RankPlan, subdomains_per_device: int
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the kernels of every sweep, and the number of launches of each kind in one pass of the loop."""
    names = [info.name for info in schedule.fields]
    launch_counts = dict.fromkeys(
        ("cells", "halo", "boundary", "invariants", "copy", "reductions", "scalars"), 0
    )
    device_of = {subdomain.number: n // subdomains_per_device for n, subdomain in enumerate(plan.subdomains)}
    of_pass, constants = schedule.pass_numbers(), constant_launches(schedule)
    kernels: list[dict[str, Any]] = []
    number = 0
    for n, sweep in enumerate(schedule.sweeps()):
        number += sweep.computes
        in_pass = of_pass.start <= n < of_pass.stop
        launches: dict[tuple[str, str], list[Launch]] = {}
        for subdomain in plan.subdomains:
            todo = subdomain.sweeps[n]
            sweep_plan = sweep_launches(schedule, sweep, subdomain, todo)
            by_kind = list(_by_kind(subdomain, sweep_plan))
            symbols = {launch.kernel.invariants for _, launch in by_kind}
            for launch in constants:
                if launch.kernel.invariants in symbols:
                    launches.setdefault((launch.kernel.name, "invariants"), []).append(launch)
            for over, launch in by_kind:
                launches.setdefault((launch.kernel.name, over), []).append(launch)
                launch_counts[over] += in_pass
            if in_pass:
                launch_counts["copy"] += sum(message.packed for message in (*todo.sends, *todo.receives))
                for source in {copy.subdomain for copy in todo.copies}:
                    # copies between devices of one rank are packed and unpacked
                    launch_counts["copy"] += 1 if device_of[source] == device_of[subdomain.number] else 2
                launch_counts["reductions"] += len(sweep_plan.partials)
        for (name, over), of_kernel in launches.items():
            largest = max(of_kernel, key=lambda launch: launch.cells.size)
            kernels.append(
                {
                    "sweep": number,
                    "kernel": name,
                    "over": over,
                    "fields": tuple(names[f] for f in dict.fromkeys(largest.kernel.operands)),
                    "block_shape": largest.block_shape,
                    "planes": largest.planes,
                    "launches": len(of_kernel),
                    "blocks": sum(launch.total_blocks for launch in of_kernel),
                    "reductions": len(largest.kernel.reductions),
                    "scratch": largest.kernel.scratch,
                    "once": largest in constants,
                }
            )
    if plan.decomposition.count == 1:
        loops = [operation for operation in schedule.operations if isinstance(operation, Loop)]
        inside = flat(loops or schedule.operations)
        launch_counts["scalars"] = sum(isinstance(operation, (Scalars, Stop, Loop)) for operation in inside)
    return kernels, launch_counts


def _by_kind(subdomain: SubdomainPlan, sweep_plan: SweepLaunches) -> Iterator[tuple[str, Launch]]:
    """Yield all launches in one subdomain, each with the kind of its cells."""
    for launch in sweep_plan.invariants:
        yield "invariants", launch
    for launch in (*sweep_plan.fills, *sweep_plan.rims):
        yield "boundary", launch
    for number, item in enumerate(sweep_plan.items):  # patches come first
        for launch in item.launches:
            yield ("cells" if number < len(subdomain.patches) else "halo"), launch
