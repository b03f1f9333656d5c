"""Conjugate gradients compared with the seed-style C program (peers/seed_cg.c), in turn on the same machine.

Prints, for each mesh and number of ranks, milliseconds per iteration, the speed-up over the C program, and
the share of the bound: the method's streams (cg 11, cg-fused 8) of 8 bytes per cell at the measured speed of
a sweep a += s * b.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from measure import arguments, in_turn, median, numbers, ratio, save

from halocline.run.ranks.launch import mpiexec

METHODS = ("cg", "cg-fused")
HALOCLINE = Path(sys.executable).with_name("halocline")


def build_peer(folder: Path) -> Path:
    """Compile the C program with the flags of its users."""
    program = folder / "seed_cg"
    source = Path(__file__).parent / "peers" / "seed_cg.c"
    mpicc = mpiexec().with_name("mpicc")
    subprocess.run([mpicc, "-O3", "-march=native", source, "-o", program, "-lm"], check=True)
    return program


def time_halocline(
    n: int, ranks: int, threads: int, iterations: int, method: str, shares: dict[str, list[float]]
) -> float:
    """Return the seconds per iteration of the user's command, and add its share of the bound."""
    command = [str(HALOCLINE), "solve", "poisson", "--n", str(n), "--method", method, "--ranks", str(ranks)]
    command += ["--threads", str(threads), "--max-iterations", str(iterations), "--json", "-"]
    record = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    shares.setdefault(method, []).append(record["bandwidth_share"])
    return float(record["seconds_per_iteration"])


def time_peer(peer: Path, n: int, ranks: int, iterations: int) -> float:
    """Return the seconds per iteration of the C program."""
    command = [str(mpiexec()), "-n", str(ranks), str(peer), str(n), str(iterations)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[2])


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "", n="1024,4096", ranks="1,2", threads=1, milliseconds=3000)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        peer = build_peer(Path(folder))
        for n in numbers(options.n):
            for ranks in numbers(options.ranks):
                shares: dict[str, list[float]] = {}
                rough = time_peer(peer, n, ranks, 10)
                count = max(20, int(options.milliseconds * 1e-3 / rough))
                times = in_turn(
                    {
                        "seed": partial(time_peer, peer, n, ranks, count),
                        **{
                            m: partial(time_halocline, n, ranks, options.threads, count, m, shares)
                            for m in METHODS
                        },
                    },
                    options.repeats,
                )
                for method in METHODS:
                    row = {
                        "n": n,
                        "ranks": ranks,
                        "threads": options.threads,
                        "method": method,
                        "seed_ms": 1e3 * median(times["seed"]),
                        "ms": 1e3 * median(times[method]),
                        "times_faster": ratio(times, method, "seed"),
                        "bandwidth_share": median(shares[method]),
                    }
                    rows.append(row)
                    print(
                        f"N {n:5d}  ranks {ranks}  {method:8s} {row['ms']:8.3f} ms an iteration, C "
                        f"{row['seed_ms']:8.3f}:"
                        f" {row['times_faster']:5.2f} times faster, {row['bandwidth_share']:4.0%} of the "
                        "bound",
                        flush=True,
                    )
    save(options.json, rows)


if __name__ == "__main__":
    main()
