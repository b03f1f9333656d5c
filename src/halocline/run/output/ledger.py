"""What a run has left on disk, and so may go on with: its checkpoints and its output."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline import __version__
from halocline.archive.arrays import GROUP
from halocline.archive.files import as_path, is_file
from halocline.archive.series import facts, last_owner
from halocline.archive.writer import Writing
from halocline.errors import InputError
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.lang.stepping import Recorded
from halocline.run.output import restart
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.checkpoint_folder import CheckpointFolder
from halocline.run.output.every import Every, warn_of_number
from halocline.run.output.output import Output, OutputStore
from halocline.run.output.restart import Resumable
from halocline.run.output.saved import Saved, newest
from halocline.run.output.statistics import PREFIX, Statistics
from halocline.run.ranks.communicator import Communicator
from halocline.words import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

log = logging.getLogger("halocline")


class Ledger:
    """What a run has left on disk. All ranks call its methods.

    Parameters
    ----------
    comm : Communicator

    Attributes
    ----------
    resumed : Saved or None
        The checkpoint that the run goes on from.
    run : str
        A name that no other run has, and one that goes on keeps; "" before it is to leave something.
    """

    def __init__(self, comm: Communicator) -> None:
        self.comm = comm
        self.resumed: Saved | None = None
        self.run = ""
        self._owners: dict[Path, str] = {}  # of stores

    def read(
        self,
        path: str | Path,
        grid: Grid,
        program: Program,
        parameters: Mapping[str, float],
        change: Collection[str] = (),
    ) -> tuple[Saved, dict[str, tuple[float, float]]]:
        """The newest checkpoint in a folder, and which parameters are changed.

        Parameters
        ----------
        parameters : mapping of str to float
            As they are given here.
        change : collection of str
            Those that may differ from what the checkpoint was left with.

        Raises
        ------
        InputError
            There is none, or one of another program or with other parameters.
        """
        with self.comm.agreement(f"read checkpoint {path}"):
            saved = Saved(newest(as_path(path, "resume"))) if self.comm.rank == 0 else None
        saved = self.comm.bcast(saved)
        assert saved is not None
        restart.check(saved, grid, program)
        restart.check_fields(saved, grid)
        if saved.facts["version"] != __version__ and self.comm.rank == 0:
            log.warning(
                "checkpoint %s was left by version %s of Halocline, this is %s: bits are the same only with "
                "the same version",
                saved.folder, saved.facts["version"], __version__,
            )  # fmt: skip
        return saved, restart.changed(saved, parameters, change)

    def resume(self, saved: Saved) -> None:
        """From now on the run is the one that left this checkpoint."""
        self.resumed, self.run, self._owners = saved, saved.facts["run"], {}

    def files(
        self,
        session: Resumable,
        title: str,
        parameters: Mapping[str, float],
        *,
        output: Output | Sequence[Output] | None = (),
        checkpoint: Checkpoint | None = None,
        also: Callable[[], Mapping[str, Any]] | None = None,
    ) -> RunFiles:
        """What a run writes, checked; nothing is changed on disk.

        Parameters
        ----------
        parameters : mapping of str to float
            As the run was given them.
        also : callable, optional
            Returns what else a checkpoint is to hold, for JSON.

        Raises
        ------
        InputError
            What cannot be; something else lies in the way.
        """
        given = _outputs_of(output)
        if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
            example = _example("hc.Checkpoint", checkpoint)
            raise InputError(f"checkpoint is {shown(checkpoint)}; expected an hc.Checkpoint{example}")
        every: list[Output | Checkpoint] = [*given, *([] if checkpoint is None else [checkpoint])]
        paths = [how.path for how in every]
        wanted = [(str(how.path), how.every, how.overwrite) for how in every]
        self.comm.check_same("output and checkpoints are", wanted, "all ranks must give the same")
        _check_apart(paths)
        self.run = self.run or self.comm.bcast(secrets.token_hex(8))
        outputs = self._outputs(given, session, title)
        checkpoints = None
        if checkpoint is not None:
            _check_every(f"checkpoint {checkpoint.path}", checkpoint.every, session)
            checkpoints = Checkpoints(checkpoint, session, parameters, self.run, also)
        files = RunFiles(self, outputs, checkpoints)
        files.check()
        return files

    def _outputs(
        self, given: Sequence[Output], session: Resumable, title: str
    ) -> list[tuple[OutputStore, Saved | None]]:
        """Stores, each with the checkpoint that it goes on from, where it has not begun since."""
        made: list[tuple[OutputStore, Saved | None]] = []
        taken = {*session.fields.grid.fields, *(self.resumed.facts["fields"] if self.resumed else ())}
        for how in given:
            path = Path(how.path).resolve()
            _check_every(f"output {how.path}", how.every, session)
            owner = self._owner(path, taken | {f"{PREFIX}{store.owner}_" for store, _ in made})
            store = OutputStore(
                how, session.fields, session.program, title,
                run=self.run, owner=owner, number=len(made), timed=session.timed,
            )  # fmt: skip
            if store.contents.statistics is not None and not session.timed:
                raise InputError(f"output {how.path} has statistics over time, but this program has no time")
            made.append((store, self.resumed if path not in self._owners else None))
        return made

    def _owner(self, path: Path, taken: Collection[str]) -> str:
        """The name of an output: the one that it had, or one that is free."""
        if path in self._owners:
            return self._owners[path]
        known = ""
        with self.comm.agreement(f"look at output {path}"):
            if self.comm.rank == 0 and is_file(path / GROUP):
                there = facts(path)
                if there.get("run") == self.run:
                    known = last_owner(there)
        known = self.comm.bcast(known)
        base = "".join(c if c.isalnum() else "_" for c in path.stem)
        names = (base if n == 1 else f"{base}_{n}" for n in range(1, len(taken) + 2))
        free = (n for n in names if not any(each.startswith(f"{PREFIX}{n}_") for each in taken))
        return known or next(free)

    def begun(self, files: RunFiles) -> None:
        """What these hold is this run's from now on."""
        for store, _ in files.stores:
            self._owners[store.path.resolve()] = store.owner


def _outputs_of(output: Any) -> list[Output]:
    """Return the outputs of a run as a list.

    Raises
    ------
    InputError
        The value is not an Output, and not a sequence of them.
    """
    if output is None or isinstance(output, Output):
        return [] if output is None else [output]
    if isinstance(output, (list, tuple)):
        wrong = [how for how in output if not isinstance(how, Output)]
        if not wrong:
            return list(output)
        output = wrong[0]
    example = _example("hc.Output", output)
    raise InputError(f"output is {shown(output)}; expected an hc.Output{example}, or a list of them")


def _example(kind: str, value: Any) -> str:
    """Return the call that a path stands for, as words of a message; empty for another value."""
    return f", such as {kind}({str(value)!r})" if isinstance(value, (str, Path)) else ""


def _check_apart(paths: Sequence[str | Path]) -> None:
    """Raise InputError where two of these folders are one, or one lies in the other."""
    whole = [Path(path).resolve() for path in paths]
    for n, path in enumerate(whole):
        for other, given in zip(whole[:n], paths[:n], strict=True):
            if path == other:
                raise InputError(f"{paths[n]} is to hold two things: give one of them another path")
            if path in other.parents or other in path.parents:
                raise InputError(f"{given} and {paths[n]} lie in each other: give each a folder of its own")


def _check_every(what: str, given: object, session: Resumable) -> None:
    """Raise InputError for an interval of simulated time where a program has none; warn of bare numbers."""
    if given is not None and Every.parse("every", given).time is not None and not session.timed:
        raise InputError(
            f"{what}: every is {given!r}, a time, but this program has none: give a number of steps, such as "
            'hc.steps(50), or wall-clock time, such as "30 min"'
        )
    if session.fields.domain.comm.rank == 0:
        warn_of_number(given)


def add_rows(recorded: Sequence[tuple[OutputStore, Recorded]], history: NDArray[Any]) -> None:
    """Add the numbers that steps have computed to outputs.

    Parameters
    ----------
    recorded : sequence of (OutputStore, Recorded)
    history : array (steps, 2 + numbers of all outputs)
        Time and step, and the numbers in the order of the outputs.
    """
    column = 2
    for store, wanted in recorded:
        rows = history[history[:, 1] % wanted.steps == 0]
        end = column + len(wanted.numbers)
        store.add(rows[:, 0], rows[:, 1], rows[:, column:end])
        column = end


class RunFiles:
    """What one run writes. All ranks call its methods.

    Attributes
    ----------
    stores : list of (OutputStore, Saved or None)
    outputs : list of OutputStore
    checkpoints : Checkpoints or None
    """

    def __init__(
        self,
        ledger: Ledger,
        stores: Sequence[tuple[OutputStore, Saved | None]],
        checkpoints: Checkpoints | None,
    ) -> None:
        self._ledger, self.stores, self.checkpoints = ledger, list(stores), checkpoints
        self.outputs = [store for store, _ in stores]
        if checkpoints is not None:
            checkpoints.outputs = self.outputs

    def check(self) -> None:
        """Look whether something lies in the way.

        Raises
        ------
        InputError
        """
        for store, saved in self.stores:
            store.check(saved)
        if self.checkpoints is not None:
            self.checkpoints.folder.check(self._ledger.run)

    @contextmanager
    def ready(self, step: int) -> Iterator[None]:
        """Make folders and stores, which no other process writes to meanwhile.

        Parameters
        ----------
        step : int
            Of the run now.

        Raises
        ------
        InputError, RunError
            They cannot be written to.
        """
        try:
            if self.checkpoints is not None:
                self.checkpoints.folder.lock()
            for store in self.outputs:
                store.lock()
            self.check()  # once more: what has come meanwhile is not to be lost
            for store in self.outputs:
                store.contents.prepare()
            if self.checkpoints is not None:
                self.checkpoints.folder.begin(self._ledger.run, self._ledger.resumed)
            for store, saved in self.stores:
                store.begin(step, saved)
            self._ledger.begun(self)
            yield
        finally:
            for store in self.outputs:
                store.close()
            if self.checkpoints is not None:
                self.checkpoints.folder.close()

    @property
    def statistics(self) -> list[Statistics]:
        """Of all outputs that have some."""
        found = [store.contents.statistics for store in self.outputs]
        return [each for each in found if each is not None]

    @property
    def recorded(self) -> list[tuple[OutputStore, Recorded]]:
        """Outputs of numbers that steps can compute, each with its numbers."""
        pairs = ((store, store.recorded) for store in self.outputs)
        return [(store, recorded) for store, recorded in pairs if recorded is not None]

    @property
    def writing(self) -> Writing:
        """What output and checkpoints took of the run."""
        parts = [store.writing for store in self.outputs]
        if self.checkpoints is not None:
            parts.append(self.checkpoints.folder.writing)
        return sum(parts, Writing())


class Checkpoints:
    """Checkpoints of a session. All ranks call its methods.

    Parameters
    ----------
    how : Checkpoint
    session : Resumable
    parameters : mapping of str to float
        As the run was given them.
    run : str
        Which run it is.
    also : callable, optional
        Returns what else a checkpoint is to hold, for JSON.

    Attributes
    ----------
    outputs : list of OutputStore
        What the run writes beside: a checkpoint is not the newest before all that they had until then is on
        disk, since a run that goes on from it does not write that again.
    """

    def __init__(
        self,
        how: Checkpoint,
        session: Resumable,
        parameters: Mapping[str, float],
        run: str,
        also: Callable[[], Mapping[str, Any]] | None,
    ) -> None:
        self.how, self.session, self.parameters = how, session, dict(parameters)
        self.folder = CheckpointFolder(how, session.fields.store)
        self.outputs: list[OutputStore] = []
        self._run, self._also = run, also
        self._before: list[int] = []  # times that outputs had when the last one was begun

    def write(self) -> None:
        """Begin to write one."""
        self.finish()
        session = self.session
        facts = restart.facts(session, self.parameters, {} if self._also is None else self._also())
        self._before = [store.count for store in self.outputs]
        rows = {store.owner: store.count for store in self.outputs}
        self.folder.write(session.step, session.state.fields, {**facts, "run": self._run, "rows": rows})

    def poll(self) -> None:
        """Name the one that is being written the newest, where it is whole by now."""
        if self.folder.whole and all(store.committed >= count for store, count in self._missing()):
            self.finish()

    def finish(self) -> None:
        """Wait until the one that is being written is whole, and name it the newest.

        Raises
        ------
        RunError
            It cannot be written, or output before it cannot: a run that went on from it would leave a gap
            there.
        """
        if not self.folder.open:
            return
        for store, _ in self._missing():
            store.finish()
        if lost := self._missing():
            self.folder.give_up(f"output {lost[0][0].path} before it could not be written")
        self.folder.finish()

    def _missing(self) -> list[tuple[OutputStore, int]]:
        """Outputs whose times before the checkpoint are not all on disk, and how many these are."""
        counts = zip(self.outputs, self._before, strict=False)
        return [(store, count) for store, count in counts if store.synced < count]

    def write_last(self) -> None:
        """Write a checkpoint of the present state, and wait until it is whole."""
        self.session.fields.check_all("before a checkpoint was written")
        self.write()
        self.finish()
