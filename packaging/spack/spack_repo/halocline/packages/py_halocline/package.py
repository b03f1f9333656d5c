"""Recipe of Halocline for Spack."""

# ruff: noqa: F403, F405

import re
from pathlib import Path

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyHalocline(PythonPackage):
    """Stencil computing on structured grids: equations in, distributed solve out."""

    git = f"file://{Path(__file__).resolve().parents[6]}"  # the source tree that contains this recipe

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("cuda", default=False, description="Kernels for CUDA devices")
    variant("xarray", default=False, description="Open output and checkpoints with xarray")

    depends_on("cxx", type="build")
    # Compilers without C++20, such as g++ 11, are too old.
    conflicts("%gcc@:11")
    conflicts("%clang@:13")

    with default_args(type="build"):
        depends_on("cmake@3.20:")
        depends_on("ninja")
        depends_on("py-nanobind@3.1:")
        depends_on("py-scikit-build-core@1.1:+pyproject")
        depends_on("py-setuptools-scm@8:")

    depends_on("python@3.11:", type=("build", "run"))
    with default_args(type="run"):
        depends_on("py-cycler@0.12:")
        depends_on("py-h5py@3.11:")
        depends_on("py-jinja2@3.1:")
        depends_on("py-matplotlib@3.9:")
        depends_on("py-mpi4py@4.1:")
        depends_on("py-numpy@2.1:")
        depends_on("py-pydantic@2.7:")
        depends_on("py-rich@13:")
        depends_on("py-scipy@1.14:")
        depends_on("py-tensorstore@0.1.70:")
        depends_on("py-tomli-w@1.0:")
        depends_on("py-typer@0.15:0.28")
        depends_on("mpi")  # instead of the Python package mpich
        depends_on("cuda@12:", when="+cuda")  # contains NVRTC
        depends_on("py-nvidia-ml-py@12.535:", when="+cuda")
        depends_on("py-xarray@2025.1:", when="+xarray")
        depends_on("py-zarr@3:", when="+xarray")

    def patch(self):
        # The MPI library is that of Spack, which mpi4py uses.
        filter_file(r'^  "mpich>=.*\n', "", "pyproject.toml")

    def config_settings(self, spec, prefix):
        """Set the instruction set of the engine to that of the target of the specification."""
        march = re.search(r"-march=(\S+)", optimization_flags(self.compiler, spec.target))
        return {"cmake.define.HALOCLINE_MARCH": march[1]} if march else {}
