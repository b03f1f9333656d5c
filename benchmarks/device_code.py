"""Machine code of device kernels: instructions, registers and spilled bytes, compared with a record.

NVRTC compiles the kernels of programs, with layouts of fields as arguments and as literals. No device is
necessary. The table shows the sum of the instructions of all kernels of a program. Registers and spilled
bytes are the maximum over these kernels. The ratio compares the instructions with those of the record
`--before`, whose layouts are arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measure import RESULTS, parser, save

from halocline.compile import nvrtc
from halocline.compile.compiler import compile_program
from halocline.compile.strategy import Strategy
from halocline.compile.targets.source import with_literal_layouts, with_shared_layouts
from halocline.plan.decompose import decompose
from halocline.plan.launches import literal_extents
from halocline.plan.layout import Layout
from halocline.plan.rank import plan_subdomain
from halocline.plan.transfer import ON_DEVICES, Transfers
from halocline.problems.files import case_names
from halocline.problems.problem import Problem
from halocline.run.devices.devices import storage_layout

BEFORE = RESULTS / "device_code_cf40571f.json"
FORMS = ("arguments", "literals")
PROGRAMS: dict[str, dict[str, Any]] = {
    **{
        f"heat-{order}-{dtype}": {
            "name": "heat", "n": [512] * 3, "scheme": "euler", "order": order, "dtype": dtype
        }
        for order in (2, 6)
        for dtype in ("float64", "float32")
    },
    **{f"poisson-{method}": {"name": "poisson", "n": [4096] * 2, "replacements": {"method": method}}
       for method in ("cg", "cg-fused")},
    **{name: {"name": name} for name in case_names()},
}  # fmt: skip


def sources(name: str) -> dict[str, str]:
    """Return the kernels of a program for one device, by the form of their layouts."""
    case = Problem(**PROGRAMS[name])
    schedule = compile_program(case.program, case.grid, device=Strategy())
    assert schedule.device is not None
    cut = decompose(case.grid.shape, 1, periodic=case.grid.periodic)
    plan = plan_subdomain(schedule, Transfers(Layout.of(cut), ON_DEVICES), 0)
    layouts = [storage_layout(field) for field in plan.fields]
    source = schedule.device.source
    literal = with_literal_layouts(source, layouts, literal_extents([plan]))
    return dict(zip(FORMS, (with_shared_layouts(source, layouts), literal), strict=True))


def kernels(source: str, architecture: str) -> dict[str, list[int]]:
    """Return the instructions, registers and spilled bytes of each kernel."""
    resources = nvrtc.resources(nvrtc.compile_cuda(source, architecture))
    return {name: [r.instructions, r.registers, r.spilled] for name, r in sorted(resources.items())}


def recorded(path: Path) -> Mapping[tuple[str, str], dict[str, list[int]]]:
    """Return the kernels with layouts as arguments in a record, by program and architecture."""
    if not path.exists():
        return {}
    rows = json.loads(path.read_text())["rows"]
    return {(r["program"], r["architecture"]): r["kernels"] for r in rows if r["layouts"] == "arguments"}


def main() -> None:
    """Compile and print."""
    options = parser(
        __doc__ or "", programs=",".join(PROGRAMS), architectures="sm_90", layouts=",".join(FORMS)
    )
    options.add_argument("--before", type=Path, default=BEFORE, help="record to compare with")
    arguments = options.parse_args()
    before = recorded(arguments.before)
    rows = []
    heads = f"{'layouts':10} {'instructions':>12} {'ratio':>6} {'registers':>10} {'spilled':>8}"
    print(f"{'program':28} {'':6} {heads}")
    for name in arguments.programs.split(","):
        texts = sources(name)
        for architecture in arguments.architectures.split(","):
            for form in arguments.layouts.split(","):
                code = kernels(texts[form], architecture)
                instructions, registers, spilled = zip(*code.values(), strict=True)
                reference = before.get((name, architecture))
                ratio = (
                    ""
                    if reference is None
                    else f"{sum(instructions) / sum(k[0] for k in reference.values()):.2f}"
                )
                print(
                    f"{name:28} {architecture:6} {form:10} {sum(instructions):12,} {ratio:>6} "
                    f"{max(registers):10} {max(spilled):8}",
                    flush=True,
                )
                row = {"program": name, "architecture": architecture, "layouts": form, "kernels": code}
                rows.append(row)
    save(arguments.json, rows)


if __name__ == "__main__":
    main()
