"""Start, agreement and end of ranks, with the real mpiexec."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import halocline.native
from halocline.errors import InputError, RunError
from halocline.native import native
from halocline.run.host.mpi_library import kind_of, mpi_library
from halocline.run.ranks import communicator, mpi
from halocline.run.ranks.launch import environment, launch, mpiexec, passing, placing
from halocline.run.ranks.library import launcher
from hang import HANG
from launched_scripts import end, script, start
from suites import cases

__all__ = ["script"]  # fixtures


# -- communicators -----------------------------------------------------------------------------------


def test_mpi_is_not_initialized_without_a_launcher(script):
    case = script("""
        comm = mpi.world()
        with comm.agreement("nothing"):
            pass
        comm.barrier()
        print(comm.rank, comm.size, comm.handle, comm.allgather("a"), comm.bcast(5), "mpi4py" in sys.modules)
    """)
    assert end(start(case, None)) == (0, "0 1 None ['a'] 5 False\n", "")


@pytest.mark.ranks(1, 2, 4)
def test_world_has_all_ranks():
    from mpi4py import MPI

    comm = mpi.world()
    assert comm is mpi.world()
    assert (comm.rank, comm.size) == (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)
    assert comm.size == launcher().size
    assert comm.allgather(comm.rank**2) == [rank**2 for rank in range(comm.size)]
    assert comm.bcast(comm.rank, comm.size - 1) == comm.size - 1
    comm.barrier()
    twin = MPI.Comm.f2py(comm.handle)
    assert twin.size == comm.size
    assert MPI.Comm.Compare(twin, MPI.COMM_WORLD) == MPI.CONGRUENT  # a duplicate, not the same communicator
    assert comm.thread_level in ("single", "funneled", "serialized", "multiple")


@pytest.mark.ranks(3)
def test_values_of_any_length_reach_all_ranks():
    """Values arrive for lengths below and above one message, also if the lengths of ranks differ."""
    comm = mpi.world()
    for length in (0, 1, 80, 90, 95, 100, 105, 110, 120, 128, 1000, 300_000):
        values_of_ranks = [b"x" * (length if rank == 1 else 5) + bytes([rank]) for rank in range(comm.size)]
        for values in (values_of_ranks, values_of_ranks[::-1], [values_of_ranks[1]] * comm.size):
            assert comm.allgather(values[comm.rank]) == values
            assert comm.allgather_of_node(values[comm.rank]) == values
            assert comm.bcast(values[comm.rank], 2) == values[2]
    assert comm.most(comm.rank) == 2
    assert comm.most(-(10**12) - comm.rank) == -(10**12)


@pytest.mark.ranks(4)
def test_a_user_communicator_may_contain_some_ranks():
    from mpi4py import MPI

    part = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
    comm = mpi.from_user(part)
    assert comm.size == 2
    assert comm.allgather(MPI.COMM_WORLD.rank) == [MPI.COMM_WORLD.rank % 2, MPI.COMM_WORLD.rank % 2 + 2]
    with pytest.raises(InputError, match="communicator is 3"):
        mpi.from_user(3)


# -- agreement ---------------------------------------------------------------------------------------


@pytest.mark.ranks(2)
@pytest.mark.parametrize("times", [100, pytest.param(3000, marks=pytest.mark.long)])
def test_a_user_communicator_is_duplicated_once(times):
    """The duplicate is cached, since MPICH has only 2048 communicators and those of Open MPI are slow."""
    from mpi4py import MPI

    if kind_of(mpi_library()) == "Open MPI":
        times = min(times, 300)
    known = len(communicator._of_mpi)
    first = mpi.from_user(MPI.COMM_WORLD)
    assert all(mpi.from_user(MPI.COMM_WORLD) is first for _ in range(times))
    assert mpi.world() is first
    for _ in range(times):  # the duplicate is freed with the communicator of the user
        comm = MPI.COMM_WORLD.Dup()
        assert mpi.from_user(comm).size == 2
        comm.Free()
    assert len(communicator._of_mpi) <= known + 1
    assert first.allgather(first.rank) == [0, 1]


@pytest.mark.ranks(2, alone=True)
def test_the_binding_of_the_launcher_determines_the_threads():
    """Each rank has one core if rank 0 may use only the first core and rank 1 only the last."""
    from mpi4py import MPI

    from halocline.run.domain.domain import SPINS, default_threads, spins

    free = sorted(os.sched_getaffinity(0))
    if len(free) < 2:
        pytest.skip("one core")
    os.environ.pop("OMP_NUM_THREADS", None)
    os.environ.pop("OMP_WAIT_POLICY", None)
    shared = mpi.from_user(MPI.COMM_WORLD.Dup())
    assert default_threads(shared) == len(free) // 2
    os.sched_setaffinity(0, {free[-MPI.COMM_WORLD.rank]})
    bound = mpi.from_user(MPI.COMM_WORLD.Dup())
    assert sorted(bound.masks) == sorted({1 << free[0], 1 << free[-1]})
    assert default_threads(bound) == 1
    assert spins(1, bound) == SPINS["usual"]
    assert spins(2, bound) == SPINS["passive"]


@cases("places", ["cores", "threads"], default=["cores"])
@cases("binding", ["close", "spread"], default=["close"])
def test_ranks_have_separate_cores_if_openmp_binds_threads(binding, places, tmp_path):
    """OpenMP binds the first thread of each rank to the first core that the rank may use."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    file = tmp_path / "masks.py"
    file.write_text("""
import os
from halocline.native import native
from halocline.run.domain.domain import default_threads
from halocline.run.ranks.mpi import world
native()
first, second = world().masks
mine = world().allgather(sum(1 << thread for thread in os.sched_getaffinity(0)))
if world().rank == 0:
    print(first & second, mine[0] & mine[1], default_threads(world()))
""")
    variables = {"OMP_PROC_BIND": binding, "OMP_PLACES": places}
    done = subprocess.run(
        [sys.executable, "-m", "halocline.cli", "run", str(file), "--ranks", "2"],
        env={name: value for name, value in os.environ.items() if not name.startswith("OMP_")} | variables,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    cores = len(os.sched_getaffinity(0)) // 2
    assert (done.stdout, done.returncode) == (f"0 0 {cores}\n", 0), done.stderr


@pytest.mark.parametrize(
    ("variables", "threads", "options"),
    [
        ({}, 2, []),
        ({"OMP_PROC_BIND": "false", "OMP_PLACES": "cores"}, 2, []),
        ({"OMP_PROC_BIND": "close"}, 4, ["-bind-to", "core:4", "-map-by", "core:4"]),
        (
            {"OMP_PLACES": "threads", "OMP_NUM_THREADS": "3,1"},
            None,
            ["-bind-to", "hwthread:3", "-map-by", "hwthread:3"],
        ),
    ],
)
def test_binding_of_ranks_follows_that_of_threads(variables, threads, options, monkeypatch):
    for name in ("OMP_PROC_BIND", "OMP_PLACES", "OMP_NUM_THREADS", "GOMP_CPU_AFFINITY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert placing("MPICH", 2, threads) == options
    assert placing(None, 2, threads) == []
    assert ("--bind-to" in placing("Open MPI", 2, threads)) == bool(options)


def test_each_host_of_a_job_has_its_ranks(monkeypatch):
    for name in ("OMP_PROC_BIND", "OMP_PLACES", "OMP_NUM_THREADS", "GOMP_CPU_AFFINITY"):
        monkeypatch.delenv(name, raising=False)
    assert placing("MPICH", 4, 1, per_node=2) == []
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    assert placing("MPICH", 4, 1, per_node=2) == ["-ppn", "2"]
    assert placing("Open MPI", 4, 1, per_node=2) == ["--map-by", "ppr:2:node:OVERSUBSCRIBE"]
    monkeypatch.setenv("OMP_PROC_BIND", "close")
    assert placing("MPICH", 4, 3, per_node=2) == ["-ppn", "2", "-bind-to", "core:3", "-map-by", "core:3"]
    assert placing("Open MPI", 4, 3, per_node=2)[:2] == ["--map-by", "ppr:2:node:PE=3:OVERSUBSCRIBE"]


def test_variables_for_other_hosts_are_options_of_open_mpi() -> None:
    """The mpiexec of Open MPI passes named variables to other hosts, and that of MPICH passes all."""
    variables = {"OMP_NUM_THREADS": "2", "HALOCLINE_MPI": "/opt/libmpi.so.40", "HOME": "/root"}
    assert passing("Open MPI", variables) == ["-x", "HALOCLINE_MPI", "-x", "OMP_NUM_THREADS"]
    assert passing("MPICH", variables) == []
    assert passing(None, variables) == []


@pytest.mark.ranks(2)
def test_the_first_invalid_field_is_reported_on_any_rank():
    import numpy as np

    import halocline as hc

    comm = mpi.world()
    grid = hc.Grid((8, 8), periodic=True)
    a, b = grid.field("a"), grid.field("b")
    sim = hc.Simulation(grid, lambda a, b: {a: b, b: a}, scheme=hc.Euler(), dt=0.1, decomposition=(2, 1))
    sim[a], sim[b] = 1.0, 1.0
    (sim[b] if comm.rank == 0 else sim[a])[1, 2] = np.nan
    with pytest.raises(InputError, match=r"field 'a' is nan at cell \(5, 2\) before the run"):
        sim.run()
    sim[a] = 1.0
    with pytest.raises(InputError, match=r"field 'b' is nan at cell \(1, 2\)"):
        sim.run()


@pytest.mark.ranks(2)
def test_different_decompositions_on_ranks_are_reported(monkeypatch):
    import halocline as hc
    from halocline.plan import layout

    rank, cut = mpi.world().rank, layout.decompose
    monkeypatch.setattr(
        layout,
        "decompose",
        lambda shape, count, **options: cut(shape, count, **options | {"strategy": (2 - rank, 1 + rank)}),
    )
    grid = hc.Grid((8, 8), periodic=True)
    grid.field("T")
    with pytest.raises(InputError, match=r"the decomposition .* not the same on ranks 0 and 1"):
        hc.Simulation(grid, lambda T: {T: T}, scheme=hc.Euler(), dt=0.1)


class Awkward(Exception):
    """Exception that cannot be built from its message alone, and therefore cannot be sent unchanged."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def fail_on(comm, failing):
    if comm.rank in failing:
        raise InputError(f"bad value {comm.rank}")


@pytest.mark.ranks(1, 4)
def test_all_ranks_agree_on_a_failure():
    comm = mpi.world()
    for failing in ([0], [2], [1, 3], [0, 1, 2, 3]):
        failing = [rank for rank in failing if rank < comm.size]
        caught = None
        try:
            with comm.agreement("compile kernels"):
                fail_on(comm, failing)
        except InputError as error:
            caught = error
        if not failing:
            assert caught is None
            continue
        assert str(caught) == f"bad value {failing[0]}"
        notes = "\n".join(getattr(caught, "__notes__", []))
        if len(failing) < comm.size:
            assert f"rank {failing[0]} of {comm.size}" in notes
            assert "compile kernels" in notes
        else:
            assert not notes
        assert comm.allgather(1) == [1] * comm.size  # the ranks are still synchronized


@pytest.mark.ranks(2)
def test_a_rank_that_waits_for_an_agreement_yields_its_core():
    """A rank that waits uses little of its core, which the compiler of another rank needs."""
    comm = mpi.world()
    comm.barrier()
    start_time = time.process_time()
    with comm.agreement("compile kernels"):
        if comm.rank == 0:
            time.sleep(2.0)
    assert time.process_time() - start_time < 0.5


def awkward(rank):
    if rank == 1:
        raise Awkward("one", "two")


@pytest.mark.ranks(2)
def test_any_exception_is_passed_to_all_ranks():
    comm = mpi.world()
    with pytest.raises((Awkward, RunError), match="one and two"), comm.agreement("something"):
        awkward(comm.rank)
    with pytest.raises(ZeroDivisionError), comm.agreement("something"):
        1 / (1 - comm.rank)


# -- one MPI library ---------------------------------------------------------------------------------


@pytest.mark.ranks(1)
def test_native_code_and_mpi4py_share_one_library():
    mpi.world()
    maps = Path("/proc/self/maps").read_text()
    loaded = {os.path.realpath(line.split()[-1]) for line in maps.splitlines() if "libmpi" in line}
    loaded = {path for path in loaded if "libmpi_abi" not in path and "/halocline/libmpi.so.12" not in path}
    assert loaded == {os.path.realpath(native().mpi_library())}


def test_a_missing_engine_is_reported_with_a_remedy(tmp_path):
    """The message appears also if the compiler of kernels for devices is the first to load the engine."""
    package = tmp_path / "halocline"
    package.mkdir()
    for part in Path(halocline.native.__file__).parent.iterdir():
        if not part.name.startswith("_native"):
            (package / part.name).symlink_to(part)
    text = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from halocline.compile import nvrtc\n"
    text += "try: nvrtc.find_nvrtc()\nexcept nvrtc.native.__globals__['RunError'] as error: print(error)"
    done = subprocess.run([sys.executable, "-S", "-c", text], capture_output=True, text=True)
    assert done.stdout.startswith("halocline._native is not built: run `make build`"), done.stderr


def test_a_launcher_of_another_mpi_is_detected(script):
    case = script("mpi.world()")
    name, rank, size = "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"
    if kind_of(mpi_library()) == "Open MPI":
        name, rank, size = "PMI", "PMI_RANK", "PMI_SIZE"
    code, _, err = end(start(case, None, **{rank: "0", size: "4", "HALOCLINE_MPI": mpi_library()}))
    assert code == 1
    assert err.startswith(
        f"halocline: error: the launcher ({name}) started 4 processes, but it belongs to a different MPI than"
    )
    assert f", or with {mpiexec()}.\n" in err
    assert err.count("error:") == 1
    code, _, err = end(start(case, None, **{rank: "2", size: "4"}))
    assert (code, err) == (1, "")  # only the first rank of the launcher reports it


# -- the end -----------------------------------------------------------------------------------------


@cases("ranks", [1, 4], default=[4])
@pytest.mark.parametrize("before", ["", "mpi.world()\n"], ids=["before MPI", "after"])
def test_an_input_error_is_printed_once_with_status_2(script, ranks, before):
    case = script(f"{before}raise InputError('grid shape is (0, 4)')")
    code, out, err = end(start(case, ranks))
    assert (code, out) == (2, "")
    assert err.count("grid shape is (0, 4)") == 2  # the message, and the line of the user file
    assert err.count("halocline: error:") == 1
    assert "Traceback" not in err
    assert f'File "{case}", line' in err


@pytest.mark.parametrize("ranks", [1, 4])
def test_an_unexpected_exception_is_printed_once_with_its_traceback(script, ranks):
    code, _, err = end(start(script("mpi.world()\n[][1]"), ranks))
    assert code == 1
    assert err.count("Traceback") == err.count("IndexError: list index out of range") == 1


def test_without_a_launcher_the_exception_hook_sets_the_status(script):
    code, _, err = end(start(script("raise InputError('no such field')"), None))
    assert code == 2
    assert err.startswith("halocline: error: no such field\n")


@cases("ranks", [None, 4], default=[4])
def test_an_error_in_a_user_function_shows_its_line(script, ranks):
    case = script("""
        import halocline as hc

        grid = hc.Grid((16, 16), periodic=True)
        u = grid.field("u")

        def heat(u):
            return {u: no_such_name * u}

        hc.Simulation(grid, heat, scheme=hc.Euler(), dt=0.1)
    """)
    code, _, err = end(start(case, ranks))
    assert code == 2
    assert err.count("halocline: error: function 'heat' raised NameError") == 1
    assert err.count("    return {u: no_such_name * u}") == err.count("\nNameError: ") == 1
    assert err.count("    hc.Simulation(grid, heat") == 1
    assert "halocline/" not in err


@cases("others_call", ["comm.barrier()", "time.sleep(1000)", "sys.exit(0)"], default=["comm.barrier()"])
def test_one_failing_rank_ends_all(script, others_call):
    case = script(f"""
        comm = mpi.world()
        if comm.rank == 2:
            raise InputError("only here")
        {others_call}
    """)
    code, _, err = end(start(case, 4))
    assert code == 2
    assert err.startswith("on rank 2 of 4:\nhalocline: error: only here")
    assert "BAD TERMINATION" not in err


def test_plain_mpiexec_prints_the_error(script):
    case = script("""
        comm = mpi.world()
        if comm.rank == 1:
            raise InputError("only here")
        comm.barrier()
    """)
    command = [str(mpiexec()), "-n", "2", sys.executable, str(case)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 2
    assert done.stderr.count("on rank 1 of 2:\nhalocline: error: only here") == 1


def test_an_agreed_failure_is_printed_once_with_its_rank(script):
    case = script("""
        comm = mpi.world()
        with comm.agreement("read the input"):
            if comm.rank == 2:
                raise InputError("no such file")
    """)
    code, _, err = end(start(case, 4))
    assert code == 2
    assert err.count("no such file") == 2  # the message, and the line of rank 2
    assert "This happened on rank 2 of 4, in: read the input." in err


# -- launch ------------------------------------------------------------------------------------------


def test_launch_rejects_invalid_options():
    with pytest.raises(InputError, match="ranks is 0"):
        launch(0, ["true"])


@pytest.mark.ranks(2)
def test_launch_inside_a_run_is_rejected():
    with pytest.raises(InputError, match=r"cannot start 4 ranks .* one of 2"):
        launch(4, ["true"])


def test_launch_returns_output_and_status(script):
    code, out, err = end(
        start(
            script("print(f'{mpi.world().size} ', flush=True); sys.stderr.write('to err\\n'); sys.exit(7)"),
            2,
        )
    )
    assert (code, out.split(), err.split()) == (7, ["2", "2"], ["to", "err", "to", "err"])


@cases("ranks", [2, 4], default=[2])
def test_a_killed_rank_ends_the_run_and_is_reported(script, ranks):
    case = script("""
        comm = mpi.world()
        comm.barrier()
        if comm.rank == 1:
            time.sleep(0.5)
            print("now", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier()
    """)
    process = start(case, ranks)
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    code, _, err = end(process)
    assert code != 0
    assert len(err.splitlines()) == 1
    assert "rank 1 (process " in err  # on a busy machine, other ranks may be listed too
    assert "all ranks were stopped" in err


def test_a_rank_that_exits_silently_is_reported(script):
    code, _, err = end(start(script("comm = mpi.world()\nif comm.rank == 0: os._exit(3)\ncomm.barrier()"), 2))
    assert code == 3
    assert "rank 0 (process " in err
    assert "died" in err


@cases("number", [signal.SIGINT, signal.SIGTERM], default=[signal.SIGINT])
def test_a_signal_is_delivered_to_every_rank_once(script, number):
    case = script("""
        got = []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, frame: got.append(number))
        comm = mpi.world()
        comm.barrier()
        if comm.rank == 0:
            print("ready", flush=True)
        while not got:
            time.sleep(0.01)
        time.sleep(0.3)
        counts = comm.allgather(len(got))
        if comm.rank == 0:
            print(counts)
        sys.exit(0)
    """)
    process = start(case, 2)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    code, out, err = end(process)
    assert (out, err) == ("[1, 1]\n", "")
    assert code == 0


@cases(
    "level, who",
    [("serialized", "one thread at a time"), ("funneled", "the first thread alone")],
    lambda case: case[0] == "funneled",
)
def test_a_low_thread_level_of_mpi_is_reported(script, level, who):
    case = script(f"""
        import mpi4py
        mpi4py.rc.thread_level = {level!r}
        from mpi4py import MPI
        import halocline as hc
        grid = hc.Grid((24, 26), periodic=True)
        T = grid.field("T")
        options = dict(threads=2, subdomains_per_rank=2, patch=5)
        sums = set()
        for methods in ("mpi", "self,rma", None):
            sim = hc.Simulation(
                grid, lambda T: {{T: hc.laplacian(T)}}, scheme=hc.Euler(), dt=1e-4, methods=methods, **options
            )
            sim[T] = lambda x, y: x * y
            sim.run(steps=5)
            sums.add(sim.checksum(T))
        if MPI.COMM_WORLD.rank == 0:
            print(len(sums))
    """)
    code, out, err = end(start(case, 2))
    assert code == 0, err
    is_reported = f"MPI provides MPI_THREAD_{level.upper()} only: {who} handles messages" in err
    # Open MPI may give more than the requested level
    assert is_reported or kind_of(mpi_library()) == "Open MPI"
    assert out == "1\n"


@cases(
    "call, ranks, number",
    itertools.product(
        ("sim.run(steps=1)", "sim.evaluate(hc.max(T))"), (None, 2), (signal.SIGINT, signal.SIGTERM)
    ),
    default=[("sim.run(steps=1)", 2, signal.SIGTERM)],
)
def test_a_signal_is_not_lost_between_short_runs(script, ranks, call, number):
    case = script(f"""
        import halocline as hc
        grid = hc.Grid((64, 64), extent=(1.0, 1.0), periodic=True)
        T = grid.field("T")
        sim = hc.Simulation(grid, lambda T: {{T: hc.laplacian(T)}}, scheme=hc.Euler(), dt=1e-6, threads=1)
        sim[T] = lambda x, y: x
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        for n in range(10**6):
            {call}
            if n == 20 and mpi.world().rank == 0:
                print("ready", flush=True)
    """)
    process = start(case, ranks)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(number)
    code, _, err = end(process)
    if number == signal.SIGTERM and code == 143:  # the signal arrived during a run
        assert err == "halocline: terminated by SIGTERM\n"
    elif ranks is None:  # without our hook: Python's own traceback and exit status
        assert err.endswith("KeyboardInterrupt\n")
        assert code == -signal.SIGINT
    else:
        assert "halocline: interrupted" in err
        assert code == 130


@cases("ranks", [None, 2], default=[2])
def test_sigterm_ends_a_run_without_checkpoints_in_one_line(script, ranks):
    case = script("""
        import halocline as hc
        grid = hc.Grid((64, 64), extent=(1.0, 1.0), periodic=True)
        T = grid.field("T")
        sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=1e-6, threads=1)
        sim[T] = lambda x, y: x
        sim.run(steps=1)
        ask = lambda done: mpi.world().rank == 0 and print("ready", flush=True)
        sim.run(steps=10**9, on_progress=ask)
    """)
    process = start(case, ranks)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    code, _, err = end(process)
    assert (code, err) == (143, "halocline: terminated by SIGTERM\n")


@cases("ranks", [None, 2], default=[2])
def test_a_signal_ends_a_loop_within_a_step(script, ranks):
    case = script("""
        import halocline as hc
        grid = hc.Grid((64, 64), periodic=True)
        grid.field("u")

        @hc.program
        def relax(u):
            change = hc.scalar("change")
            change.set(1.0)
            with hc.loop(until=change < 0.0):
                u.set(u + 1.0)
                change.set(hc.min(u))

        sim = hc.Simulation(grid, relax, threads=1)
        sim.run(steps=0)
        if mpi.world().rank == 0:
            print("ready", flush=True)
        sim.run()
    """)
    process = start(case, ranks)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, _, err = end(process)
    assert "KeyboardInterrupt" in err if ranks is None else "halocline: interrupted" in err


def test_ranks_end_when_their_parent_is_killed(script, tmp_path):
    case = script(f"""
        comm = mpi.world()
        open(os.path.join({str(tmp_path)!r}, f"pid{{comm.rank}}"), "w").write(str(os.getpid()))
        comm.barrier()
        if comm.rank == 0:
            print("ready", flush=True)
        time.sleep({2 * HANG})
    """)
    process = start(case, 2)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    ranks = [int((tmp_path / f"pid{rank}").read_text()) for rank in range(2)]
    process.kill()
    end_by = time.monotonic() + HANG
    while time.monotonic() < end_by and any(Path(f"/proc/{rank}/stat").exists() for rank in ranks):
        time.sleep(0.05)
    assert not any(Path(f"/proc/{rank}/stat").exists() for rank in ranks)
    process.communicate()
