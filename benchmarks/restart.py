"""Reads of a checkpoint by the ranks that compute, and by an I/O rank that sends them their parts.

    python benchmarks/restart.py [--n 320] [--ranks 1,2,3] [--repeats 7] [--json FILE]

The checkpoint is one of heat on n^3 cells of float64. In the first way, which `resume` uses, each rank reads
its own cells, with one thread more than its share of the cores. In the second way, one more rank reads each
chunk once, and sends the parts of the chunk to the ranks that compute. This rank has one thread more than
there are cores. Both ways run in turn in the same processes, and each rank compares its cells with those of
the other way. Waiting ranks sleep, so that they use no core of the I/O rank. The files are read from the disk
("cold") and from the page cache ("warm").

Then the program counts the bytes that ranks read and decompress in the first way, over the bytes of a field.
All ranks whose subdomains cut a chunk read it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from math import prod
from operator import sub
from pathlib import Path
from typing import Any

import numpy as np
from measure import arguments, in_turn, median, numbers, save
from numpy.typing import NDArray

import halocline as hc
from halocline.archive import arrays
from halocline.plan.box import Box
from halocline.plan.chunks import ChunkGrid, chunk_shape
from halocline.plan.decompose import decompose
from halocline.run.host.process import cores
from halocline.run.output.restart import newest, read_pieces
from halocline.run.ranks.launch import run_on_ranks

PAUSE = 2e-4  # seconds between two tests of a request
AHEAD = 8  # chunks that the I/O rank reads at the same time
SHAPES, COUNTS = ((256, 256, 256), (512, 512, 512), (2048, 2048)), (2, 3, 4, 6, 8, 64, 512)


def write_checkpoint(n: int, folder: Path) -> Path:
    """Write a checkpoint of a smooth field with some noise, and return the folder of the field."""
    grid = hc.Grid((n, n, n), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=0.05 / n**2)
    x = (np.arange(n) + 0.5) / n
    noise = np.random.default_rng(1).standard_normal((n, n, n))
    sim[T] = np.sin(6 * x)[:, None, None] * np.cos(9 * x)[:, None] + 1e-4 * noise
    sim.run(steps=1, checkpoint=hc.Checkpoint(folder))
    return newest(folder) / "T"


def wait(request: Any) -> None:
    """Wait for an MPI request without using a core."""
    while not request.Test():
        time.sleep(PAUSE)


def forget(folder: Path) -> None:
    """Remove the files of an array, which are on disk, from the page cache."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def parts_of(chunk: Box, boxes: Sequence[Box]) -> list[tuple[int, Box]]:
    """Return the ranks that have cells of a chunk, each with these cells."""
    parts = ((rank, chunk.intersect(box)) for rank, box in enumerate(boxes))
    return [(rank, part) for rank, part in parts if part]


def within(box: Box, origin: Sequence[int]) -> tuple[slice, ...]:
    """Return the indices of a box in an array that begins at a cell."""
    return tuple(map(slice, map(sub, box.lo, origin), map(sub, box.hi, origin)))


def serve(array: arrays.StoredArray, chunks: Sequence[Box], boxes: Sequence[Box], world: Any) -> None:
    """Read each chunk once, and send its parts to the ranks that compute."""
    sends: deque[tuple[Any, NDArray[Any]]] = deque()
    with ThreadPoolExecutor(len(cores()) + 1) as pool:
        reads: deque[tuple[Box, Future[NDArray[Any]]]] = deque()
        for chunk in [*chunks, *[None] * AHEAD]:
            if chunk is not None:
                reads.append((chunk, pool.submit(array.read, chunk.lo, chunk.hi)))
            if reads and (chunk is None or len(reads) > AHEAD):
                box, future = reads.popleft()
                values = future.result()
                for rank, part in parts_of(box, boxes):
                    sent = np.ascontiguousarray(values[within(part, box.lo)])
                    sends.append((world.Isend(sent, rank), sent))
            while sends and sends[0][0].Test():
                sends.popleft()
    for request, _ in sends:
        wait(request)


def receive(cells: NDArray[Any], chunks: Sequence[Box], boxes: Sequence[Box], world: Any) -> None:
    """Receive the parts of this rank in the order of the chunks."""
    origin, server = boxes[world.rank].lo, len(boxes)
    requests = []
    for chunk in chunks:
        for rank, part in parts_of(chunk, boxes):
            if rank == world.rank:
                values = np.empty(tuple(map(sub, part.hi, part.lo)), cells.dtype)
                requests.append((world.Irecv(values, server), values, part))
    for request, values, part in requests:
        wait(request)
        cells[within(part, origin)] = values


def compare(folder: Path, repeats: int) -> None:
    """Measure both ways on the ranks of this job, of which the last one is the I/O rank."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    stored = arrays.read(folder)
    shape = stored.shape
    grid = ChunkGrid(shape, chunk_shape(shape, 8))
    whole = Box((0,) * len(shape), shape)
    chunks = [grid.box(chunk) for chunk in grid.over(whole)]
    computing, ranks = world.rank < world.size - 1, world.size - 1
    threads = max(1, len(cores()) // ranks)
    cut = decompose(shape, ranks)
    boxes = [cut.box(rank) for rank in range(ranks)]
    ways: dict[str, NDArray[Any]] = {}
    if computing:
        box = boxes[world.rank]
        ways = {way: np.ones(tuple(map(sub, box.hi, box.lo))) for way in ("direct", "sent")}

    def direct() -> None:
        if computing:
            read_pieces(arrays.read(folder), [(box.lo, ways["direct"])], threads + 1)

    def sent() -> None:
        if computing:
            receive(ways["sent"], chunks, boxes, world)
        else:
            serve(arrays.read(folder), chunks, boxes, world)

    def timed(read: Callable[[], None], cold: bool) -> float:
        if cold and world.rank == 0:
            forget(folder)
        wait(world.Ibarrier())
        began = time.perf_counter()
        read()
        wait(world.Ibarrier())
        return time.perf_counter() - began

    direct()
    sent()
    runs = {
        f"{read.__name__} {state}": lambda read=read, state=state: timed(read, state == "cold")
        for state in ("warm", "cold")
        for read in (direct, sent)
    }
    times = in_turn(runs, repeats)
    equal = not computing or np.array_equal(ways["direct"], ways["sent"])
    if not all(world.allgather(equal)):
        raise SystemExit("the two ways read different values")
    if world.rank == 0:
        print(json.dumps(times))


def count(shape: Sequence[int], ranks: int) -> dict[str, Any]:
    """Return the bytes of the chunks that ranks read for their own cells, relative to the field."""
    grid, cut = ChunkGrid(tuple(shape), chunk_shape(shape, 8)), decompose(shape, ranks)
    sizes = [
        [prod(map(sub, grid.box(chunk).hi, grid.box(chunk).lo)) for chunk in grid.over(cut.box(rank))]
        for rank in range(ranks)
    ]
    return {
        "shape": list(shape), "ranks": ranks, "parts": list(cut.parts),
        "read": sum(map(sum, sizes)) / prod(shape), "most_of_a_rank": max(map(sum, sizes)) / prod(shape),
    }  # fmt: skip


def main() -> None:
    """Write a checkpoint, and start the ranks that read it."""
    options = arguments(str(__doc__), n=320, ranks="1,2,3")
    size = 8 * options.n**3
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        field = write_checkpoint(options.n, Path(folder))
        stored = sum(path.stat().st_size for path in field.iterdir())
        for ranks in numbers(options.ranks):
            done = run_on_ranks(ranks + 1, [__file__, "compare", str(field), str(options.repeats)])
            if done.returncode:
                raise SystemExit(done.stderr)
            times = json.loads(done.stdout)
            for state in ("warm", "cold"):
                pair = {way: times[f"{way} {state}"] for way in ("direct", "sent")}
                ratios = sorted(s / d for s, d in zip(pair["sent"], pair["direct"], strict=True))
                print(
                    f"{size / 1e6:.0f} MB ({stored / 1e6:.0f} MB on disk), {state}, ranks: {ranks}: read "
                    f"{median(pair['direct']):.3f} s, through an I/O rank {median(pair['sent']):.3f} s, "
                    f"{median(ratios):.2f} times as long ({ratios[0]:.2f} to {ratios[-1]:.2f})"
                )
                rows.append({"ranks": ranks, "cache": state, "bytes": size, "bytes_on_disk": stored,
                    "seconds_direct": pair["direct"], "seconds_sent": pair["sent"]})  # fmt: skip
    for shape, ranks in product(SHAPES, COUNTS):
        row = count(shape, ranks)
        parts, cells = ("x".join(map(str, numbers_of_axes)) for numbers_of_axes in (row["parts"], shape))
        print(
            f"{cells}, {ranks} ranks ({parts}): all ranks read {row['read']:.2f} times the field, "
            f"one rank at most {row['most_of_a_rank']:.3f}"
        )
        rows.append(row)
    save(options.json, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
