"""A history that a real TiDB executed: transactions and statements with their commit ts, as the demo's changefeeds take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from tests.tidb import alters, filled
from tests.tidb.present import DATABASE, Present, present
from tests.tidb.sent import sent_rows, source_table
from tests.tidb.server import TiDB
from tests.tidb.values import FLAVOURS, literal
from tidelake.demo.history import History
from tidelake.demo.messages.model import Commit, Ddl, SourceTable, Transaction
from tidelake.demo.upstream import RowsByKey, SimulatedUpstream, UpstreamWork
from tidelake.errors import TidelakeError
from tidelake.history.ddl.changes import CreateTable
from tidelake.history.ddl.statement import parse
from tidelake.history.evolution import apply
from tidelake.history.incarnations import Catalog, create
from tidelake.query.verify.cell_texts import quoted
from tidelake.tso import physical_ms

_SECONDS = 0.25  # of the server's time between transactions
_ALTER = 5  # TiDB's job type does not matter to readers of the statement


@dataclass(frozen=True, kw_only=True)
class RecordedHistory(History):
    """What was recorded, instead of a simulation."""

    recorded: tuple[Commit, ...] = ()

    @property
    def start_ms(self) -> int:
        """Of the first commit."""
        return physical_ms(self.recorded[0].commit_ts) - 1

    @property
    def end_ms(self) -> int:
        """After the last commit."""
        return physical_ms(self.recorded[-1].commit_ts) + 10

    def commits(self) -> Iterator[Commit]:
        """All commits in order."""
        return iter(self.recorded)

    def definitions(self) -> list[SourceTable]:
        """Every definition that rows had."""
        return list(dict.fromkeys(r.table for c in self.recorded if isinstance(c, Transaction) for r in c.rows))


@dataclass
class Recorder:
    """Executes random transactions and statements, and notes what TiCDC would send."""

    server: TiDB
    random: Random
    tables: dict[str, Present] = field(default_factory=dict)
    known: Catalog = field(default_factory=Catalog)
    commits: list[Commit] = field(default_factory=list)
    mirror: SimulatedUpstream = field(default_factory=SimulatedUpstream)
    numbers: int = 1000

    def __post_init__(self) -> None:
        self.mirror.rows = {}

    def begin(self, table: Present) -> None:
        """Follow a table from now on."""
        (made,) = parse(table.create, DATABASE)
        assert isinstance(made, CreateTable)
        assert made.definition is not None
        self.known = create(self.known, DATABASE, table.name, made.definition, -1)
        self._see(table)

    def _see(self, table: Present) -> None:
        self.tables[table.name] = table
        mirrored = RowsByKey(source_table(table))
        for ident, row in sent_rows(self.server, table, mirrored.table):
            mirrored.put(ident, row)
        self.mirror.rows[table.name] = mirrored

    def transact(self) -> None:
        """A transaction on one or two tables, and a time without any: a changefeed tells its resolved ts every few seconds."""
        import pymysql

        self.server.execute(f"DO SLEEP({_SECONDS})")
        touched = self.random.sample(sorted(self.tables), k=min(2, len(self.tables)))[: self.random.choice([1, 1, 2])]
        self.server.execute("BEGIN")
        for name in touched:
            for statement in self._changes(self.tables[name]):
                try:
                    self.server.execute(statement)
                except pymysql.Error:
                    continue  # a key that is there, a value that does not fit
        self.server.execute("COMMIT")
        work = UpstreamWork(self.mirror)
        for name in touched:
            self._difference(work, name)
        changes = work.changes(self.server.committed())
        if changes:
            self.commits.append(Transaction(changes[0].commit_ts, changes))

    def _difference(self, work: UpstreamWork, name: str) -> None:
        mirrored = self.mirror.rows[name]
        now = dict(sent_rows(self.server, self.tables[name], mirrored.table))
        gone = [i for i in mirrored.by_ident if i not in now]
        for ident in gone:
            work.before[name, ident] = mirrored.take(ident)
        for ident, row in now.items():
            old = mirrored.by_ident.get(ident)
            if old != row:
                work.before[name, ident] = old
                mirrored.put(ident, row)
                if old is None and gone:
                    work.moved.add(name)

    def _changes(self, table: Present) -> Iterator[str]:
        given = [f for f in table.fields if not f.generated]
        flavours = {f.name: self.random.choice(FLAVOURS) for f in given}
        for _ in range(self.random.randint(1, 3)):
            draw = self.random.random()
            if draw < 0.5:
                self.numbers += 1
                yield filled.insertion(self.random, table, self.numbers, flavours)
            elif draw < 0.8:
                changed = self.random.choice(given)
                value = "NULL" if changed.nullable and draw < 0.55 else literal(self.random, changed.type, flavours[changed.name])
                yield f"UPDATE {table.sql} SET {quoted(changed.name)} = {value} ORDER BY RAND() LIMIT {self.random.choice([1, 1, 3])}"
            else:
                yield f"DELETE FROM {table.sql} ORDER BY RAND() LIMIT 1"

    def alter(self) -> None:
        """A statement that both the server and the feed carry out."""
        import pymysql

        table = self.tables[self.random.choice(sorted(self.tables))]
        for _, statement in islice(alters.statements(self.random, table), 200):
            try:
                after = self.known
                for change in parse(statement, DATABASE):
                    after = apply(after, self.server.ts(), change)
                self.server.execute(statement)
            except (TidelakeError, pymysql.Error):
                continue
            self.known = after
            found = [str(n) for (n,) in self.server.execute(f"SHOW TABLES FROM {DATABASE}")]
            name = table.name if table.name in found else next(n for n in found if n not in self.tables)
            del self.tables[table.name], self.mirror.rows[table.name]
            self._see(present(self.server, name))
            self.commits.append(Ddl(self.server.ts(), DATABASE, name, statement, _ALTER))
            return

    def history(self) -> RecordedHistory:
        """What was recorded so far."""
        return RecordedHistory(recorded=tuple(self.commits))
