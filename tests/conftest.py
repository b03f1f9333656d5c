"""Tests on several ranks, and a compile cache of their own.

The workers of pytest-xdist share the files (--dist loadfile), so that tests of a file run in order. The
folders mirror those of src/halocline; tests/support has modules that tests import. Tests receive the markers
`mpi`, `devices`, `system` and `long` by their folder. Tests of ranks are `mpi`, and tests with OpenCL devices
are `devices`, in any folder.

`@pytest.mark.ranks(1, 2, 4)` runs a test under mpiexec, once for each count of ranks. Tests of a worker with
the same count share one mpiexec, whose ranks run the tests of a file in the same order. The outcome of all
ranks is that of the test. The tests after a failing test run in a new mpiexec. A test that changes its
process has an mpiexec of its own by `alone=True`, and the tests of a file have one together by
`alone="file"`. `shared_tmp_path` is one folder for all ranks. `@pytest.mark.long` marks the extended test
suite, which `make test` omits; `@pytest.mark.ranks(1, 2, 4, long=(1, 2))` does so for some of the counts, and
`suites.cases` for some of the parameters.

Kernels are compiled once in a run of the tests, at level -Og (HALOCLINE_OPTIMIZATION), which takes g++ a
quarter of the time; compile/test_driver.py tests that the bits are those of -O3. Tests that compute for
minutes have the fixture `fast_kernels`, which selects -O3. If HALOCLINE_TEST_CACHE names a folder, it keeps
the kernel libraries for later runs. The name of a library identifies its sources, and its digest its bytes.
The folder keeps no other files, such as measured kernels.

The fixture `opencl` is two devices of PoCL, which computes on the processor. Without PoCL the tests with this
fixture are skipped, or fail if HALOCLINE_TEST_OPENCL is "required".
"""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from hang import HANG
from rank_tests import OUTCOMES, RankServer, place, result
from suites import SUITE

if TYPE_CHECKING:
    from halocline import _native
    from halocline.compile.ir.kernel import Kernel


# OpenMP threads that wait between two runs leave the cores to the many other processes. So do ranks of Open
# MPI that wait for others.
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
# Kernels that compile fast: no bit depends on the level. Ranks and commands inherit it from the tests.
os.environ.setdefault("HALOCLINE_OPTIMIZATION", "g")
# Tests start thousands of processes, which must not compile all modules of Python again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# NumPy starts these threads in every process, and they poll for work for a while.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# signals that tests send
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGQUIT, signal.SIGHUP)
KEPT = "HALOCLINE_TEST_CACHE"  # optional: the folder that keeps libraries for the next run
KEEP = 14 * 24 * 3600.0  # seconds after which libraries are compiled again, so that unused ones disappear
WORKER = "PYTEST_XDIST_WORKER"  # set in the processes that distribute the files

POCL = "Portable Computing Language"  # the name of its platform

TESTS = Path(__file__).parent
MARKERS = {  # markers of the tests in the folders of these names
    "mpi": "runs on several ranks",
    "devices": "needs OpenCL or CUDA devices or a stand-in driver",
    "system": "runs complete commands, from installation to the end of a job",
    "long": "takes minutes; runs in `make test-full` only",
}
# The longest files begin first, so that no worker still runs alone at the end.
FIRST = (
    "physics/mhd_tvd/test_scheme.py", "run/output/test_restart.py", "system/test_command.py",
    "mpi/test_ranks.py", "solvers/test_schemes.py", "devices/test_runs.py", "project/test_docs.py",
    "cases/test_cases.py", "plan/test_launches.py", "physics/mhd/test_equations.py",
    "native/test_engine.py", "mpi/test_faults.py",
)  # fmt: skip

RUNNER = re.compile(r"/_?pytest/|/pluggy/|<frozen runpy>")  # stack lines without information

SERVERS: dict[int, RankServer] = {}  # by number of ranks
on_rank = OUTCOMES in os.environ


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "ranks(*counts, long=(), timeout=HANG, alone=False): run under mpiexec, once for each count of ranks",
    )
    for name, text in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {text}")
    hear_signals()
    from halocline.compile.ir import pipeline
    from halocline.compile.ir.verify import verify
    from halocline.run.host.process import seldom

    seldom()
    # Verify the output of each compiler pass, once for equal kernels, and on one rank, since all ranks
    # compile the same.
    pipeline.verifies = not on_rank or rank == 0
    if pipeline.verify is verify:
        pipeline.verify = once(verify)
    if not on_rank and WORKER not in os.environ:
        # workers and ranks inherit it
        os.environ[SUITE] = "default" if is_default_suite(config) else "extended"
        folder = tempfile.mkdtemp(prefix="halocline-cache-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        library_folder = os.environ.get(KEPT)
        if library_folder:
            copy_libraries(Path(library_folder), Path(folder))
            # before the folder is removed
            config.add_cleanup(lambda: copy_libraries(Path(folder), Path(library_folder)))
        os.environ["HALOCLINE_CACHE"] = folder  # the workers and ranks inherit it
        # before anything loads OpenCL: two devices of two threads each
        os.environ |= {"POCL_DEVICES": "pthread pthread", "POCL_MAX_PTHREAD_COUNT": "2"}
        os.environ["POCL_CACHE_DIR"] = str(Path(folder) / "pocl")


def is_default_suite(config: pytest.Config) -> bool:
    """Return True if pytest runs the tests of `make test`."""
    return config.getoption("markexpr") == "not long"


def once(verify: Callable[[Kernel], None]) -> Callable[[Kernel], None]:
    """Verify equal kernels once, identified by their hashes, since all kernels would need too much memory."""
    verified: set[int] = set()

    def verify_once(kernel: Kernel) -> None:
        if (digest := hash(kernel)) not in verified:
            verify(kernel)
            verified.add(digest)

    return verify_once


def hear_signals() -> None:
    """Set handlers, so that processes of tests start with the default action of each signal that tests send.

    A shell without job control starts its background commands with SIGINT and SIGQUIT ignored, and `nohup`
    with SIGHUP. Child processes inherit ignored and blocked signals, but not handlers.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    for number in SIGNALS:
        if signal.getsignal(number) == signal.SIG_IGN:
            handler = signal.default_int_handler if number == signal.SIGINT else _ignore
            signal.signal(number, handler)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Ignore a signal, as the process did at its start."""


def copy_libraries(source: Path, target: Path) -> None:
    """Copy complete and recent libraries of kernels, and remove old ones."""
    from halocline.compile.cache import is_usable, own_folder

    own_folder(target)
    for library in source.glob("*.so"):
        files = [library.with_suffix(".cpp"), library.with_name(f"{library.name}.sha256"), library]
        if time.time() - library.stat().st_mtime > KEEP:
            for file in files:
                file.unlink(missing_ok=True)
        elif not (target / library.name).exists() and is_usable(library) and files[0].exists():
            for file in files:  # complete or absent, also if another run copies the same file
                new = target / f"{file.name}.{os.getpid()}"
                shutil.copy2(file, new)
                new.rename(target / file.name)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Set the options of hypothesis in modules that use it; its import is slow.

    `make test` gives the same result for the same source, while `make test-full` draws new examples each
    time.
    """
    if "hypothesis" in module_path.read_text():
        from hypothesis import Phase, settings

        settings.register_profile("every change", deadline=None, derandomize=True)
        settings.register_profile("full", deadline=None)
        settings.register_profile(
            "ranks",  # must draw the same examples, and must not search for smaller ones while others wait
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
        )
        every_change = is_default_suite(parent.config)
        settings.load_profile("ranks" if on_rank else "every change" if every_change else "full")


@pytest.fixture(scope="session")
def opencl() -> list[_native.Device]:
    """Return two OpenCL devices of one platform."""
    from halocline import _native

    result = [device for device in _native.devices("opencl") if device.identity.startswith(POCL)]
    if len(result) < 2:
        reason = _native.why_no_devices("opencl") or f"PoCL has {len(result)} of 2 devices"
        reason += " (the tests use PoCL; Debian: pocl-opencl-icd, ocl-icd-libopencl1)"
        if os.environ.get("HALOCLINE_TEST_OPENCL") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return result


@pytest.fixture(autouse=True)
def _restored_signals() -> Iterator[None]:
    """Begin and end each test with the signal handlers that `hear_signals` sets.

    A command that a test calls in this process may leave SIGTERM ignored. A later test that sends SIGTERM
    would then wait forever.
    """
    hear_signals()
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _compiled_anew(request: pytest.FixtureRequest) -> None:
    """Store no schedules in tests that may patch the compiler, since a stored schedule would be reused."""
    if "monkeypatch" in request.fixturenames:
        from halocline.compile import compiler

        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr(compiler, "MOST_SCHEDULES", 0)
        monkeypatch.setattr(compiler, "_schedules", {})


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 1 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def fast_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile kernels at level -O3, for tests that compute longer than g++ compiles."""
    monkeypatch.setenv("HALOCLINE_OPTIMIZATION", "3")


@pytest.fixture
def shared_tmp_path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a new folder, the same on all ranks of a test."""
    if not on_rank:
        return tmp_path
    folder = place(os.environ[OUTCOMES], request.node.nodeid) / "shared"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# -- on the ranks ------------------------------------------------------------------------------------

if on_rank:
    from halocline.run.ranks.library import launcher

    started = launcher()
    assert started is not None
    rank = started.rank

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(item: pytest.Item) -> None:
        folder = place(os.environ[OUTCOMES], item.nodeid)
        folder.mkdir(parents=True, exist_ok=True)
        stack = (folder / f"{rank}.stack").open("w")
        marker = item.get_closest_marker("ranks")
        assert marker is not None
        faulthandler.dump_traceback_later(0.9 * marker.kwargs.get("timeout", HANG), file=stack)

    def pytest_runtest_logreport(report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        outcome = place(os.environ[OUTCOMES], report.nodeid) / str(rank)
        text = report.longreprtext
        if report.skipped and isinstance(report.longrepr, tuple):
            text = report.longrepr[2]
        if report.failed:
            text += "".join(f"\n--- {title} ---\n{content}" for title, content in report.sections)
        new = outcome.with_suffix(".new")
        new.write_text(f"{report.outcome}\n{text}")
        new.rename(outcome)  # complete or absent


# -- start of the ranks ------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not on_rank:
        for item in items:
            mark(item)
        items[:] = [new for item in items for new in ranked(item)]
        items.sort(key=lambda item: turn(str(item.path.relative_to(TESTS))))


def turn(path: str) -> int:
    """Return the rank of a test file in the order: long files, those of FIRST, all others."""
    if path.startswith("long/"):
        return -1
    return FIRST.index(path) if path in FIRST else len(FIRST)


def mark(item: pytest.Item) -> None:
    """Add the markers of its folder, ranks and devices to a test."""
    names = {item.path.relative_to(TESTS).parts[0]} & set(MARKERS)
    if item.get_closest_marker("ranks") is not None:
        names.add("mpi")
    if "opencl" in getattr(item, "fixturenames", ()):
        names.add("devices")
    for name in sorted(names):
        item.add_marker(name)


def ranked(item: pytest.Item) -> Iterator[pytest.Item]:
    """Return the test, or one item for each of its counts of ranks."""
    marker = item.get_closest_marker("ranks")
    if marker is None or item.parent is None:
        yield item
        return
    if not marker.args:
        raise pytest.UsageError(f"{item.nodeid}: the marker ranks names no count")
    for count in marker.args:
        name = f"{item.name.removesuffix(']')}{'-' if item.name.endswith(']') else '['}ranks{count}]"
        new = RankedItem.from_parent(
            item.parent,
            name=name,
            test=item,
            ranks=count,
            timeout=marker.kwargs.get("timeout", HANG),
            alone=marker.kwargs.get("alone", False),
        )
        new.own_markers = [*item.own_markers]
        new.keywords.update(dict.fromkeys(item.keywords, True))
        if count in marker.kwargs.get("long", ()):
            new.add_marker(pytest.mark.long)
        yield new


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make the tests that run on the same ranks adjacent."""
    gc.collect()
    gc.freeze()  # later scans of the garbage collector omit the thousands of tests
    sessions: dict[tuple[Any, ...], SharedRanks] = {}
    for item in session.items:
        if isinstance(item, RankedItem):
            key = (item.path, item.ranks, item.name if item.alone is True else item.alone)
            if key not in sessions:
                sessions[key] = SharedRanks(item.ranks, bool(item.alone))
                session.config.add_cleanup(sessions[key].remove)
            item.shared = sessions[key]
            item.shared.tests[item.test.nodeid] = item.timeout


class RankedItem(pytest.Item):
    """A test under mpiexec."""

    shared: SharedRanks

    def __init__(
        self, *, test: pytest.Item, ranks: int, timeout: float, alone: bool | str, **rest: Any
    ) -> None:
        super().__init__(**rest)
        self.test, self.ranks, self.timeout, self.alone = test, ranks, timeout, alone

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        path, line, _ = self.test.reportinfo()
        return path, line, self.name

    def runtest(self) -> None:
        self.shared.judge(self.test.nodeid, self.config.rootpath)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return excinfo.value.args[0] if excinfo.errisinstance(RankFailure) else super().repr_failure(excinfo)


class RankFailure(Exception):
    """Failure with the output of a rank."""


class SharedRanks:
    """Tests of a file that ranks run together, and their outcomes."""

    def __init__(self, ranks: int, alone: bool) -> None:
        self.ranks = ranks
        self.alone = alone
        self.tests: dict[str, float] = {}  # in order, each with its time limit in seconds
        # output of the ranks, and True if a time limit was exceeded
        self.outcomes: dict[str, tuple[str, bool]] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="halocline-ranks-"))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def judge(self, test: str, root: Path) -> None:
        """Turn the outcomes of the ranks into that of the test; run it and all later ones if necessary."""
        if test not in self.outcomes:
            names = [*self.tests]
            self.run({name: self.tests[name] for name in names[names.index(test) :]}, root)
        output, timed_out = self.outcomes[test]
        judge(place(self.folder, test), self.ranks, self.tests[test] if timed_out else None, output)

    def run(self, tests: dict[str, float], root: Path) -> None:
        """Run the tests; outcomes after a failing or incomplete test do not count."""
        if self.alone:
            server = RankServer(self.ranks, root)
            output, timed_out = server.run(tests, self.folder)
            server.close()
        else:
            output, timed_out = rank_server(self.ranks, root).run(tests, self.folder)
        sound = True
        for test in tests:
            if sound:
                outcomes = [result(place(self.folder, test), rank)[0] for rank in range(self.ranks)]
                sound = all(outcome in ("passed", "skipped") for outcome in outcomes)
                self.outcomes[test] = output, timed_out and not sound
            else:
                shutil.rmtree(place(self.folder, test), ignore_errors=True)


def rank_server(ranks: int, root: Path) -> RankServer:
    """Return the server of this process with a number of ranks; start it if necessary."""
    if ranks not in SERVERS or not SERVERS[ranks].is_alive():
        SERVERS[ranks] = RankServer(ranks, root)
    return SERVERS[ranks]


def pytest_unconfigure() -> None:
    """End the servers, which wait for a request."""
    for server in SERVERS.values():
        server.close()
    SERVERS.clear()


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
        cause = f"no end within {timeout:g} s" if timeout else "died"
        text = f"{cause}: ranks {missing} of {ranks} left no outcome\n{output[-4000:]}{stacks}"
        raise RankFailure("\n".join(line for line in text.splitlines() if not RUNNER.search(line)))
    if set(outcomes) == {"skipped"}:
        pytest.skip(results[0][1])
    if set(outcomes) != {"passed"}:
        raise RankFailure(f"the ranks disagree about the outcome: {outcomes}")
