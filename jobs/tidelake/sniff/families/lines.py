"""CSV lines of the storage sink, with configurable delimiter, quote and leading fields (docs/reference/protocols.md 9.5)."""

from __future__ import annotations

import re
from itertools import product

from tidelake.config.options import SinkOptions
from tidelake.errors import DecodeError
from tidelake.history.event import Event
from tidelake.protocols import Context, decoder
from tidelake.sniff.families.hint import Hint, OptionValue, View, plausible

_HEAD = 4096  # characters that are searched for the separators
_HEADER = "ticdc-meta$"
_QUOTED = re.compile(r"(?P<quote>[\"'`])(?:[IUD]|ticdc-meta\$operation)(?P=quote)(?P<delimiter>[^\w\s]{1,3}?|\t)(?P=quote)")
_BARE = re.compile(r"(?:[IUD]|ticdc-meta\$operation)(?P<delimiter>[^\w\s\\]{1,3}|\t)\w")
_LEADING = ("include_commit_ts", "output_old_value")


def look(view: View) -> Hint | None:
    """Recognise lines of a CSV file."""
    value = view.value
    if not value or view.names or view.claim_check or value[:1] not in b"IUDt\"'`":
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    separators = _separators(text)
    if separators is None:
        return None
    options, events = _read(value, separators)
    null = re.search(rf"{re.escape(str(separators['delimiter']))}(\\N|NULL)(?={re.escape(str(separators['delimiter']))}|\r?\n)", text)
    word: dict[str, OptionValue] = {} if null is None else {"null": null[1]}
    shown = f"{_said(separators, 'delimiter')}, {_said(separators, 'quote')}, {_said(separators, 'terminator')}"
    if events is None:
        told = {"broken": f"value begins like a line of the storage sink's CSV ({shown}), but its lines cannot be read"}
        return Hint(protocol="csv", evidence=told, framing="lines", together=options, weak=True)
    told = {"form": f"value holds lines that begin with I, U or D, table and database ({shown}): the storage sink's CSV"}
    if options.get("include_commit_ts"):
        told["commit ts"] = "the fourth field of every line is a commit ts"
    if options.get("output_old_value"):
        told["is-update"] = "the field before the columns is true or false in every line: old values are sent"
    return Hint(protocol="csv", evidence=told, framing="lines", options=word, together=options)


def _separators(text: str) -> dict[str, OptionValue] | None:
    """Delimiter, quote, terminator, null word and header, judging by the first line and the end."""
    head = text[:_HEAD]
    match = _QUOTED.match(head) or _BARE.match(head)
    if match is None or not text.endswith("\n"):
        return None
    quote, delimiter = match.groupdict().get("quote") or "", match["delimiter"]
    found: dict[str, OptionValue] = {"delimiter": delimiter, "quote": quote, "terminator": "\r\n" if text.endswith("\r\n") else "\n"}
    if _HEADER in head[: len(_HEADER) + 1]:
        found["output_field_header"] = True
    return found


def _read(value: bytes, separators: dict[str, OptionValue]) -> tuple[dict[str, OptionValue], list[Event] | None]:
    """The lines, with the first set of leading fields that decodes with a plausible commit ts."""
    for chosen in product((True, False), repeat=len(_LEADING)):
        options = separators | dict(zip(_LEADING, chosen, strict=True))
        try:
            events = decoder("csv").read(None, value, Context(options=SinkOptions.model_validate(options)))
        except (DecodeError, ValueError):
            continue
        if not options["include_commit_ts"] or all(plausible(event.commit_ts) for event in events):
            return options, events
    return separators, None


def _said(separators: dict[str, OptionValue], name: str) -> str:
    return f"{name} {separators[name]!r}" if separators[name] else f"no {name}"
