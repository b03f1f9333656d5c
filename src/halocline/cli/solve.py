"""`halocline solve`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from halocline.cli.keeping import Kept, writing_lines
from halocline.cli.output import check_files, say, write_json, written
from halocline.cli.progress import progress
from halocline.cli.ranks import spread
from halocline.cli.timeline import draw_timeline
from halocline.errors import InputError

DIM, METHOD = 2, "cg-fused"  # where none is given


def poisson(
    *,
    n: int | None,
    dim: int | None,
    method: str | None,
    rtol: float,
    max_iterations: int | None,
    ranks: int | None,
    json: str | None,
    pictures: Path | None,
    execution: Mapping[str, Any],
    kept: Kept,
) -> None:
    """Solve the elliptic problem, and report how it went."""
    spread(ranks, kept.io_ranks)
    from halocline.problems import solve

    if kept.resume is not None:
        from halocline.problems.linear import goes_on

        n, dim, method = goes_on(kept.resume, n, dim, method)
    if n is None:
        raise InputError("Missing option '--n': give the interior points along each axis, such as --n 512")
    dim, method = dim or DIM, method or METHOD
    trace = execution.get("trace")
    check_files(json, trace, *_pictures(pictures, trace))
    with progress(f"{method}, N = {n}", "iterations") as on_progress:
        result = solve.poisson(
            n,
            dim,
            method=method,
            rtol=rtol,
            max_iterations=max_iterations,
            on_progress=on_progress,
            **kept.options(),
            **execution,
        )
    if json != "-":
        say(_summary(result, dim, method, rtol))
    write_json(json, asdict(result.record))
    if pictures is not None:
        _draw(result, pictures)
        if trace and not result.record.devices:
            draw_timeline(result.solution.fields.domain, pictures / "timeline.png")
    written([json, trace, *_pictures(pictures, None if result.record.devices else trace), *kept.stores])
    kept.note_checkpoints()


def _pictures(folder: Path | None, trace: Path | None) -> list[Path]:
    if folder is None:
        return []
    return [folder / name for name in ("solution.png", "error.png", "timeline.png")[: 3 if trace else 2]]


def _draw(result: object, folder: Path) -> None:
    from halocline.io.picture import picture
    from halocline.problems.solve import Result

    assert isinstance(result, Result)
    solution, error = _pictures(folder, None)
    case, n = result.case, result.record.n
    picture(result.solution, case.linear.unknown, solution, title=f"Solution, N = {n}", label="u")
    picture(result.solution, case.error, error, title=f"Error, N = {n}", label="u - exact", cmap="magma")


def _summary(result: object, dim: int, method: str, rtol: float) -> str:
    from halocline.problems.solve import Result
    from halocline.run.devices.devices import where
    from halocline.run.measurements.bandwidth import yardstick
    from halocline.words import amount, counted, duration

    assert isinstance(result, Result)
    r, s = result.record, result.solution
    ran = where(r.ranks, r.threads, r.devices)
    lines = [
        f"Poisson in {dim}D, N = {r.n}: {counted(r.dof, 'unknown')}, {method}, {ran}",
        "",
        f"{'converged' if r.converged else 'not converged':13} {_after(r.iterations)}, residual "
        f"{r.residual_relative:.3g} times the first (asked for: {rtol:g})",
        f"{'':13} computed anew, as b - A x: {r.true_residual_relative:.3g} times the first"
        + (", since rounding errors are the rest" if r.reason == "rounding limit" else ""),
        f"{'error':13} {r.error_max:.4e}, the greatest difference from the exact solution",
        f"{'time':13} {duration(r.seconds)}"
        + (f", {duration(r.seconds_per_iteration)} an iteration" if r.seconds_per_iteration else ""),
        f"{'':13} compute {_part(s.compute, r.seconds)}, exchange {_part(s.exchange, r.seconds)}, "
        f"reductions {_part(s.reduction, r.seconds)}",
    ]
    if r.seconds_per_iteration and r.bandwidth_share and result.bandwidth:
        rate = r.bytes_per_iteration / r.seconds_per_iteration
        most = f"{result.bandwidth / 1e9:.1f} GB/s of {yardstick(r.devices)}"
        lines.append(f"{'bandwidth':13} {rate / 1e9:.1f} GB/s, {r.bandwidth_share:.0%} of the {most}")
    if result.tuned is not None:
        lines.append(f"{'patches':13} {result.tuned}")
    if r.ranks > 1:
        lines.append(f"{'overlap':13} {s.overlap}")
    lines += writing_lines(r)
    of = " of the host" if r.devices else ""
    lines += [f"{'memory':13} {amount(r.memory_bytes)}{of} resident", f"{'checksum':13} {r.checksum}"]
    return "\n".join(lines)


def _after(iterations: int) -> str:
    return f"after {iterations:,} iteration{'' if iterations == 1 else 's'}"


def _part(seconds: float, whole: float) -> str:
    return f"{seconds / whole:.0%}" if whole else "0%"
