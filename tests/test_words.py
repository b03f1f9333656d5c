"""Text from files and names on a terminal: control characters are printed as escapes."""

from __future__ import annotations

import logging
import sys
import unicodedata
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.cli import main, stores
from halocline.cli.output import say
from halocline.io.listing import described
from halocline.io.table import Table
from halocline.run.host.streams import Warnings, complain
from halocline.words import one_line, printable
from suites import cases

CONTROL = [chr(n) for n in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))]
texts = st.text(st.one_of(st.sampled_from(CONTROL), st.characters()), max_size=20)
shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def raw(text: str) -> list[str]:
    """Return the characters of a printed text that control a terminal."""
    wrong = [c for c in text if c in CONTROL or unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    return [c for c in wrong if c not in "\n\t"]


@given(texts)
def test_printable_text_has_no_control_characters(text: str) -> None:
    assert raw(printable(text)) == []
    assert printable(printable(text)) == printable(text)
    assert raw(one_line(text)) == []
    assert not {"\n", "\t"} & set(one_line(text))
    if not raw(text) and text.isascii():
        assert printable(text) == text


def test_ordinary_text_stays_as_it_is() -> None:
    text = "größe µ Ω ∂²u/∂x² 温度 עומק 🌊 a\tb\nc"
    assert printable(text) == text
    assert one_line("\x1b[2J\r\x9b1m\u202egnp.\x07") == r"\x1b[2J\r\x9b1m\u202egnp.\x07"


@shared
@given(texts)
def test_messages_lines_warnings_and_tables_are_printable(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    complain(text)
    say(text)
    handler = Warnings()
    handler.setStream(sys.stderr)
    handler.emit(logging.LogRecord("halocline", logging.WARNING, "", 0, "%s", (text,), None))
    output = capsys.readouterr()
    assert output.out == printable(text) + "\n"
    assert output.err == (printable(text) + "\n") * 2
    table_text = Table(text, ("name", "value"), ((text, "1"),)).text()
    assert raw(table_text) == []
    assert one_line(text).strip() in table_text


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the listing of an output of one time."""
    path = tmp_path_factory.mktemp("printing") / "T.zarr"
    grid = hc.Grid((8, 8), extent=(1.0, 1.0), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=1e-4, threads=1)
    sim[T] = 1.0
    sim.run(steps=1, output=hc.Output(path))
    return described(path)


@given(texts, st.sampled_from(["units", "name", "path", "title", "source", "history", "parameter"]))
def test_the_listing_of_a_store_has_its_lines_and_no_others(
    listing: dict[str, Any], text: str, place: str
) -> None:
    """The listing has its own lines only, for any program that wrote the attributes of the store."""
    assert listing["kind"] == "output"

    def listing_of(text: str) -> str:
        changed = deepcopy(listing)
        if place == "units":
            changed["arrays"]["T"]["units"] = text
        elif place == "name":
            changed["arrays"][text] = changed["arrays"].pop("T")
        elif place == "parameter":
            changed["parameters"] = {text: 1.0}
        else:
            changed[place] = text
        return stores.TEXTS["output"](changed, False)

    result = listing_of(text)
    assert raw(result) == []
    assert result.count("\n") == listing_of("x" if text else "").count("\n") == len(result.splitlines()) - 1


@cases(
    "words",
    [
        ["ls", "no\x1b[31m\u202e\x9bstore"],
        ["run", "heat", "--set", "kap\x1b]0;title\x07pa=1"],
        ["run", "he\x1bat", "--n", "8"],
        ["run", "fi\x1b[2Jle.py"],
        ["explain", "po\x9b2Jisson"],
        ["solve", "poisson", "--n", "8\x1b[0m"],
        ["view", "a\x1b[31m.zarr", "b\x1b.png"],
    ],
    lambda words: words[0] in ("ls", "run"),
    ids=lambda words: words[0],
)
def test_wrong_words_are_printed_without_control_characters(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["halocline", *words])
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    assert main.main() == 2
    output = capsys.readouterr()
    assert raw(output.out + output.err) == []
    assert "\\x1b" in output.err or "\\x9b" in output.err
