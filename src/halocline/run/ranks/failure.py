"""What people see when something fails: the text of an exception and the exit status it means."""

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
    """The exit status of a command that ends by `error`: 130 for Ctrl-C, what our errors say, else 1."""
    if isinstance(error, (HaloclineError, Terminated)):
        return error.exit_status
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def describe(error: BaseException) -> str:
    """`error` as text for the terminal.

    An error that Halocline raised on purpose, or a lack of memory, is its message, followed by the lines of
    the user's own files that led to it, also those of an exception that the user's function raised. Any other
    exception is its traceback: without our lines where the user's own text raised it, else the whole. An
    exception that came from another rank is as that rank saw it.
    """
    text: str | None = getattr(error, "seen_as", None)
    if text is not None:
        return text
    if isinstance(error, (KeyboardInterrupt, Stopped)):
        by = "terminated by SIGTERM" if isinstance(error, Terminated) else "interrupted"
        return f"halocline: {str(error) or by}"
    lacking = _lacks_memory(error) and not _raised_by_user(error)
    if not (lacking or isinstance(error, HaloclineError)):
        return _story(error)
    what = f"there is not enough memory: {str(error) or 'an allocation failed'}" if lacking else error
    lines = [f"halocline: error: {what}", *getattr(error, "__notes__", ())]
    for link in _chain(error):
        steps = (step for step in traceback.walk_tb(link.__traceback__) if _is_users(step[0]))
        frames = traceback.StackSummary.extract(steps)
        lines += [entry.rstrip() for entry in traceback.format_list(frames)]
        if frames and link is not error:
            lines += [entry.rstrip() for entry in traceback.format_exception_only(link)]
    return "\n".join(lines)


def _lacks_memory(error: BaseException) -> bool:
    """Return whether an error reports a lack of memory.

    Python raises RuntimeError where there is no memory for the stack of a new thread.
    """
    return isinstance(error, MemoryError) or (
        type(error) is RuntimeError and "start new thread" in str(error)
    )


def _story(error: BaseException) -> str:
    summary = traceback.TracebackException.from_exception(error)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if _raised_by_user(error):
        kept = [line for line, frame in zip(summary.stack, frames, strict=True) if _is_users(frame)]
        summary.stack = traceback.StackSummary.from_list(kept)
    return "".join(summary.format()).rstrip()


def _raised_by_user(error: BaseException) -> bool:
    """Whether the line that raised it is the user's own."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and _is_users(frames[-1])


def pack(error: BaseException) -> bytes:
    """`error` and its text, to be sent to another rank."""
    text = describe(error)
    try:
        packed = pickle.dumps((error, text))
        pickle.loads(packed)  # an exception whose constructor takes other arguments fails only here
    except Exception:
        packed = pickle.dumps((RunError(f"{type(error).__name__}: {error}"), text))
    return packed


def unpack(packed: bytes) -> BaseException:
    """The exception that another rank packed; `describe` shows it as that rank saw it."""
    error: BaseException
    error, text = pickle.loads(packed)
    error.seen_as = text  # type: ignore[attr-defined]
    return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """`error`, what caused it, what caused that."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _is_users(frame: FrameType) -> bool:
    """Whether a frame belongs to the user's own text: not to the library, Python's or ours, nor to functions
    that dataclasses make for ours, whose file is "<string>"."""
    name = str(frame.f_globals.get("__name__", ""))
    ours = name == "halocline" or name.startswith("halocline.")
    return not ours and not frame.f_code.co_filename.startswith(("<frozen", *_NOT_THE_USERS))
