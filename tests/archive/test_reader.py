"""Stores with lost or wrong files: every reader returns the true values or names the damaged file.

No reader returns fill values in place of data, and none leaves temporary files.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.archive.files import remove_folder
from halocline.archive.reader import Store, folder_bytes
from halocline.errors import InputError, RunError
from halocline.io import listing, vtk
from halocline.io.export import export
from halocline.io.listing import described
from halocline.io.views import Selection, view
from halocline.run.output.restart import folders, newest
from halocline.run.simulation import course

EXAMPLES = 25
OUTPUTS = ("fields.zarr", "numbers.zarr", "points.zarr")


def simulation() -> hc.Simulation:
    grid = hc.Grid((9, 12), extent=(1.0, 2.0))
    grid.field("T", boundary=hc.Derivative(0.0))
    grid.field("v", location="face-x", boundary=hc.Derivative(0.0))
    return hc.Simulation(grid, lambda T, v: {T: -T, v: -v}, scheme=hc.Euler(), dt=0.1, threads=1)


def outputs(sim: hc.Simulation, path: Path) -> list[hc.Output]:
    T = sim.grid.fields["T"]
    points = hc.Points([(0.1, 0.3), (0.7, 1.2)])
    return [
        hc.Output(path / "fields.zarr", every=hc.steps(1)),
        hc.Output(path / "numbers.zarr", {"total": hc.sum(T), "most": hc.max(T)}, every=hc.steps(1)),
        hc.Output(path / "points.zarr", {"T": T}, every=hc.steps(1), region=points),
    ]


def values(path: Path) -> dict[str, np.ndarray]:
    """Return all values of all arrays of a store."""
    store = Store(path)
    return {name: store.read_all(name) for name in sorted(store.arrays)}


class Intact:
    """Stores without damage, and the results of the readers."""

    def __init__(self, path: Path) -> None:
        self.path, self.sim = path, simulation()
        for name in ("T", "v"):
            points = self.sim.grid.fields[name].points
            self.sim[name] = np.random.default_rng(3).uniform(1.0, 2.0, size=points)
        self.sim.run(steps=2, output=outputs(self.sim, path), checkpoint=hc.Checkpoint(path / "checkpoints"))
        saved = str(newest(path / "checkpoints").relative_to(path))
        self.names = (*OUTPUTS, saved)
        self.checksum = self.sim.checksum("T")
        self.truth = {name: values(path / name) for name in self.names}
        self.listed = {name: summary(path / name) for name in self.names}
        self.exported = {}
        for name in ("fields.zarr", saved):
            export(Store(path / name), path / "out" / name / "a.vtr")
            self.exported[name] = files(path / "out" / name)
        self.drawn = {}
        for name in OUTPUTS[:2]:
            view(Store(path / name), path / "out" / "a.png", Selection())
            self.drawn[name] = (path / "out" / "a.png").read_bytes()
        shutil.copytree(path, path / "copy")
        self.append(path / "copy")
        self.after = {name: values(path / "copy" / name) for name in OUTPUTS}

    def append(self, path: Path) -> None:
        """Resume the run, and append to its output."""
        self.sim.resume(path / "checkpoints")
        self.sim.run(steps=2, output=outputs(self.sim, path))


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Intact:
    return Intact(tmp_path_factory.mktemp("intact"))


def summary(path: Path) -> dict[str, Any]:
    """Return the data in a listing of a store."""
    result = described(path)
    for array in result["arrays"].values():
        array.pop("bytes"), array.pop("chunk", None)
    return {key: result.get(key) for key in ("kind", "step", "time", "times", "steps", "arrays")}


def files(path: Path) -> dict[str, bytes]:
    """Return the content of all files below a folder, by name; entries that are not files are empty."""
    paths = sorted(path.rglob("*"))
    return {str(file.relative_to(path)): file.read_bytes() if file.is_file() else b"" for file in paths}


# -- damages -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LostChunk:
    """Damage of a chunk or the folder of an array: it is removed, changed or replaced."""

    kind: str
    number: int
    place: float

    def __call__(self, path: Path) -> None:
        chunks = sorted(path.glob("*/c.*"))
        file = chunks[self.number % len(chunks)]
        content = bytearray(file.read_bytes())
        at = int(self.place * len(content))
        if self.kind == "cut":
            file.write_bytes(content[:at])
        elif self.kind == "bit":
            content[at] ^= 4
            file.write_bytes(content)
        elif self.kind == "array":
            replaced(file.parent, file.parent.symlink_to)
        else:
            make: dict[str, Callable[[Path], None]] = {
                "remove": lambda _: None,
                "dangling": lambda _: file.symlink_to("nowhere"),
                "escaping": file.symlink_to,
                "folder": lambda _: file.mkdir(),
                "pipe": lambda _: os.mkfifo(file),
            }
            replaced(file, make[self.kind])


def replaced(file: Path, make: Callable[[Path], None]) -> None:
    """Move a file or folder out of the store, and put a replacement there."""
    moved_file = Path(tempfile.mkdtemp(dir=file.parent.parent.parent)) / file.name
    file.rename(moved_file)
    make(moved_file)


@dataclass(frozen=True)
class ChangedMetadata:
    """Damage of a metadata file: it is removed, cut or replaced, or one value in it is changed."""

    kind: str
    number: int
    place: int
    value: Any

    def __call__(self, path: Path) -> None:
        metadata_files = [path / "zarr.json", *sorted(path.glob("*/zarr.json"))]
        file = metadata_files[self.number % len(metadata_files)]
        text = file.read_text()
        if self.kind in ("change", "remove key"):
            tree = json.loads(text)
            places = list(paths_in(tree))
            *way, last = places[self.place % len(places)]
            inner = tree
            for key in way:
                inner = inner[key]
            if self.kind == "change":
                inner[last] = self.value
            else:
                del inner[last]
            file.write_text(json.dumps(tree))
        elif self.kind == "cut":
            file.write_text(text[: self.place % len(text)])
        else:
            file.unlink()
            if self.kind == "dangling":
                file.symlink_to("nowhere")
            elif self.kind == "folder":
                file.mkdir()


def paths_in(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a JSON tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from paths_in(value, (*at, key))


@dataclass(frozen=True)
class ChangedEverywhere:
    """Damage of a shape or chunk shape in both an array and its group, which no comparison detects."""

    key: str
    number: int
    size: int

    def __call__(self, path: Path) -> None:
        metadata_files = sorted(path.glob("*/zarr.json"))
        name = metadata_files[self.number % len(metadata_files)].parent.name
        group = json.loads((path / "zarr.json").read_text())
        array = group["consolidated_metadata"]["metadata"][name]
        if self.key == "shape":
            array["shape"] = [*array["shape"][:-1], self.size]
        else:
            array["chunk_grid"]["configuration"]["chunk_shape"] = [self.size] * len(array["shape"])
        (path / name / "zarr.json").write_text(json.dumps(array))
        (path / "zarr.json").write_text(json.dumps(group))


JSON = [
    None, 0, 3, -1, 1.5, True, "x", "NaN", "float32", "/", [], [0], [1, 9, 24], {}, 10**6, 10**18, 10**30,
    [10**6, 10**6], {"name": "x"},
]  # fmt: skip
NUMBERS = st.integers(0, 20)
KINDS = ("remove", "cut", "bit", "dangling", "escaping", "folder", "pipe", "array")
damages = st.one_of(
    st.builds(LostChunk, st.sampled_from(KINDS), NUMBERS, st.floats(0, 0.99)),
    st.builds(
        ChangedMetadata,
        st.sampled_from(["change", "remove key", "remove", "cut", "dangling", "folder"]),
        NUMBERS, st.integers(0, 10**4), st.sampled_from(JSON),
    ),
    st.builds(
        ChangedEverywhere,
        st.sampled_from(["shape", "chunk"]),
        NUMBERS, st.sampled_from([1, 30, 10**4, 10**6, 10**9, 10**15]),
    ),
)  # fmt: skip


# -- readers -------------------------------------------------------------------------------------------------


@contextmanager
def damaged(intact: Intact, name: str, damage: Callable[[Path], None]) -> Iterator[Path]:
    """Yield copies of the stores, one of them damaged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for store in (*OUTPUTS, "checkpoints"):
            shutil.copytree(intact.path / store, path / store)
        damage(path / name)
        yield path
        assert not list(path.rglob(".making-*"))


@contextmanager
def error_names(path: Path) -> Iterator[None]:
    """Accept an InputError only if it names the store."""
    try:
        yield
    except InputError as error:
        if path.name not in str(error):
            raise AssertionError(f"{path} is not named") from error


def same(actual: dict[str, np.ndarray], truth: dict[str, np.ndarray]) -> None:
    assert actual.keys() == truth.keys()
    for name, expected_values in truth.items():
        np.testing.assert_array_equal(actual[name], expected_values, strict=True)


@settings(max_examples=EXAMPLES)
@given(damages, st.integers(0, 3))
def test_damaged_values_are_never_returned_or_listed(intact: Intact, damage: Any, number: int) -> None:
    name = intact.names[number]
    with damaged(intact, name, damage) as path:
        with error_names(path / name):
            same(values(path / name), intact.truth[name])
        with error_names(path / name):
            assert summary(path / name) == intact.listed[name]


@settings(max_examples=EXAMPLES)
@given(damages, st.sampled_from([0, 3]))
def test_damaged_values_are_never_exported_or_set(intact: Intact, damage: Any, number: int) -> None:
    name = intact.names[number]
    with damaged(intact, name, damage) as path:
        out = path / "out"
        with error_names(path / name):
            export(Store(path / name), out / "a.vtr")
            assert files(out) == intact.exported[name]
        intact.sim["T"] = 0.0
        with error_names(path / name):
            intact.sim["T"] = path / name / "T"
            assert intact.sim.checksum("T") == intact.checksum


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_chunk_of_any_array_is_named(intact: Intact, kind: str) -> None:
    """The array may be one of coordinates, times or step numbers, which have no NaN as a fill value."""
    name, refused = "points.zarr", set()
    for number in range(len(intact.truth[name])):
        with damaged(intact, name, LostChunk(kind, number, 0.5)) as path:
            for array_name in intact.truth[name]:
                try:
                    Store(path / name).read_all(array_name)
                except InputError as error:
                    assert f"{name}/{array_name}" in str(error)  # noqa: PT017
                    refused.add(array_name)
    assert refused == {"T", "step", "time", "x", "y"}


def test_an_empty_chunk_is_reported(intact: Intact, tmp_path: Path) -> None:
    """Readers, listings and appending runs name the empty chunk, and write nothing."""
    for store in (*OUTPUTS, "checkpoints"):
        shutil.copytree(intact.path / store, tmp_path / store)
    (tmp_path / "fields.zarr" / "T" / "c.1.0.0").write_bytes(b"")
    words = r"T is damaged: its chunk c\.1\.0\.0 is empty \(time index 1\)\."
    before = files(tmp_path)
    for use in (
        lambda: described(tmp_path / "fields.zarr"),
        lambda: Store(tmp_path / "fields.zarr").read("T", 1),
        lambda: export(Store(tmp_path / "fields.zarr"), tmp_path / "a.pvd"),
        lambda: intact.append(tmp_path),
    ):
        with pytest.raises(InputError, match=words):
            use()
        assert files(tmp_path) == before


@pytest.mark.parametrize("lose", [Path.unlink, Path.touch], ids=["lost", "empty"])
def test_a_damaged_time_does_not_hide_the_others(intact: Intact, tmp_path: Path, lose: Any) -> None:
    path = tmp_path / "fields.zarr"
    shutil.copytree(intact.path / "fields.zarr", path)
    for name in ("T", "v"):
        file = path / name / "c.0.0.0"
        file.unlink()
        if lose is Path.touch:
            file.touch()
    count = len(intact.truth["fields.zarr"]["time"])
    store = Store(path)
    for n in range(1, count):
        np.testing.assert_array_equal(store.read("T", n), intact.truth["fields.zarr"]["T"][n])
        view(Store(path), tmp_path / "a.png", Selection(names=["T"], time=0.1 * n))
    export(store, tmp_path / "a.vtr")
    for use in (
        lambda: store.read("T", 0),
        lambda: store.open("T"),
        lambda: store.read_all("T"),
        lambda: view(Store(path), tmp_path / "b.png", Selection(names=["T"], time=0.0)),
        lambda: export(store, tmp_path / "a.pvd"),
    ):
        with pytest.raises(InputError, match=r"chunk c\.0\.0\.0 is (missing|empty) \(time index 0\)\."):
            use()
    assert not (tmp_path / "b.png").exists()
    assert not (tmp_path / "a.pvd").exists()


@pytest.mark.parametrize("at", ["Saved", "_check", "folder_bytes"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_listing_omits_checkpoints_under_removal(
    intact: Intact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, number: int
) -> None:
    """A run may remove a checkpoint at any moment, but only after a newer one is named."""
    path = tmp_path / "checkpoints"
    shutil.copytree(intact.path / "checkpoints", path)
    (old,) = folders(path)
    new = path / "step-000000000009-00000000"
    shutil.copytree(old, new)
    (path / "newest.json").write_text(json.dumps({"checkpoint": (old, new)[number].name}))
    removed, remaining = (old, new) if number == 0 else (new, old)
    original = getattr(listing, at)

    def hook(path_or_store: Any) -> Any:
        if removed.exists() and removed.name in str(getattr(path_or_store, "path", path_or_store)):
            (path / "newest.json").write_text(json.dumps({"checkpoint": remaining.name}))
            remove_folder(removed, "zarr.json")
        return original(path_or_store)

    monkeypatch.setattr(listing, at, hook)
    result = described(path)
    assert not removed.exists()
    assert result["problem"] is None
    assert [
        (checkpoint["name"], checkpoint["whole"], checkpoint["newest"])
        for checkpoint in result["checkpoints"]
    ] == [(remaining.name, True, True)]


def test_folders_that_vanish_have_no_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/b", "c/d"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"123")
    original = os.scandir

    def scandir(path: Any = ".") -> Any:
        if str(path).endswith(("/a", "/c")):
            shutil.rmtree(tmp_path / "a", ignore_errors=True)
        return original(path)

    assert folder_bytes(tmp_path) == 6
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        assert folder_bytes(tmp_path) == 3
    assert not (tmp_path / "a").exists()


@settings(max_examples=EXAMPLES // 2)
@given(damages, st.integers(0, 3))
def test_runs_never_resume_from_damaged_values(intact: Intact, damage: Any, number: int) -> None:
    """A run that cannot resume changes nothing on disk."""
    name = intact.names[number]
    with damaged(intact, name, damage) as path:
        before = files(path)
        with error_names(path / name):
            intact.append(path)
            before = {}
            for store in OUTPUTS:
                same(values(path / store), intact.after[store])
        assert before in ({}, files(path))


@settings(max_examples=EXAMPLES // 12)
@example(LostChunk("remove", 2, 0.0), 0)
@example(LostChunk("dangling", 0, 0.0), 1)
@example(ChangedEverywhere("chunk", 0, 10**6), 0)
@given(damages, st.integers(0, 1))
def test_damaged_values_are_never_drawn(intact: Intact, damage: Any, number: int) -> None:
    name = intact.names[number]
    with damaged(intact, name, damage) as path, error_names(path / name):
        view(Store(path / name), path / "a.png", Selection())
        assert (path / "a.png").read_bytes() == intact.drawn[name]


# -- during a run --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["remove", "cut", "dangling"])
def test_rows_lost_during_a_run_end_the_run(
    intact: Intact, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New rows rewrite the chunk of a time series, which must not replace lost rows by fill values."""
    monkeypatch.setattr(course, "PUBLISH", 0.0)
    file = tmp_path / "numbers.zarr" / "total" / "c.0"

    def lose(sim: hc.Simulation) -> None:
        if sim.steps == 3:
            LostChunk(kind, sorted(tmp_path.glob("numbers.zarr/*/c.*")).index(file), 0.5)(file.parent.parent)

    sim = simulation()
    with pytest.raises(RunError, match=r"numbers\.zarr/total.*c\.0") as caught:
        sim.run(steps=6, every=hc.steps(1), callback=lose, output=outputs(sim, tmp_path)[1])
    assert {
        "remove": "is missing (time index 0 to 3)",
        "cut": "nothing was written",
        "dangling": "is a link",
    }[kind] in str(caught.value)
    assert not (kind == "remove" and file.exists())


def test_missing_chunks_of_rewritten_rows_are_no_error(intact: Intact, tmp_path: Path) -> None:
    """A run that resumes at step 2 writes the rows of later steps again."""
    for store in (*OUTPUTS, "checkpoints"):
        shutil.copytree(intact.path / "copy" / store, tmp_path / store)
    (tmp_path / "fields.zarr" / "T" / "c.4.0.0").unlink()
    with pytest.raises(InputError, match=r"T is damaged: its chunk c\.4\.0\.0 is missing \(time index 4\)\."):
        Store(tmp_path / "fields.zarr").read("T")
    intact.append(tmp_path)
    same(values(tmp_path / "fields.zarr"), intact.after["fields.zarr"])


def test_checkpoints_of_earlier_versions_are_read(intact: Intact, tmp_path: Path) -> None:
    """The group of an earlier checkpoint repeats no metadata of arrays, and has no digest."""
    shutil.copytree(intact.path / "checkpoints", tmp_path / "c")
    file = newest(tmp_path / "c") / "zarr.json"
    group = json.loads(file.read_text())
    del group["consolidated_metadata"], group["attributes"]["halocline"]["digest"]
    file.write_text(json.dumps(group))
    intact.sim.resume(tmp_path / "c")
    assert intact.sim.checksum("T") == intact.checksum
    (file.parent / "T" / "c.0.0").unlink()
    with pytest.raises(InputError, match=r"T is damaged: its chunk c\.0\.0 is missing"):
        intact.sim.resume(tmp_path / "c")


DELETED = object()
WRONG_FACTS = [None, -1, 1.5, True, "0x1p99999", [], {}, 10**30, DELETED]


def test_every_changed_metadata_entry_of_a_checkpoint_is_an_input_error(
    intact: Intact, tmp_path: Path
) -> None:
    """Without the digest, as in checkpoints of earlier versions, each fact is checked by itself."""
    shutil.copytree(intact.path / "checkpoints", tmp_path / "c")
    file = newest(tmp_path / "c") / "zarr.json"
    whole = json.loads(file.read_text())
    del whole["attributes"]["halocline"]["digest"]
    places = list(paths_in(whole["attributes"]["halocline"]))
    rejected = {}
    for number, (*way, last) in enumerate(places):
        for value in (WRONG_FACTS[number % len(WRONG_FACTS)], "x"):
            group = json.loads(json.dumps(whole))
            inner = group["attributes"]["halocline"]
            for key in way:
                inner = inner[key]
            if value is DELETED:
                del inner[last]
            else:
                inner[last] = value
            file.write_text(json.dumps(group))
            with suppress(InputError):
                described(file.parent)
            try:
                intact.sim.resume(tmp_path / "c")
            except InputError as error:
                rejected[*way, last, str(value)] = str(error)
    assert len(places) > 20
    assert {"time", "step", "values", "scalars", "fields"} <= {way[0] for way in rejected}
    numbers = whole["attributes"]["halocline"]["values"].keys()
    assert numbers
    for name in numbers:
        words = f"zarr.json is damaged: values.{name}: Input should be a hexadecimal number"
        assert words in rejected["values", name, "x"]
    intact.sim.resume(intact.path / "checkpoints")


# -- failed writes -------------------------------------------------------------------------------------------


FULL = OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("suffix", "error"),
    [
        (".pvd", MemoryError),
        (".vtr", FULL),
        (".xdmf", KeyboardInterrupt),
        (".xdmf", FULL),
    ],
)
def test_a_failed_export_leaves_no_files(
    intact: Intact, suffix: str, error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read, done = Store(intact.path / "fields.zarr"), Store.read, []

    def failing(self: Store, name: str, *rest: Any) -> Any:
        done.append(name)
        if name == "v":  # T has already been written
            raise error
        return read(self, name, *rest)

    monkeypatch.setattr(Store, "read", failing)
    with pytest.raises((MemoryError, RunError, KeyboardInterrupt)):
        export(store, tmp_path / f"a{suffix}")
    assert "T" in done
    assert not list(tmp_path.iterdir())


def test_a_failed_collection_leaves_no_partial_files(
    intact: Intact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise FULL

    monkeypatch.setattr(vtk, "write_collection", full)
    with pytest.raises(RunError, match="No space left on device"):
        export(Store(intact.path / "fields.zarr"), tmp_path / "a.pvd")
    assert not list(tmp_path.iterdir())
