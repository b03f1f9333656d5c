"""Power spectra of fields over wavenumbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError


def spectrum(
    values: NDArray[Any], lines: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the power of a field in shells of wavenumbers.

    The power of a shell is the sum of |û_k|², where û_k are the coefficients of the discrete Fourier series.
    The sum over all shells is the variance (Parseval).

    Parameters
    ----------
    values : array
        Values on evenly spaced points of a domain that is assumed to be periodic.
    lines : sequence of array
        Coordinates along each axis.

    Returns
    -------
    k : array
        Wavenumber in the middle of each shell. Adjacent shells are 2π / L apart, where L is the longest side
        of the domain.
    power : array
        Power of each shell.

    Raises
    ------
    InputError
        Points are not evenly spaced.
    """
    steps = []
    for line in lines:
        widths = np.diff(line)
        if len(widths) and np.ptp(widths) > 1e-6 * abs(widths).max():
            raise InputError("a spectrum requires evenly spaced points, but these axes are stretched")
        steps.append(float(widths.mean()) if len(widths) else 1.0)
    amplitudes = np.fft.fftn(values - values.mean()) / values.size
    waves = np.meshgrid(
        *(2 * np.pi * np.fft.fftfreq(n, h) for n, h in zip(values.shape, steps, strict=True)), indexing="ij"
    )
    length = np.sqrt(sum(k**2 for k in waves))
    width = 2 * np.pi / max(n * h for n, h in zip(values.shape, steps, strict=True))
    shell = np.rint(length / width).astype(int)
    power = np.bincount(shell.ravel(), weights=(np.abs(amplitudes) ** 2).ravel())
    return width * np.arange(1.0, len(power)), np.asarray(power[1:], dtype=np.float64)
