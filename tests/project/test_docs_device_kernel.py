"""The page on device kernels quotes lines of real kernels, in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documented_blocks import ROOT, run

PAGE = ROOT / "docs" / "explanation" / "equation-to-device-kernel.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```(?:text|c)\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
OMITTED = re.compile(r"^ *\.\.\.\n", re.MULTILINE)
MARK = "-- end of block --"


def difference(quoted: str, printed: str) -> str:
    """Return the first lines in which a quotation and a text differ; empty if there is no difference.

    A quoted line `...` matches any lines. Three dots in a longer line match any part of a line.
    """
    position = 0
    parts = OMITTED.split(quoted)
    for number, lines in enumerate(parts):
        pattern = re.compile("^" + re.escape(lines).replace(r"\.\.\.", ".*"), re.MULTILINE)
        match = pattern.search(printed, position)
        if match is None or (number == 0 and match.start() > 0):
            return lines
        position = match.end()
    return printed[position:] if parts[-1] else ""


def test_the_page_quotes_lines_of_the_kernels_in_order(tmp_path: Path) -> None:
    text = PAGE.read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python")
    outputs = re.findall(r"^```(?:text|c)$", text, re.MULTILINE)
    assert sum(bool(quoted) for _, quoted in blocks) == len(outputs) > 10
    program = "".join(f'{code}\nprint("{MARK}")\n' for code, _ in blocks)
    printed = run(program, 1, tmp_path).replace("script.py", "heat.py").split(f"{MARK}\n")[:-1]
    for (code, quoted), output in zip(blocks, printed, strict=True):
        assert bool(quoted) == bool(output), code
        assert difference(quoted, output) == "", f"after\n{code}"


PRINTED = "a\n  b (1 + 2)\n  c\n    d\ne\n"


@pytest.mark.parametrize(
    "quoted", [PRINTED, "a\n  b (...)\n...\ne\n", "...\n  c\n    d\n...\n", "a\n  ...\n    d\n...\n"]
)
def test_quotations_of_a_text_have_no_difference(quoted: str) -> None:
    assert difference(quoted, PRINTED) == ""


@pytest.mark.parametrize("quoted", [
    "  b (1 + 2)\n...\n",  # lines before the first quoted line
    "a\n",  # lines after the last one
    "...\n  c\n...\n  b (1 + 2)\n...\n",  # another order
    "...\n  b (... 3)\n...\n",
    "...\n  c\n  d\n...\n",  # another indentation
    "a\n  c\n...\n",
    "...\n  b\n...\n",
])  # fmt: skip
def test_other_quotations_have_a_difference(quoted: str) -> None:
    assert difference(quoted, PRINTED) != ""
