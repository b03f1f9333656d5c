"""Messages and exit statuses of exceptions."""

from __future__ import annotations

import os
import pickle
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from halocline.errors import HaloclineError, RunError, Stopped, Terminated

_PACKAGE = str(Path(__file__).resolve().parents[2])
_NOT_THE_USERS = tuple(
    {
        os.path.join(folder, "")
        for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
        for folder in (sysconfig.get_path(name), os.path.realpath(sysconfig.get_path(name)))
    }
    | {os.path.join(_PACKAGE, "")}
)


def exit_code(error: BaseException) -> int:
    """Return the exit status: `exit_status` of an error of Halocline, 130 after Ctrl-C, else 1."""
    if isinstance(error, (HaloclineError, Terminated)):
        return error.exit_status
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def describe(error: BaseException) -> str:
    """Return the text of an exception for the terminal.

    For an error of Halocline or a lack of memory, the text begins with the message. After the message, the
    text lists the lines of the user's files that led to the error or to its causes. For any other exception,
    the text is the traceback. If the user's code raised this exception, the traceback contains only the
    user's lines. If another rank raised the exception, the result is the text from that rank.
    """
    text: str | None = getattr(error, "seen_as", None)
    if text is not None:
        return text
    if isinstance(error, (KeyboardInterrupt, Stopped)):
        default = "terminated by SIGTERM" if isinstance(error, Terminated) else "interrupted"
        return f"halocline: {str(error) or default}"
    is_memory_error = _lacks_memory(error) and not _raised_by_user(error)
    if not (is_memory_error or isinstance(error, HaloclineError)):
        return _story(error)
    message = (
        f"there is not enough memory: {str(error) or 'an allocation failed'}" if is_memory_error else error
    )
    lines = [f"halocline: error: {message}", *getattr(error, "__notes__", ())]
    for link in _chain(error):
        steps = (step for step in traceback.walk_tb(link.__traceback__) if _is_users(step[0]))
        frames = traceback.StackSummary.extract(steps)
        lines += [entry.rstrip() for entry in traceback.format_list(frames)]
        if frames and link is not error:
            lines += [entry.rstrip() for entry in traceback.format_exception_only(link)]
    return "\n".join(lines)


def _lacks_memory(error: BaseException) -> bool:
    """Return True if an error reports a lack of memory.

    Python raises RuntimeError if the stack of a new thread does not fit into memory.
    """
    return isinstance(error, MemoryError) or (
        type(error) is RuntimeError and "start new thread" in str(error)
    )


def _story(error: BaseException) -> str:
    summary = traceback.TracebackException.from_exception(error)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if _raised_by_user(error):
        user_lines = [line for line, frame in zip(summary.stack, frames, strict=True) if _is_users(frame)]
        summary.stack = traceback.StackSummary.from_list(user_lines)
    return "".join(summary.format()).rstrip()


def _raised_by_user(error: BaseException) -> bool:
    """Return True if a line of the user's code raised the error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and _is_users(frames[-1])


def pack(error: BaseException) -> bytes:
    """Return an exception and its text as bytes for another rank."""
    text = describe(error)
    try:
        packed = pickle.dumps((error, text))
        pickle.loads(packed)  # fails if the constructor does not accept the pickled arguments
    except Exception:
        packed = pickle.dumps((RunError(f"{type(error).__name__}: {error}"), text))
    return packed


def unpack(packed: bytes) -> BaseException:
    """Return the exception that another rank packed; `describe` returns the text of that rank."""
    error: BaseException
    error, text = pickle.loads(packed)
    error.seen_as = text  # type: ignore[attr-defined]
    return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its chain of causes."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _is_users(frame: FrameType) -> bool:
    """Return True if a frame belongs to the user's code.

    Frames of Halocline, Python and installed libraries are excluded. The code that dataclasses generate for
    Halocline has the file name "<string>" and is excluded by the module name.
    """
    name = str(frame.f_globals.get("__name__", ""))
    in_package = name == "halocline" or name.startswith("halocline.")
    return not in_package and not frame.f_code.co_filename.startswith(("<frozen", *_NOT_THE_USERS))
