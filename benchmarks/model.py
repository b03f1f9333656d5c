"""Predictions of the model for this host, compared with runs.

The program calibrates the model with exchanges between ranks, and with kernels whose numbers of bytes,
operations and sums are known. Then it predicts conjugate gradients, heat and waves, which are not part of the
calibration, and runs them. It prints the predicted time divided by the measured time: by the roofline only,
and with the pace (1/π) of each case. The pace is measured on every rank separately at another size, in turn
with the runs. The results with the pace are medians of ratios of neighbouring measurements. Each measurement
is the best of ten rounds. The output marks runs with more ranks than cores.
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


def prepare_case(case: dict[str, Any], n: int) -> predict.Case:
    """Return the schedule and the shape of a case with another size."""
    return predict.prepare(case["case"], n)


def predicted(case: predict.Case, machine: Machine, ranks: int, pace: float) -> float:
    """Return the seconds of a pass on the given number of ranks of a node."""
    schedule, shape = case
    layout = lay_out(
        shape,
        ranks,
        traffic=Traffic.of_schedule(schedule),
        thickness=least_thickness(schedule),
        periodic=schedule.periodic,
    )
    rates = Rates.of(machine, ranks, memory=memory_of_node(schedule, layout)).slowed(pace)
    return execute(schedule, layout, machine, rates=rates).seconds


def main() -> None:
    """Calibrate, measure and print."""
    options = arguments(__doc__ or "", ranks="1,2,3,4", cases="poisson,heat,wave")
    machine, cores = host.calibrate(), this_machine().cores
    rows = []
    for case, other in CASES:
        if case["case"] not in options.cases.split(","):
            continue
        whole, small = prepare_case(case, case["n"]), prepare_case(case, other)
        counts = numbers(options.ranks)
        times: dict[int, list[float]] = {ranks: [] for ranks in counts}
        paces: dict[int, list[float]] = {ranks: [] for ranks in counts}
        for _ in range(options.repeats):
            for ranks in counts:
                pace = host.measured_pace({**case, "n": other}, small, machine, min(ranks, cores))
                paces[ranks].append(pace)
                times[ranks].append(host.run_task(ranks, {"do": "case", "case": case, "alone": False}))
        for ranks in counts:
            ratios = [
                predicted(whole, machine, ranks, pace) / seconds
                for pace, seconds in zip(paces[ranks], times[ranks], strict=True)
            ]
            measured = median(times[ranks])
            row = {
                **case,
                "ranks": ranks,
                "cores": cores,
                "ms": 1e3 * measured,
                "predicted_over_measured": median(ratios),
                "ratios": ratios,
                "pace": median(paces[ranks]),
                "pace_measured_at": other,
                "roofline_over_measured": predicted(whole, machine, ranks, 1.0) / measured,
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
