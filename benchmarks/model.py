"""What the model predicts for this host, beside what runs take.

Calibrates the model by kernels of known bytes, operations and sums and by exchanges between ranks; then
predicts conjugate gradients, heat and waves, which took no part in that, and runs them. Prints predicted over
measured time: by the roofline alone, and with the pace (1/π) of each case measured on every rank by itself at
another size, in turn with the runs: medians of ratios of neighbouring measurements, each the best of ten
rounds. Ranks beyond the cores are only told.
"""

from __future__ import annotations

from typing import Any

from measure import arguments, median, numbers, save

from halocline.model import Rates, execute, memory_of_node
from halocline.plan.fit import least_thickness
from halocline.plan.layout import lay_out
from halocline.plan.machine import Machine
from halocline.plan.traffic import Traffic
from halocline.run.host.machine import this_machine
from halocline.study.measuring import host, predict

# each case with the size at which its pace is measured
CASES: tuple[tuple[dict[str, Any], int], ...] = (
    ({"case": "poisson", "n": 512}, 400),
    ({"case": "poisson", "n": 2048}, 1448),
    ({"case": "heat", "n": 192}, 160),
    ({"case": "wave", "n": 1600}, 2000),
)


def made(case: dict[str, Any], n: int) -> predict.Case:
    """The schedule and the shape of a case with another size."""
    return predict.prepared(case["case"], n)


def predicted(case: predict.Case, there: Machine, ranks: int, pace: float) -> float:
    """Seconds of a pass on so many ranks of a node."""
    schedule, shape = case
    layout = lay_out(
        shape,
        ranks,
        traffic=Traffic.of_schedule(schedule),
        thickness=least_thickness(schedule),
        periodic=schedule.periodic,
    )
    rates = Rates.of(there, ranks, memory=memory_of_node(schedule, layout)).slowed(pace)
    return execute(schedule, layout, there, rates=rates).seconds


def main() -> None:
    """Calibrate, measure and print."""
    options = arguments(__doc__ or "", ranks="1,2,3,4", cases="poisson,heat,wave")
    there, cores = host.calibrate(), this_machine().cores
    rows = []
    for case, other in CASES:
        if case["case"] not in options.cases.split(","):
            continue
        whole, small = made(case, case["n"]), made(case, other)
        counts = numbers(options.ranks)
        times: dict[int, list[float]] = {ranks: [] for ranks in counts}
        paces: dict[int, list[float]] = {ranks: [] for ranks in counts}
        for _ in range(options.repeats):
            for ranks in counts:
                pace = host.pace_of({**case, "n": other}, small, there, min(ranks, cores))
                paces[ranks].append(pace)
                times[ranks].append(host.on_ranks(ranks, {"do": "case", "case": case, "alone": False}))
        for ranks in counts:
            ratios = [
                predicted(whole, there, ranks, pace) / seconds
                for pace, seconds in zip(paces[ranks], times[ranks], strict=True)
            ]
            told = median(times[ranks])
            row = {
                **case,
                "ranks": ranks,
                "cores": cores,
                "ms": 1e3 * told,
                "predicted_over_measured": median(ratios),
                "ratios": ratios,
                "pace": median(paces[ranks]),
                "pace_measured_at": other,
                "roofline_over_measured": predicted(whole, there, ranks, 1.0) / told,
            }
            rows.append(row)
            print(
                f"{case['case']:8s} N {case['n']:5d}  ranks {ranks}  {row['ms']:8.3f} ms a pass; predicted "
                f"{row['predicted_over_measured']:.2f} of it (pace {row['pace']:.2f}, measured with N {other}"
                f"), by the roofline alone {row['roofline_over_measured']:.2f}"
                + ("" if ranks <= cores else "; more ranks than cores"),
                flush=True,
            )
    save(options.json, rows)


if __name__ == "__main__":
    main()
