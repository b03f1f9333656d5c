"""Tests are found from the source: each module has a test file of its name, or a reason."""

from __future__ import annotations

import ast
from pathlib import Path

from loops import some
from source import ROOT, SOURCE

TESTS = ROOT / "tests"
APART = ("cases", "papers", "physics")  # tested by known results, not module by module
LINES = 60  # removed modules need no test file of their own

# Modules without a test file of their name. For each reason: module, test file, and, if the file does not
# import the module, the public name by which it tests it.
ELSEWHERE = {
    "tested on several ranks, in tests/mpi": {
        "run/domain/domain.py": ("mpi/test_ranks.py", ""),
        "run/ranks/abort.py": ("mpi/test_ranks.py", "test_one_failing_rank_ends_all"),
        "run/ranks/io_ranks.py": ("mpi/test_io_ranks.py", "HALOCLINE_IO_RANKS"),
        "run/ranks/launch.py": ("mpi/test_ranks.py", ""),
        "run/ranks/mpi.py": ("mpi/test_ranks.py", ""),
    },
    "tested on devices, in tests/devices": {
        "compile/nvrtc.py": ("devices/test_nvrtc.py", ""),
        "compile/printers/device.py": ("devices/test_kernels.py", "opencl"),
        "compile/targets/device.py": ("devices/test_kernels.py", "Strategy"),
        "run/devices/gpu_aware.py": ("devices/test_cuda_runs.py", "gpu_aware"),
        "run/devices/links.py": ("devices/test_cuda_runs.py", "peer"),
        "run/memory/contents.py": ("devices/test_runs.py", ""),
        "run/memory/store.py": ("devices/test_runs.py", ""),
    },
    "tested by balances": {
        "run/domain/directory.py": ("run/memory/test_balance.py", "balance"),
        "run/memory/redistribute.py": ("run/memory/test_balance.py", "balance"),
    },
    "tested by the commands that print it": {
        "cli/app.py": ("project/test_docs.py", "app"),
        "cli/ranks.py": ("system/test_command.py", "--ranks"),
        "study/studies/devices.py": ("devices/test_commands.py", "devices"),
        "cli/doctor/finding.py": ("cli/doctor/test_devices.py", ""),
        "cli/doctor/host.py": ("system/test_command.py", "doctor"),
        "cli/commands/cache.py": ("compile/test_cache_archive.py", '"cache"'),
        "cli/commands/compile.py": ("problems/test_precompile.py", '"compile"'),
        "cli/commands/stores.py": ("io/test_listing.py", '"ls"'),
        "cli/report.py": ("system/test_command.py", "--json"),
        "explanation/text.py": ("explanation/test_explain.py", ""),
        "problems/checkpointed.py": ("cli/test_run_keeping.py", "--resume"),
        "problems/place.py": ("cli/test_run_keeping.py", "--resume"),
        "problems/step_bench.py": ("problems/test_problem_verbs.py", "--only"),
        "problems/record.py": ("project/test_docs.py", ""),
    },
    "tested by the bits and messages of whole programs": {
        "compile/passes/pieces.py": ("compile/ir/test_kernel.py", ""),
        "run/engine/bind.py": ("mpi/test_bitwise.py", ""),
        "run/engine/prepare.py": ("devices/test_runs.py", ""),
        "run/engine/prepared.py": ("run/fields/test_pointwise.py", ""),
    },
    "tested in tests/long, since its ranks must be timed": {
        "cli/commands/ablation.py": ("long/test_ablation.py", "study ablation"),
    },
    "tested by the files that it leaves": {
        "io/panel.py": ("physics/cavity/test_contours.py", "canvas_of"),
        "io/plane.py": ("lang/test_stretch.py", ""),
        "run/output/ledger.py": ("run/output/test_output_rows.py", "hc.Output"),
    },
    "tested by plans of ranks as a whole": {
        "plan/redistribution.py": ("plan/test_balance.py", ""),
        "plan/fills.py": ("plan/test_rank.py", "test_halo_kernels_run_where_their_reads_are_valid"),
    },
}


def modules() -> dict[str, Path]:
    """Return the modules of the framework that need a test file, by their path below src/halocline."""
    paths = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py") if path.stem != "__init__"}
    return {
        name: path
        for name, path in paths.items()
        if Path(name).parts[0] not in APART and len(path.read_text().splitlines()) > LINES
    }


def files_of(name: str) -> list[Path]:
    """Return the test files of a module by their names."""
    folder, stem = TESTS / Path(name).parent, Path(name).stem
    return [*folder.glob(f"test_{stem}.py"), *folder.glob(f"test_{stem}_*.py")]


def imported(path: Path) -> set[str]:
    """Return the modules and names that a file imports from Halocline, as absolute names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_each_module_has_a_test_file_or_a_reason() -> None:
    listed = [name for entries in ELSEWHERE.values() for name in entries]
    assert len(listed) == len(set(listed)), "a module has two reasons"
    without = {name for name in some(modules()) if not files_of(name)}
    assert without - set(listed) == set(), "add tests/FOLDER/test_NAME.py, or a reason to ELSEWHERE"
    assert set(listed) - without == set(), (
        "has a test file of its name, or is small or gone: remove its reason"
    )


def test_exempted_modules_are_tested_elsewhere() -> None:
    for entries in ELSEWHERE.values():
        for name, (file, public) in some(entries.items()):
            path = TESTS / file
            assert path.is_file(), f"{name}: there is no tests/{file}"
            module = "halocline." + name.removesuffix(".py").replace("/", ".")
            if public:
                assert public in path.read_text(), f"{name}: tests/{file} has no {public!r}"
            else:
                assert module in imported(path), f"{name}: tests/{file} does not import {module}"


def test_test_files_import_no_test_file() -> None:
    """Modules that two test files need are in tests/support."""
    for path in some(TESTS.rglob("test_*.py")):
        if "from test" not in path.read_text():  # saves most of the time
            continue
        names = {name.partition(".")[0] for name in imported(path)}
        assert not {name for name in names if name.startswith("test")}, path


def test_extended_tests_are_in_the_folder_long() -> None:
    """Other folders have long parameters only, and `system` may have long files."""
    marked = {
        f"{path.relative_to(TESTS)}::{node.name}"
        for path in some(TESTS.rglob("test_*.py"))
        if "@pytest.mark.long" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(decorator) == "pytest.mark.long" for decorator in node.decorator_list)
    }
    assert marked == set(), "move them to tests/long, where the folder marks them"
