"""Two nodes on one machine, in network namespaces."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from halocline.run.ranks.launch import mpiexec
from hang import HANG

PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))  # with the folders of `ip`
ADDRESSES = ("10.77.0.1", "10.77.0.2")

# Namespaces last as long as this process, and the process as long as its input is open. UCX searches /sys for
# devices; /sys shows those of the namespace in which it was mounted.
HOLD = """
mount -t sysfs sysfs /sys && echo node > /proc/sys/kernel/hostname && ip link set lo up && echo made &&
exec cat
"""
OWN = ("--net", "--uts", "--mount")  # namespaces of one node
# the user namespace of both nodes, in which any user may create the others
AROUND = ("--user", "--preserve-credentials")


class Node:
    """Namespaces of a node, held by a process; the second node is in the first's user namespace."""

    def __init__(self, first: Node | None = None) -> None:
        user = (
            ["unshare", "--user", "--map-root-user"] if first is None else [*first.enter(*AROUND), "unshare"]
        )
        self.holder = subprocess.Popen(
            [*user, *OWN, "sh", "-c", HOLD],
            env={**os.environ, "PATH": PATH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.holder.stdout is not None
        self.is_available = self.holder.stdout.readline() == "made\n"

    def enter(self, *namespaces: str) -> list[str]:
        """Return the start of a command that runs in these namespaces."""
        return ["nsenter", f"--target={self.holder.pid}", *namespaces]

    def run(self, command: str) -> str:
        """Run a shell command in these namespaces and return its output."""
        process = subprocess.run(
            [*self.enter(*AROUND, *OWN), "sh", "-c", command],
            env={**os.environ, "PATH": PATH},
            capture_output=True,
            text=True,
            timeout=HANG,
        )
        if process.returncode != 0:
            raise OSError(f"{command}: {process.stderr.strip()}")
        return process.stdout

    def end(self) -> str:
        """End the namespaces and return the errors of their holder."""
        return self.holder.communicate(timeout=HANG)[1].strip()


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node]]:
    """Yield two nodes with one address each."""
    for tool in ("ip", "unshare", "nsenter"):
        if shutil.which(tool, path=PATH) is None:
            pytest.skip(f"there is no command {tool}")
    if not (mpiexec().parent / "hydra_pmi_proxy").exists():
        pytest.skip("this MPI is not started by MPICH's Hydra")
    with contextlib.ExitStack() as at_the_end:
        created: list[Node] = []
        for _ in ADDRESSES:
            created.append(Node(*created))
            at_the_end.callback(created[-1].holder.wait, HANG)
            at_the_end.callback(created[-1].holder.kill)
            if not created[-1].is_available:
                pytest.skip(f"no namespaces may be made here: {created[-1].end()}")
        one, two = created
        try:
            one.run(f"ip link add halo type veth peer name halo netns {two.holder.pid}")
            for node, address in zip(created, ADDRESSES, strict=True):
                node.run(f"ip address add {address}/24 dev halo && ip link set halo up")
        except OSError as error:
            pytest.skip(f"namespaces cannot be joined here: {error}")
        end = time.monotonic() + HANG
        while any(node.run("cat /sys/class/net/halo/operstate") != "up\n" for node in created):
            assert time.monotonic() < end
            time.sleep(0.05)
        yield one, two


@pytest.fixture
def run(nodes: tuple[Node, Node], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a script on ranks.

    Half of the ranks are on each node; a single rank runs outside of the namespaces.
    """
    one, two = nodes
    cases = (f"{ADDRESSES[0]}) enter=;;", f"{ADDRESSES[1]}) enter='{' '.join(two.enter(*OWN))}';;")
    remote = tmp_path / "remote"
    remote.write_text(
        "#!/bin/sh\nhost=$2\nshift 2\ncase $host in\n" + "\n".join(cases) + '\nesac\nexec $enter sh -c "$*"\n'
    )
    remote.chmod(0o755)
    hosts = tmp_path / "hosts"
    hydra = {"HOST_FILE": str(hosts), "LAUNCHER": "ssh", "LAUNCHER_EXEC": str(remote), "IFACE": "halo"}
    tcp = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "halo", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "halo"}

    def start(text: str, ranks: int) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "case.py"
        script.write_text(text)
        hosts.write_text("".join(f"{address}:{max(ranks // 2, 1)}\n" for address in ADDRESSES))
        command = [sys.executable, "-m", "halocline.cli", "run", str(script), "--ranks", str(ranks)]
        environment = os.environ | tcp | {f"HYDRA_{name}": value for name, value in hydra.items()}
        return subprocess.run(
            [*(one.enter(*AROUND, *OWN) if ranks > 1 else ()), *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG,
        )

    return start
