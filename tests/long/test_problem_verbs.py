"""Studies as declarations, tables of papers, jobs and joined reports."""

from __future__ import annotations

from pathlib import Path

from step_measurements import run_json


def test_overlap_is_measured_for_cases_and_files(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import halocline as hc\nn = 16\ngrid = hc.Grid((n, n), periodic=True)\nu = grid.field('u')\n"
        "sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5)\n"
        "sim[u] = 1.0\nsim.run(steps=2)\n"
    )
    for name in ("wave", "poisson", "own.py"):
        study = run_json("study", "overlap", name, "--n", "16", "--ranks", "2", "--repeat", "1", cwd=tmp_path)
        assert {row["name"] for row in study["methods"]} == {"colocated", "mpi", "rma"}, name
        assert all(row["step"] > 0 for row in study["methods"])
        assert study["case"] == name


def test_a_linear_problem_is_a_case(tmp_path: Path) -> None:
    solved = run_json("solve", "poisson", "--n", "32", "--threads", "1", cwd=tmp_path)
    case = run_json("run", "poisson", "--n", "32", "--threads", "1", "--ranks", "2", cwd=tmp_path)
    assert (case["iterations"], case["error_max"]) == (solved["iterations"], solved["error_max"])
    assert case["checksum"] == case["checksums"]["u"] == solved["checksum"]
    assert solved.keys() <= case.keys()
    assert (case["steps"], case["time"], case["converged"]) == (solved["iterations"], None, True)
    loose = run_json("run", "poisson", "--n", "32", "--set", "rtol=0.1", "--set", "method=cg", cwd=tmp_path)
    assert loose["iterations"] < case["iterations"]
    part = run_json("run", "poisson", "--n", "32", "--only", "compute", "--steps", "3", cwd=tmp_path)
    assert (part["only"], part["checksum"]) == ("compute", None)
