"""Check that tests notice mistakes: make one at a time in a copy of the source, and run tests there.

A mutation replaces a text that occurs once in a file of src/halocline by a wrong one. It names the test
files that should fail with it. The working tree is never changed: each mutant gets its own copy of src and
tests. Before the first mutant, the tests must pass in an unchanged copy. They must also fail with a mutant
that breaks every program, which proves that the tests use the copy.

The exit status is 1 if a mutant survives, that is, if no test fails with it. A mutation may state why no
result can depend on it; then it may survive. The exit status is 2 if a mutation does not fit the source, or
if the copy cannot be tested.

Run it with the Python of the installation: .venv/bin/python tools/mutants.py
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src") / "halocline"
LINKED = ("native", "docs", "examples", "benchmarks", "tools", "pyproject.toml", "README.md")  # only read
# files of tests whose subject several mistakes touch
COMPILE = tuple(
    f"compile/{name}.py"
    for name in ("test_schedule", "test_footprint", "passes/test_contract", "test_translate", "test_compiler")
)
PLAN = tuple(f"plan/test_{name}.py" for name in ("rank", "exchange", "patches", "fit", "traffic"))

# An editable install puts a finder of its own before sys.path: without it PYTHONPATH decides. The compiled
# module is taken from where it lies, since it finds the library of MPI from there.
SITE = """\
import sys
from importlib.util import spec_from_file_location

class Native:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return spec_from_file_location(name, {native!r}) if name == "halocline._native" else None

rest = [f for f in sys.meta_path if not type(f).__module__.startswith("_editable_")]
sys.meta_path[:] = [Native, *rest]
"""


class Unfit(Exception):
    """A mutation does not fit the source, or the copy cannot be tested."""


@dataclass(frozen=True)
class Mutation:
    """A mistake, and who should notice.

    Parameters
    ----------
    name : str
    file : str
        Below src/halocline.
    old, new : str
        The text, which occurs once, and what takes its place.
    breaks : str
        What goes wrong.
    tests : tuple of str
        Files below tests, the most likely to notice first.
    equivalent : str
        Why nothing that is promised can depend on it, where that is so.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    equivalent: str = ""


HALO, EXCHANGE, FILLS = "compile/halo.py", "plan/exchange.py", "plan/fills.py"
WALLS, WRAPS = "compile/walls.py", "compile/numbering.py"
INLINE, NESTS, WHOLE = "compile/passes/inline.py", "compile/passes/nests.py", "compile/passes/loops.py"
REACH, CONTRACT = "compile/passes/reach.py", "compile/passes/contract.py"

FATAL = Mutation(
    "fatal",
    HALO,
    "        self.result[sweep] = halo\n",
    '        raise RuntimeError("a planted mistake")\n',
    "every program",
    COMPILE,
)

MUTATIONS = (
    Mutation(
        "ghosts-deeper",
        HALO,
        "if ghosts - filled.get(f, Footprint()):",
        "if ghosts and f not in filled:",
        "a read deeper beyond a wall finds ghosts that were never formed",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "meet-first",
        HALO,
        "(d, tuple(map(min, w, dict(b[f].segments)[d])))",
        "(d, w)",
        "a loop trusts what was valid before it",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "meet-second",
        HALO,
        "(d, tuple(map(min, w, dict(b[f].segments)[d])))",
        "(d, dict(b[f].segments)[d])",
        "a loop trusts what its last pass left, in the first pass too",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "scalar-stale",
        HALO,
        "stale = {f for f in state.filled if changed & self.wall_scalars.get(f, set())}",
        "stale: set[Field] = set()",
        "ghosts keep the old value of a scalar",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "scalar-stale-through",
        HALO,
        "                stale = self._stale(stale, state.filled)\n",
        "",
        "ghosts keep what they took of ghosts that follow a scalar",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "stale-one-round",
        HALO,
        "            if more == stale:\n                return stale\n            stale = more",
        "            return more",
        "ghosts keep what they took of ghosts of ghosts that have changed",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "stale-own-only",
        HALO,
        "for f in self._stale(set(sweep.sets), filled):",
        "for f in sweep.sets:",
        "ghosts keep what they took of a field that has changed",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "ghosts-of-blocks",
        HALO,
        "        if self.grid.blocks is not None:\n            # next",
        "        if False:\n            # next",
        "ghosts beside inactive blocks are missing that only a later sweep reads",
        ("lang/test_blocks.py",),
    ),
    Mutation(
        "set-stays-valid",
        HALO,
        "valid[f] = halo.extended.get(f, Footprint())",
        "valid[f] = valid.get(f, Footprint())",
        "halos keep what a field held before it was set",
        COMPILE,
    ),
    Mutation(
        "part-of-segment",
        HALO,
        "Footprint(tuple((d, w) for d, w in valid[f] if d in missing))",
        "Footprint(tuple((d, w) for d, w in footprint if d in missing))",
        "an exchange brings less of a segment than is called valid",
        COMPILE,
    ),
    Mutation(
        "have-forgotten",
        HALO,
        "valid[f] = present | footprint",
        "valid[f] = footprint",
        "what has come already comes again",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "extended-walls",
        HALO,
        "if not around_points(g, points) <= around[g]:",
        "if False:",
        "fields are computed in the halo from ghosts that nothing has filled",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "extended-at-once",
        HALO,
        "                if not _within(offsets, reach, "
        "reads[g].layers(self.grid.ndim)):\n                    return False\n",
        "",
        "the time to analyse a sweep that reads a large neighbourhood",
        COMPILE,
    ),
    Mutation(
        "extended-blocks",
        HALO,
        "if self.grid.blocks is not None:  # inactive",
        "if False:  # inactive",
        "inactive cells hold values",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "needs-of-one-pass",
        HALO,
        "body = self._backward(operation.body, _union(after, entry))",
        "body = self._backward(operation.body, after)",
        "what the next pass of a loop reads is exchanged, not computed in the halo",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "needs-after-set",
        HALO,
        "before = {f: o for f, o in after.items() if f not in operation.sets}",
        "before = dict(after)",
        "fields are computed in the halo where nobody reads them",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "staggered-ghosts",
        WALLS,
        "more = o + place[axis] - field.staggered[axis]",
        "more = o",
        "points at upper walls read ghosts that nothing has filled",
        COMPILE,
    ),
    Mutation(
        "fills-unsorted",
        HALO,
        "halo.fills = ordered(halo.fills)",
        "halo.fills = list(halo.fills)",
        "ghosts at corners are formed from ghosts of another field that come later",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "walls-one-round",
        WALLS,
        "        if extended == footprints:\n            return footprints\n        footprints = extended",
        "        return extended",
        "ghosts read ghosts of ghosts that nothing has filled",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "walls-no-corners",
        WALLS,
        "_segments(field, offset, place, fill.corners, ghosts)",
        "_segments(field, offset, place, ((0, 0),) * len(staggered), ghosts)",
        "ghosts at corners read another field beyond its halo",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "uniform-overwrites",
        HALO,
        "if f in halo.exchange or f not in computed",
        "if True",
        "uniform halos overwrite what is computed there",
        ("compile/test_halo_uniform.py",),
    ),
    Mutation(
        "inline-index",
        INLINE,
        "attribute = attribute[0], attribute[1] + offset[attribute[0]]",
        "attribute = attribute[0], attribute[1]",
        "an inline stage has the coordinates of the cell that reads it",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "inline-where",
        INLINE,
        "demands.get(name, origin) if name in chosen else origin, demands)",
        "origin, demands)",
        "a stage that inline stages read at many cells is computed at each",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "cells-last",
        NESTS,
        "key=lambda item: item[0][1] is None)",
        "key=lambda item: item[0][1] is not None)",
        "a field whose value is taken at a cell needs a second buffer",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "alone-last",
        NESTS,
        "return separate + loops",
        "return loops + separate",
        "a field that many reductions read needs a second buffer",
        ("compile/test_compiler_many_fields.py",),
    ),
    Mutation(
        "nests-top",
        NESTS,
        "top = [max(o[a] + s[a] for o, s in points) - upper[a] for a in range(ndim)]",
        "top = [0 for _ in range(ndim)]",
        "stages are missing at the upper wall of staggered fields",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "joined-beyond",
        NESTS,
        "if extended != known and array not in self.values:",
        "if False:",
        "stages that share a nest read beyond the halo",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "whole-fields",
        WHOLE,
        'any(kernel.array[name].kind != "scratch" for name in stored)',
        "False",
        "rows of fields are stored beyond their patch",
        ("compile/passes/test_loops_whole.py",),
    ),
    Mutation(
        "whole-at-work",
        WHOLE,
        ' or (a.kind == "field" and a.name in written)',
        "",
        "a row is read beyond its patch where another thread stores",
        ("compile/passes/test_loops_whole.py",),
    ),
    Mutation(
        "sharing-stores",
        NESTS,
        "        if isinstance(result, ir.Store):\n            arrays.append(result.array)\n",
        "",
        "a field that one loop sets and a later one reads needs a second buffer",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "levels-flat",
        NESTS,
        "depths[stage.array] = 1 + max(",
        "depths[stage.array] = 0 * max(",
        "a stage is computed before those that it reads",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "reach-order",
        REACH,
        "for stage in reversed(stages):",
        "for stage in stages:",
        "what a stage of a stage reads is not read",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "reach-unstaggered",
        REACH,
        "staggered = staggering(kernel, result)",
        "staggered = (False,) * kernel.ndim",
        "the points of face fields at upper walls read too little",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "reach-last",
        REACH,
        "reads[array] = reads.get(array, frozenset()) | _all_sums(at, frozenset(codes))",
        "reads[array] = _all_sums(at, frozenset(codes))",
        "only the last demand for an array counts",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "forms-kept",
        "compile/lower.py",
        "        self._formed.clear()\n",
        "",
        "after an assignment expressions are what they were before it",
        (
            "lang/test_expression.py",
            "lang/test_program_bugs.py",
            *COMPILE,
            "compile/test_compiler_against_numpy.py",
        ),
    ),
    Mutation(
        "fused-twice",
        CONTRACT,
        "once = uses[e] == 1 and uses[candidate] == 1",
        "once = uses[e] == 1",
        "a negated product that is used twice is fused twice",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "fused-and-stored",
        CONTRACT,
        "uses = Counter(results)",
        "uses: Counter[int] = Counter()",
        "a product that is a result is computed again in a sum",
        COMPILE,
    ),
    Mutation(
        "fused-by-place",
        CONTRACT,
        "            fused.sort(key=lambda n: before.digest(value.args[n]))",
        "            pass",
        "which product is fused depends on the order of summands",
        COMPILE,
        "summands are in the order of their digests already, see Table.add",
    ),
    Mutation(
        "fused-scalars",
        CONTRACT,
        "values[e].depth == values[inside].depth and ",
        "",
        "products of scalars are computed in each cell",
        COMPILE,
    ),
    Mutation(
        "fused-precisions",
        CONTRACT,
        " and values[e].dtype == values[inside].dtype",
        "",
        "products of coordinates are rounded to float32 where they are added",
        COMPILE,
    ),
    Mutation(
        "sign-of-c",
        CONTRACT,
        "other = negated(other)",
        "pass",
        "a*b - c is a*b + c",
        COMPILE,
    ),
    Mutation(
        "inactive-neighbours",
        EXCHANGE,
        "if peer is None or peer == this_subdomain or "
        "Subdomain(subdomain.decomposition, peer).active(blocks):",
        "if True:",
        "messages go to subdomains that receive none",
        ("lang/test_blocks.py",),
    ),
    Mutation(
        "tags",
        EXCHANGE,
        "(d + 1) * 3**axis",
        "(d + 1) * 2**axis",
        "messages of two directions share a tag",
        PLAN,
    ),
    Mutation(
        "rows-wrap-all",
        EXCHANGE,
        "number_of_field in wraps and not any(direction[:-1])",
        "number_of_field in wraps",
        "halos along other axes are not copied where rows wrap",
        ("compile/passes/test_nests.py",),
    ),
    Mutation(
        "sends-copied",
        EXCHANGE,
        "and not along_rows and not transfers.is_copied(this_subdomain, peer):",
        "and not along_rows:",
        "messages are sent that nobody receives",
        PLAN,
    ),
    Mutation(
        "sends-opposite",
        EXCHANGE,
        "peer = neighbour(_opposite(direction))",
        "peer = neighbour(direction)",
        "sends and receives do not match",
        PLAN,
    ),
    Mutation(
        "fills-higher-walls",
        FILLS,
        "axis in fill.covers if wall else alone",
        "True if wall else alone",
        "a fill writes ghosts of a higher axis",
        PLAN,
    ),
    Mutation(
        "fills-alone",
        FILLS,
        "alone = subdomain.decomposition.parts[axis] == 1 and transfers.is_copied(*[subdomain.number] * 2)",
        "alone = subdomain.decomposition.parts[axis] == 1",
        "ghosts are formed before the message of a subdomain to itself",
        PLAN,
    ),
    Mutation(
        "rims-inward",
        FILLS,
        "inward = (0, fill.reach) if fill.side < 0 else (fill.reach, 0)",
        "inward = (0, 0)",
        "ghosts are formed before what they read has come",
        PLAN,
    ),
    Mutation(
        "rims-operands",
        FILLS,
        "dict.fromkeys(fill.operands, _cells_read(box, fill))",
        "{fill.field: _cells_read(box, fill)}",
        "ghosts are formed before what they read of another field has come",
        ("compile/test_halo.py",),
    ),
    Mutation(
        "along-core",
        FILLS,
        "start = min(below, n) if is_received[0] else",
        "start = 0 if is_received[0] else",
        "ghosts that read along a wall are formed before the messages that they read have come",
        ("compile/test_walls.py",),
    ),
    Mutation(
        "along-rims",
        FILLS,
        "if any(_reads(boxes.core, fill, other, box) for other, box in previous_rims):",
        "if False:",
        "ghosts are formed of others that wait for messages",
        ("compile/test_walls.py",),
    ),
    Mutation(
        "along-needs",
        FILLS,
        "inward if axis == fill.axis else fill.along[axis]",
        "inward if axis == fill.axis else (0, 0)",
        "ghosts wait for less than they read along the wall",
        ("compile/test_walls.py",),
    ),
    Mutation(
        "along-order",
        WALLS,
        "if done.keys() >= {*before[fill.node]}",
        "if True",
        "ghosts are formed before those of a higher axis that they read",
        ("compile/test_walls.py",),
    ),
    Mutation(
        "along-covers",
        WALLS,
        "ready = [axis for axis in remaining if after[axis] <= {*order}]",
        "ready = remaining",
        "a formula that reads its own field's ghosts of a higher axis is rejected",
        ("compile/test_walls.py",),
    ),
    Mutation(
        "along-wraps",
        WRAPS,
        "if fill.corners[-1] != (0, 0) or any(offset[-1] for offset in offsets)",
        "if fill.corners[-1] != (0, 0)",
        "ghosts are formed of ends of rows that the kernel fills only then",
        ("compile/test_walls.py",),
    ),
    Mutation(
        "blocks-reach-depth",
        FILLS,
        "    reach[fill.axis] = fill.depth\n",
        "",
        "ghosts beside blocks that are read from across the wall are not formed",
        ("lang/test_blocks.py",),
    ),
    Mutation(
        "blocks-reach-fills",
        FILLS,
        "max(fill.corners[other.axis]) + other.reach)",
        "max(fill.corners[other.axis]))",
        "ghosts beside blocks that other fills read are not formed",
        ("lang/test_blocks.py",),
    ),
    Mutation(
        "held-last",
        "lang/boundary.py",
        "else field.grid.cells(axis)",
        "else field.grid.cells(axis) - 1.0",
        "the last point but one has the value of the wall",
        ("lang/test_boundary_walls.py",),
    ),
    Mutation(
        "held-corner",
        "lang/boundary.py",
        "    for axis, staggered in enumerate(field.staggered):\n        if not staggered or",
        "    for axis, staggered in reversed(list(enumerate(field.staggered))):\n        if not staggered or",
        "where walls meet the value of the lower axis counts",
        ("lang/test_boundary_walls.py",),
    ),
    Mutation(
        "stretch-place",
        "lang/stretch.py",
        "    x = without_location(grid.coordinates([bool(p) for p in place])[axis])\n    step =",
        "    x = without_location(grid.coordinates([False for p in place])[axis])\n    step =",
        "distances between faces are taken for those between cells",
        ("lang/test_stretch.py",),
    ),
    Mutation(
        "held-later",
        "run/fields/fields.py",
        "                self._set_walls(field)  #",
        "                pass  #",
        "a run starts with points on walls that nobody gave their value",
        ("lang/test_boundary_walls.py",),
    ),
)


def mutated(mutation: Mutation, root: Path = ROOT) -> str:
    """The text of the file with the mistake in it; `Unfit` where the old text does not occur just once."""
    text = (root / PACKAGE / mutation.file).read_text()
    count = text.count(mutation.old)
    if count != 1:
        raise Unfit(f"{mutation.name}: its text occurs {count} times in {PACKAGE / mutation.file}, not once")
    return text.replace(mutation.old, mutation.new)


@contextlib.contextmanager
def copied(native: Path) -> Iterator[Path]:
    """Copy the files that tests need; all except src and tests are links."""
    # no compiled files: Python compares their times in seconds and sizes, which two mutants may share
    ignore = shutil.ignore_patterns("__pycache__", "_native*.so")
    with tempfile.TemporaryDirectory(prefix="halocline-mutant-") as folder:
        root = Path(folder)
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, root / name, ignore=ignore)
        for name in LINKED:
            (root / name).symlink_to(ROOT / name)
        (root / "site").mkdir()
        (root / "site" / "sitecustomize.py").write_text(SITE.format(native=str(native)))
        yield root


def environment(root: Path) -> dict[str, str]:
    """Return the environment of processes that import the copy."""
    rest = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PYTHONPATH"))}
    return rest | {"PYTHONPATH": f"{root / 'site'}{os.pathsep}{root / 'src'}"}


def check_import(root: Path) -> None:
    """Raise `Unfit` if Python would import Halocline from another folder."""
    code = "import halocline._native, halocline.compile.halo as halo; print(halo.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(root), cwd=root, capture_output=True, text=True
    )
    if done.returncode or done.stdout.strip() != str(root / PACKAGE / HALO):
        raise Unfit(f"the copy in {root} is not what Python imports: {done.stdout}{done.stderr}")


def run_tests(root: Path, tests: Sequence[str], limit: float, selection: str) -> tuple[int | None, str]:
    """Run test files in a copy; return the exit status of pytest (None after a timeout) and its output."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", selection]
    process = subprocess.Popen(
        [*command, *(f"tests/{name}" for name in tests)],
        cwd=root,
        env=environment(root),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        return _waited(process, limit)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _waited(process: subprocess.Popen[str], limit: float) -> tuple[int | None, str]:
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest then ends the ranks that it has started
        try:
            output, _ = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        return None, output


def failed_test(output: str) -> str:
    """Return the first failed test in the output of pytest, or its last line."""
    lines = output.splitlines()
    failures = (line.split(" - ")[0] for line in lines if line.startswith(("FAILED ", "ERROR ")))
    return next(failures, lines[-1] if lines else "no output")


def try_mutant(
    mutation: Mutation, native: Path, tests: Sequence[str], limit: float, selection: str
) -> tuple[bool, str]:
    """Return True if a test fails with a mutant, and the name of the test."""
    with copied(native) as root:
        (root / PACKAGE / mutation.file).write_text(mutated(mutation, root))
        status, output = run_tests(root, tests, limit, selection)
    if status is None:
        return True, f"timeout after {limit:g} s"
    # 2 is an error in collection, where modules are imported; below zero are signals
    if status > 2:
        raise Unfit(f"{mutation.name}: pytest ended with {status}:\n{output[-2000:]}")
    return status != 0, failed_test(output)


def prepare(native: Path, tests: Sequence[str], limit: float, selection: str) -> None:
    """Raise `Unfit` if tests fail without a mutant, or pass with one that breaks every program."""
    with copied(native) as root:
        check_import(root)
        status, output = run_tests(root, tests, limit * len(tests), selection)
    if status != 0:
        raise Unfit(f"tests do not pass in a copy without mutants:\n{output[-4000:]}")
    noticed, _ = try_mutant(FATAL, native, FATAL.tests, limit, selection)
    if not noticed:
        raise Unfit("tests in the copy do not notice a mutant that breaks every program")


def find_native() -> Path:
    """Return the path of the compiled module that this Python imports."""
    with contextlib.suppress(ImportError):
        spec = importlib.util.find_spec("halocline._native")
        if spec is not None and spec.origin is not None:
            return Path(spec.origin)
    raise Unfit(f"{sys.executable} has no Halocline: make build, then .venv/bin/python tools/mutants.py")


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants to try (default: all)")
    parser.add_argument("--list", action="store_true", help="list the mutants; status 2 if one does not fit")
    parser.add_argument(
        "--limit", type=float, default=180.0, help="seconds for the tests of one mutant (180)"
    )
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="run these test files, not each mutant's")
    parser.add_argument("-m", dest="selection", default="not long", help="as pytest's -m ('not long')")
    options = parser.parse_args()
    unknown = set(options.names) - {m.name for m in MUTATIONS}
    if unknown:
        parser.error(f"no mutants of these names: {', '.join(sorted(unknown))}")
    return options


def show() -> None:
    """List every mutant."""
    for m in MUTATIONS:
        print(f"{m.name:26} {m.file}: {m.breaks} ({', '.join(m.tests)})")
        if m.equivalent:
            print(f"{'':26} may survive: {m.equivalent}")


def main() -> int:
    options = arguments()
    for mutation in (FATAL, *MUTATIONS):
        mutated(mutation)
    if options.list:
        show()
        return 0
    chosen = [m for m in MUTATIONS if not options.names or m.name in options.names]
    native = find_native()
    every = options.tests or list(dict.fromkeys(test for m in chosen for test in m.tests))
    prepare(native, every, options.limit, options.selection)
    survived = []
    for mutation in chosen:
        started = time.monotonic()
        tests = options.tests or mutation.tests
        noticed, by = try_mutant(mutation, native, tests, options.limit, options.selection)
        outcome = "noticed" if noticed else "equivalent" if mutation.equivalent else "SURVIVED"
        if outcome == "SURVIVED":
            survived.append(mutation)
        line = f"{mutation.name:26} {outcome:10} {time.monotonic() - started:5.1f} s"
        print(f"{line}  {by if noticed else mutation.equivalent or mutation.breaks}", flush=True)
    print(f"{len(chosen)} mutants, {len(survived)} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unfit as error:
        print(f"mutants: {error}", file=sys.stderr)
        sys.exit(2)
