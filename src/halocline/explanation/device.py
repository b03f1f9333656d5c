"""What a plan means on devices: which ones, their memory, and the kernels that are launched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from halocline.compile.schedule import Loop, Scalars, Schedule, Stop, flat
from halocline.compile.strategy import Strategy
from halocline.native import native
from halocline.plan.devices import DeviceChoice, share_devices
from halocline.plan.launches import Launch, SweepLaunches, sweep_launches
from halocline.plan.layout import Layout
from halocline.plan.rank import RankPlan, SubdomainPlan
from halocline.run.devices.devices import label, present_devices, shared_bytes, subdomain_bytes
from halocline.run.devices.topology import DeviceLinks, links_between
from halocline.run.domain.execution import Execution


@dataclass(frozen=True)
class DevicePlan:
    """What the rank does on its devices.

    Attributes
    ----------
    interface : {"cuda", "opencl"}
    devices : list of dict
        The devices that the rank drives. `device`: "cuda:0", or "cuda" where its number is not known; `name`
        of the model, None where this machine does not have it; `subdomains` that lie there; `ranks` that
        share it; `memory_bytes` that this rank takes: fields with padded rows, scratch memory and buffers of
        messages, and little more; `free_bytes` of its memory now, or None.
    unknown : str
        Why not all that is asked for is known here; empty where it is.
    strategy : str
        How threads go through the cells of sweeps; see `halocline.compile.strategy.Strategy`.
    kernels : list of dict
        Each kernel in each sweep of this rank. `sweep`: its number in `explain`, from 1; `kernel`; `over`:
        "cells", "halo" or "boundary"; `fields` that it is given. Of the largest launch: `group`, the threads
        of a thread block along x, y, z of the device, the contiguous axis first, and `march`, the cells that
        a thread computes in sequence. Of all subdomains, each time: `launches` and `groups`. `reductions` is
        a number, and `scratch` true where the kernel uses scratch memory.
    launches : dict of str to int
        In one pass of the loop: of "cells", "halo" and "boundary" kernels, of those that "copy", pack and
        unpack halos, of those that finish "reductions", and, where there is one subdomain, so that the
        device runs ahead of the host, of those that compute "scalars", stops and the tests of loops.
    """

    interface: str
    devices: list[dict[str, Any]]
    unknown: str
    strategy: str
    kernels: list[dict[str, Any]]
    launches: Mapping[str, int]

    @property
    def memory(self) -> int:
        """Bytes that the rank takes on all its devices."""
        return sum(device["memory_bytes"] for device in self.devices)

    @property
    def present(self) -> tuple[Any, ...]:
        """The native devices; empty where not all are on this machine."""
        there = devices_here(self.interface)
        found = [there.get(planned["device"]) for planned in self.devices]
        return tuple(found) if all(found) else ()


Labels = tuple[tuple[str, ...], ...]  # names of the devices of each rank of a node


def planned_devices(choice: DeviceChoice, ranks_of_node: int) -> tuple[Labels, str]:
    """Return the devices of each rank of a node that has the requested devices, and `DevicePlan.unknown`."""
    interface, there = choice.interface, devices_here(choice.interface)
    names = [f"{interface}:{n}" for n in choice.indices]
    lacking = [name for name in names if name not in there]
    if there and not lacking:
        names = [f"{interface}:{n}" for n in choice.among([device.platform for device in there.values()])]
    if not names:
        why = native().why_no_devices(interface)
        return (
            ((interface,),) * ranks_of_node,
            f"one device is planned for each rank, since there is none on this machine ({why})",
        )
    shared = share_devices(len(names), ranks_of_node)
    unknown = f"not on this machine: {', '.join(lacking)}" if lacking else ""
    return tuple(tuple(names[n] for n in numbers) for numbers in shared), unknown


def devices_here(interface: str) -> dict[str, Any]:
    """The native devices of this machine, by name."""
    return {label(device): device for device in present_devices(interface)}


def shared_here(interface: str, names: Iterable[str]) -> int:
    """Bytes that the threads of a group can share on those of these devices that are on this machine."""
    there = devices_here(interface)
    return shared_bytes([there[name] for name in names if name in there])


def planned_links(interface: str, labels: Labels, subdomains_per_rank: int) -> DeviceLinks:
    """How these devices are linked, where all are on this machine."""
    there = devices_here(interface)
    if any(name not in there for names in labels for name in names):
        return DeviceLinks(None, "their links are not known, since not all are on this machine")
    identities = [[there[name].identity for name in names] for names in labels]
    return links_between(identities, subdomains_per_rank, interface)


def ranks_of_node(layout: Layout, rank: int) -> list[int]:
    """The ranks of the node of a rank."""
    node = layout.node(rank)
    return [other for other in range(layout.ranks) if layout.node(other) == node]


def device_plan(
    schedule: Schedule, plan: RankPlan, how: Execution, strategy: Strategy, labels: Labels, unknown: str
) -> DevicePlan:
    """What a rank does on devices, with kernels of a strategy."""
    interface, each = how.devices.interface, how.subdomains_per_rank
    mine = labels[ranks_of_node(plan.layout, plan.rank).index(plan.rank)]
    there = devices_here(interface)
    sharing = Counter(name for names in labels for name in set(names))
    devices = []
    for n, name in enumerate(mine):
        subdomains = plan.subdomains[n * each : (n + 1) * each]
        native_device = there.get(name)
        devices.append(
            {
                "device": name,
                "name": None if native_device is None else native_device.name,
                "subdomains": tuple(subdomain.number for subdomain in subdomains),
                "ranks": 1 if name == interface else sharing[name],
                "memory_bytes": sum(map(subdomain_bytes, subdomains)),
                "free_bytes": None if native_device is None else native_device.free_memory,
            }
        )
    return DevicePlan(interface, devices, unknown, str(strategy), *_kernels(schedule, plan, each))


def _kernels(
    schedule: Schedule, plan: RankPlan, subdomains_per_device: int
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the kernels of every sweep, and how often which kinds are launched in one pass of the loop."""
    names = [info.name for info in schedule.fields]
    launched = dict.fromkeys(("cells", "halo", "boundary", "copy", "reductions", "scalars"), 0)
    device_of = {subdomain.number: n // subdomains_per_device for n, subdomain in enumerate(plan.subdomains)}
    of_pass = schedule.pass_numbers()
    kernels: list[dict[str, Any]] = []
    number = 0
    for n, sweep in enumerate(schedule.sweeps()):
        number += sweep.computes
        in_pass = of_pass.start <= n < of_pass.stop
        launches: dict[tuple[str, str], list[Launch]] = {}
        for subdomain in plan.subdomains:
            todo = subdomain.sweeps[n]
            planned = sweep_launches(schedule, sweep, subdomain, todo)
            for over, launch in _by_kind(subdomain, planned):
                launches.setdefault((launch.kernel.name, over), []).append(launch)
                launched[over] += in_pass
            if in_pass:
                launched["copy"] += sum(message.packed for message in (*todo.sends, *todo.receives))
                for source in {copy.subdomain for copy in todo.copies}:
                    # copies between devices of one rank are packed and unpacked
                    launched["copy"] += 1 if device_of[source] == device_of[subdomain.number] else 2
                launched["reductions"] += len(planned.partials)
        for (name, over), of_kernel in launches.items():
            largest = max(of_kernel, key=lambda launch: launch.cells.size)
            kernels.append(
                {
                    "sweep": number,
                    "kernel": name,
                    "over": over,
                    "fields": tuple(names[f] for f in dict.fromkeys(largest.kernel.operands)),
                    "group": largest.group,
                    "march": largest.march,
                    "launches": len(of_kernel),
                    "groups": sum(launch.number_of_groups for launch in of_kernel),
                    "reductions": len(largest.kernel.reductions),
                    "scratch": largest.kernel.scratch,
                }
            )
    if plan.decomposition.count == 1:
        loops = [operation for operation in schedule.operations if isinstance(operation, Loop)]
        inside = flat(loops or schedule.operations)
        launched["scalars"] = sum(isinstance(operation, (Scalars, Stop, Loop)) for operation in inside)
    return kernels, launched


def _by_kind(subdomain: SubdomainPlan, planned: SweepLaunches) -> Iterator[tuple[str, Launch]]:
    """Yield all launches in one subdomain, each with what it runs over."""
    for launch in (*planned.fills, *planned.rims):
        yield "boundary", launch
    for number, item in enumerate(planned.items):  # patches come first
        for launch in item.launches:
            yield ("cells" if number < len(subdomain.patches) else "halo"), launch
