"""What one message shows of its protocol: the unit in which families of protocols report, and the message as they look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelake.config.options import Compression

SchemaId = int | str  # Confluent's number, Glue's UUID
OptionValue = bool | str

MIN_TSO, MAX_TSO = 331_000_000_000_000_000, 1 << 60  # commit ts of 2010 to 2109; anything else is a number of another meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One message has the form of one protocol.

    evidence: kind → sentence; the kinds are what sentences about many messages are counted by. options: sink options that the bytes
    show, by their names in tidelake.config.options. together: such that make sense only together. schema_ids: Avro schemas that are needed.
    weak: other things look like this, too, or the form is broken somewhere.
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
    """A message with its wrappings taken off (sniff.unpack).

    key, value: the Kafka record's, or those inside the claim-check file that the value is. plain: the value without the compression
    that was found. members: the JSON object that plain is; names: its members, also where it is cut short, which broken then says.
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
    """Whether a number may be a TSO of our times."""
    return type(ts) is int and MIN_TSO <= ts < MAX_TSO


def counted(number: int, thing: str) -> str:
    """`1 key`, `2 keys`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def start(data: bytes | None, most: int = 8) -> str:
    """The first bytes as hex with blanks: `04 22 4d 18`."""
    if data is None:
        return "null"
    return (data[:most].hex(" ") + (" …" if len(data) > most else "")) or "no bytes"
