"""The changelog rows of tests/order/test_staged_by_workers.py's tables, from their messages: plain Python, by history.ordering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from tests.lake.histories import TOPIC, Message
from tidelake.history.event import Event, RowSchema
from tidelake.history.ordering import RowChange, deduplicated, in_window, ordered

_ZONE = ZoneInfo("America/New_York")
_KINDS, _TAGS, _E = ("", "a", "b,c"), ("", "x", "y", "x,y"), ("", "", "z")
_END = 1 << 62
_META = ("_change_type", "_commit_ts", "_topic", "_kafka_partition", "_offset", "_ordinal")
Values = dict[str, Any]


def expected_changes(messages: Sequence[Message]) -> Iterator[Values]:
    """The changes of d.k in order, with the columns that `compared` keeps."""
    changes, images = list[RowChange](), dict[tuple[str, int, int, int], tuple[Values | None, Values | None]]()
    for at, _, e in _placed(messages):
        after, before = _cells(e.row_schema, e.after), _cells(e.before_schema, e.before)
        old = {**after, **before} if e.op == "update" and after is not None and before is not None else before
        key = (old if e.op == "delete" else after) or {}
        changes.append(RowChange(table="k", op=e.op or "", commit_ts=e.commit_ts or 0, at=at, key=(key["id"], key["part"])))
        images[at] = _typed(old), _typed(after)
    for c in ordered(deduplicated(in_window(changes, 0, _END))):
        old, new = images[c.at]
        place = dict(zip(_META[1:], (c.commit_ts, *c.at), strict=True))
        moved = old is not None and new is not None and (old["id"], old["part"]) != (new["id"], new["part"])
        kinds = ("DELETE", "INSERT") if c.op != "update" or moved else ("UPDATE_BEFORE", "UPDATE_AFTER")
        yield from ({"_change_type": kind} | place | row for kind, row in zip(kinds, (old, new), strict=True) if row is not None)


def expected_bag(messages: Sequence[Message]) -> Counter[tuple[Any, ...]]:
    """The changes of d.bag, without order: commit ts, type, v and n."""
    changes = [
        RowChange(
            table="bag",
            op=e.op or "",
            commit_ts=e.commit_ts or 0,
            at=at,
            before=None if e.before is None else tuple(e.before),
            after=None if e.after is None else tuple(e.after),
            replay_epoch=epoch,
        )
        for at, epoch, e in _placed(messages)
    ]
    out = Counter[tuple[Any, ...]]()
    for c in deduplicated(changes):
        v, n = (c.before if c.op == "delete" else c.after) or (b"", b"")
        out[c.commit_ts, c.op.upper(), _text(v), _whole(n)] += 1
    return out


def compared(rows: Sequence[Mapping[str, Any]]) -> list[Values]:
    """Rows in order of `_change_seq`, which does not order messages of two partitions at one offset, with the columns that are compared."""
    found = sorted(rows, key=lambda r: (r["_commit_ts"], r["_change_seq"], r["_kafka_partition"]))
    return [{k: r[k] for k in (*_META, *_READERS)} for r in found]


def _placed(messages: Sequence[Message]) -> Iterator[tuple[tuple[str, int, int, int], int, Event]]:
    """(coordinates, replay epoch, event) of row events."""
    offsets, epochs, marks = Counter[int](), Counter[int](), Counter[int]()
    for m in messages:
        p, e = m.partition, m.event
        if e.kind == "resolved":
            epochs[p] += (e.commit_ts or 0) < marks[p]
            marks[p] = e.commit_ts or 0
        elif e.kind == "row":
            yield (TOPIC, p, offsets[p], 0), epochs[p], replace(e)
        offsets[p] += 1


def _cells(row_schema: RowSchema | None, cells: Sequence[bytes | None] | None) -> dict[str, bytes | None] | None:
    return None if row_schema is None or cells is None else dict(zip((c.name for c in row_schema.columns), cells, strict=True))


def _typed(cells: Mapping[str, bytes | None] | None) -> Values | None:
    return None if cells is None else {name: None if (c := cells.get(name)) is None else read(c) for name, read in _READERS.items()}


def _text(cell: object) -> str:
    assert isinstance(cell, bytes)
    return cell.decode()


def _whole(cell: object) -> int | None:
    return int(cell) if isinstance(cell, bytes) and cell.isdigit() else None


def _moment(cell: bytes) -> datetime | None:
    return None if cell.startswith(b"0000") else datetime.fromisoformat(cell.decode())


def _instant(cell: bytes) -> datetime:
    """The first of two instants, in the lake's time zone; Spark gives it to Python without a zone."""
    return datetime.fromisoformat(cell.decode()).replace(tzinfo=_ZONE, fold=0).astimezone(UTC).replace(tzinfo=None)


def _member(names: Sequence[str]) -> Callable[[bytes], str | None]:
    return lambda cell: names[int(cell)] if int(cell) < len(names) else None


_READERS: dict[str, Callable[[bytes], Any]] = {
    "id": int,
    "part": _text,
    "price": lambda cell: Decimal(cell.decode()),
    "at": _moment,
    "kind": _member(_KINDS),
    "tags": _member(_TAGS),
    "raw": bytearray,
    "seen": _instant,
    "n": _whole,
    "f": lambda cell: None if cell == b"NaN" else float(cell),
    "e": _member(_E),
    "v": lambda cell: [float(x) for x in cell.decode().strip("[]").split(",")],
    "word": lambda cell: cell.decode()[:2],
    "gone": lambda cell: None,
    "late": int,
}
