"""Facts about the machine, compared with other sources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from halocline.compile.processor import described
from halocline.run.host.machine import (
    LARGEST_SHARE,
    clock_hertz,
    data_caches,
    last_level_cache,
    os_release,
    parse_list,
    share_of_cores,
    this_machine,
)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", set()), ("0", {0}), ("0-3", {0, 1, 2, 3}), ("0-1,8,10-11", {0, 1, 8, 10, 11})],
)
def test_processor_lists_of_the_kernel_are_parsed(text, numbers):
    assert parse_list(text) == numbers


@pytest.mark.parametrize(
    ("mask", "other_masks", "share"),
    [
        (0b1, [], 1),
        (0xFF, [], 8),
        (0xFF, [0xFF], 4),  # without binding: shared
        (0x0F, [0xF0], 4),  # bound: separate cores
        (0x0F, [0x0F, 0xF0, 0xF0], 2),  # bound to sockets
        (0xFF, [0xFF] * 15, 1),  # more ranks than cores
    ],
)
def test_the_share_of_cores_is_computed_from_masks(mask, other_masks, share):
    assert share_of_cores(mask, [*other_masks, mask]) == share


@pytest.mark.parametrize(
    ("cpuinfo", "key"),
    [
        (
            "processor\t: 0\nmodel\t\t: 85\nmodel name\t: X\nflags\t\t: fpu avx\n\nmodel\t: 9",
            "model\t\t: 85\nmodel name\t: X\nflags\t\t: fpu avx",
        ),
        (
            "processor\t: 0\nFeatures\t: fp sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n",
            "Features\t: fp sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40",
        ),
        ("", ""),
    ],
)
def test_the_key_of_compiled_kernels_contains_the_cpu(cpuinfo, key):
    assert described(cpuinfo) == key


def test_any_name_compiles_in_any_locale(tmp_path):
    code = (
        "import locale; assert 'utf' not in locale.getpreferredencoding(False).lower()\n"
        "from halocline.compile.driver import compile_library\n"
        "print(compile_library('// \\u03ba\\n'))"
    )
    environment = os.environ | {"HALOCLINE_CACHE": str(tmp_path), "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert os.path.isfile(done.stdout.strip())


def test_facts_agree_with_the_system():
    machine = this_machine()
    assert machine.host == os.uname().nodename
    assert machine.hardware_threads == len(os.sched_getaffinity(0))
    assert 1 <= machine.cores <= machine.hardware_threads
    assert machine.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < machine.available_bytes <= machine.memory_bytes
    assert machine.mpi_library.endswith(tuple("0123456789so"))
    assert os.path.isfile(machine.mpi_library)
    assert machine.mpi_version
    assert os.access(machine.compiler, os.X_OK)
    assert machine.compiler_version.split()[-1][0].isdigit()


def test_clock_rate_and_kernel_release_agree_with_the_system():
    hertz = clock_hertz()
    assert hertz is None or 1e8 < hertz < 1e10
    release = Path("/etc/os-release")
    assert os_release() is None or f'"{os_release()}"' in release.read_text()


@pytest.mark.skipif(shutil.which("getconf") is None, reason="getconf is not installed")
def test_caches_agree_with_getconf():
    names = {1: "LEVEL1_DCACHE_SIZE", 2: "LEVEL2_CACHE_SIZE", 3: "LEVEL3_CACHE_SIZE"}
    sizes = {cache.level: cache.bytes for cache in data_caches()}
    for level, name in names.items():
        done = subprocess.run(["getconf", name], capture_output=True, text=True)
        size = int(done.stdout or 0)
        if size and level in sizes:
            # for the third level of AMD processors, the C library reports the sum of several caches
            whole = level == 3 and "AuthenticAMD" in Path("/proc/cpuinfo").read_text()
            assert size % sizes[level] == 0 if whole else size == sizes[level]


def test_affinity_limits_the_cores():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert (this_machine().cores, this_machine().hardware_threads) == (1, 1)
    finally:
        os.sched_setaffinity(0, allowed)


def test_facts_are_json_and_cheap():
    text = """if True:
        import json, sys
        from halocline.run.host.machine import this_machine
        print(json.dumps(this_machine().as_dict()))
        assert not {"numpy", "mpi4py.MPI"} & set(sys.modules), "imports what takes long"
    """
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    assert facts["cores"] >= 1
    assert {"cpu", "caches", "simd_bits", "commit", "openmp"} <= set(facts)


def test_the_commit_is_that_of_the_source():
    commit = this_machine().commit
    if not (ROOT / ".git").is_dir():
        pytest.skip("no git clone")
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert commit is not None
    assert head.startswith(commit.rstrip("+"))
    assert len(commit.rstrip("+")) >= 12


def test_the_last_level_cache_is_that_of_all_threads():
    last, threads = data_caches()[-1], os.cpu_count()
    assert min(last.bytes, LARGEST_SHARE) <= last_level_cache() <= LARGEST_SHARE * threads
    assert last_level_cache() <= last.bytes * threads
