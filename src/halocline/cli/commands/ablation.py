"""The group `halocline study ablation`, and its command for the exchange alone."""

from dataclasses import asdict
from typing import Annotated, Any

from halocline.cli import options
from halocline.cli.commands import EXAMPLES, CaseByName, command, group, parameters
from halocline.cli.options import ReportFiles, take, where
from halocline.study.study import studies

STUDY = studies()["ablation"]
LINE = "halocline study ablation exchange --n 128 --ranks 2 --subdomains-per-rank 2"
app = group(f"{STUDY.about}{EXAMPLES}" + "\n".join([*STUDY.examples, LINE]), CaseByName)


OF_RUNS = parameters(
    options.Execution, "threads", "device", "subdomains_per_rank", "ranks_per_node", "mailboxes"
)


@command(app, "exchange", OF_RUNS, ReportFiles, without=("pictures",))
def exchange(
    n: Annotated[int, options.CELLS_OF_RANK] = 128,
    dim: Annotated[int, options.DIM] = 3,
    radius: Annotated[int, options.RADIUS] = 3,
    fields: Annotated[int, options.FIELDS] = 4,
    dtype: Annotated[str, options.DTYPE] = "float32",
    machine: Annotated[str, where("--machine NAME|FILE")] = "summit",
    repeat: Annotated[int, options.REPEAT] = 7,
    ranks: Annotated[int | None, options.RANKS] = None,
    **values: Any,
) -> None:
    """Time the exchange of some fields on a periodic grid with one thing changed at a time: the transfer
    methods (+remote, +colo, +peer, +kernel of Pearson et al. 2020, and mailboxes), edges and corners, halos
    of one width or of each field's own, decompositions; and predict what the placement of subdomains is worth
    on a node of another machine.

    Parameters
    ----------
    machine
        The machine on whose node placements are compared.

    Examples
    --------
    halocline study ablation exchange --n 128 --ranks 2 --subdomains-per-rank 2
    halocline study ablation exchange --n 96 --ranks 4 --ranks-per-node 2 --html ablation.html
    """
    from halocline.cli.output import check_files, say
    from halocline.cli.progress import progress
    from halocline.cli.ranks import spread
    from halocline.cli.report import leave
    from halocline.cli.texts import execution_of

    execution, results = execution_of(values), take(ReportFiles, values)
    spread(ranks, threads=execution.get("threads"), per_node=execution.get("ranks_per_node"))
    from halocline.io.table import as_rows
    from halocline.plan.machine import load_machine
    from halocline.run.devices.devices import devices_in_use, summary
    from halocline.run.host.machine import this_machine
    from halocline.run.ranks.mpi import world
    from halocline.study.measuring import ablation as study
    from halocline.study.measuring.exchange import weak_shape
    from halocline.study.reporting.page import facts_of_machine
    from halocline.study.reporting.report import Report
    from halocline.words import counted

    check_files(*results.values())
    there = load_machine(machine)
    comm = world()
    shape = weak_shape(n, comm.size, dim)
    how: dict[str, Any] = {"fields": fields, "radius": radius, "dtype": dtype}
    with devices_in_use() as met, progress("all variants in turn", f"of {repeat} rounds") as on_progress:
        variants = study.measure(shape, **how, repeats=repeat, on_progress=on_progress, **execution)
    places = met(comm)
    if comm.rank != 0:
        return
    variants += study.place(there, weak_shape(n, len(there.devices), dim), **how)
    cells = "x".join(map(str, shape))
    what = f"{counted(fields, dtype + ' field')} of {cells} cells, radius {radius}"
    lead = f"{what}, on {counted(comm.size, 'rank')}" + (f", {summary(places)}" if places else "")
    record = {**how, "shape": shape, "ranks": comm.size, "devices": [asdict(place) for place in places]}
    report = Report(
        study.table(variants),
        study.verdicts(variants),
        lambda: {"ablation.png": study.plot(variants)},
        footer="Time is that of one exchange on the slowest rank: the median of runs of 30, all variants in "
        "turn.",
    )
    if results["json"] != "-":
        say(lead)
    leave(
        report,
        results,
        title="Ablation study: the exchange",
        lead=lead,
        record={**record, "variants": variants},
        rows=as_rows(variants),
        facts=facts_of_machine(this_machine().as_dict()),
    )
