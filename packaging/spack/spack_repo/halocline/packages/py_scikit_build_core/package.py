"""Version of scikit-build-core that Halocline requires, until the repository of Spack has it."""

# ruff: noqa: F403, F405

from spack.package import *
from spack_repo.builtin.packages.py_scikit_build_core.package import PyScikitBuildCore as BuiltinBackend


class PyScikitBuildCore(BuiltinBackend):
    __doc__ = BuiltinBackend.__doc__

    version("1.1.2", sha256="7893709119c5ab1be75cd10442383132c9433b9f104dacef5185949efbea7974")
    depends_on("py-pathspec@0.12:", when="@1:", type=("build", "run"))
