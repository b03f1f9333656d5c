"""Files of a run: its output, its checkpoints, and the checkpoint from which it was resumed."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from halocline import __version__
from halocline.archive.arrays import GROUP, WritingCost
from halocline.archive.files import as_path, is_file
from halocline.archive.reader import facts
from halocline.archive.series import last_owner
from halocline.errors import InputError
from halocline.lang.stepping import Recorded
from halocline.run.fields.session import Session
from halocline.run.host.process import command_line
from halocline.run.output import restart
from halocline.run.output.checkpoint import Checkpoint, Checkpoints
from halocline.run.output.every import Every, warn_of_number
from halocline.run.output.output import PREFIX, Output, Statistics
from halocline.run.output.output_store import OutputStore
from halocline.run.output.restart import Saved, newest
from halocline.run.ranks.communicator import Communicator
from halocline.words import short_repr

log = logging.getLogger("halocline")


class Ledger:
    """Record of the files of a run. All methods are collective.

    Parameters
    ----------
    comm : Communicator

    Attributes
    ----------
    resumed : Saved or None
        Checkpoint from which the run was resumed.
    run : str
        Unique identifier of the run, which a resumed run retains; empty before the run writes files.
    writing : WritingCost
        Cost of output and checkpoints so far.
    """

    def __init__(self, comm: Communicator) -> None:
        self.comm, self.writing, self._command = comm, WritingCost(), command_line()
        self.start_new_run()

    def start_new_run(self) -> None:
        """Begin a new run, without a checkpoint and without files."""
        self.resumed: Saved | None = None
        self.run = ""
        self._owners: dict[Path, str] = {}  # output name of each store that this run has begun

    def read(
        self,
        path: str | Path,
        session: Session,
        parameters: Mapping[str, float],
        change: Collection[str] = (),
    ) -> tuple[Saved, dict[str, tuple[float, float]]]:
        """Return the newest checkpoint in a folder, and the changed parameters with old and new values.

        Parameters
        ----------
        parameters : mapping of str to float
            Parameters of this run.
        change : collection of str
            Parameters that may differ from those of the checkpoint.

        Raises
        ------
        InputError
            The checkpoint does not exist, is damaged, or belongs to another program or other parameters.
        """
        with self.comm.agreement(f"read checkpoint {path}"):
            saved = Saved(newest(as_path(path, "resume"))) if self.comm.rank == 0 else None
        saved = self.comm.bcast(saved)
        assert saved is not None
        restart.check(saved, session)
        if saved.facts["version"] != __version__ and self.comm.rank == 0:
            log.warning(
                "checkpoint %s was written by version %s of Halocline, but this is version %s: results are "
                "bit-for-bit identical only with the same version",
                saved.folder, saved.facts["version"], __version__,
            )  # fmt: skip
        changes = restart.changed_parameters(saved, parameters, change)
        with self.comm.agreement(f"read checkpoint {path}"):
            if self.comm.rank == 0:
                saved.check_arrays()
        return saved, changes

    def resume(self, saved: Saved) -> None:
        """Continue the run of this checkpoint."""
        self.resumed, self.run, self._owners = saved, saved.facts["run"], {}

    def files(
        self,
        session: Session,
        title: str,
        parameters: Mapping[str, float],
        *,
        output: Output | Sequence[Output] | None = (),
        checkpoint: Checkpoint | None = None,
        extra_facts: Callable[[], Mapping[str, Any]] | None = None,
    ) -> RunFiles:
        """Check the declared files of a run, and return them. Change nothing on disk.

        Parameters
        ----------
        parameters : mapping of str to float
            Parameters of the run, set by the user.
        extra_facts : callable, optional
            Function that returns further facts for checkpoints, as JSON data.

        Raises
        ------
        InputError
            An output or the checkpoints cannot be written as declared, or conflict with other files.
        """
        declared_outputs = _outputs_of(output)
        if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
            example = _example("hc.Checkpoint", checkpoint)
            raise InputError(f"checkpoint is {short_repr(checkpoint)}; expected an hc.Checkpoint{example}")
        declarations: list[Output | Checkpoint] = [
            *declared_outputs,
            *([] if checkpoint is None else [checkpoint]),
        ]
        declared_facts = [
            (str(declaration.path), declaration.every, declaration.overwrite) for declaration in declarations
        ]
        self.comm.check_same("output and checkpoints are", declared_facts, "all ranks must give the same")
        _check_disjoint([declaration.path for declaration in declarations])
        self.run = self.run or self.comm.bcast(secrets.token_hex(8))
        outputs = self._outputs(declared_outputs, session, title)
        checkpoints = None
        if checkpoint is not None:
            _check_every(f"checkpoint {checkpoint.path}", checkpoint.every, session)
            checkpoints = Checkpoints(
                checkpoint, session, parameters, outputs, extra_facts,
                run=self.run, command=self._command, resumed=self.resumed,
            )  # fmt: skip
        files = RunFiles(self, outputs, checkpoints)
        files.check()
        return files

    def _outputs(self, declared_outputs: Sequence[Output], session: Session, title: str) -> list[OutputStore]:
        """Return the stores of outputs, each with the checkpoint from which it continues."""
        stores: list[OutputStore] = []
        used_names = {*session.fields.grid.fields, *(self.resumed.facts["fields"] if self.resumed else ())}
        for declaration in declared_outputs:
            path = Path(declaration.path).resolve()
            _check_every(f"output {declaration.path}", declaration.every, session)
            owner = self._owner(path, used_names | {f"{PREFIX}{store.owner}_" for store in stores})
            store = OutputStore(
                declaration, session, title,
                run=self.run, command=self._command, owner=owner, number=len(stores),
                saved=None if path in self._owners else self.resumed,
            )  # fmt: skip
            if store.contents.statistics is not None and not session.has_time_step:
                raise InputError(
                    f"output {declaration.path} has statistics over time, but this program has no time"
                )
            stores.append(store)
        return stores

    def _owner(self, path: Path, used_names: Collection[str]) -> str:
        """Return the name of the output that wrote the store at `path`, or an unused name."""
        if path in self._owners:
            return self._owners[path]
        stored_name = ""
        with self.comm.agreement(f"inspect output {path}"):
            if self.comm.rank == 0 and is_file(path / GROUP):
                stored_facts = facts(path)
                if stored_facts.get("run") == self.run:
                    stored_name = last_owner(stored_facts)
        stored_name = self.comm.bcast(stored_name)
        base = "".join(c if c.isalnum() else "_" for c in path.stem)
        names = (base if n == 1 else f"{base}_{n}" for n in range(1, len(used_names) + 2))
        unused = (n for n in names if not any(name.startswith(f"{PREFIX}{n}_") for name in used_names))
        return stored_name or next(unused)

    def note_started_outputs(self, outputs: Sequence[OutputStore]) -> None:
        """Record that this run has begun these outputs."""
        self._owners |= {store.path.resolve(): store.owner for store in outputs}


def _outputs_of(output: Any) -> list[Output]:
    """Return the outputs of a run as a list.

    Raises
    ------
    InputError
        The value is neither an Output nor a sequence of outputs.
    """
    if output is None or isinstance(output, Output):
        return [] if output is None else [output]
    if isinstance(output, (list, tuple)):
        invalid = [declaration for declaration in output if not isinstance(declaration, Output)]
        if not invalid:
            return list(output)
        output = invalid[0]
    example = _example("hc.Output", output)
    raise InputError(f"output is {short_repr(output)}; expected an hc.Output{example}, or a list of them")


def _example(kind: str, value: Any) -> str:
    """Return an example of the correct call, for messages, if `value` is a path; otherwise an empty text."""
    return f", such as {kind}({str(value)!r})" if isinstance(value, (str, Path)) else ""


def _check_disjoint(paths: Sequence[str | Path]) -> None:
    """Raise InputError if two folders are equal, or one contains the other."""
    resolved_paths = [Path(path).resolve() for path in paths]
    for n, path in enumerate(resolved_paths):
        for other, other_path in zip(resolved_paths[:n], paths[:n], strict=True):
            if path == other:
                raise InputError(
                    f"{paths[n]} is the path of two outputs or checkpoints. Choose different paths."
                )
            if path in other.parents or other in path.parents:
                raise InputError(
                    f"one of the folders {other_path} and {paths[n]} contains the other. Use "
                    "separate folders."
                )


def _check_every(label: str, interval: object, session: Session) -> None:
    """Raise InputError for an interval of simulated time in a program without time; warn of an integer."""
    if interval is not None and Every.parse("every", interval).time is not None and not session.has_time_step:
        raise InputError(
            f"{label}: every={interval!r} is a simulated time, but this program has no time. Use a "
            'number of steps, such as hc.steps(50), or a wall-clock time, such as "30 min"'
        )
    if interval is not None and session.fields.domain.comm.rank == 0:
        warn_of_number(interval)


def add_rows(recorded: Sequence[tuple[OutputStore, Recorded]], history: NDArray[Any]) -> None:
    """Append to the outputs the rows of numbers that the steps have computed.

    Parameters
    ----------
    recorded : sequence of (OutputStore, Recorded)
    history : array (steps, 2 + numbers of all outputs)
        One row per recorded step: time, step, and the numbers in the order of the outputs.
    """
    column = 2
    for store, numbers in recorded:
        rows = history[history[:, 1] % numbers.steps == 0]
        end = column + len(numbers.numbers)
        store.add(rows[:, [0, 1, *range(column, end)]])
        column = end


class RunFiles:
    """Files that one run writes. All methods are collective.

    Attributes
    ----------
    outputs : list of OutputStore
    checkpoints : Checkpoints or None
    stores : list of OutputStore or Checkpoints
        Outputs and checkpoints.
    """

    def __init__(
        self, ledger: Ledger, outputs: Sequence[OutputStore], checkpoints: Checkpoints | None
    ) -> None:
        self._ledger, self.outputs, self.checkpoints = ledger, list(outputs), checkpoints
        self.stores: list[OutputStore | Checkpoints] = [*outputs]
        if checkpoints is not None:
            self.stores.append(checkpoints)

    def check(self) -> None:
        """Raise InputError if files on disk conflict with the files of this run."""
        for store in self.stores:
            store.check()

    @contextmanager
    def ready(self, step: int) -> Iterator[None]:
        """Prepare folders and stores, and exclude other processes from writing until the block ends.

        Parameters
        ----------
        step : int
            Current step of the run.

        Raises
        ------
        InputError, RunError
            A folder cannot be written to.
        """
        try:
            for store in self.stores:
                store.lock()
            self.check()  # another process may have written before the lock
            for output in self.outputs:
                output.contents.prepare()
            # checkpoints first, because outputs remove rows of later steps
            for store in reversed(self.stores):
                store.begin(step)
            self._ledger.note_started_outputs(self.outputs)
            yield
        finally:
            for store in self.stores:
                store.close()
            self._ledger.writing += self.writing

    @property
    def statistics(self) -> list[Statistics]:
        """Statistics over time of all outputs."""
        return [s for output in self.outputs if (s := output.contents.statistics) is not None]

    @property
    def recorded(self) -> list[tuple[OutputStore, Recorded]]:
        """Pairs of an output and its numbers, for all outputs whose numbers the steps can compute.

        These outputs contain only numbers, at an interval of steps.
        """
        return [(output, r) for output in self.outputs if (r := output.recorded) is not None]

    @property
    def writing(self) -> WritingCost:
        """Cost of output and checkpoints in the run."""
        return sum((store.writing for store in self.stores), WritingCost())
