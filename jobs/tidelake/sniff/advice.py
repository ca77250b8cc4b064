"""Advice for a guess: lines of a feed.toml to start from, and the command that shows the events."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from tidelake.config.feed import UNDATED
from tidelake.sniff.families.hint import OptionValue
from tidelake.sniff.verdict import Guess

SCHEMAS = "avro_schemas.json"  # default place of the schemas


def feed_lines(guess: Guess, layout: str | None = None, avro_schemas: str | None = None) -> list[str]:
    """Return lines of feed.toml. layout: of the archive, if known."""
    return list(_feed_lines(guess, layout, avro_schemas))


def _feed_lines(guess: Guess, layout: str | None, avro_schemas: str | None) -> Iterator[str]:
    yield f'protocol = "{guess.protocol}"'
    if guess.options:
        yield ""
        yield "[options]"
        yield from (f"{name} = {_toml(value)}" for name, value in guess.options.items())
    if layout:
        yield ""
        yield "[source]"
        yield f'layout = "{layout}"'
    if guess.protocol in UNDATED:
        yield ""
        yield "[watermark]"
        yield 'from = "offsets"  # the rows carry no commit ts: docs/offsets.md'
    if guess.protocol == "avro":
        yield ""
        yield "[avro]"
        ids = ", ".join(map(str, guess.schema_ids[:10])) + (", …" if len(guess.schema_ids) > 10 else "")
        yield f"schemas = {_toml(avro_schemas or SCHEMAS)}  # must hold {ids or 'none yet'}"


def inspect_command(guess: Guess, file: str, avro_schemas: str | None = None) -> str:
    """Return a command line for a POSIX shell; with bash's `$'…'` if a setting has control characters."""
    words = ["tidelake", "inspect", "--protocol", guess.protocol]
    if guess.protocol == "avro" and guess.schema_ids:
        words += ["--avro-schemas", avro_schemas or SCHEMAS]
    for name, value in guess.options.items():
        words += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return " ".join(map(_quoted, [*words, file]))


def _toml(value: OptionValue) -> str:
    return str(value).lower() if isinstance(value, bool) else json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode()) for c in escaped) + "'"
