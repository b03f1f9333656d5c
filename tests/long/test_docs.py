"""The documentation shows programs that run and print the shown output, and names that exist."""

from __future__ import annotations

import re

import pytest

from documented_blocks import BLOCK, ROOT, run
from halocline.problems.problem import Problem


def test_the_page_on_shocks_is_correct(tmp_path):
    """The program prints the shown output, and the page lists cases, parameters, defaults and names."""
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
    for name, parameter in parameters.ALL.items():
        entry = "1.66667" if defaults[name] == "5/3" else defaults[name]
        assert entry == parameter.default or float(entry) == pytest.approx(parameter.default, rel=1e-5), name
    assert len(case_names()) > 20
    for name in case_names():
        entry, problem = re.search(rf"^\| .*`{name}`.* \| ([\d, ]+) \|", text, re.MULTILINE), Problem(name)
        assert (entry is not None) == ("epsilon_fast" in problem.declared), name
        assert entry is None or [*map(int, entry[1].split(","))] == list(problem.sizes), name
    for name in mhd_tvd.__all__:
        assert re.search(rf"\b{name}\b", text), name
