"""Two emulated nodes on one machine, joined by a wire of limited rate.

The nodes are namespaces, and the wire is a veth pair with a token bucket. The kernel delays bytes as a slow
network does, so that messages take time but almost no core.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ADDRESSES = ("10.78.0.1", "10.78.0.2")
PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
OWN = ("--net", "--uts", "--mount")  # namespaces of each node
# namespace of both nodes, in which any user may create the others
AROUND = ("--user", "--preserve-credentials")
HOLD = "mount -t sysfs sysfs /sys && hostname node && ip link set lo up && echo made && exec cat"


def _node(*within: str) -> subprocess.Popen[str]:
    """Return a process that holds the namespaces of a node."""
    holder = subprocess.Popen(
        [*within, "unshare", *(() if within else ("--user", "--map-root-user")), *OWN, "sh", "-c", HOLD],
        env={**os.environ, "PATH": PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    if holder.stdout.readline() != "made\n":
        raise OSError("no namespaces can be made here")
    return holder


def _enter(node: subprocess.Popen[str], *namespaces: str) -> list[str]:
    return ["nsenter", f"--target={node.pid}", *namespaces]


@contextlib.contextmanager
def wire(rate: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield the command before mpiexec, and its environment, for one rank on each node.

    Parameters
    ----------
    rate : str
        Rate of the wire in the form of `tc`.

    Raises
    ------
    OSError
        If this machine cannot create such nodes.
    """
    with contextlib.ExitStack() as after:
        nodes: list[subprocess.Popen[str]] = []
        for _ in ADDRESSES:
            nodes.append(_node(*(_enter(nodes[0], *AROUND) if nodes else ())))
            after.callback(nodes[-1].wait)
            after.callback(nodes[-1].kill)
        lines = [f"ip link add halo type veth peer name halo netns {nodes[1].pid}"]
        set_up = "ip address add {}/24 dev halo && ip link set halo mtu 9000 up && "
        set_up += f"tc qdisc add dev halo root tbf rate {rate} burst 256kb limit 64mb"
        for node, line in [
            (nodes[0], lines[0]),
            *((node, set_up.format(address)) for node, address in zip(nodes, ADDRESSES, strict=True)),
        ]:
            command = [*_enter(node, *AROUND, *OWN), "sh", "-c", line]
            if subprocess.run(command, env={**os.environ, "PATH": PATH}, check=False).returncode:
                raise OSError(f"the nodes cannot be joined here: {line}")
        time.sleep(1)  # until the link is up
        folder = Path(after.enter_context(tempfile.TemporaryDirectory()))
        remote, hosts = folder / "remote", folder / "hosts"
        other = " ".join(_enter(nodes[1], *OWN))
        remote.write_text(
            "#!/bin/sh\nhost=$2\nshift 2\nenter=\n"
            f'[ $host = {ADDRESSES[1]} ] && enter="{other}"\nexec $enter sh -c "$*"\n'
        )
        remote.chmod(0o755)
        hosts.write_text("".join(f"{address}:1\n" for address in ADDRESSES))
        yield (
            _enter(nodes[0], *AROUND, *OWN),
            {
                "HYDRA_HOST_FILE": str(hosts),
                "HYDRA_LAUNCHER": "ssh",
                "HYDRA_LAUNCHER_EXEC": str(remote),
                "HYDRA_IFACE": "halo",
                "UCX_TLS": "tcp,self",
                "UCX_NET_DEVICES": "halo",
                "FI_PROVIDER": "tcp",
                "FI_TCP_IFACE": "halo",
            },
        )
