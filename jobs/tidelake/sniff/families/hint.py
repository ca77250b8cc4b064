"""Hint: what one message shows of its protocol. View: the message as families see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelake.config.options import Compression

SchemaId = int | str  # number (Confluent) or UUID (Glue)
OptionValue = bool | str

MIN_TSO, MAX_TSO = 331_000_000_000_000_000, 1 << 60  # commit ts of the years 2010 to 2109; other numbers are no TSO


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One message has the form of one protocol.

    Attributes:
        protocol: The protocol.
        evidence: Kind → sentence. Sentences about many messages are counted by kind.
        framing: The framing.
        compression: The compression.
        options: Sink options that the bytes show, with the names in tidelake.config.options.
        together: Options that only make sense together.
        schema_ids: Avro schemas that are needed.
        weak: Other data looks the same, or the form is damaged.
    """

    protocol: str
    evidence: Mapping[str, str]
    framing: str
    compression: Compression = "none"
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    together: Mapping[str, OptionValue] = field(default_factory=dict)
    schema_ids: tuple[SchemaId, ...] = ()
    weak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A message without its wrappings (sniff.families.unpack).

    Attributes:
        key: Key of the Kafka record, or the key inside the claim-check file that its value is.
        value: Value, likewise.
        plain: The value without its compression.
        members: The JSON object in plain.
        names: Names of its members, also if it is truncated.
        broken: Why it is truncated.
    """

    key: bytes | None
    value: bytes | None
    claim_check: bool = False
    compression: Compression = "none"
    plain: bytes = b""
    members: Mapping[str, object] | None = None
    names: frozenset[str] = frozenset()
    broken: str = ""


def plausible(ts: object) -> bool:
    """Whether a number can be a TSO of the years 2010 to 2109."""
    return type(ts) is int and MIN_TSO <= ts < MAX_TSO


def start(data: bytes | None, most: int = 8) -> str:
    """Format the first bytes as hex with spaces: `04 22 4d 18`."""
    if data is None:
        return "null"
    return (data[:most].hex(" ") + (" …" if len(data) > most else "")) or "no bytes"
