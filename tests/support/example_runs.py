"""The examples, with arguments that make them small."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"

# Arguments that make an example small, and the maximum that the physics allows for each printed quantity.
CASES = {
    "acoustic": ([], {"largest": 3e-2}),
    "heat_3d": (["24"], {"heat gained": 1e-13, "error": 1e-3}),
    "wave_2d": (["40"], {"energy changed": 1e-13, "air changed": 1e-13}),
    "gray_scott": (["64", "2000"], {"matter made": 1e-15}),
    "own_operator": (["48"], {"error": 2e-3}),
    "l_shape": (["63"], {"error": 2e-2}),
    "channel": (["12"], {"error": 3e-4}),
    "euler_1d": (["120"], {"mass lost": 1e-14, "energy lost": 1e-14, "mean error": 4.5e-3}),
    "euler_2d": (
        ["40", "0.4"],
        {"mass lost": 1e-13, "energy lost": 1e-13, "flux balance": 1e-13, "skewness": 0.0},
    ),
    "obstacle_flow": (["16", "0.5"], {"divergence": 1e-6}),
    "sedov": (["48"], {"mass lost": 1e-14, "energy lost": 1e-14, "radius error": 4e-2, "of all faces": 1e-4}),
    "shallow_water": (["64"], {"mass changed": 1e-13, "energy changed": 1e-3}),
    "fit_conductivity": (["32"], {"error": 0.1}),
}
# Packages that an example needs in addition. Their sums are not reproducible.
NEEDS = {"fit_conductivity": "torch"}
BITWISE = [name for name in CASES if name not in NEEDS]  # examples that print a checksum
