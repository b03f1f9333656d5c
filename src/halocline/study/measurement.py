"""What a measurement is: a record of a run, with the command, the machine and the environment."""

from __future__ import annotations

from typing import Any

Measurement = dict[str, Any]
