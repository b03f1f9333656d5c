"""All benchmarks, one after the other; records are written to benchmarks/results.

Each benchmark can be run alone, with --help. They print ratios to a competitor or to a measured limit of the
machine, since times alone have little meaning.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from measure import RESULTS

HERE = Path(__file__).parent
ALL = (
    "poisson_cg",
    "heat",
    "mhd",
    "mhd_shocks",
    "precision",
    "cavity",
    "reduce",
    "elementary",
    "evaluations",
    "exchange",
    "overlap",
    "patches",
    "output",
    "model",
)


def main() -> int:
    """Run the benchmarks that the command line names, or all, and return the worst exit status."""
    names = sys.argv[1:] or list(ALL)
    status = 0
    for name in names:
        print(f"\n== {name}", flush=True)
        record = RESULTS / f"{name}.json"
        done = subprocess.run([sys.executable, str(HERE / f"{name}.py"), "--json", str(record)], check=False)
        status = max(status, done.returncode)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
