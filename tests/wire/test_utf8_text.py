"""Large text kept as its UTF-8 behaves as the str that it stands for, as far as it says it does."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.wire.kernels import utf8_text
from tidelake.wire.kernels.utf8_text import Utf8Text, check_utf8, head, text_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(TEXT)
def test_it_is_equal_to_its_text_and_encodes_like_it(text: str) -> None:
    kept = Utf8Text(text.encode())
    assert kept == text
    assert text == kept
    assert (kept != text, text != kept) == (False, False)
    assert kept != text + "x"
    assert text + "x" != kept
    assert (hash(kept), str(kept), len(kept), bool(kept)) == (hash(text), text, len(text.encode()), True)
    assert kept.encode() == text.encode()
    for encoding in ("ascii", "latin-1"):
        assert encoded(kept, encoding) == encoded(text, encoding)


def encoded(text: str, encoding: str) -> bytes | str:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as e:
        return e.object[e.start]


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_letters_across_pieces_are_read_whole(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utf8_text, "_CHUNK", chunk)
    text = "aé€😀ÿ"
    check_utf8(text.encode())
    assert Utf8Text(text.encode()).encode("utf-16-le") == text.encode("utf-16-le")
    for at in range(len(text.encode())):
        wrong = text.encode()[:at] + b"\xff" + text.encode()[at:]
        with pytest.raises(UnicodeDecodeError) as mine:
            check_utf8(wrong)
        with pytest.raises(UnicodeDecodeError) as pythons:
            wrong.decode()
        assert (mine.value.start, mine.value.end) == (pythons.value.start, pythons.value.end), wrong
    with pytest.raises(UnicodeDecodeError):
        check_utf8(text.encode()[:-1])


def test_base64_and_messages_see_what_is_there() -> None:
    kept = Utf8Text("QUJDé".encode())
    with pytest.raises(ValueError, match="ASCII"):
        base64.b64decode(kept, validate=True)
    assert repr(kept) == "'QUJDé'"
    assert head(Utf8Text("é€😀".encode()), 6) == "é€"
    assert head("é€😀", 2) == "é€"


def test_what_takes_less_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(text_of(b"x" * 100_000)) is str
    assert type(text_of("é".encode() * 100)) is str
    assert type(text_of(("x" * 100 + "😀").encode())) is Utf8Text
    monkeypatch.setattr(utf8_text, "LONG_BYTES", 10)
    assert type(text_of("é".encode() * 6)) is Utf8Text
    with pytest.raises(UnicodeDecodeError):
        text_of(b"\xff" * 11)
    with pytest.raises(UnicodeDecodeError):
        text_of(b"\xff")


def test_what_takes_it_for_a_plain_str_fails_and_loses_nothing() -> None:
    with pytest.raises(UnicodeEncodeError):
        str.encode(Utf8Text("x😀".encode()))
