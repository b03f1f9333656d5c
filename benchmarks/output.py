"""What output costs a run, and how fast one rank writes beside the library underneath.

    python benchmarks/output.py [--n 128] [--steps 500] [--repeats 7]

Heat on n^3 cells of float64, one thread, with output of the whole field every 50 steps, beside the same
steps without, in turn: a core is free for the writer (wanted: at most 5 % slower). How much of the writing is
hidden is what the run did not wait for.

Then one rank writes a field of 256^3 as output does, and TensorStore alone writes the same chunks with the
same codecs and threads (wanted: at least 80 % of its rate); so does zarr-python, with one thread too.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import zarr
from measure import arguments, in_turn, median, ratio, save

import halocline as hc
from halocline.archive import arrays
from halocline.archive.arrays import ArraySpec
from halocline.archive.writer import Writer
from halocline.plan.chunks import ChunkGrid, chunk_shape
from halocline.run.output.output import OutputStore

EVERY, LARGE = 50, 256
MOST_SLOWER, LEAST_SHARE = 1.05, 0.8


def heat(n: int) -> hc.Simulation:
    """The field is smooth with some noise, as those of simulations are."""
    grid = hc.Grid((n, n, n), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(
        grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.RK3(), dt=0.05 / n**2, order=6, threads=1
    )
    x = (np.arange(n) + 0.5) / n
    noise = np.random.default_rng(1).standard_normal((n, n, n))
    sim[T] = np.sin(6 * x)[:, None, None] * np.cos(9 * x)[:, None] + 1e-4 * noise
    return sim


def cost(n: int, steps: int, repeats: int, folder: Path) -> dict[str, Any]:
    """Steps with output and without."""
    alone, written = heat(n), heat(n)
    output = hc.Output(folder / "heat.zarr", every=EVERY, overwrite=True)
    waits: list[tuple[float, float]] = []

    def without() -> float:
        began = perf_counter()
        alone.run(steps=steps)
        return perf_counter() - began

    def with_output() -> float:
        before, began = written.writing, perf_counter()
        written.run(steps=steps, output=output)
        seconds = perf_counter() - began
        waits.append((written.writing.seconds - before.seconds, seconds))
        return seconds

    for each in (without, with_output):
        each()
    waits.clear()
    times = in_turn({"with": with_output, "without": without}, repeats)
    slower = 1.0 / ratio(times, "with", "without")
    beside = median([seconds for seconds, _ in waits])
    size = 8 * n**3 * (steps // EVERY)
    print(
        f"{n}^3, {steps} steps, {size / 1e6:.0f} MB of output every {EVERY}: {slower:.3f} times as long as "
        f"without (wanted: at most {MOST_SLOWER}); the run spent {1e3 * beside:.0f} ms of "
        f"{1e3 * median(times['with']):.0f} on output, the rest of the writing was hidden"
    )
    return {
        "n": n, "steps": steps, "every": EVERY, "slower": slower, "wanted": MOST_SLOWER,
        "seconds_with": median(times["with"]), "seconds_without": median(times["without"]),
        "seconds_beside_steps": beside, "bytes": size,
    }  # fmt: skip


def throughput(repeats: int, folder: Path, compression: str) -> dict[str, Any]:
    """One rank's output of a large field, and the library alone."""
    sim = heat(LARGE)
    values = np.array(sim["T"])
    chunk = chunk_shape(values.shape, 8)
    spec = ArraySpec((1, *values.shape), (1, *chunk), "float64", ("time", "x", "y", "z"), {}, compression)

    def library() -> float:
        shutil.rmtree(folder / "library", ignore_errors=True)
        began = perf_counter()
        writer, grid = Writer(1), ChunkGrid(values.shape, chunk)
        array = arrays.create(folder / "library", spec, writer.threads)
        pending = []
        for index in np.ndindex(*(-(-n // c) for n, c in zip(values.shape, chunk, strict=True))):
            box = grid.box(index)
            part = np.ascontiguousarray(values[tuple(map(slice, box.lo, box.hi))])
            pending.append(array.write((0, *box.lo), part[None]))
        for each in pending:
            each.result()
        return perf_counter() - began

    def ours() -> float:
        shutil.rmtree(folder / "ours.zarr", ignore_errors=True)
        how = hc.Output(folder / "ours.zarr", every=hc.steps(1), compression=compression)
        began = perf_counter()
        store = OutputStore(
            how, sim, sim.program, "heat", run="of a benchmark", owner="ours", number=0, timed=True
        )
        store.check(None)
        store.lock()
        store.contents.prepare()
        store.begin(0, None)
        store.write(0.0, 0)
        store.finish()
        store.close()
        return perf_counter() - began

    def other() -> float:
        shutil.rmtree(folder / "other", ignore_errors=True)
        began = perf_counter()
        arrays.create(folder / "other", spec)
        zarr.open_array(folder / "other", mode="r+")[0] = values
        return perf_counter() - began

    runs: dict[str, Callable[[], float]] = {"ours": ours, "library": library, "zarr": other}
    for run in runs.values():
        run()
    times = in_turn(runs, repeats)
    share = ratio(times, "ours", "library")
    rate, others = values.nbytes / 1e6 / median(times["ours"]), ratio(times, "zarr", "library")
    print(
        f"{LARGE}^3, compression {compression}: {rate:.0f} MB/s, {share:.2f} of TensorStore alone "
        f"(wanted: at least {LEAST_SHARE}); zarr-python, which syncs nothing: {others:.2f}"
    )
    return {
        "n": LARGE, "compression": compression, "megabytes_a_second": rate, "share": share,
        "share_of_zarr_python": others,
        "wanted": LEAST_SHARE,
    }  # fmt: skip


def main() -> None:
    """Measure, print, record."""
    given = arguments((__doc__ or "").splitlines()[0], n=128, steps=500)
    zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [cost(given.n, given.steps, given.repeats, folder)]
        rows += [throughput(given.repeats, folder, each) for each in ("zstd", "none")]
    save(given.json, rows)


if __name__ == "__main__":
    main()
