"""Time of sweeps that compute almost nothing, compared with bare kernel launches on the same device, in turn.

n^3 cells, so that the time is that of launches. Each pass has some sweeps, which cannot be fused. The cases:

- local: the sweeps read no neighbours. A scalar statement separates them.
- periodic: the sweeps read a neighbour, so that each sweep copies a halo.
- walls: the sweeps read a neighbour on both sides, so that each sweep applies boundary conditions.
- every: as periodic, and `hc.every(8)` runs another sweep in every eighth pass.

A bare launch is an empty kernel of one thread block through `Queue.launch`. If the device records graphs,
such a launch is also part of a graph of 64 launches. Prints microseconds per pass, per sweep, and per launch
that `halocline explain` counts, and the ratio of a launch to a bare launch. Launches of tests and of scalar
statements count, and those in `hc.every(8)` count as if they ran in every pass. The last column is the time
of an additional sweep: the slope from the first number of sweeps to this number.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Any

from gpu import arguments, keep, label
from measure import in_turn, median, numbers, ratio

import halocline as hc
from halocline.compile.targets.source import device_headers
from halocline.run.devices.devices import compile_for

CASES = ("local", "periodic", "walls", "every")
GRAPH = 64  # launches of a graph
BLOCK = (64, 1, 1)  # threads of a bare launch
EMPTY = "HC_KERNEL empty(HC_GLOBAL double *x) { if (x[0] > 1.0) x[0] = 1.0; }"
SECONDS = 0.05  # approximate duration of one measurement


def simulation(case: str, sweeps: int, n: int, device: str) -> hc.Simulation:
    """Return a simulation whose steps have some sweeps."""
    is_local, has_walls = case == "local", case == "walls"
    grid = hc.Grid((n, n, n), periodic=not has_walls)
    u = grid.field("u", boundary=hc.Value(0.0) if has_walls else None)

    @hc.program
    def step() -> None:
        shift = hc.scalar("shift")
        for number in range(sweeps):
            if is_local:
                shift.set(float(number))
            u.set(u + shift if is_local else u[1, 0, 0] + u[-1, 0, 0] if has_walls else u[1, 0, 0])
        if case == "every":
            with hc.every(8):
                u.set(u[0, 1, 0])

    sim = hc.Simulation(grid, step, dt=1.0, device=device)
    sim[u] = 0.0
    return sim


class Launches:
    """Bare launches; each call returns the seconds of one launch.

    Parameters
    ----------
    device : native Device
    in_graph : bool
        True if launches are recorded in a graph.
    """

    def __init__(self, device: Any, in_graph: bool) -> None:
        self.queue, self.buffer = device.queue(), device.allocate(8)
        self.module = compile_for(device, f"{device_headers()}\n{EMPTY}")
        self.queue.clear(self.buffer)
        self.queue.finish()
        self.graph: Any = None
        if in_graph:
            self.queue.begin_capture()
            self._launch()
            self.graph = self.queue.end_capture()
        self.rounds = 1
        self()
        self.rounds = max(1, round(SECONDS / (GRAPH * self())))

    def __call__(self) -> float:
        start_time = perf_counter()
        for _ in range(self.rounds):
            if self.graph is None:
                self._launch()
            else:
                self.queue.replay(self.graph)
            self.queue.flush()
        self.queue.finish()
        return (perf_counter() - start_time) / (self.rounds * GRAPH)

    def _launch(self) -> None:
        for _ in range(GRAPH):
            self.queue.launch(self.module, "empty", (1, 1, 1), BLOCK, [self.buffer])


def passes_of(sim: hc.Simulation, least: int) -> Callable[[], float]:
    """Return a function that runs steps and returns the seconds of one step."""
    sim.run(steps=least)
    steps = max(least, round(SECONDS / (sim.run(steps=least).loop_seconds / least)))

    def run() -> float:
        return float(sim.run(steps=steps).loop_seconds) / steps

    return run


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "", n=16, sweeps="1,2,4,8,16", cases=",".join(CASES), passes=64)
    device = options.devices[0]
    name = label([device])
    bare = {"launch": Launches(device, in_graph=False)}
    if device.captures:
        bare["launch in a graph"] = Launches(device, in_graph=True)
    print(f"{name} {device.name}", flush=True)
    rows: list[dict[str, Any]] = []
    for case in options.cases.split(","):
        of_case: list[dict[str, Any]] = []
        for sweeps in numbers(options.sweeps):
            sim = simulation(case, sweeps, options.n, name)
            explanation = hc.explain(sim)
            assert explanation.on is not None
            launches = sum(explanation.on.launches.values())
            times = in_turn({"pass": passes_of(sim, options.passes), **bare}, options.repeats)
            row: dict[str, Any] = {"case": case, "n": options.n, "sweeps": sweeps, "launches": launches}
            row["microseconds"] = {key: 1e6 * median(seconds) for key, seconds in times.items()}
            row["ratios"] = {key: ratio(times, key, "pass") / launches for key in bare}
            of_case.append(row)
            _print(row, of_case[0])
            del sim, explanation
            gc.collect()  # frees the device memory of its fields
        rows += of_case
        keep(options, "gpu_launches", rows, None)


def _print(row: dict[str, Any], first: dict[str, Any]) -> None:
    """Print the times of a pass, and the time of an additional sweep relative to another row."""
    times, sweeps, launches = row["microseconds"], row["sweeps"], row["launches"]
    line = f"{row['case']:9} {sweeps:3} sweeps, {launches:3} launches: {times['pass']:9.2f} us a pass, "
    line += f"{times['pass'] / sweeps:8.2f} a sweep, {times['pass'] / launches:7.2f} a launch"
    for key, times_as_long in row["ratios"].items():
        line += f", {times_as_long:5.2f} times a bare {key} ({times[key]:.2f} us)"
    if sweeps > first["sweeps"]:
        slope = (times["pass"] - first["microseconds"]["pass"]) / (sweeps - first["sweeps"])
        line += f"; {slope:.2f} us an additional sweep"
    print(line, flush=True)


if __name__ == "__main__":
    main()
