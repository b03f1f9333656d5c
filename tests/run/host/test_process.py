"""Properties of this process: command line, and limits of files and stacks."""

from __future__ import annotations

import gc
import os
import resource
import sys

import pytest

from halocline.errors import InputError
from halocline.run.host import process


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["/usr/bin/halocline", "run", "heat"], ["halocline", "run", "heat"]),
        (["/x/halocline/cli/__main__.py", "ls"], ["halocline", "ls"]),
        (["heat.py", "--n", "8"], ["heat.py", "--n", "8"]),
        ([], [""]),
    ],
)
def test_the_recorded_command_line_can_be_repeated(
    words: list[str], line: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", words)
    assert process.command_line() == line


def test_variables_of_the_environment_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_A", "1")
    monkeypatch.delenv("HALOCLINE_B", raising=False)
    with process.environment({"HALOCLINE_A": None, "HALOCLINE_B": "2"}):
        assert "HALOCLINE_A" not in os.environ
        assert os.environ["HALOCLINE_B"] == "2"
    assert os.environ["HALOCLINE_A"] == "1"
    assert "HALOCLINE_B" not in os.environ


def test_thresholds_of_the_garbage_collector_are_restored() -> None:
    before = gc.get_threshold()
    try:
        process.seldom()
        assert gc.get_threshold() == process.SELDOM
    finally:
        gc.set_threshold(*before)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """Replace the limits of the system, and return them."""
    infinite = resource.RLIM_INFINITY
    system_limits = {resource.RLIMIT_NOFILE: (64, 100), resource.RLIMIT_STACK: (infinite, infinite)}
    monkeypatch.setattr(resource, "getrlimit", system_limits.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", system_limits.__setitem__)
    return system_limits


def test_the_limit_of_open_files_is_raised_as_far_as_ranks_need(limits: dict[int, tuple[int, int]]) -> None:
    process.allow_files(4)
    assert limits[resource.RLIMIT_NOFILE] == (64, 100)  # the limit suffices
    process.allow_files(8)
    assert limits[resource.RLIMIT_NOFILE] == (80, 100)
    with pytest.raises(InputError, match="14 ranks need 104 open files in a process, but only 100 are"):
        process.allow_files(14)


def test_a_small_stack_of_the_process_is_an_error(limits: dict[int, tuple[int, int]]) -> None:
    process.check_stacks(1, {})
    limits[resource.RLIMIT_STACK] = (process.STACK - 1, process.STACK)
    with pytest.raises(InputError, match="the stack of a process is limited to 1048575 bytes"):
        process.check_stacks(1, {})


@pytest.mark.parametrize(
    ("text", "fits"), [("256", True), ("255", False), ("1M", True), ("2000 b", False), ("much", True)]
)
def test_a_small_stack_of_threads_is_an_error(
    text: str, fits: bool, limits: dict[int, tuple[int, int]]
) -> None:
    process.check_stacks(1, {"OMP_STACKSIZE": text})
    if fits:
        process.check_stacks(2, {"OMP_STACKSIZE": text})
    else:
        with pytest.raises(InputError, match=f"OMP_STACKSIZE is '{text}'"):
            process.check_stacks(2, {"OMP_STACKSIZE": text})
