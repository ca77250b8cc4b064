"""Hours with mostly refused messages: find whether the messages have another protocol, or other options, than the feed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.config.feed import Feed
from tidelake.config.options import SinkOptions
from tidelake.decode.waiting import CODE as WAITING
from tidelake.errors import TidelakeError
from tidelake.history.event import MESSAGE
from tidelake.io.avro_schemas import schema_source
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeTable
from tidelake.lake.events import control_batches
from tidelake.protocols import Context, decode
from tidelake.sniff import Guess, judge

UNDERSTOOD = frozenset({WAITING, "HANDLE_ONLY", "CLAIM_CHECK", "UNKNOWN_SCHEMA", "CHECKSUM"})  # codes of messages whose protocol is right
MOST_SAMPLED = 400  # messages from which another protocol is guessed
MOST_TRIED, MOST_BYTES = 50_000, 64 << 20  # messages, and bytes of them, that the guess has to decode
_COLUMNS = ("topic", "partition", "offset", "timestamp_ms", "error_code", "raw_key", "raw_value")


class RefusedMessages(BaseModel):
    """The refusals of an hour in which at least half of the messages were refused.

    declared: the feed's protocol; refused: of `messages`; tried: number of refused messages that were given to the decoder of `protocol`,
    which fits them best, with `options` where these differ from the feed's; decoded: number that it decoded; waiting: number that it would
    decode with their Avro schemas. protocol is None if no other one fits.
    """

    declared: str
    messages: int
    refused: int
    protocol: str | None = None
    options: dict[str, bool | str] = {}
    tried: int = 0
    decoded: int = 0
    waiting: int = 0

    def __str__(self) -> str:
        refused = f"{self.refused:,} of {plural(self.messages, 'message')} refused as {self.declared}"
        if self.protocol is None:
            return f"{refused}; no other protocol fits them"
        some = "" if self.tried == self.refused else f"of {self.tried:,} that were tried, "
        if self.waiting > self.decoded:
            return f"{refused}; {some}{self.waiting:,} look like {self.as_what}, whose schemas are needed"
        return f"{refused}; {some}{self.decoded:,} decode as {self.as_what}"

    @property
    def as_what(self) -> str:
        """The protocol that fits, with the options that it needs."""
        options = ", ".join(f"{name} = {_toml(value)}" for name, value in self.options.items())
        return f"{self.protocol} with {options}" if options else str(self.protocol)

    @property
    def remedy(self) -> str:
        """The settings to write into feed.toml."""
        changes = [] if self.protocol == self.declared else [f'protocol = "{self.protocol}"']
        if self.protocol == "avro" and self.declared != "avro":
            changes.append("[avro] schemas")
        changes += [f"{name} = {_toml(value)} under [options]" for name, value in self.options.items()]
        return f"if that is what the changefeed writes, set {' and '.join(changes)} in feed.toml and run the hour again; nothing is lost"


def most_refused(feed: Feed, events: LakeTable, hour: str, messages: int, rejected: Mapping[str, int]) -> RefusedMessages | None:
    """Return the refusals of an hour if at least half of its messages were refused, else None. rejected: messages by error code."""
    refused = sum(count for code, count in rejected.items() if code not in UNDERSTOOD)
    if not refused or 2 * refused < messages:
        return None
    found = RefusedMessages(declared=feed.protocol, messages=max(messages, refused), refused=refused)
    batches = [batch for batch in _refused_messages(events, hour) if len(batch)]
    guess = _guess(feed, batches)
    if guess is None:
        return found
    tried = sum(map(len, batches))
    options = _different(feed, guess)
    context = replace(_known(feed), options=SinkOptions.model_validate(dict(guess.options)))
    missed, waiting = _missed(guess.protocol, batches, context)
    update = {"protocol": guess.protocol, "options": options, "tried": tried, "decoded": tried - missed - waiting, "waiting": waiting}
    return found.model_copy(update=update)


def _refused_messages(events: LakeTable, hour: str) -> Iterator[pa.RecordBatch]:
    """Yield MESSAGE batches of the refused messages, up to MOST_TRIED and MOST_BYTES."""
    messages = size = 0
    for batch in control_batches(events, "rejected", [hour], _COLUMNS):
        wrong = batch.filter(pc.invert(pc.is_in(batch.column("error_code"), pa.array(sorted(UNDERSTOOD)))))
        taken = wrong.slice(0, MOST_TRIED - messages)
        messages, size = messages + len(taken), size + taken.nbytes
        raw = {"key": "raw_key", "value": "raw_value"}
        columns = [pa.nulls(len(taken), f.type) if f.name == "headers" else taken.column(raw.get(f.name, f.name)) for f in MESSAGE]
        yield pa.RecordBatch.from_arrays([c.cast(f.type) for c, f in zip(columns, MESSAGE, strict=True)], schema=MESSAGE)
        if messages >= MOST_TRIED or size >= MOST_BYTES:
            return


def _guess(feed: Feed, batches: list[pa.RecordBatch]) -> Guess | None:
    """Return the protocol and options of most of a sample; None if they are those of feed.toml, or unknown."""
    left, sample = MOST_SAMPLED, list[pa.RecordBatch]()
    for batch in batches:
        sample.append(batch.slice(0, left))
        left -= len(sample[-1])
    try:
        verdict = judge(sample, _known(feed))
    except TidelakeError:  # an error of the Avro schemas, which decode has reported already
        return None
    best = next(iter(verdict.guesses), None)
    if best is None or 2 * (best.decoded + best.waiting) < verdict.messages:
        return None
    return None if best.protocol == feed.protocol and not _different(feed, best) else best


def _different(feed: Feed, guess: Guess) -> dict[str, bool | str]:
    """Return the options in which the messages differ from feed.toml."""
    shown = dict(guess.options) | {"large_message_handle_compression": guess.compression}
    return {name: value for name, value in shown.items() if value != getattr(feed.options, name)}


def _known(feed: Feed) -> Context:
    schemas = None
    if feed.avro is not None:
        schemas = schema_source(feed.avro.schemas, feed.folder.resolve())
    return Context(avro_schema=schemas, time_zone=feed.time_zone)


def _missed(protocol: str, batches: list[pa.RecordBatch], context: Context) -> tuple[int, int]:
    """Return the number of messages that the decoder refuses, and the number that only lack Avro schemas."""
    missed = waiting = 0
    for batch in batches:
        events = decode(protocol, batch, context)
        codes = events.filter(pc.equal(events.column("kind"), "rejected")).column("error_code")
        lacking = int(pc.sum(pc.equal(codes, "UNKNOWN_SCHEMA"), min_count=0).as_py())
        known = int(pc.sum(pc.is_in(codes, pa.array(sorted(UNDERSTOOD))), min_count=0).as_py())
        missed, waiting = missed + len(codes) - known, waiting + lacking
    return missed, waiting


def _toml(value: bool | str) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'
