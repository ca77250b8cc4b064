"""A lake beside a server: what it did becomes events of a feed, the feed's real stages make cuts of them, and `verify` compares.

The hours are written as decode leaves them (tests/lake/histories.py). No Spark: the work of an hour is small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.lake.histories import Feeder, Message, ddl, feeder, publish, resolved
from tests.tidb.present import DATABASE, Cells, Present, Source, rows
from tidelake.config.policy import Policy
from tidelake.config.table_name import written
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import Event
from tidelake.io.mysql import reader
from tidelake.lake.ddl_ledger import entries
from tidelake.lake.opened import Lake
from tidelake.query.asof import life_at
from tidelake.query.verify.compare import ComparedTable
from tidelake.query.verify.questions import session
from tidelake.query.verify.table import verify_table
from tidelake.query.verify.upstream import Connected
from tidelake.spark.run_parts import ThisProcess


@dataclass
class Copy:
    """The lake, and the messages of its next hour."""

    server: Source
    lake: Lake
    feed: Feeder
    messages: list[Message] = field(default_factory=list)

    def inserted(self, table: Present, found: Sequence[Cells], ts: int) -> None:
        """Rows that the server has since ts."""
        for cells in found:
            self.changed(table, "insert", ts, after=cells)

    def changed(self, table: Present, op: str, ts: int, before: Cells | None = None, after: Cells | None = None) -> None:
        """A row event."""
        event = Event(
            kind="row",
            op=op,
            commit_ts=ts,
            database=DATABASE,
            table=table.name,
            row_schema=None if after is None else table.row_schema,
            after=None if after is None else list(after),
            before_schema=None if before is None else table.row_schema,
            before=None if before is None else list(before),
        )
        self.messages.append(Message(partition=0, event=event))

    def executed(self, table: str, statement: str, ts: int) -> None:
        """A statement that the server executed before ts, and after any earlier row."""
        self.messages += ddl(ts, statement, table=table)

    def publish(self) -> int:
        """A cut of everything so far; its TSO."""
        ts = self.server.ts()
        hour = self.feed.add(self.lake, [*self.messages, *resolved(ts)])
        self.messages = []
        assert publish(self.lake, hour) is not None
        return ts

    def why_not(self) -> dict[int, str]:
        """Statements that were not carried out, by commit ts, with the reason."""
        return {e["commit_ts"]: e["why"] for e in entries(self.lake.catalog, self.lake.feed.name) if e["effect"] == "ignored"}

    def compared(self, table: Present, ts: int) -> ComparedTable:
        """What `verify` finds at a cut."""
        with reader(self.server.url) as asked:
            for statement in session(self.server.kind, ts):
                asked.query(statement)
            return verify_table(self.lake, written(DATABASE, table.name), ts, self.server.kind, Connected(asked)).compared

    def differences(self, table: Present, ts: int) -> list[str]:
        """How the lake's table differs from the server's at a cut: columns, types, rows."""
        _, life = life_at(self.lake, written(DATABASE, table.name), ts)
        alike = _as_long if self.server.dialect.grows_text else _as_is
        here, there = [(c.name, alike(c.type)) for c in life.columns], [(f.name, alike(f.type)) for f in table.sent]
        out = [] if here == there else [f"columns: {_unlike(here, there)}"]
        found = self.compared(table, ts)
        if found.rows_here != found.rows_upstream:
            out.append(f"{found.rows_here} rows here, {found.rows_upstream} upstream")
        return out + [str(r) for r in found.rows] + found.unlisted


def _as_is(mysql: MysqlType) -> MysqlType:
    return mysql


def _as_long(mysql: MysqlType) -> MysqlType:
    return MysqlType("text") if mysql.word.endswith("text") else mysql


def _unlike(here: Sequence[object], there: Sequence[object]) -> str:
    return (
        f"{[c for c in here if c not in there]} here, {[c for c in there if c not in here]} upstream"
        if set(here) != set(there)
        else "order"
    )


@contextmanager
def copied(server: Source, folder: Path, tables: Sequence[Present]) -> Iterator[Copy]:
    """A feed with these tables, whose rows are its first cut."""
    sql = f"USE `{DATABASE}`;\n" + "".join(f"{t.create};\n" for t in tables)
    made = feeder(folder, sql, policy=Policy(ddl="ignore"))
    made.day = "2099-01-05"  # hours that no TSO of the server is ahead of
    (folder / "lake").mkdir()
    with Lake.of(made.feed) as lake:
        copy = Copy(server, lake, made)
        ts = server.ts()
        for t in tables:
            copy.inserted(t, rows(server, t), ts)
        copy.publish()
        yield copy


def in_this_process(lake: Lake, sizes: object) -> ThisProcess:
    """Lake.workers for many small tables: never Spark."""
    return ThisProcess(lake.settings.worker)
