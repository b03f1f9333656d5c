"""Programs with two versions of Halocline, or with two C++ compilers, in turn.

--before names the Python of the other version, in the environment that `make build` creates in another
checkout, or in an environment with a wheel. That Python runs the programs in the form that they have in its
checkout, if it has one. --variable CXX=zig sets a variable of the other version. Without --before, the other
version is this one. The benchmark prints million cells per second on one core for both versions, and their
ratio. If the ratio is above 1, this version is faster.
"""

from __future__ import annotations

import sys
from pathlib import Path

from measure import competitor, in_turn, median, parser, ratio, save
from programs_halocline import PROGRAMS

HERE = Path(__file__).parent
PROGRAM = "programs_halocline.py"


def main() -> int:
    """Measure and print; return 1 if a program has become slower by more than 3 %."""
    options_parser = parser(__doc__ or "", cases=",".join(name.replace(", ", "/") for name in PROGRAMS))
    options_parser.add_argument("--before", type=Path, help="the Python of the other version")
    options_parser.add_argument(
        "--variable", action="append", default=[], metavar="NAME=VALUE", help="variable of the other version"
    )
    options = options_parser.parse_args()
    if options.before is None and not options.variable:
        options_parser.error("expected --before or --variable: there is nothing to compare")
    python = options.before or Path(sys.executable)
    # written for the interface of that version
    other_program = python.absolute().parents[2] / "benchmarks" / PROGRAM
    if not other_program.exists():  # a wheel
        other_program = HERE / PROGRAM
    variables = dict(setting.split("=", 1) for setting in options.variable)
    rows = []
    for case in options.cases.split(","):
        name = case.replace("/", ", ")
        with (
            competitor(sys.executable, HERE / PROGRAM, name) as current,
            competitor(python, other_program, name, **variables) as before,
        ):
            times = in_turn({"now": current, "before": before}, options.repeats)
        row = {
            "program": name,
            "million_cells_per_second": 1 / median(times["now"]),
            "before": 1 / median(times["before"]),
            "ratio": ratio(times, "now", "before"),
        }
        rows.append(row)
        speeds = f"{row['million_cells_per_second']:8.1f} and before {row['before']:8.1f}"
        print(f"{name:24} {speeds} million cells a second: {row['ratio']:.3f} times as fast", flush=True)
    save(options.json, rows)
    return int(min(row["ratio"] for row in rows) < 0.97)


if __name__ == "__main__":
    raise SystemExit(main())
