"""Tests on several ranks, and a compile cache of their own.

`@pytest.mark.ranks(1, 2, 4)` runs a test under mpiexec, once for each count of ranks: every rank is a
pytest of its own that runs just that test, and the outcome of all ranks is that of the test. On the
ranks, `shared_tmp_path` is one folder for all of them. `@pytest.mark.long` marks what `make test`
leaves out.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TIMEOUT = 120.0  # seconds for one run under mpiexec, unless the marker says otherwise
GRACE = 2.0  # seconds that other ranks have for an end of their own after one has failed
OUTCOMES = "HALOCLINE_TEST_OUTCOMES"  # set on the ranks: the folder where each leaves its outcome
LIMIT = "HALOCLINE_TEST_LIMIT"  # set on the ranks: seconds after which each says where it stands

RUNNER = re.compile(r"/_?pytest/|/pluggy/|<frozen runpy>")  # lines of a stack that say nothing

on_rank = OUTCOMES in os.environ


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "ranks(*counts, timeout=120): run under mpiexec, once for each count of ranks"
    )
    config.addinivalue_line("markers", "long: takes minutes; runs in `make test-full` only")
    if not on_rank:
        folder = tempfile.mkdtemp(prefix="halocline-cache-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ["HALOCLINE_CACHE"] = folder  # the ranks inherit it


def pytest_pycollect_makemodule(module_path: Path) -> None:
    """Give hypothesis its settings; it is slow to import, so only where the module uses it."""
    if "hypothesis" in module_path.read_text():
        from hypothesis import Phase, settings

        settings.register_profile("here", deadline=None)
        settings.register_profile(
            "ranks",  # must draw the same examples, and not search for smaller ones while others wait
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
        )
        settings.load_profile("ranks" if on_rank else "here")


@pytest.fixture
def shared_tmp_path(tmp_path: Path) -> Path:
    """A new folder, the same on all ranks of a test."""
    if not on_rank:
        return tmp_path
    folder = Path(os.environ[OUTCOMES]) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


# -- on the ranks ------------------------------------------------------------------------------------

if on_rank:
    from halocline.run import mpi

    started = mpi.launcher()
    assert started is not None
    outcome = Path(os.environ[OUTCOMES]) / str(started.rank)
    stack = outcome.with_suffix(".stack").open("w")
    faulthandler.dump_traceback_later(float(os.environ[LIMIT]), file=stack)

    def pytest_runtest_logreport(report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        text = report.longreprtext
        if report.skipped and isinstance(report.longrepr, tuple):
            text = report.longrepr[2]
        if report.failed:
            text += "".join(f"\n--- {title} ---\n{content}" for title, content in report.sections)
        new = outcome.with_suffix(".new")
        new.write_text(f"{report.outcome}\n{text}")
        new.rename(outcome)  # whole or not at all


# -- where the ranks are started ---------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not on_rank:
        items[:] = [new for item in items for new in ranked(item)]


def ranked(item: pytest.Item) -> Iterator[pytest.Item]:
    """The test itself, or one item for each count of ranks that it asks for."""
    marker = item.get_closest_marker("ranks")
    if marker is None or item.parent is None:
        yield item
        return
    if not marker.args:
        raise pytest.UsageError(f"{item.nodeid}: the marker ranks names no count")
    for count in marker.args:
        name = f"{item.name.removesuffix(']')}{'-' if item.name.endswith(']') else '['}ranks{count}]"
        new = RankedItem.from_parent(
            item.parent, name=name, test=item, ranks=count, timeout=marker.kwargs.get("timeout", TIMEOUT)
        )
        new.own_markers = item.own_markers
        new.keywords.update(dict.fromkeys(item.keywords, True))
        yield new


class RankedItem(pytest.Item):
    """One test under mpiexec."""

    def __init__(self, *, test: pytest.Item, ranks: int, timeout: float, **rest: Any) -> None:
        super().__init__(**rest)
        self.test, self.ranks, self.timeout = test, ranks, timeout

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        path, line, _ = self.test.reportinfo()
        return path, line, self.name

    def runtest(self) -> None:
        with tempfile.TemporaryDirectory(prefix="halocline-ranks-") as folder:
            output, late = run_ranks(self.test, self.ranks, self.timeout, Path(folder))
            judge(Path(folder), self.ranks, self.timeout if late else None, output)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return excinfo.value.args[0] if excinfo.errisinstance(RankFailure) else super().repr_failure(excinfo)


class RankFailure(Exception):
    """Carries what a failing rank printed."""


def run_ranks(test: pytest.Item, ranks: int, timeout: float, folder: Path) -> tuple[str, bool]:
    """Start the ranks and wait for them; return what they printed and whether time ran out."""
    from halocline.run import launch

    environment = launch.environment() | {OUTCOMES: str(folder), LIMIT: str(0.9 * timeout)}
    environment.pop("PYTEST_ADDOPTS", None)
    environment.pop("PYTEST_CURRENT_TEST", None)
    if ranks > len(os.sched_getaffinity(0)):
        environment.setdefault("OMP_WAIT_POLICY", "passive")
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take longer than most tests
    root = test.config.rootpath
    command = [str(launch.mpiexec()), "-n", str(ranks), sys.executable]
    command += ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={root}", test.nodeid]
    with (folder / "output").open("w+", errors="replace") as output:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        end = time.monotonic() + timeout
        failed = late = False
        try:
            while process.poll() is None:
                late = time.monotonic() > end
                if late:
                    break
                if not failed and any(result(folder, rank)[0] == "failed" for rank in range(ranks)):
                    failed, end = True, min(end, time.monotonic() + GRACE)
                time.sleep(0.02)
        finally:
            stop(process)
        output.seek(0)
        return output.read(), late and not failed


def stop(process: subprocess.Popen[bytes]) -> None:
    """End mpiexec, which ends the ranks."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(3)


def result(folder: Path, rank: int) -> tuple[str, str]:
    """The outcome that a rank has left, and its text."""
    file = folder / str(rank)
    outcome, _, text = file.read_text().partition("\n") if file.is_file() else ("", "", "")
    return outcome, text


def judge(folder: Path, ranks: int, timeout: float | None, output: str) -> None:
    """Turn the outcomes of the ranks into that of the test."""
    results = [result(folder, rank) for rank in range(ranks)]
    outcomes = [outcome for outcome, _ in results]
    failed = [rank for rank in range(ranks) if outcomes[rank] == "failed"]
    if failed:
        first = min(failed, key=lambda rank: (folder / str(rank)).stat().st_mtime_ns)
        raise RankFailure(f"rank {first} of {ranks} failed (failed: {failed}):\n{results[first][1]}")
    missing = [rank for rank in range(ranks) if not outcomes[rank]]
    if missing:
        stacks = "".join(
            f"\nrank {file.stem}:\n{file.read_text()}"
            for file in (folder / f"{rank}.stack" for rank in missing)
            if file.is_file()
        )
        why = f"no end within {timeout:g} s" if timeout else "died"
        text = f"{why}: ranks {missing} of {ranks} left no outcome\n{output[-4000:]}{stacks}"
        raise RankFailure("\n".join(line for line in text.splitlines() if not RUNNER.search(line)))
    if set(outcomes) == {"skipped"}:
        pytest.skip(results[0][1])
    if set(outcomes) != {"passed"}:
        raise RankFailure(f"the ranks disagree about the outcome: {outcomes}")
