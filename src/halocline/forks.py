"""Resources of a process that its forked children cannot use."""

from __future__ import annotations

import os

from halocline.errors import RunError

# These resources have threads or connections, which a fork does not copy.
MPI, DEVICES, STORES = "MPI", "a device", "TensorStore (output, checkpoints, stores)"

_in_use: set[str] = set()
_lost: set[str] = set()


def claim(resource: str) -> None:
    """Record that this process uses a resource. Forked children cannot use the resource.

    Parameters
    ----------
    resource : str
        MPI, DEVICES or STORES.

    Raises
    ------
    RunError
        The parent used the resource before it forked this process.
    """
    check(resource)
    _in_use.add(resource)


def check(resource: str) -> None:
    """Raise RunError if the parent used a resource before it forked this process."""
    if is_lost(resource):
        raise RunError(
            f"{resource} cannot be used in process {os.getpid()}, because its parent used it before the "
            'fork. Start processes by multiprocessing.set_start_method("spawn"), or before '
            f"the parent uses {resource}."
        )


def is_lost(resource: str) -> bool:
    """Return True if the parent used a resource before it forked this process."""
    return resource in _lost


def _forked() -> None:
    _lost.update(_in_use)


os.register_at_fork(after_in_child=_forked)
