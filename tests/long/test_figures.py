"""Figures of a cavity, drawn by the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cavity_panels import NAMES, case_of
from halocline.cli.app import run as command
from loops import some


@pytest.mark.parametrize(("n", "steps"), [("15", 4), ("6,5,4", 4)])
def test_the_command_draws_the_figures(
    n: str, steps: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from matplotlib.image import imread

    options = ["--n", n, "--steps", f"{steps}", "--threads", "1", "--set", "stages=1"]
    assert command(["run", case_of(len(n.split(","))), *options, "--pictures", f"{tmp_path}"]) == 0
    errors = capsys.readouterr().err
    for figure_name in some(NAMES):
        path = tmp_path / f"{figure_name}.png"
        assert f"{path}" in errors
        image = imread(path)
        assert min(image.shape[:2]) > 300
        assert len(np.unique(image[::4, ::4].reshape(-1, image.shape[2]), axis=0)) > 20
    assert (tmp_path / "T.png").exists()
