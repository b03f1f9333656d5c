"""Configuration of Sphinx, which builds the documentation: `make docs`."""

import tomllib
from pathlib import Path

from halocline import __version__

_project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]

project = "Halocline"
author = copyright = _project["authors"][0]["name"]
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# Notebooks are committed without outputs: the build executes those that have changed since the last build.
# After a change of Halocline, `rm -r out/notebooks` executes all.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parents[1] / "out" / "notebooks")
nb_execution_timeout = 600  # seconds for one cell
nb_execution_raise_on_error = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "Halocline"
