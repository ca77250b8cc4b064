"""The verdict on messages: counts the hints of every message, decodes all messages with each candidate, and returns the best first.

Protocols that some message shows without doubt are candidates; if there are none, those that messages show with doubt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.options import Compression, SinkOptions
from tidelake.errors import Coordinates
from tidelake.protocols import Context, decode, protocol_names
from tidelake.sniff.families.all_families import hints
from tidelake.sniff.families.avro import from_schemas
from tidelake.sniff.families.hint import Hint, OptionValue, SchemaId
from tidelake.sniff.families.unrecognised import described

CERTAIN, LIKELY, POSSIBLE = "certain", "likely", "possible"
SAID = "said"  # given by the caller
MOST_MISREAD = 20  # maximum number that are listed
_LIKELY_SHARE = 0.9
_MOST_IDS = 1000
_KNOWN_FORM = frozenset({"HANDLE_ONLY", "CLAIM_CHECK"})  # such messages are understood, although their content is elsewhere
_UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"
_LARGE, _CLAIM_CHECK = "large_message_handle_option", "claim-check"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence about the first message that shows it. messages: number of messages that show the same kind."""

    text: str
    messages: int
    first: Coordinates


@dataclass(frozen=True, slots=True)
class Misread:
    """A message that the guess does not explain."""

    at: Coordinates
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A possible protocol of the messages.

    Attributes:
        confidence: certain (all messages decode), likely or possible.
        options: Sink options that differ from TiCDC's defaults.
        decoded: Number of messages that decode.
        waiting: Number of messages that need their Avro schemas to decode.
        seen: Number of messages that show the protocol without doubt.
        mismatches: First MOST_MISREAD of misread_count messages that do not decode.
    """

    protocol: str
    confidence: str
    framing: str
    compression: Compression
    options: Mapping[str, OptionValue]
    evidence: tuple[Evidence, ...]
    decoded: int
    waiting: int
    seen: int
    schema_ids: tuple[SchemaId, ...]
    mismatches: tuple[Misread, ...]
    misread_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SniffVerdict:
    """Guesses, best first; empty if nothing fits. unrecognised: the first messages that have the form of no protocol."""

    messages: int
    guesses: tuple[Guess, ...]
    unrecognised: tuple[Misread, ...]
    unrecognised_count: int

    @property
    def decided(self) -> bool:
        """Whether the best guess is certain, likely, or given by the caller."""
        return bool(self.guesses) and self.guesses[0].confidence in (CERTAIN, LIKELY, SAID)


def judge(batches: Iterable[pa.RecordBatch], context: Context | None = None, said: str | None = None) -> SniffVerdict:
    """Guess the protocol of MESSAGE batches. All batches are kept in memory, so the caller must limit them.

    Args:
        batches: The messages.
        context: Known Avro schemas, columns and time zone. Its sink options are ignored, because they are guessed.
        said: Protocol to assume if none is certain or likely.

    Raises:
        StorageError: A schema registry cannot be reached. No message content raises.
    """
    messages = list(batches)
    known = context or Context()
    seen = _Seen()
    for batch in messages:
        seen.look(batch)
    candidates = [tally for tally in seen.tallies.values() if tally.strong] or list(seen.tallies.values())
    guesses = list(_unrivalled(sorted((_guess(tally, messages, seen, known) for tally in candidates), key=_rank)))
    if said is not None and not (guesses and guesses[0].confidence in (CERTAIN, LIKELY)):
        taken = _guess(seen.tallies.get(said) or _Tally(said), messages, seen, known)
        guesses = [replace(taken, confidence=SAID), *(g for g in guesses if g.protocol != said)]
    return SniffVerdict(
        messages=len(seen.places),
        guesses=tuple(guesses),
        unrecognised=tuple(Misread(seen.places[i], says) for i, says in list(seen.unrecognised.items())[:MOST_MISREAD]),
        unrecognised_count=len(seen.unrecognised),
    )


@dataclass(slots=True)
class _Tally:
    """All hints of one protocol."""

    protocol: str
    strong: int = 0
    sentences: dict[str, tuple[str, Coordinates]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    framings: Counter[str] = field(default_factory=Counter)
    values: dict[str, Counter[OptionValue]] = field(default_factory=dict)
    together: Counter[tuple[tuple[str, OptionValue], ...]] = field(default_factory=Counter)
    ids: dict[SchemaId, None] = field(default_factory=dict)

    def add(self, hint: Hint, at: Coordinates) -> None:
        self.strong += not hint.weak
        self.framings[hint.framing] += 1
        for kind, sentence in hint.evidence.items():
            self.sentences.setdefault(kind, (sentence, at))
            self.counts[kind] += 1
        for name, value in hint.options.items():
            self.values.setdefault(name, Counter())[value] += 1
        self.together[tuple(hint.together.items())] += 1
        if len(self.ids) < _MOST_IDS:
            self.ids |= dict.fromkeys(hint.schema_ids)

    def options(self) -> dict[str, OptionValue]:
        """Options that most messages show. Claim-check wins in any case, because its files could not be read without it."""
        chosen = {name: values.most_common(1)[0][0] for name, values in self.values.items()}
        if _CLAIM_CHECK in self.values.get(_LARGE, ()):
            chosen[_LARGE] = _CLAIM_CHECK
        return chosen | (dict(self.together.most_common(1)[0][0]) if self.together else {})

    @property
    def framing(self) -> str:
        """The framing of most messages."""
        return self.framings.most_common(1)[0][0] if self.framings else "framing not seen"

    def evidence(self) -> Iterator[Evidence]:
        for kind, (sentence, at) in self.sentences.items():
            yield Evidence(sentence, self.counts[kind], at)


@dataclass(slots=True)
class _Seen:
    """Hints of the messages, by their number."""

    places: list[Coordinates] = field(default_factory=list)
    looks: list[tuple[str, str] | None] = field(default_factory=list)  # (protocol, first sentence) of the best hint
    tallies: dict[str, _Tally] = field(default_factory=dict)
    unrecognised: dict[int, str] = field(default_factory=dict)

    def look(self, batch: pa.RecordBatch) -> None:
        columns = (batch.column(name) for name in ("topic", "partition", "offset", "key", "value"))
        for topic, partition, offset, key, value in zip(*columns, strict=True):
            at = Coordinates(topic.as_py(), partition.as_py(), offset.as_py())
            view, found = hints(key.as_py(), value.as_py())
            for hint in found:
                self.tallies.setdefault(hint.protocol, _Tally(hint.protocol)).add(hint, at)
            if not found:
                self.unrecognised[len(self.places)] = described(view)
            self.looks.append((found[0].protocol, next(iter(found[0].evidence.values()))) if found else None)
            self.places.append(at)

    def mismatch(self, number: int, protocol: str, error: str) -> Misread:
        """Describe a message that does not decode."""
        look = self.looks[number]
        says = self.unrecognised[number] if look is None else error if look[0] == protocol else f"looks like {look[0]}: {look[1]}"
        return Misread(self.places[number], says)


def _guess(tally: _Tally, messages: list[pa.RecordBatch], seen: _Seen, known: Context) -> Guess:
    options, evidence = tally.options(), list(tally.evidence())
    ids = tuple(tally.ids)
    if known.avro_schema is not None and ids:
        seen_in, said = from_schemas(ids, known.avro_schema)
        options |= said
        evidence += [Evidence(sentence, len(seen.places), seen.places[0]) for sentence in seen_in.values()]
    context = replace(known, options=SinkOptions.model_validate(options), memory={})
    errors = _errors(tally.protocol, messages, context)
    waiting = sum(code == _UNKNOWN_SCHEMA for code, _ in errors.values())
    wrong = {i: f"{code}: {text}" for i, (code, text) in errors.items() if code != _UNKNOWN_SCHEMA}
    defaults = SinkOptions()
    return Guess(
        protocol=tally.protocol,
        confidence=_confidence(len(seen.places), len(wrong), waiting, tally.strong),
        framing=tally.framing,
        compression=context.options.large_message_handle_compression,
        options={name: value for name, value in options.items() if value != getattr(defaults, name)},
        evidence=tuple(evidence),
        decoded=len(seen.places) - len(errors),
        waiting=waiting,
        seen=tally.strong,
        schema_ids=ids,
        mismatches=tuple(seen.mismatch(i, tally.protocol, wrong[i]) for i in sorted(wrong)[:MOST_MISREAD]),
        misread_count=len(wrong),
    )


def _confidence(messages: int, wrong: int, waiting: int, strong: int) -> str:
    right = messages - wrong
    if not wrong and not waiting:
        return CERTAIN if strong else LIKELY
    return LIKELY if strong and right >= _LIKELY_SHARE * messages else POSSIBLE


def _errors(protocol: str, messages: list[pa.RecordBatch], context: Context) -> dict[int, tuple[str, str]]:
    """Code and text of every message that does not decode, by its number."""
    errors, first = dict[int, tuple[str, str]](), 0
    for batch in messages:
        numbers = pa.array(np.arange(first, first + len(batch), dtype=np.int64))
        numbered = batch.set_column(batch.schema.get_field_index("offset"), batch.schema.field("offset"), numbers)
        events = decode(protocol, numbered, context)
        rows = pa.Table.from_batches([events]).select(["kind", "offset", "error_code", "error"])
        for row in rows.filter(pc.equal(rows.column("kind"), "rejected")).to_pylist():
            if row["error_code"] not in _KNOWN_FORM:
                errors[row["offset"]] = row["error_code"], row["error"]
        first += len(batch)
    return errors


def _rank(guess: Guess) -> tuple[int, int, int]:
    return guess.misread_count, -guess.seen, protocol_names().index(guess.protocol)


def _unrivalled(guesses: list[Guess]) -> Iterator[Guess]:
    """If two protocols explain all messages equally well, neither is certain."""
    tied = [g for g in guesses if not g.misread_count and g.seen == guesses[0].seen]
    for guess in guesses:
        yield replace(guess, confidence=LIKELY) if len(tied) > 1 and guess.confidence == CERTAIN else guess
