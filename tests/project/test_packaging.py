"""Recipes and images in `packaging` agree with pyproject.toml, and their commands name existing files.

The tests need no network and no packaging tool. `packaging/README.md` records trials with such tools.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from loops import some
from source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDER = ROOT / "packaging"
CONTAINERS = FOLDER / "containers"
SPACK = FOLDER / "spack" / "spack_repo" / "halocline"
RECIPE = yaml.safe_load((FOLDER / "conda" / "recipe" / "recipe.yaml").read_text())
MODULE = FOLDER / "modules" / "halocline.tcl.in"
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())

CMAKE = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", (ROOT / "CMakeLists.txt").read_text())


def bounds(requirements: list[str]) -> dict[str, str]:
    """Return the version bounds of requirements by name, in a fixed order."""
    parsed = [Requirement(text) for text in requirements]
    return {
        canonicalize_name(item.name): ",".join(sorted(map(str, item.specifier), reverse=True))
        for item in parsed
    }


assert CMAKE is not None
DEPENDENCIES = bounds(PROJECT["project"]["dependencies"])
OPTIONAL = PROJECT["project"]["optional-dependencies"]
EXTRAS = bounds([*OPTIONAL["cuda"], *OPTIONAL["xarray"]])
BUILD = bounds(PROJECT["build-system"]["requires"])
PYTHON = PROJECT["project"]["requires-python"]
BUILD_TOOLS = {"cmake": f">={CMAKE[1]}", "ninja": ""}


def without_mpich() -> dict[str, str]:
    """Return the dependencies with the exception of mpich, which other packages of MPI replace."""
    return {name: bound for name, bound in DEPENDENCIES.items() if name != "mpich"}


def test_the_only_library_of_mpi_among_the_dependencies_is_mpich():
    assert DEPENDENCIES.keys() - without_mpich().keys() == {"mpich"}


# -- conda --------------------------------------------------------------------------------------------------


def conda_bounds(section: str) -> dict[str, str]:
    lines = [line for line in RECIPE["requirements"][section] if not line.startswith("${{")]
    return bounds([line.replace("matplotlib-base", "matplotlib") for line in lines])


def test_the_conda_recipe_has_the_version_and_license_of_the_project():
    project = PROJECT["project"]
    assert RECIPE["context"]["version"] == CITATION["version"]
    assert RECIPE["about"]["license"] == project["license"]
    assert RECIPE["about"]["summary"] == project["description"]
    assert [RECIPE["about"]["license_file"]] == project["license-files"]
    assert (FOLDER / "conda" / "recipe" / RECIPE["source"]["path"]).resolve() == ROOT


def test_the_conda_recipe_has_the_dependencies_of_the_project():
    assert conda_bounds("run") == without_mpich() | {"python": PYTHON, "cxx-compiler": ""}
    assert conda_bounds("host") == BUILD | {"python": PYTHON, "pip": ""}
    assert conda_bounds("build") == BUILD_TOOLS
    assert conda_bounds("run_constraints").items() <= EXTRAS.items()


def test_the_conda_recipe_removes_the_dependency_on_mpich(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = RECIPE["build"]["script"]["content"][0]
    assert command.startswith("sed -i ")
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    check_without_mpich((tmp_path / "pyproject.toml").read_text())


def check_without_mpich(text: str) -> None:
    """Check that a text is pyproject.toml without the line of mpich."""
    assert bounds(tomllib.loads(text)["project"]["dependencies"]) == without_mpich()
    assert len(text.splitlines()) == len((ROOT / "pyproject.toml").read_text().splitlines()) - 1


# -- Spack --------------------------------------------------------------------------------------------------


def spack_calls(package: str, function: str) -> list[tuple[list[Any], dict[str, Any]]]:
    """Return the literal arguments of the calls of a function in a recipe."""
    tree = ast.parse((SPACK / "packages" / package / "package.py").read_text())
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function
    ]
    return [
        (
            [ast.literal_eval(item) for item in call.args],
            {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords},
        )
        for call in calls
    ]


def spack_bounds() -> dict[str, str]:
    """Return the dependencies of the Spack recipe with the bounds of pip: 0.15:0.28 is >=0.15,<0.29."""
    result = {}
    for (text,), _ in spack_calls("py_halocline", "depends_on"):
        match = re.fullmatch(r"([\w-]+?)(?:@([\d.]+):([\d.]*))?(\+\w+)?", text)
        assert match is not None, text
        name, lower, upper, _ = match.groups()
        bound = f">={lower}" if lower else ""
        if upper:
            *head, last = upper.split(".")
            bound += f",<{'.'.join([*head, str(int(last) + 1)])}"
        result[name.removeprefix("py-")] = bound
    return result


def test_the_spack_recipe_has_the_dependencies_of_the_project():
    expected = without_mpich() | BUILD | BUILD_TOOLS | {"python": PYTHON, "mpi": "", "cxx": ""}
    extras = {name: bound for name, bound in EXTRAS.items() if "nvrtc" not in name}
    assert spack_bounds() == expected | extras | {"cuda": ">=12"}  # contains NVRTC


def test_the_spack_recipe_removes_the_dependency_on_mpich():
    (((pattern, replacement, file), _),) = spack_calls("py_halocline", "filter_file")
    text = (ROOT / file).read_text()
    lines = [re.sub(pattern, replacement, line) for line in text.splitlines(keepends=True)]
    check_without_mpich("".join(lines))


def test_spack_packages_have_the_versions_that_the_build_requires():
    for name in some(BUILD.keys() - {"setuptools-scm"}):  # Spack has a version that is new enough
        ((version,), arguments) = spack_calls(f"py_{name.replace('-', '_')}", "version")[0]
        assert Requirement(f"{name}{BUILD[name]}").specifier.contains(version)
        assert re.fullmatch(r"[0-9a-f]{64}", arguments["sha256"])


def test_spack_recipes_are_in_the_folders_of_their_classes():
    assert yaml.safe_load((SPACK / "repo.yaml").read_text())["repo"]["namespace"] == SPACK.name
    for path in some((SPACK / "packages").glob("*/package.py")):
        (name,) = [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)]
        assert name == "".join(word.capitalize() for word in path.parent.name.split("_"))


# -- containers ---------------------------------------------------------------------------------------------


def check_shell(text: str) -> None:
    """Check the syntax of shell commands."""
    done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_dockerfile_names_existing_files_and_runs_without_root():
    text = (CONTAINERS / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    for instruction, argument in some(lines):
        assert instruction in {"FROM", "ARG", "RUN", "ENV", "USER", "WORKDIR", "CMD"}
        if instruction == "RUN":
            check_shell(re.sub(r"--mount=\S+", "", argument))
    files = re.findall(r"/source/([\w./-]+)", text)
    assert files
    assert all((ROOT / file).is_file() for file in files)
    instructions = dict(lines)
    assert int(instructions["USER"]) > 0
    declared = set(re.findall(r"^ARG (\w+)=", text, re.MULTILINE))
    assert declared == set(re.findall(r'"\$(\w+)"', text))


def sections() -> dict[str, str]:
    """Return the sections of the Apptainer definition by name."""
    _, *parts = re.split(r"^%(\w+)\n", (CONTAINERS / "halocline.def").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_apptainer_definition_names_existing_files():
    text = sections()
    arguments = dict(re.findall(r"(\w+)=(\S+)", text["arguments"]))
    for name in ("setup", "post", "environment", "test", "runscript"):
        assert set(re.findall(r"\{\{ (\w+) \}\}", text[name])) <= arguments.keys()
        check_shell(re.sub(r"\{\{ (\w+) \}\}", lambda match: arguments[match[1]], text[name]))
    files = re.search(r"cp -r (.*?) \"\$APPTAINER_ROOTFS", text["setup"].replace("\\\n", " "), re.DOTALL)
    assert files is not None
    names = files[1].split()
    assert all((ROOT / name).exists() for name in names)
    # those that a build from the source needs
    assert {"pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "native", "src"} <= set(names)


def test_both_images_have_the_same_base_and_defaults():
    dockerfile = (CONTAINERS / "Dockerfile").read_text()
    definition = (CONTAINERS / "halocline.def").read_text()
    (base,) = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert f"From: {base}\n" in definition
    (march,) = re.findall(r"^ARG MARCH=(\S+)", dockerfile, re.MULTILINE)
    assert f"MARCH={march}\n" in definition
    assert "requirements.lock" in (CONTAINERS / "install.sh").read_text()
    check_shell((CONTAINERS / "install.sh").read_text())


# -- modules ------------------------------------------------------------------------------------------------

VALUES = {"VERSION": "0.1.0", "PREFIX": "/opt/halocline/0.1.0", "MPI": "mpich", "CXX": "/usr/bin/g++"}
# The commands of a module file, as Tcl procedures that print the environment.
COMMANDS = """
proc module-whatis text { puts $text }
foreach name {conflict prereq} { proc $name module "puts \\"$name \\$module\\"" }
foreach name {prepend-path setenv} { proc $name {variable value} {puts "$variable=$value"} }
source [lindex $argv 0]
ModulesHelp
"""


def rendered_module() -> str:
    return re.sub(r"@(\w+)@", lambda match: VALUES[match[1]], MODULE.read_text())


def test_the_module_template_has_no_other_fields():
    assert set(re.findall(r"@(\w+)@", MODULE.read_text())) == VALUES.keys()
    assert rendered_module().startswith("#%Module1.0\n")


def test_the_module_is_valid_tcl(tmp_path):
    if shutil.which("tclsh") is None:
        pytest.skip("needs tclsh (Debian: tcl)")
    (tmp_path / "module").write_text(rendered_module())
    (tmp_path / "run.tcl").write_text(COMMANDS)
    command = ["tclsh", tmp_path / "run.tcl", tmp_path / "module"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "PATH=/opt/halocline/0.1.0/bin\nCXX=/usr/bin/g++\n" in done.stdout
    assert "prereq mpich\n" in done.stdout
    assert "halocline doctor" in done.stderr


# -- public files -------------------------------------------------------------------------------------------

PAGES = ("CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "packaging/README.md")


def test_the_citation_has_the_license_and_authors_of_the_project():
    project = PROJECT["project"]
    assert CITATION["license"] == project["license"]
    assert CITATION["authors"] == project["authors"]
    for reference in some(CITATION["references"]):
        assert {"type", "title", "authors", "year"} <= reference.keys()
    assert len(CITATION["references"]) == len(list((ROOT / "docs" / "papers").glob("*.md")))


@pytest.mark.parametrize("page", PAGES)
def test_links_of_public_pages_name_existing_files(page):
    text = (ROOT / page).read_text()
    for link in some(re.findall(r"\]\(([^)]+)\)", text)):
        file, _, heading = link.partition("#")
        path = (ROOT / page).parent / file
        assert path.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
            assert heading in {title.lower().replace(" ", "-") for title in titles}, link


def test_addresses_are_in_one_place_only():
    pages = [page for page in PAGES if re.search(r"https?://|\w@\w", (ROOT / page).read_text())]
    assert pages == []
    assert "## Contact\n" in (ROOT / "CONTRIBUTING.md").read_text()


def test_issue_templates_are_valid_forms():
    templates = ROOT / ".github" / "ISSUE_TEMPLATE"
    assert yaml.safe_load((templates / "config.yml").read_text()) == {"blank_issues_enabled": False}
    forms = [path for path in templates.glob("*.yml") if path.name != "config.yml"]
    assert {path.stem for path in forms} == {"bug", "feature", "question"}
    for path in some(forms):
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "labels", "body"} == form.keys()
        inputs = [item for item in form["body"] if item["type"] != "markdown"]
        assert len({item["id"] for item in inputs}) == len(inputs)
        for item in some(inputs):
            assert item["type"] in {"textarea", "checkboxes", "input", "dropdown"}
            assert item["attributes"]["label"]
    assert "halocline doctor --json" in (templates / "bug.yml").read_text()
