"""Group `halocline study ablation`, and its command for the exchange alone."""

from dataclasses import asdict
from typing import Annotated, Any

from halocline.cli import options
from halocline.cli.commands import EXAMPLES, CaseByName, command, group, parameters
from halocline.cli.options import ReportFileOptions, execution_option, take_options
from halocline.study.study import studies

STUDY = studies()["ablation"]
LINE = "halocline study ablation exchange --n 128 --ranks 2 --subdomains-per-rank 2"
app = group(f"{STUDY.about}{EXAMPLES}" + "\n".join([*STUDY.examples, LINE]), CaseByName)


RUN_OPTIONS = parameters(
    options.Execution, "threads", "device", "subdomains_per_rank", "ranks_per_node", "mailboxes"
)


@command(app, "exchange", RUN_OPTIONS, ReportFileOptions, without=("pictures",))
def exchange(
    n: Annotated[int, options.CELLS_OF_RANK] = 128,
    dim: Annotated[int, options.DIM] = 3,
    radius: Annotated[int, options.RADIUS] = 3,
    fields: Annotated[int, options.FIELDS] = 4,
    dtype: Annotated[str, options.DTYPE] = "float32",
    machine: Annotated[str, execution_option("--machine NAME|FILE")] = "summit",
    repeat: Annotated[int, options.REPEAT] = 7,
    ranks: Annotated[int | None, options.RANKS] = None,
    **values: Any,
) -> None:
    """Time the halo exchange alone with one option changed at a time.

    The grid is periodic. The changed options are the transfer methods (+remote, +colo, +peer, +kernel of
    Pearson et al. 2020, and mailboxes), edges and corners, uniform or individual halo widths, and
    decompositions. For a node of another machine, a model predicts the gain from the placement of subdomains.

    Parameters
    ----------
    machine
        Machine for the predicted placements: a name of `halocline model`, or a TOML file.

    Examples
    --------
    halocline study ablation exchange --n 128 --ranks 2 --subdomains-per-rank 2
    halocline study ablation exchange --n 96 --ranks 4 --ranks-per-node 2 --html ablation.html
    """
    from halocline.cli.output import check_files, say
    from halocline.cli.ranks import start_ranks
    from halocline.cli.report import write_report
    from halocline.cli.texts import execution_of
    from halocline.run.simulation.progress import progress

    execution, results = execution_of(values), take_options(ReportFileOptions, values)
    start_ranks(ranks, threads=execution.get("threads"), per_node=execution.get("ranks_per_node"))
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
    machine_model = load_machine(machine)
    comm = world()
    shape = weak_shape(n, comm.size, dim)
    settings: dict[str, Any] = {"fields": fields, "radius": radius, "dtype": dtype}
    with (
        devices_in_use() as devices_met,
        progress("variants in turn", f"of {repeat} rounds") as on_progress,
    ):
        variants = study.measure(shape, **settings, repeats=repeat, on_progress=on_progress, **execution)
    places = devices_met(comm)
    if comm.rank != 0:
        return
    variants += study.predict_placements(
        machine_model, weak_shape(n, len(machine_model.devices), dim), **settings
    )
    cells = "x".join(map(str, shape))
    subject = f"{counted(fields, dtype + ' field')} of {cells} cells, radius {radius}"
    lead = f"{subject}, on {counted(comm.size, 'rank')}" + (f", {summary(places)}" if places else "")
    record = {**settings, "shape": shape, "ranks": comm.size, "devices": [asdict(place) for place in places]}
    report = Report(
        study.table(variants),
        study.verdicts(variants),
        lambda: {"ablation.png": study.plot(variants)},
        footer="Median time of one exchange on the slowest rank. Each run has 30 exchanges, and the variants "
        "run in turn.",
    )
    if results["json"] != "-":
        say(lead)
    write_report(
        report,
        results,
        title="Ablation study: the exchange",
        lead=lead,
        record={**record, "variants": variants},
        rows=as_rows(variants),
        facts=facts_of_machine(this_machine().as_dict()),
    )
