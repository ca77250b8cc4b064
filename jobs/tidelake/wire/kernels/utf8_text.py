"""Large text kept as its UTF-8: a `str` takes four bytes a letter as soon as one of them is beyond U+FFFF."""

from __future__ import annotations

import codecs
import sys

LONG_BYTES = 1 << 16  # of text that is not worth a look how much it takes
_CHUNK = 1 << 20
_OVERHEAD = 128  # bytes that Utf8Text takes beside its UTF-8
_UNREAD = "\ud800"  # what C code sees that takes it for a plain str: no text, so that it fails and loses nothing


class Utf8Text(str):
    """Text for whoever only encodes, compares or prints it. raw: its UTF-8, which is sound and not all ASCII.

    `encode` gives UTF-8 without a copy, ASCII and Latin-1. Slices, regular expressions and the rest of str see text that cannot be
    encoded: use `str` of what is short, `head` of what is long.
    """

    __slots__ = ("raw",)
    raw: bytes

    def __new__(cls, raw: bytes) -> Utf8Text:
        self = super().__new__(cls, _UNREAD)
        self.raw = raw
        return self

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """The text's bytes. Raises UnicodeEncodeError, whose `object` is the piece of text that does not fit."""
        if encoding == "utf-8":
            return self.raw
        decoder = codecs.getincrementaldecoder("utf-8")()
        chunks = (self.raw[at : at + _CHUNK] for at in range(0, len(self.raw), _CHUNK))
        return b"".join([decoder.decode(chunk).encode(encoding, errors) for chunk in chunks])

    def __str__(self) -> str:
        return self.raw.decode()

    def __repr__(self) -> str:
        return repr(head(self, 400))

    def __len__(self) -> int:
        return len(self.raw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.encode("utf-8", "surrogatepass") == self.raw

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(str(self))


def text_of(raw: bytes) -> str:
    """The text of these bytes, as whichever takes less memory. Raises UnicodeDecodeError."""
    if raw.isascii():
        return raw.decode()
    if len(raw) > LONG_BYTES:
        check_utf8(raw)
        return Utf8Text(raw)
    text = raw.decode()
    return text if sys.getsizeof(text) <= len(raw) + _OVERHEAD else Utf8Text(raw)


def head(text: str, size: int) -> str:
    """The beginning of a text, about so many bytes of it."""
    return text.encode("utf-8", "surrogatepass")[:size].decode(errors="ignore") if isinstance(text, Utf8Text) else text[:size]


def check_utf8(raw: bytes) -> None:
    """Raise UnicodeDecodeError, with the place in all of it, for what is no UTF-8. Makes no text of more than a piece."""
    decoder, at = codecs.getincrementaldecoder("utf-8")(), 0
    while at < len(raw):
        waiting = len(decoder.getstate()[0])
        chunk = raw[at : at + _CHUNK]
        try:
            decoder.decode(chunk, final=at + len(chunk) == len(raw))
        except UnicodeDecodeError as e:
            start = at - waiting + e.start
            raise UnicodeDecodeError("utf-8", raw, start, start + e.end - e.start, e.reason) from None
        at += len(chunk)
