"""`halocline explain`."""

from __future__ import annotations

from halocline.cli import options
from halocline.cli.commands import CaseByName
from halocline.cli.declare import PLACE, Command, Commands, whole
from halocline.ranges import RANK

PLANNED = (
    options.RANKS.but("As many ranks are planned for.", default=1),
    options.where("--rank K", "Which of them is explained; by default one in the middle.", whole(RANK)),
    options.EXECUTION.without(options.MAILBOXES, options.SCHEDULE).but(
        options.THREADS.but("Threads of each rank.", default=1),
        options.KERNELS.but(
            "How threads of a device read the cells around theirs, as for solve; [bold]auto[/]: queue.",
            form="--kernels auto|direct|queue|planes",
        ),
    ),
    options.results("--code", "Print the generated C++ too, with all the rest as comments."),
    options.results("--passes", "Print what every pass of the compiler leaves of each kernel too."),
    options.results("--picture FILE", "Draw who sends how much to whom, and how.", PLACE),
    options.JSON,
)
SHOWN = (
    "what is exchanged and why, messages, bytes, flops, memory, patches, and the least time that the memory "
    "of this machine allows. No rank is started."
)

EXPLAIN = Commands(
    name="explain",
    help="Show what a case, or your own file, would do on many ranks, without starting any.",
    examples=[
        "halocline explain poisson --n 1024 --ranks 64",
        "halocline explain mhd-benchmark --n 128 --ranks 8",
        "halocline explain acoustic.py --ranks 64",
    ],
    cls=CaseByName,
    commands=[
        Command(
            name="CASE",
            does="halocline.cli.explain:case",
            help="Steps or iterations of a case of `halocline cases`, or of the first problem that a Python "
            "file "
            "makes: "
            f"fields and halos, {SHOWN}",
            examples=[
                "halocline explain poisson --n 512 --dim 3 --ranks 100000 --rank 0",
                "halocline explain poisson --n 1024 --code > kernels.cpp",
                "halocline explain mhd-benchmark --n 128 --ranks 8",
                "halocline explain convection --set rayleigh=1e5 --order 4 --ranks 64 --rank 0",
                "halocline explain acoustic.py --n 1024 --ranks 64",
            ],
            takes=(options.CASE, options.OF_CASE, options.METHOD_OF_CASE, PLANNED),
        ),
    ],
)
