"""A Slurm for tests whose nodes are all on this host, each with its own port of the loopback interface.

Its daemons (munged, slurmctld, slurmd) run in the foreground, as the user of the tests, and listen on the
loopback interface only. Configuration, key, state, logs and sockets are in one temporary folder: nothing is
read from /etc/slurm or /etc/munge, and no file remains.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hang import HANG

DAEMONS = ("munged", "slurmctld", "slurmd")
PROGRAMS = (*DAEMONS, "sbatch", "scancel", "sinfo", "squeue", "srun")
PACKAGES = "slurmctld slurmd slurm-client munge"  # of Debian
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"])
PR_SET_PDEATHSIG = 1  # prctl(2)

# Nodes of clusters differ from this one in the tracking of jobs (cgroups) and in the binding of tasks to
# cores. config_overrides: the node has the given number of CPUs, independent of the machine. OverTimeLimit:
# jobs of one minute are not killed after it, since on a busy machine the start of a run may take that long.
CONFIGURATION = """\
ClusterName=halocline
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
OverTimeLimit=5
KillWait=10
{nodes}
PartitionName=test Nodes=ALL Default=YES MaxTime=60 State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """A running Slurm.

    Attributes
    ----------
    folder : Path
        Folder of all files of this Slurm.
    environment : dict of str to str
        Environment of its commands, without the variables of an outer Slurm job in which the tests may run.
    """

    folder: Path
    environment: dict[str, str]

    def call(self, *command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command of this Slurm, with `more` in its environment."""
        return subprocess.run(
            [str(part) for part in command],
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG,
        )

    def jobs(self) -> list[str]:
        """Return the waiting and running jobs."""
        return self.call("squeue", "--noheader", "--format=%i").stdout.split()


def missing() -> list[str]:
    """Return the required programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


@contextlib.contextmanager
def slurm_of(count: int = 1, cpus: int = 4) -> Iterator[Slurm]:
    """Start a Slurm, wait until all nodes are idle, and stop it at the end.

    Each node has the given number of CPUs. The first node has the name of this host.

    Raises
    ------
    RuntimeError
        A daemon ended, or the node was not ready within HANG seconds; the message contains their output.
    """
    host = socket.gethostname().split(".")[0]
    user = pwd.getpwuid(os.geteuid()).pw_name
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)  # a short path: a socket's path has at most 107 characters
        folder.chmod(0o755)  # munge's socket must be open to all
        key = folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        controller, *ports = _free_ports(1 + count)
        names = [host, *(f"{host}-{number}" for number in range(2, count + 1))]
        for part in ("state", *(f"spool/{name}" for name in names)):
            (folder / part).mkdir(parents=True)
        nodes = "\n".join(
            f"NodeName={name} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} State=UNKNOWN"
            for name, port in zip(names, ports, strict=True)
        )
        (folder / "slurm.conf").write_text(CONFIGURATION.format(**locals()))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        environment = inherited | {"PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}
        slurm = Slurm(folder, environment)
        with contextlib.ExitStack() as stack:
            stack.callback(_kill_remaining_processes, slurm)
            files = [
                f"--{option}={folder}/munge.{end}"
                for option, end in (("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"))
            ]
            files += [f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"]
            daemons = [stack.enter_context(_daemon(slurm, "munged", "--foreground", *files))]
            _wait(slurm, daemons, (folder / "munge.socket").exists)
            daemons.append(stack.enter_context(_daemon(slurm, "slurmctld", "-D")))
            daemons += [stack.enter_context(_daemon(slurm, "slurmd", "-D", "-N", node)) for node in names]
            _wait(slurm, daemons, lambda: _states(slurm) == ["idle"] * count)
            stack.callback(_cancel, slurm)
            yield slurm


def _free_ports(count: int) -> list[int]:
    """Return unused ports of the loopback interface."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for endpoint in sockets:
            endpoint.bind(("127.0.0.1", 0))
        return [endpoint.getsockname()[1] for endpoint in sockets]


@contextlib.contextmanager
def _daemon(slurm: Slurm, name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    prctl = ctypes.CDLL(None).prctl
    with (slurm.folder / f"{name}{options[-1].replace('/', '-')}.out").open("wb") as out:
        daemon = subprocess.Popen(
            [str(shutil.which(name, path=PATH)), *options],
            env=slurm.environment,
            cwd=slurm.folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM),  # if the tests are killed
        )
    try:
        yield daemon
    finally:
        daemon.terminate()
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _states(slurm: Slurm) -> list[str]:
    return slurm.call("sinfo", "--noheader", "--Node", "--format=%T").stdout.split()


def _wait(slurm: Slurm, daemons: list[subprocess.Popen[bytes]], ready: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG
    while not ready():
        if time.monotonic() > end or any(daemon.poll() is not None for daemon in daemons):
            logs = "".join(
                f"\n--- {file.name} ---\n{file.read_text(errors='replace')[-2000:]}"
                for file in sorted([*slurm.folder.glob("*.out"), *slurm.folder.glob("*.log")])
            )
            raise RuntimeError(f"Slurm does not start here{logs}")
        time.sleep(0.2)


def _cancel(slurm: Slurm) -> None:
    """Cancel all jobs: they do not end with the daemons."""
    end = time.monotonic() + HANG
    while time.monotonic() < end and (jobs := slurm.jobs()):
        slurm.call("scancel", *jobs)
        time.sleep(0.5)


def _kill_remaining_processes(slurm: Slurm) -> None:
    """Kill the processes of jobs that survive the daemons."""
    mark = f"SLURM_CONF={slurm.environment['SLURM_CONF']}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
            if mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
