"""The cost of output in a run, and the output speed of one rank compared with that of TensorStore.

    python benchmarks/output.py [--n 128] [--steps 500] [--repeats 7] [--cases rows,steps,library]

Runs write a row of output each step on 16^2 cells. They alternate with the same run without output, and with
a plain append of the same values to a file, flushed each row. The result is the cost of a row of a number
(target: at most 20 us), of values at points, of a slice and of a field. The time includes the set-up of the
output and its end.

Heat on n^3 cells of float64 runs on one thread, with output of the whole field every 50 steps, in turn with
the same steps without output. A core is free for the writer (target: at most 5 % slower). The hidden part of
the output is the part for which the run did not wait.

Then one rank writes a field of 256^3 as output does, and TensorStore alone writes the same chunks with the
same codecs and threads (target: at least 80 % of its rate); zarr-python does the same, with one thread too.
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
from halocline.plan.chunks import ChunkGrid, chunk_shape
from halocline.run.output.output_store import OutputStore

EVERY, LARGE = 50, 256
MOST_SLOWER, LEAST_SHARE, MOST_NUMBER = 1.05, 0.8, 20e-6
CASES = "rows,steps,library"
SMALL = 16  # cells along each axis for the cost of a row


def heat(n: int) -> hc.Simulation:
    """Return heat with a field that is smooth with some noise, as in simulations."""
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
    """Measure steps with output and steps without output."""
    alone, written = heat(n), heat(n)
    output = hc.Output(folder / "heat.zarr", every=hc.steps(EVERY), overwrite=True)
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

    for run_once in (without, with_output):
        run_once()
    waits.clear()
    times = in_turn({"with": with_output, "without": without}, repeats)
    slower = 1.0 / ratio(times, "with", "without")
    waiting = median([seconds for seconds, _ in waits])
    size = 8 * n**3 * (steps // EVERY)
    print(
        f"{n}^3, {steps} steps, {size / 1e6:.0f} MB of output every {EVERY}: {slower:.3f} times as long as "
        f"without (wanted: at most {MOST_SLOWER}); the run spent {1e3 * waiting:.0f} ms of "
        f"{1e3 * median(times['with']):.0f} on output, the rest of the writing was hidden"
    )
    return {
        "n": n, "steps": steps, "every": EVERY, "slower": slower, "wanted": MOST_SLOWER,
        "seconds_with": median(times["with"]), "seconds_without": median(times["without"]),
        "seconds_beside_steps": waiting, "bytes": size,
    }  # fmt: skip


def row_costs(repeats: int, folder: Path) -> list[dict[str, Any]]:
    """Return the cost of one row for each kind of output, over the same steps without output."""
    grid = hc.Grid((SMALL, SMALL), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(
        grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=0.05 / SMALL**2, threads=1
    )
    sim[T] = np.random.default_rng(1).standard_normal((SMALL, SMALL))

    def output(kind: str, fields: Any, **options: Any) -> hc.Output:
        return hc.Output(folder / f"{kind}.zarr", fields, every=hc.steps(1), overwrite=True, **options)

    points, line = hc.Points([(0.3, 0.4)]), hc.Slice(x=0.5)
    return [
        row_cost(sim, output("number", {"total": hc.sum(T)}), 100_000, 1, repeats),
        row_cost(sim, output("points", [T], region=points), 2000, 1, repeats),
        row_cost(sim, output("slice", [T], region=line), 500, SMALL, repeats),
        row_cost(sim, output("field", [T]), 500, SMALL**2, repeats),
    ]


def row_cost(sim: hc.Simulation, output: hc.Output, steps: int, size: int, repeats: int) -> dict[str, Any]:
    """Return the cost of a row of `size` values of an output with one row per step."""
    kind, values = Path(output.path).stem, np.ones(size)

    def run(**options: Any) -> float:
        sim.start_new_run()
        began = perf_counter()
        sim.run(steps=steps, **options)
        return perf_counter() - began

    def append() -> float:
        began = perf_counter()
        with Path(output.path).with_suffix(".append").open("wb") as file:
            for _ in range(steps):
                file.write(values.tobytes())
                file.flush()
        return perf_counter() - began

    runs: dict[str, Callable[[], float]] = {
        "with": lambda: run(output=output), "without": run, "append": append,
    }  # fmt: skip
    for run_once in runs.values():
        run_once()
    times = in_turn(runs, repeats)
    seconds = {name: median(seconds_of_runs) / steps for name, seconds_of_runs in times.items()}
    row = seconds["with"] - seconds["without"]
    expected = f" (wanted: at most {MOST_NUMBER * 1e6:.0f})" if kind == "number" else ""
    print(
        f"row of output, {kind}: {1e6 * row:.1f} us{expected}; a step without output takes "
        f"{1e6 * seconds['without']:.2f} us; {row / seconds['append']:.1f} times a plain append to a file"
    )
    return {
        "row_of": kind, "rows": steps, "seconds_a_row": row, "seconds_a_step": seconds["without"],
        "seconds_a_plain_append": seconds["append"],
    }  # fmt: skip


def throughput(repeats: int, folder: Path, compression: str) -> dict[str, Any]:
    """Measure one rank's output of a large field, and the library alone."""
    sim = heat(LARGE)
    values = np.array(sim["T"])
    chunk = chunk_shape(values.shape, 8)
    spec = ArraySpec((1, *values.shape), (1, *chunk), "float64", ("time", "x", "y", "z"), {}, compression)

    def library() -> float:
        shutil.rmtree(folder / "library", ignore_errors=True)
        began = perf_counter()
        grid = ChunkGrid(values.shape, chunk)
        array = arrays.create(folder / "library", spec, arrays.context(1))
        pending = []
        for index in np.ndindex(*(-(-n // c) for n, c in zip(values.shape, chunk, strict=True))):
            box = grid.box(index)
            part = np.ascontiguousarray(values[tuple(map(slice, box.lo, box.hi))])
            pending.append(array.write((0, *box.lo), part[None]))
        for write in pending:
            write.result()
        return perf_counter() - began

    def ours() -> float:
        shutil.rmtree(folder / "ours.zarr", ignore_errors=True)
        output = hc.Output(folder / "ours.zarr", every=hc.steps(1), compression=compression)
        began = perf_counter()
        store = OutputStore(output, sim._session, "heat", run="of a benchmark", owner="ours", number=0)
        store.check()
        store.lock()
        store.contents.prepare()
        store.begin(0)
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
    rate, zarr_ratio = values.nbytes / 1e6 / median(times["ours"]), ratio(times, "zarr", "library")
    print(
        f"{LARGE}^3, compression {compression}: {rate:.0f} MB/s, {share:.2f} of TensorStore alone "
        f"(wanted: at least {LEAST_SHARE}); zarr-python, which syncs nothing: {zarr_ratio:.2f}"
    )
    return {
        "n": LARGE, "compression": compression, "megabytes_a_second": rate, "share": share,
        "share_of_zarr_python": zarr_ratio,
        "wanted": LEAST_SHARE,
    }  # fmt: skip


def main() -> None:
    """Measure, print and record."""
    options = arguments((__doc__ or "").splitlines()[0], n=128, steps=500, cases=CASES)
    zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases, rows = options.cases.split(","), []
        if "rows" in cases:
            rows += row_costs(options.repeats, folder)
        if "steps" in cases:
            rows.append(cost(options.n, options.steps, options.repeats, folder))
        if "library" in cases:
            rows += [throughput(options.repeats, folder, codec) for codec in ("zstd", "none")]
    save(options.json, rows)


if __name__ == "__main__":
    main()
