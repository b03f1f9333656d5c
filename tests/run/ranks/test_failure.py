"""Error reports: texts, exit statuses, and errors of other ranks."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from halocline.errors import InputError, RunError, Stopped, Terminated
from halocline.run.ranks.failure import describe, exit_code, pack, unpack


def raised(function: Callable[[], object]) -> BaseException:
    """Return the exception that a function raises."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any exception
        function()
    return caught.value


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("x"), 2), (RunError("x"), 1), (KeyboardInterrupt(), 130), (ZeroDivisionError(), 1),
        (Stopped("x"), Stopped.exit_status), (Terminated(), Terminated.exit_status),
    ],
)  # fmt: skip
def test_the_exit_status_shows_the_kind_of_error(error: BaseException, status: int) -> None:
    assert exit_code(error) == status


def test_an_error_of_halocline_is_printed_as_its_message() -> None:
    assert describe(InputError("n is 0")) == "halocline: error: n is 0"
    error = RunError("rank 1 failed")
    error.add_note("Its log is in x.")
    assert describe(error) == "halocline: error: rank 1 failed\nIts log is in x."


def test_an_interrupt_and_a_lack_of_memory_have_messages() -> None:
    assert describe(KeyboardInterrupt()) == "halocline: interrupted"
    assert describe(Terminated()) == "halocline: terminated by SIGTERM"
    assert describe(MemoryError()).startswith("halocline: error: there is not enough memory: an allocation")
    assert "not enough memory" in describe(RuntimeError("can't start new thread"))


def test_lines_of_the_users_file_follow_the_message() -> None:
    namespace = {"InputError": InputError, "__name__": "mine"}
    exec(compile("def call():\n    raise InputError('n is 0')\n", "/home/me/mine.py", "exec"), namespace)
    text = describe(raised(namespace["call"]))
    assert text.startswith("halocline: error: n is 0\n")
    assert '"/home/me/mine.py", line 2, in call' in text


def test_another_exception_is_printed_with_its_traceback() -> None:
    text = describe(raised(lambda: 1 / 0))
    assert text.startswith("Traceback")
    assert text.endswith("ZeroDivisionError: division by zero")


class Unfit(Exception):
    """Exception that cannot be sent."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def test_an_error_of_another_rank_keeps_its_message() -> None:
    original = raised(lambda: 1 / 0)
    received = unpack(pack(original))
    assert type(received) is ZeroDivisionError
    assert describe(received) == describe(original)


def test_an_unpicklable_exception_becomes_a_run_error() -> None:
    original = Unfit(1, 2)
    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(original))
    received = unpack(pack(original))
    assert isinstance(received, RunError)
    assert str(received) == "Unfit: 1 and 2"
    assert describe(received) == describe(original)
