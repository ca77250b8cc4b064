"""Rows that break a rule: a few of them, with key, judged values and coordinates, in the form of Great Expectations' results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from tidelake.config.evidence import MOST_CHARACTERS, MOST_ROWS
from tidelake.errors import Coordinates

Cell = str | int | float | bool | None
COMMIT_TS, TOPIC, PARTITION, OFFSET, ORDINAL = PLACE = ("_commit_ts", "_topic", "_kafka_partition", "_offset", "_ordinal")


class UnexpectedRows(BaseModel):
    """Rows that break a rule. The members have Great Expectations' names (result_format SUMMARY) and columns the changelog's.

    Attributes:
        unexpected_index_column_names: Columns that name a row: the key, if the table has one, then PLACE.
        partial_unexpected_index_list: The rows: these columns, then those that the rule judges.
        partial_unexpected_list: What the rule judges in each row: a value, or several by column.
    """

    model_config = ConfigDict(extra="forbid")

    unexpected_index_column_names: list[str]
    partial_unexpected_index_list: list[dict[str, Cell]]
    partial_unexpected_list: list[Cell | dict[str, Cell]]

    @property
    def key(self) -> list[str]:
        """The key's columns."""
        return [name for name in self.unexpected_index_column_names if name not in PLACE]

    @property
    def has_place(self) -> bool:
        """Whether the rows have coordinates; those of own SQL may not."""
        return all(name in self.unexpected_index_column_names for name in (COMMIT_TS, TOPIC, PARTITION, OFFSET))

    @property
    def values(self) -> list[str]:
        """The judged columns that do not belong to the key or to PLACE."""
        return [name for name in self.partial_unexpected_index_list[0] if name not in self.unexpected_index_column_names]


def unexpected_rows(index: Sequence[str], judged: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> UnexpectedRows | None:
    """Return rows in the order of their coordinates; None without rows.

    Args:
        index: Columns that name a row.
        judged: Columns that the rule judges.
        rows: The rows; other columns are left out.
    """
    shown = [{name: cell(r[name]) for name in dict.fromkeys((*index, *judged))} for r in rows]
    shown.sort(key=lambda r: [(r.get(c) is not None, r.get(c)) for c in PLACE])
    shown = shown[:MOST_ROWS]
    if not shown:
        return None
    return UnexpectedRows(
        unexpected_index_column_names=list(index),
        partial_unexpected_index_list=shown,
        partial_unexpected_list=[r[judged[0]] if len(judged) == 1 else {name: r[name] for name in judged} for r in shown],
    )


def cell(value: Any) -> Cell:
    """Return a lake value as JSON holds it: text where JSON has no such type, bytes as hex, long text cut off."""
    match value:
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case bytes() | bytearray():
            return _short(f"0x{value[:MOST_CHARACTERS].hex()}")
    return _short(str(value))


def place(row: Mapping[str, Cell]) -> str:
    """Return a row's message as `topic[partition]@offset`; empty if it has none (EXCHANGE PARTITION)."""
    match row.get(TOPIC), row.get(PARTITION), row.get(OFFSET):
        case str() as topic, int() as partition, int() as offset:
            return str(Coordinates(topic, partition, offset))
    return ""


def first_row(found: UnexpectedRows) -> str:
    """Return the first row in one line: `'12,5x' of id=2 at orders[0]@17`."""
    row, judged = found.partial_unexpected_index_list[0], found.values
    values = literal(row[judged[0]]) if len(judged) == 1 else _named(row, judged)
    said = " of ".join(filter(None, (values, _named(row, found.key)))) or "a row"
    at = place(row)
    return f"{said} at {at}" if at else said


def literal(value: Cell) -> str:
    """Return a value as a line of text holds it: NULL, text in quotes."""
    return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)


def _named(row: Mapping[str, Cell], columns: Iterable[str]) -> str:
    return ", ".join(f"{name}={literal(row[name])}" for name in columns)


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
