"""The shop workload's tables at any TSO, from the messages of its Canal-JSON changefeed, without anything of Tidelake's.

Reader, order and fold are this file's own. The truth files only say what the tables held at the hours' ends of five changefeeds;
tests/workloads/test_shop.py shows that this equals them at all of those, so that it can be believed at any other TSO.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from tests.data_files import data_bytes

FEEDS = ("open", "craft", "canal-json", "canal-json-cc", "avro")
Cells = tuple[tuple[str, Any], ...]
_CLASS = {"DELETE": 0, "UPDATE": 1, "INSERT": 2}
_STATUS = ("new", "paid", "sent", "done")
_TAGS = ("gift", "express", "fragile", "bulk", "b2b")
_KEYS = {
    "customers": ("id",),
    "clients": ("id",),
    "orders": ("id",),
    "order_items": ("order_id", "line_no"),
    "inventory": ("sku_id",),
    "coupons": ("code",),
    "audit_log": (),
}
_FIRST = {
    "customers": "id name email vip balance created updated last_login",
    "orders": "id customer_id status tags total note placed",
    "order_items": "order_id line_no sku qty price",
    "inventory": "sku_id sku attrs weight pic flags stock",
    "audit_log": "at actor action detail",
}
_COUPONS = "code pct expires used_by"


@dataclass(frozen=True, slots=True)
class Change:
    """A row change as committed."""

    ts: int
    table: str
    op: str
    before: Cells | None
    after: Cells | None


@dataclass(frozen=True, slots=True)
class Table:
    """rows: by key; of audit_log, which has none, by their cells and a number."""

    columns: tuple[str, ...]
    rows: dict[Any, Cells] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shop:
    """Everything that happened: changes and statements, each in the order of commit."""

    changes: tuple[Change, ...]
    statements: tuple[tuple[int, str], ...]

    def at(self, moments: Iterable[int]) -> Iterator[tuple[int, dict[str, Table]]]:
        """(TSO, every table that there is then), from the first moment to the last; to be looked at before the next is asked for."""
        tables = {name: Table(tuple(columns.split())) for name, columns in _FIRST.items()}
        log = sorted([(c.ts, 0, n) for n, c in enumerate(self.changes)] + [(s[0], 1, n) for n, s in enumerate(self.statements)])
        done, stamps = 0, [entry[0] for entry in log]
        for moment in sorted(set(moments)):
            upto = bisect_right(stamps, moment)
            for _, is_statement, n in log[done:upto]:
                if is_statement:
                    _alter(tables, self.statements[n][1])
                else:
                    _apply(tables[self.changes[n].table], self.changes[n])
            done = upto
            yield moment, tables


def wanted(name: str, table: Table, types: Mapping[str, str]) -> dict[str, Any]:
    """A table in the form of the truth files."""
    rows = [{k: {"hex": v.hex()} if isinstance(v, bytes) else v for k, v in cells} for cells in table.rows.values()]
    return {"columns": table.columns, "types": types, "key": _KEYS[name] or None, "rows": rows}


def truth(feed: str) -> dict[str, Any]:
    """A truth file."""
    found: dict[str, Any] = json.loads(data_bytes(f"workloads/shop/truth_{feed}.json.xz"))
    return found


def types() -> dict[str, dict[str, str]]:
    """Every column's kind, of every table that ever was, as the truth files say it."""
    out: dict[str, dict[str, str]] = {}
    for hour in truth("open")["hours"]:
        for name, table in hour["tables"].items():
            out.setdefault(name.removeprefix("shopdb."), {}).update(table["types"])
    out["clients"] |= out["customers"]  # which it was called
    return out


@cache
def shop() -> Shop:
    """The workload, read from the wire."""
    changes, marks, replay_epoch = dict[Any, Change](), Counter[int](), Counter[int]()
    statements, nth = set[tuple[int, str]](), Counter[Any]()
    for line in data_bytes("workloads/shop/messages_canal-json.jsonl.xz").splitlines():
        message = json.loads(line)
        sent, p = json.loads(bytes.fromhex(message["value"])), message["partition"]
        if sent["type"] == "TIDB_WATERMARK":
            mark = sent["_tidb"]["watermarkTs"]
            replay_epoch[p] += mark < marks[p]
            marks[p] = mark
        elif sent["isDdl"]:
            statements.add((sent["_tidb"]["commitTs"], sent["sql"]))
        else:
            c = _change(sent)
            again = (c, p, replay_epoch[p])  # the n-th of equal ones in a replay epoch is the n-th of any other; with a key there is one
            nth[again] += not (_KEYS[c.table] and nth[again])
            changes.setdefault((c, nth[again]), c)
    return Shop(tuple(sorted(changes.values(), key=lambda c: (c.ts, _CLASS[c.op]))), tuple(sorted(statements)))


def _change(sent: Mapping[str, Any]) -> Change:
    (new,), (old,) = ([_cells(row) for row in sent[name] or [None]] for name in ("data", "old"))
    gone = sent["type"] == "DELETE"  # whose row stands under `data`
    return Change(sent["_tidb"]["commitTs"], sent["table"], sent["type"], new if gone else old, None if gone else new)


def _cells(row: Mapping[str, str | None] | None) -> Cells | None:
    return None if row is None else tuple((name, value if value is None else _cell(name, value)) for name, value in row.items())


def _cell(name: str, value: str) -> Any:
    if name == "pic":
        return value.encode("latin-1")
    if name == "status":
        return _STATUS[int(value) - 1]
    if name == "tags":
        return ",".join(tag for n, tag in enumerate(_TAGS) if int(value) >> n & 1)
    return value


def _apply(table: Table, c: Change) -> None:
    key = _KEYS[c.table]
    if c.before is not None:
        del table.rows[_key(c.before, key) if key else next(k for k, cells in table.rows.items() if cells == c.before)]
    if c.after is not None:
        table.rows[_key(c.after, key) if key else object()] = c.after


def _key(cells: Cells, key: tuple[str, ...]) -> tuple[Any, ...]:
    row = dict(cells)
    return tuple(row[k] for k in key)


def _alter(tables: dict[str, Table], statement: str) -> None:
    """The workload's eight statements; the type of order_items.qty, which one changes, is not this file's."""
    words = statement.replace("`", "").split()
    match words[:2], words[2]:
        case ["ALTER", "TABLE"], "orders" if "ADD" in words:
            orders = tables["orders"]
            rows = {k: (*cells, ("discount", "0.00")) for k, cells in orders.rows.items()}
            tables["orders"] = Table((*orders.columns, "discount"), rows)
        case ["ALTER", "TABLE"], "orders":
            tables["orders"] = _renamed(tables["orders"], "note", "remark")
        case ["ALTER", "TABLE"], "order_items":
            pass
        case ["ALTER", "TABLE"], "clients":
            clients = tables["clients"]
            rows = {k: tuple(c for c in cells if c[0] != "vip") for k, cells in clients.rows.items()}
            tables["clients"] = Table(tuple(c for c in clients.columns if c != "vip"), rows)
        case ["CREATE", "TABLE"], "coupons":
            tables["coupons"] = Table(tuple(_COUPONS.split()))
        case ["TRUNCATE", "TABLE"], "coupons":
            tables["coupons"] = replace(tables["coupons"], rows={})
        case ["RENAME", "TABLE"], "customers":
            tables["clients"] = tables.pop("customers")
        case ["DROP", "TABLE"], "shopdb.coupons":
            del tables["coupons"]
        case _:
            raise AssertionError(statement)


def _renamed(table: Table, old: str, new: str) -> Table:
    rows = {k: tuple((new if name == old else name, value) for name, value in cells) for k, cells in table.rows.items()}
    return Table(tuple(new if c == old else c for c in table.columns), rows)
