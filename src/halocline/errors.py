"""Exceptions of Halocline. Each message names the problem, the cause and the next action."""

from __future__ import annotations

from typing import Self


class HaloclineError(Exception):
    """Base class of all errors that Halocline raises deliberately.

    Attributes
    ----------
    exit_status : int
        Exit status of the command: 2 for invalid input, 1 for a failed run.
    place : (str, tuple of int) or None
        Field name and cell index of a non-finite value, if such a value caused the error.
    """

    exit_status = 1
    place: tuple[str, tuple[int, ...]] | None = None

    def explained(self, explanation: str) -> Self:
        """Return the error with an explanation on an additional line.

        An empty explanation leaves the error unchanged.
        """
        if not explanation:
            return self
        longer = type(self)(f"{self}\n{explanation}")
        longer.place = self.place
        for note in getattr(self, "__notes__", ()):
            longer.add_note(note)
        return longer


class InputError(HaloclineError, ValueError):
    """Invalid argument, equation, grid or option, detected before any computation."""

    exit_status = 2


class CompileError(HaloclineError):
    """Failure to compile generated code or to use the cache of compiled code."""

    exit_status = 2


class RunError(HaloclineError):
    """Failure of a run, for example a dead rank, insufficient memory, or non-finite values."""


class Stopped(HaloclineError):
    """Early end of a run on request. The run has written a checkpoint, from which it can be resumed."""

    exit_status = 75  # EX_TEMPFAIL of sysexits.h: the caller can retry


class Terminated(KeyboardInterrupt):
    """End of a run by SIGTERM, as KeyboardInterrupt is the end of a run by SIGINT."""

    exit_status = 143  # 128 + SIGTERM, the convention of shells


class BreakdownError(RunError):
    """Breakdown of an iterative method, because the matrix lacks a property that the method requires."""

    exit_status = 2
