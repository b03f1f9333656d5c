"""All benchmarks, one after the other; records go to benchmarks/results.

Each can be run alone, with --help. They print ratios against a peer or a measured limit of the machine,
never times to be believed alone.
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
    """Run those named on the command line, or all; the exit status of the worst."""
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
