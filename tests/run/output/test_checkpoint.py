"""Checkpoints of a run: their completion, their number, and the run to which they belong."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import halocline as hc
from courses import heat, raises, steps_of
from halocline.archive.arrays import Writer
from halocline.errors import InputError
from halocline.run.output import restart as checkpoints
from hang import HANG
from suites import cases

# -- order of writes to the disk -----------------------------------------------------------------------------


@contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch, folder: str) -> Iterator[threading.Event]:
    """Suspend writers of a store until an event is set."""
    may, wait = threading.Event(), Writer.finish

    def held(self: Writer) -> list[int]:
        """Return the indices of the suspended chunks."""
        return [index for _, index, _, array in self._pending if folder in str(array.folder)]

    def finish(self: Writer) -> None:
        if held(self):
            may.wait(HANG)
        wait(self)

    done, first_open = Writer.done.fget, Writer.first_open.fget
    assert done is not None
    assert first_open is not None

    def is_done(self: Writer) -> bool:
        return (may.is_set() or not held(self)) and done(self)

    def first(self: Writer) -> int | None:
        return first_open(self) if may.is_set() else next(iter(held(self)), first_open(self))

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "finish", finish)
        patch.setattr(Writer, "done", property(is_done))
        patch.setattr(Writer, "first_open", property(first))
        yield may


def test_a_checkpoint_is_published_after_earlier_output_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint is published after earlier outputs, since a restarted run does not write them again."""
    sim, named = heat(), []

    def look(sim: hc.Simulation) -> None:
        named.append((sim.steps, (tmp_path / "checkpoints" / "newest.json").exists()))
        if sim.steps == 20:
            may.set()
        time.sleep(0.05)

    with held_up(monkeypatch, "T.zarr") as may:
        sim.run(
            steps=30, every=hc.steps(2), callback=look,
            output=hc.Output(tmp_path / "T.zarr", every=hc.steps(10)),
            checkpoint=hc.Checkpoint(tmp_path / "checkpoints", every=hc.steps(12)),
        )  # fmt: skip
    assert [is_published for step, is_published in named if step <= 20] == [False] * 10
    assert named[-1] == (30, True)
    assert checkpoints.Saved(checkpoints.newest(tmp_path / "checkpoints")).facts["step"] == 30
    assert steps_of(tmp_path / "T.zarr") == [0, 10, 20, 30]


def test_a_checkpoint_contains_the_notes_of_its_step(tmp_path: Path) -> None:
    """A checkpoint contains the notes of its step, although the run and its notes continue meanwhile."""
    sim, steps = heat(), []
    sim.notes = lambda: {"seen": steps}
    sim.run(
        steps=9, every=hc.steps(1), callback=lambda sim: steps.append(sim.steps),
        checkpoint=hc.Checkpoint(tmp_path, every=hc.steps(2), keep=9),
    )  # fmt: skip
    for folder in checkpoints.folders(tmp_path):
        facts = checkpoints.Saved(folder).facts
        assert facts["seen"] == list(range(1, facts["step"] + 1))


@cases("keep", [1, 4, 6], default=[4])
def test_the_requested_number_of_checkpoints_is_kept(keep: int, tmp_path: Path) -> None:
    heat().run(steps=9, checkpoint=hc.Checkpoint(tmp_path, every=hc.steps(1), keep=keep))
    steps = [int(folder.name.split("-")[1]) for folder in checkpoints.folders(tmp_path)]
    assert steps == list(range(10 - keep, 10))
    again = heat()
    again.resume(tmp_path)
    again.run(steps=3, checkpoint=hc.Checkpoint(tmp_path, every=hc.steps(1), keep=keep))
    steps = [int(folder.name.split("-")[1]) for folder in checkpoints.folders(tmp_path)]
    assert steps == list(range(13 - keep, 13))


def test_two_runs_cannot_write_to_one_folder(tmp_path: Path) -> None:
    first, messages = heat(), []

    def second(sim: hc.Simulation) -> None:
        other = heat()
        for options in (
            {"output": hc.Output(tmp_path / "T.zarr", overwrite=True)},
            {"checkpoint": hc.Checkpoint(tmp_path / "checkpoints", overwrite=True)},
        ):
            with pytest.raises(
                InputError, match=rf"process {os.getpid()} on \S+ is writing there. Wait"
            ) as caught:
                other.run(steps=1, **options)
            messages.append(str(caught.value))

    options = {
        "output": hc.Output(tmp_path / "T.zarr", every=hc.steps(1), overwrite=True),
        "checkpoint": hc.Checkpoint(tmp_path / "checkpoints", every=hc.steps(1), overwrite=True),
    }
    for _ in range(2):  # the second time with files to overwrite
        messages.clear()
        first = heat()
        first.run(steps=4, every=hc.steps(2), callback=second, **options)
        assert len(messages) == 4
        assert steps_of(tmp_path / "T.zarr") == [0, 1, 2, 3, 4]
    heat().run(steps=1, **options)


# -- regression tests ----------------------------------------------------------------------------------------


def newest_step(path: Path) -> int:
    return int(checkpoints.Saved(checkpoints.newest(path)).facts["step"])


def test_truncated_output_is_not_continued_from_a_later_checkpoint(tmp_path: Path) -> None:
    def output(name: str = "T.zarr") -> hc.Output:
        return hc.Output(tmp_path / name, every=hc.steps(1))

    heat().run(steps=15, output=output(), checkpoint=hc.Checkpoint(tmp_path / "c", every=hc.steps(5), keep=9))
    folders = {int(folder.name.split("-")[1]): folder for folder in checkpoints.folders(tmp_path / "c")}
    again = heat()
    again.resume(folders[5])
    again.run(steps=2, output=output())  # without a checkpoint, as after a kill
    later = heat()
    later.resume(folders[15])
    message = r"contains 8 output times up to step 15, but the checkpoint expects 16\."
    with pytest.raises(InputError, match=message):
        later.run(steps=1, output=output())
    # if checkpoints are in the same folder, the one of the restart becomes the newest immediately
    again = heat()
    again.resume(folders[5])
    with pytest.raises(ValueError, match="now"):
        again.run(
            steps=9, every=hc.steps(1), callback=raises(ValueError("now")), output=output(),
            checkpoint=hc.Checkpoint(tmp_path / "c", every=hc.steps(5), keep=9),
        )  # fmt: skip
    assert newest_step(tmp_path / "c") == 5


def test_the_last_checkpoint_contains_the_end_of_the_run(tmp_path: Path) -> None:
    """The last checkpoint includes the changes of the last callback, and values set after the last run."""
    checkpoint = hc.Checkpoint(tmp_path, every=hc.steps(5), keep=99)

    def warm(sim: hc.Simulation) -> None:
        if sim.steps == 10:
            sim["T"] = 10.0

    sim = heat()
    sim.run(steps=10, every=hc.steps(5), callback=warm, checkpoint=checkpoint)
    again = heat()
    again.resume(tmp_path)
    assert (again["T"] == 10.0).all()
    sim.run(steps=3)
    sim["T"] = 7.0
    sim.run(steps=0, checkpoint=checkpoint)
    again.resume(tmp_path)
    assert (again.steps, again["T"].max()) == (13, 7.0)


def test_checkpoints_belong_to_a_run_and_not_to_a_folder(tmp_path: Path) -> None:
    heat().run(steps=3, checkpoint=hc.Checkpoint(tmp_path / "one"))
    heat().run(steps=5, checkpoint=hc.Checkpoint(tmp_path / "two"))
    three, five = (checkpoints.newest(tmp_path / name) for name in ("one", "two"))
    five.rename(tmp_path / "one" / five.name)
    sim = heat()
    sim.resume(three)
    with pytest.raises(InputError, match=f"holds checkpoints of another run; the newest is {five.name}"):
        sim.run(steps=1, checkpoint=hc.Checkpoint(tmp_path / "one"))
    # the checkpoints are complete without a pointer too
    (tmp_path / "one" / "newest.json").unlink()
    with pytest.raises(InputError, match="holds checkpoints of another run"):
        heat().run(steps=1, checkpoint=hc.Checkpoint(tmp_path / "one"))
    with pytest.raises(InputError, match="is itself a checkpoint or a store; expected a folder"):
        sim.run(steps=1, checkpoint=hc.Checkpoint(three))
    sim.run(steps=1, checkpoint=hc.Checkpoint(tmp_path / "one", overwrite=True))
    assert [int(folder.name.split("-")[1]) for folder in checkpoints.folders(tmp_path / "one")] == [3, 4]


def test_nothing_is_overwritten_if_another_file_is_locked(tmp_path: Path) -> None:
    outputs = [hc.Output(tmp_path / f"{n}.zarr", every=hc.steps(1), overwrite=True) for n in (1, 2)]
    checkpoint = hc.Checkpoint(tmp_path / "c", overwrite=True)
    heat().run(steps=3, output=outputs, checkpoint=checkpoint)
    steps_during_run = []

    def second(sim: hc.Simulation) -> None:
        with pytest.raises(InputError, match="is writing there"):
            heat().run(steps=1, output=outputs, checkpoint=checkpoint)
        steps_during_run.append(steps_of(tmp_path / "1.zarr"))
        assert newest_step(tmp_path / "c") == 3

    heat().run(steps=1, output=outputs[1], callback=second)
    assert steps_during_run == [[0, 1, 2, 3]]
