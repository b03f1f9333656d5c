"""Stores to export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLRectilinearGridReader


def grid_of(path: Path) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Return the coordinates, and the arrays by name with axes x, y, z."""
    reader = vtkXMLRectilinearGridReader()
    reader.SetFileName(str(path))
    reader.Update()
    output = reader.GetOutput()
    lines = [vtk_to_numpy(getattr(output, f"Get{a}Coordinates")()) for a in "XYZ"]
    data, shape = output.GetPointData(), output.GetDimensions()
    values = {
        data.GetArrayName(n): vtk_to_numpy(data.GetArray(n)).reshape(shape[::-1]).T
        for n in range(data.GetNumberOfArrays())
    }
    return lines, values
