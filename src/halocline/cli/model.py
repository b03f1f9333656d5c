"""`halocline model`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from halocline.cli.options import whole_numbers
from halocline.cli.output import check_files, say, write_json, written
from halocline.cli.progress import progress


def poisson(
    *,
    n: int,
    dim: int,
    method: str,
    machine: str,
    nodes: str,
    ranks_per_node: int | None,
    scaling: str,
    decomposition: str,
    placement: str,
    overlap: bool,
    json: str | None,
    picture: Path | None,
) -> None:
    """Predict, and print the table."""
    from halocline.plan.machine import load_machine
    from halocline.study import predict as study

    counts = whole_numbers(nodes, "--nodes")
    check_files(json, picture)
    there = load_machine(machine)
    schedule, shape = study.poisson(n, dim, method=method)
    with progress(f"{method}, N = {n} on {there.name}", f"of {len(counts)} numbers of nodes") as on_progress:
        found = study.predict(
            schedule,
            shape,
            there,
            counts,
            ranks_per_node=ranks_per_node,
            scaling=scaling,
            strategy=decomposition,
            placement=placement,
            overlap=overlap,
            on_progress=on_progress,
        )
    heading = {"case": "poisson", "n": n, "dim": dim, "method": method, "machine": there.name}
    write_json(
        json,
        {
            **heading,
            "scaling": scaling,
            "placement": placement,
            "overlap": overlap,
            "runs": [asdict(p) for p in found],
        },
    )
    if picture is not None:
        from halocline.io.style import styled

        with styled():
            study.plot(found, scaling).savefig(picture)
    if json != "-":
        say(f"Poisson in {dim}D, N = {n}, {method}; a pass is an iteration\n")
        say(study.table(found, there, scaling).text())
        say(study.verdict(found))
    written([json, picture])


def figures(folder: Path, json: str | None) -> None:
    """Draw the figures of the papers, and tell their numbers."""
    from halocline.io.style import styled
    from halocline.plan.machine import load_machine
    from halocline.study import figures as study
    from halocline.study.predict import poisson as case

    names = ("halo-sizes.png", "theoretical-scaling.png", "ranks-of-a-node.png")
    paths = [folder / name for name in names]
    check_files(json, *paths)
    machine, ranks, per_node = load_machine("stampede2-skx"), 192, (2, 4, 8, 16, 24, 48)
    halo, scaling = study.halo_sizes(), study.theoretical_scaling()
    schedule, shape = case(4096)
    together = study.ranks_of_a_node(schedule, shape, machine, ranks, per_node)
    with styled():
        for path, figure in zip(
            paths,
            (
                study.draw_halo_sizes(halo),
                study.draw_theoretical_scaling(scaling),
                study.draw_ranks_of_a_node(together, ranks),
            ),
            strict=True,
        ):
            figure.savefig(path)
    numbers = {"halo_sizes": halo, "theoretical_scaling": scaling, "ranks_of_a_node": together}
    write_json(json, numbers)
    if json != "-":
        most = max(scaling[256])
        for n, line in scaling.items():
            say(f"{n}³ on {most} devices: {line[1] / most / line[most]:.1%} of ideal scaling")
    written([json, *paths])
