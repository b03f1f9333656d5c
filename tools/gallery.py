"""Run the examples at reduced size, and write the gallery page with their pictures: docs/gallery.md."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PICTURES = ROOT / "docs" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"

# Title and arguments of each example. The arguments reduce its size to a few seconds on two cores.
RUNS = {
    "heat_3d": ("Heat in three dimensions", ["48"]),
    "wave_2d": ("Sound in a closed room", ["64"]),
    "acoustic": ("Acoustic waves in layered rock", []),
    "shallow_water": ("Rotating shallow water", ["128"]),
    "gray_scott": ("Reaction and diffusion", ["128", "5000"]),
    "l_shape": ("A drum of L shape", ["127"]),
    "own_operator": ("An own linear operator", ["96"]),
    "channel": ("A channel with three kinds of walls", ["24"]),
    "obstacle_flow": ("Incompressible flow past a square", ["20", "1.5"]),
    "euler_1d": ("A shock tube", ["400"]),
    "euler_2d": ("A blast in a box", ["96"]),
    "fit_conductivity": ("A conductivity fitted in PyTorch", ["64"]),
    "sedov": ("A blast wave in cold gas", ["96"]),
}
OPTIONAL = {"fit_conductivity"}  # needs PyTorch

HEAD = """\
# Gallery

This page shows the programs of `examples/`, each with a picture, its command, and its time on the machine
that built this page. The runs have reduced size. Each program has fewer than sixty lines, except `sedov`
and `fit_conductivity`.
"""
ENTRY = """
## {title}
{picture}
{about}

`python examples/{command}`{seconds}.
Code: [`examples/{name}.py`](../examples/{name}.py).
"""
PICTURE = "\n![{title}](gallery/{name}.png)\n"


def description(path: Path) -> str:
    """Return the first paragraph of the docstring of a file."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.partition("\n\n")[0].split())


def run(name: str, arguments: list[str]) -> tuple[bytes | None, float]:
    """Run an example, and return its picture and the time in seconds.

    There is no picture if the example needs a package that is not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
        environment = os.environ | {"HALOCLINE_OUT": folder}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - begin
        picture = next(Path(folder).glob("*.png"), None)
        return picture and picture.read_bytes(), seconds


def main() -> None:
    """Write the page and the pictures."""
    PICTURES.mkdir(exist_ok=True)
    page = HEAD
    for name, (title, arguments) in RUNS.items():
        picture, seconds = run(name, arguments)
        if picture is not None:
            (PICTURES / f"{name}.png").write_bytes(picture)
        elif name not in OPTIONAL:
            raise SystemExit(f"examples/{name}.py wrote no picture")
        page += ENTRY.format(
            title=title,
            name=name,
            about=description(EXAMPLES / f"{name}.py"),
            command=" ".join([f"{name}.py", *arguments]),
            picture=PICTURE.format(title=title, name=name) if picture else "",
            seconds=f": {seconds:.1f} s, with compilation" if picture else "",
        )
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
