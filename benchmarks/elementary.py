"""Costs of elementary functions in vector loops, compared with the C library.

The loops are those of tests/support/elementary_driver.cpp, compiled as kernels are, with vectors of 512 and
of 256 bits. The C library runs one number at a time ("scalar"), and in vectors as -ffast-math permits
("vector"). The vector version is glibc's libmvec. Its errors reach 4 units in the last place, and its bits
depend on the vector width. Numbers and results remain in the cache. A ratio is the time of the C library,
divided by the time of Halocline. Ratios are medians over measurements in turn.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import arguments, in_turn, median, ratio, save

from halocline.compile.cxx import FLAGS, find_compiler
from halocline.compile.targets.cpu import include_folder

DRIVER = Path(__file__).parents[1] / "tests" / "support" / "elementary_driver.cpp"
FUNCTIONS = {"exp": 1, "log": 1, "sin": 1, "cos": 1, "pow": 2, "min": 2, "max": 2, "abs": 1, "sign": 1}
WIDTHS = {"512 bits": 512, "256 bits": 256}
PEERS = ("exp", "log", "sin", "cos", "pow")


def peer_source() -> str:
    """Return loops over the C library's functions, under the names of the driver's loops."""
    lines = ["#include <math.h>\n"]  # under -ffast-math this declares the functions with vector versions
    for name in PEERS:
        for f, kind in (("", "double"), ("f", "float")):
            second, argument = (f"const {kind} *y, ", ", y[i]") if FUNCTIONS[name] == 2 else ("", "")
            lines.append(
                f'extern "C" void loop_{name}{f}(long n, const {kind} *x, {second}{kind} *__restrict z) {{\n'
                f"  for (long i = 0; i < n; ++i) z[i] = {name}{f}(x[i]{argument});\n}}\n"
            )
    return "".join(lines)


def build(folder: Path, name: str, source: Path, *flags: str) -> ctypes.CDLL:
    """Return a library of loops."""
    path = folder / f"{name.replace(' ', '_')}.so"
    command = [
        *find_compiler().command,
        "-march=native",
        *FLAGS,
        f"-I{include_folder()}",
        *flags,
        str(source),
        "-o",
        str(path),
    ]
    subprocess.run([*command, "-lm"], check=True)
    return ctypes.CDLL(str(path))


def seconds(run: Callable[[], object], count: int) -> float:
    """Return seconds of processor time per run."""
    begin = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - begin) / count


def main() -> None:
    options = arguments("Elementary functions in vector loops.", elements=2048, count=400)
    rng = np.random.default_rng(1)
    n = options.elements
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers = folder / "peers.cpp"
        peers.write_text(peer_source())
        ours = {k: build(folder, k, DRIVER, f"-mprefer-vector-width={w}") for k, w in WIDTHS.items()}
        peer_libraries = {
            "C library, scalar": build(folder, "scalar", peers),
            "C library, vector": build(folder, "vector", peers, "-ffast-math", "-mprefer-vector-width=512"),
        }
        columns = [*WIDTHS, *peer_libraries]
        print("nanoseconds an element" + " " * 5 + "".join(f"{c:>20}" for c in columns) + f"{'ratios':>14}")
        for f, dtype in (("", np.float64), ("f", np.float32)):
            for function, inputs in FUNCTIONS.items():
                vectors = [rng.uniform(0.1, 20, n).astype(dtype) for _ in range(inputs + 1)]
                pointers = [ctypes.c_void_p(v.ctypes.data) for v in vectors]
                suffix = f + "_near" if function in ("sin", "cos") else f
                loops = {k: getattr(library, f"loop_{function}{suffix}") for k, library in ours.items()}
                if function in PEERS:
                    loops |= {
                        k: getattr(library, f"loop_{function}{f}") for k, library in peer_libraries.items()
                    }
                runs = {
                    k: partial(seconds, partial(loop, ctypes.c_long(n), *pointers), options.count)
                    for k, loop in loops.items()
                }
                times = in_turn(runs, options.repeats)
                ns = {k: 1e9 * median(t) / n for k, t in times.items()}
                ratios = {k: ratio(times, "512 bits", k) for k in peer_libraries if k in times}
                print(
                    f"  {function + suffix:25}"
                    + "".join(f"{ns[c]:20.3f}" if c in ns else " " * 20 for c in columns)
                    + "".join(f"{r:7.1f}" for r in ratios.values())
                )
                rows.append({"function": function + suffix, "ns_per_element": ns, "ratio": ratios})
    save(options.json, rows)


if __name__ == "__main__":
    main()
