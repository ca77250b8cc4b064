"""Every error Tidelake raises, on one screen.

Exit codes: 1 failed, 2 wrong use, 3 blocked (the data is safe, someone must decide). Only DecodeError is caught and carried on
from, in one place (protocols.decode): it quarantines one message.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where in Kafka: topic, partition, offset. Printed as `topic[partition]@offset`."""

    topic: str
    partition: int
    offset: int | None = None

    def __str__(self) -> str:
        place = f"{self.topic}[{self.partition}]"
        return place if self.offset is None else f"{place}@{self.offset}"


class TidelakeError(Exception):
    """What went wrong, where, and what to do about it.

    code: a word in capitals that scripts may rely on. at: Kafka coordinates where there are any. remedy: one sentence. done: what the
    command had done before, as its `--json` prints it.
    """

    exit_code = 1
    default_code = "FAILED"

    def __init__(self, message: str, *, code: str = "", at: Coordinates | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.at = at
        self.remedy = remedy
        self.done: list[dict[str, Any]] = []

    def as_json(self) -> dict[str, Any]:
        """For programs: code, message, remedy, coordinates (None where there are none), exit_code."""
        place = None if self.at is None else asdict(self.at)
        said = {"code": self.code, "message": self.message, "remedy": self.remedy, "coordinates": place, "exit_code": self.exit_code}
        return {"error": said} | ({"done": self.done} if self.done else {})

    def __str__(self) -> str:
        place = f" {self.at}" if self.at else ""
        todo = f"; {self.remedy}" if self.remedy else ""
        return f"{self.code}{place}: {self.message}{todo}"


class DecodeError(TidelakeError):
    """One message cannot be decoded. Its code is one of DECODE_CODES."""

    default_code = "BAD_VALUE"


class WaitingError(DecodeError):
    """A row that can be decoded only when a later message has brought its table's schema (docs/reference/protocols.md 9.1).

    commit_ts: TSO, unsigned; the resolved ts stays below it while the row waits.
    """

    def __init__(self, message: str, *, database: str, table: str, version: int, commit_ts: int) -> None:
        super().__init__(message, code="NO_TABLE_SCHEMA")
        self.database = database
        self.table = table
        self.version = version
        self.commit_ts = commit_ts


class ConfigError(TidelakeError):
    """A wrong feed.toml or command line: names the file, the key, what was found and what is allowed."""

    exit_code = 2
    default_code = "CONFIG"


class ContractError(TidelakeError):
    """tables.sql, ddl.jsonl or an expectation file is wrong, or contradicts what the messages hold."""

    exit_code = 2
    default_code = "CONTRACT"


class OrderError(TidelakeError):
    """The window cannot be closed: no watermark, a watermark that went back, a gap, an undecided message, an unknown DDL."""

    exit_code = 3
    default_code = "ORDER"


class QualityError(TidelakeError):
    """A critical expectation failed: nothing of the window is published."""

    exit_code = 3
    default_code = "QUALITY"


class LeaseError(TidelakeError):
    """Another run holds the feed, or took it over."""

    default_code = "LEASE"


class OwnershipError(TidelakeError):
    """A name that a feed needs is taken: by another feed's table, by one that Tidelake did not make, or by another table of its own."""

    exit_code = 3
    default_code = "NOT_OURS"


class StorageError(TidelakeError):
    """The object store or the catalog refused, is unreachable, or lacks what Tidelake needs."""

    default_code = "STORAGE"


class DamageError(StorageError):
    """Something of the lake is lost or cannot be read: trying again does not help, someone must bring it back."""

    exit_code = 3
    default_code = "DAMAGED"


class EventStoreError(TidelakeError):
    """The lander's event store refused a call: an ack that no longer counts, a put after the end, a store that failed or is not running."""

    default_code = "EVENT_STORE"


SCHEMA_MISMATCH, UNDEFINED_TABLE = "SCHEMA_MISMATCH", "UNDEFINED_TABLE"
DECODE_CODES = {
    "TRUNCATED": "the message ends before the structure it announces",
    "TRAILING_BYTES": "bytes are left after the structure ended",
    "BAD_LENGTH": "a length or count is negative, overflows, or is larger than the message",
    "BAD_STRUCTURE": "parts of the message contradict each other: counts, sizes, missing or doubled members",
    "BAD_VALUE": "a column value cannot be read as its type",
    "BAD_JSON": "not JSON, or JSON of another form than the protocol's",
    "BAD_UTF8": "text that is not UTF-8",
    "UNKNOWN_VERSION": "a protocol version this decoder does not know",
    "UNKNOWN_TYPE": "an event, column or group type this decoder does not know",
    "UNKNOWN_SCHEMA": "no schema is known for the schema id",
    "NO_TABLE_SCHEMA": "the row waits for the message that brings its table's schema (BOOTSTRAP or DDL)",
    "NULL_VALUE": "a null Kafka value where the protocol has none",
    "BAD_COMPRESSION": "the value does not have the compression set in the feed's options",
    "TOO_LARGE": "larger than the cap, before or after decompression",
    "HANDLE_ONLY": "the message carries the handle key only, the row itself is not in the archive",
    "CLAIM_CHECK": "the row is in a claim-check file, not in the message",
    "CHECKSUM": "the row does not match its checksum",
}
MISMATCH_CODES = {
    SCHEMA_MISMATCH: "rows with columns that no statement added",
    UNDEFINED_TABLE: "rows of a table without a definition, whose messages do not carry its types",
}
QUARANTINE_CODES = DECODE_CODES | MISMATCH_CODES
