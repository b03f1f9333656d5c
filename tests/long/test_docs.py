"""What the documentation shows runs, prints what stands below it, and names what there is."""

from __future__ import annotations

import re

import pytest

from documented_blocks import BLOCK, ROOT, run
from halocline.problems.problem import Problem


def test_what_is_said_of_shocks(tmp_path):
    """The program prints what stands below it; cases, parameters with their defaults and names are there."""
    from halocline.physics import mhd_tvd
    from halocline.physics.mhd_tvd import parameters
    from halocline.problems.files import case_names

    text = (ROOT / "docs" / "how-to" / "shocks.md").read_text()
    ((program, output),) = BLOCK.findall(text)
    assert run(program, 1, tmp_path) == output
    defaults = dict(
        re.findall(r"^\| `(\w+)` \| (\S+) \|", text.partition("## Parameters\n")[2], re.MULTILINE)
    )
    assert defaults.keys() == parameters.ALL.keys()
    for name, own in parameters.ALL.items():
        told = "1.66667" if defaults[name] == "5/3" else defaults[name]
        assert told == own.default or float(told) == pytest.approx(own.default, rel=1e-5), name
    assert len(case_names()) > 20
    for name in case_names():
        told, problem = re.search(rf"^\| .*`{name}`.* \| ([\d, ]+) \|", text, re.MULTILINE), Problem(name)
        assert (told is not None) == ("epsilon_fast" in problem.declared), name
        assert told is None or [*map(int, told[1].split(","))] == list(problem.sizes), name
    for name in mhd_tvd.__all__:
        assert re.search(rf"\b{name}\b", text), name
