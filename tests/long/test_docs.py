"""The documentation shows programs that run and print the shown output, and names that exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest

from documented_blocks import BLOCK, ROOT, run
from halocline.problems.problem import Problem
from hang import HANG


def test_the_page_on_shocks_is_correct(tmp_path):
    """The program prints the shown output, and the page lists cases, parameters, defaults and names."""
    from halocline.physics import mhd_tvd
    from halocline.physics.mhd_tvd import parameters
    from halocline.problems.files import case_names

    text = (ROOT / "docs" / "how-to" / "shocks.md").read_text()
    ((program, output),) = BLOCK.findall(text)
    assert run(program, 1, tmp_path) == output
    defaults = dict(
        re.findall(r"^\| `(\w+)` \| (\S+) \|", text.partition("## Parameters\n")[2], re.MULTILINE)
    )
    assert defaults.keys() == parameters.ALL.keys()
    for name, parameter in parameters.ALL.items():
        entry = "1.66667" if defaults[name] == "5/3" else defaults[name]
        assert entry == parameter.default or float(entry) == pytest.approx(parameter.default, rel=1e-5), name
    assert len(case_names()) > 20
    for name in case_names():
        entry, problem = re.search(rf"^\| .*`{name}`.* \| ([\d, ]+) \|", text, re.MULTILINE), Problem(name)
        assert (entry is not None) == ("epsilon_fast" in problem.declared), name
        assert entry is None or [*map(int, entry[1].split(","))] == list(problem.sizes), name
    for name in mhd_tvd.__all__:
        assert re.search(rf"\b{name}\b", text), name


def test_the_pages_on_cases_are_correct(tmp_path):
    (program, _), (own_case, _) = BLOCK.findall((ROOT / "docs" / "how-to" / "cases.md").read_text())
    assert run(program, 1, tmp_path)
    run(own_case, 1, tmp_path)
    (tmp_path / "mine.py").write_text(own_case)
    assert Problem(str(tmp_path / "mine.py"), [16], dim=1).run(steps=4).record.diagnostics["largest"] < 1.0


def test_the_documented_job_resubmits_itself(tmp_path):
    """With stand-ins for Slurm's commands, jobs end soon and are queued again until the run is complete."""
    text = (ROOT / "docs" / "how-to" / "restart.md").read_text()
    (job,) = re.findall(r"```sh\n(#!/bin/bash\n.*?)```", text, re.DOTALL)
    assert "--n 256 --until 200" in job
    script, submitted = tmp_path / "job.sh", tmp_path / "submitted"
    stand_ins = {"srun": 'shift; exec "$@"', "sbatch": f'echo "$@" >> {submitted}'}
    for name, line in stand_ins.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"

    def ran(left, steps):
        script.write_text(job.replace("--n 256 --until 200", f"--n 16 --threads 1 --steps {steps}"))
        slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": str(int(time.time()) + left)}
        done = subprocess.run(
            ["bash", script], cwd=tmp_path, env={**os.environ, "PATH": path, **slurm},
            capture_output=True, text=True, timeout=HANG,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done

    assert (
        "its time limit is nearly reached" in ran(66, 10**9).stderr
    )  # it ends a minute before the end of its job
    assert submitted.read_text() == f"{script}\n"
    reached = json.loads(
        next((tmp_path / "out" / "mhd").glob("step-*/zarr.json")).read_text()
    )["attributes"]["halocline"]["step"]  # fmt: skip
    assert re.search(rf"^time reached .* {reached + 3:,} steps,", ran(3600, reached + 3).stdout, re.MULTILINE)
    assert submitted.read_text() == f"{script}\n"


def test_the_pages_on_magnetohydrodynamics_are_correct(tmp_path):
    """All blocks form one program; the page names every option and every public name."""
    from halocline.physics import mhd

    text = (ROOT / "docs" / "how-to" / "mhd.md").read_text()
    result = BLOCK.findall(text)
    assert len(result) == text.count("```python") == 3
    assert run("".join(code for code, _ in result), 1, tmp_path) == "".join(output for _, output in result)
    _, _, options = text.partition("## Which terms\n")
    for option in fields(mhd.Physics):
        assert f"`{option.name}=" in options, option.name
    for name in mhd.__all__:
        assert f"`{name}`" in text, name


def test_the_pages_on_predictions_are_correct(tmp_path):
    """The program of the guide runs, and the machine files of the reference are valid."""
    from halocline.plan.machine import load_machine

    ((program, _),) = BLOCK.findall((ROOT / "docs" / "how-to" / "predict.md").read_text())
    assert re.fullmatch(
        r"( *\d+ nodes, +\d+ ranks: .* ms a pass, efficiency \d\.\d\d\n){3}", run(program, 1, tmp_path)
    )
    text = (ROOT / "docs" / "reference" / "machine-model.md").read_text()
    machine, of_gpus = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.toml").write_text(machine)
    assert load_machine(tmp_path / "mine.toml").injection == 1.25e10
    (tmp_path / "gpus.toml").write_text(machine.replace('"cpu" ', '"gpu" ') + of_gpus)
    gpu_machine = load_machine(tmp_path / "gpus.toml")
    assert gpu_machine.host is not None
    assert gpu_machine.aware is not None
