"""Version of nanobind that Halocline requires, until the repository of Spack has it."""

# ruff: noqa: F403, F405

from spack.package import *
from spack_repo.builtin.packages.py_nanobind.package import PyNanobind as BuiltinNanobind


class PyNanobind(BuiltinNanobind):
    __doc__ = BuiltinNanobind.__doc__

    version("3.1.0", sha256="6661e3dc1434d78781ccf7913442d90361dab395c3424efadb63bbb6ddea7ea3")
