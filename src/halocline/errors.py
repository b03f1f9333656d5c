"""What Halocline raises when something is wrong; each message says what, why and what to do."""

from __future__ import annotations

from typing import Self


class HaloclineError(Exception):
    """Base of every error that Halocline raises on purpose.

    Attributes
    ----------
    exit_status : int
        What a command ends with: 2 where what it was given cannot work, 1 where a run failed.
    place : (str, tuple of int) or None
        Of a value that is not finite: the name of the field and the cell.
    """

    exit_status = 1
    place: tuple[str, tuple[int, ...]] | None = None

    def explained(self, explanation: str) -> Self:
        """Return the same error with an explanation on a line of its own, or itself without one."""
        if not explanation:
            return self
        longer = type(self)(f"{self}\n{explanation}")
        longer.place = self.place
        for note in getattr(self, "__notes__", ()):
            longer.add_note(note)
        return longer


class InputError(HaloclineError, ValueError):
    """A wrong argument, equation, grid or option, found before any work is done."""

    exit_status = 2


class CompileError(HaloclineError):
    """Generated code could not be compiled, or the cache of compiled code could not be used."""

    exit_status = 2


class RunError(HaloclineError):
    """A run could not go on: a dead rank, no memory, values that are not finite."""


class Stopped(HaloclineError):
    """A run was asked to end before its end, and left a checkpoint to go on from."""

    exit_status = 75  # EX_TEMPFAIL of sysexits.h: to be tried again


class Terminated(KeyboardInterrupt):
    """End of a run by SIGTERM, as KeyboardInterrupt is by SIGINT."""

    exit_status = 143  # of a process that SIGTERM ends, as shells count


class BreakdownError(RunError):
    """A method met a matrix that it is not made for."""

    exit_status = 2
