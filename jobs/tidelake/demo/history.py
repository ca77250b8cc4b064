"""A history of the bazaar: commits in order of commit ts, and the true contents at any TSO.

Every iteration runs the simulation again from the seed and keeps only the living rows, so long histories need little memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidelake.demo import makers
from tidelake.demo.bazaar import ALL_DDL, DdlStep, statements, tables
from tidelake.demo.makers import World
from tidelake.demo.messages.model import Commit, Ddl, Row, SourceTable, Transaction
from tidelake.demo.upstream import RowsByKey, SimulatedUpstream, TableContents, UpstreamWork
from tidelake.tso import from_ms

START = datetime(2026, 1, 5, 10, tzinfo=UTC)
HOUR_MS = 3_600_000
_WEIGHTS = {"sellers": 3, "listings": 5, "bids": 6, "parcels": 3, "boxes": 2, "visits": 4, "flash_sales": 2}
_WEIGHTED = [name for name, weight in _WEIGHTS.items() for _ in range(weight)]
_INSERTS, _UPDATES = 0.48, 0.85  # cumulative shares; the rest are deletes


@dataclass(frozen=True, kw_only=True)
class History:
    """Upstream events: `hours` from `start` with about rows_per_hour row events each. ddl: names of bazaar.ddl_plan.

    The times of the statements depend only on start and ddl_span_hours (the plan's own span is three hours).
    """

    seed: int = 1
    hours: int = 3
    rows_per_hour: int = 4000
    start: datetime = START
    ddl: Collection[str] = ALL_DDL
    ddl_span_hours: float = 3.0

    @property
    def start_ms(self) -> int:
        """Start, in ms since the epoch."""
        return int(self.start.timestamp() * 1000)

    @property
    def end_ms(self) -> int:
        """End, in ms since the epoch; no commit is later."""
        return self.start_ms + self.hours * HOUR_MS

    @property
    def hour_starts(self) -> list[datetime]:
        """The hours with commits, and the next one, in which a changefeed delivers its last messages."""
        return [self.start + timedelta(hours=h) for h in range(self.hours + 1)]

    def statements(self) -> list[DdlStep]:
        """Return the DDL statements."""
        return statements(self.start_ms, self.hours, self.ddl, self.ddl_span_hours)

    def definitions(self) -> list[SourceTable]:
        """Return every definition that a table has at some time, in order."""
        return [*tables(), *(s.after for s in self.statements() if s.after is not None)]

    def commits(self) -> Iterator[Commit]:
        """Yield all commits in order. Commit ts are distinct and ascending."""
        simulation = _Simulation(self)
        while simulation.next_ts is not None:
            if commit := simulation.step():
                yield commit

    def truth(self, ts: int) -> dict[str, TableContents]:
        """Return the tables after all commits up to and including ts: `db.table` → columns, types, key, rows as canonical text."""
        return next(self.truths([ts]))

    def truths(self, points: Iterable[int]) -> Iterator[dict[str, TableContents]]:
        """Yield `truth` for several ascending TSOs, in one simulation."""
        simulation = _Simulation(self)
        for point in points:
            while simulation.next_ts is not None and simulation.next_ts <= point:
                simulation.step()
            yield simulation.upstream.contents()


class _Simulation:
    """Determines the next commit's ts in advance, so that the state before it can be read."""

    def __init__(self, history: History) -> None:
        self.upstream = SimulatedUpstream()
        self._world = World(history.seed)
        self._world.any_key = self._any_key
        self._history = history
        self._statements = history.statements()
        self._ms_per_row = HOUR_MS / history.rows_per_hour
        self._bulk = max(4, min(130, history.rows_per_hour // 25))
        self._events = 0
        self._last_ms = history.start_ms
        self._logical = 0
        self._fill: str | None = None
        self.next_ts: int | None = None
        self._draw()

    def step(self) -> Commit | None:
        """Execute and return the next commit; None for a transaction without net effect."""
        ts = self.next_ts
        assert ts is not None
        commit = self._execute() if self._is_ddl(ts) else self._transact(ts)
        self._draw()
        return commit

    def _is_ddl(self, ts: int) -> bool:
        return bool(self._statements) and self._statements[0].ddl.commit_ts == ts

    def _draw(self) -> None:
        """Draw the next ts. Transactions are evenly spaced with jitter; some share their millisecond, but none shares a statement's."""
        due = self._history.start_ms + 1 + self._events * self._ms_per_row
        at_ms = max(self._last_ms, int(due + (0 if self._world.chance(0.1) else self._world.below(1500))))
        if self._statements and at_ms >= (ddl_ms := self._statements[0].ddl.commit_ts >> 18):
            self.next_ts, self._last_ms, self._logical = self._statements[0].ddl.commit_ts, ddl_ms + 1, 0
            return
        if at_ms >= self._history.end_ms - 5:
            self.next_ts = None
            return
        self._logical = self._logical + 1 + self._world.below(5) if at_ms == self._last_ms else self._world.below(14)
        self._last_ms = at_ms
        self.next_ts = from_ms(at_ms, self._logical)

    def _execute(self) -> Ddl:
        statement = self._statements.pop(0)
        self.upstream.execute(statement)
        rows = self.upstream.rows.get(statement.on)
        self._fill = statement.on if rows is not None and not rows else None
        return statement.ddl

    def _transact(self, ts: int) -> Transaction | None:
        self._world.at(ts >> 18)
        work = UpstreamWork(self.upstream)
        self._kind()(work)
        changes = work.changes(ts)
        self._events += len(changes)
        return Transaction(ts, changes) if changes else None

    def _kind(self) -> Callable[[UpstreamWork], None]:
        if self._fill:
            return self._fill_new_table
        draw = self._world.below(1000)
        return next(kind for limit, kind in self._kinds() if draw < limit)

    def _kinds(self) -> list[tuple[int, Callable[[UpstreamWork], None]]]:
        return [
            (870, self._mixed),
            (885, self._bulk_of_one_kind),
            (920, self._several_changes_of_one_row),
            (930, self._without_effect),
            (970, self._moved_keys),
            (980, self._swapped_handles),
            (1000, self._born_again),
        ]

    def _any_key(self, name: str) -> Row | None:
        ident = self.upstream.rows[name].pick(self._world)
        return ident if isinstance(ident, tuple) else None

    def _table(self) -> tuple[str, RowsByKey]:
        while (name := self._world.one_of(_WEIGHTED)) not in self.upstream.rows:
            pass
        return name, self.upstream.rows[name]

    def _mixed(self, work: UpstreamWork) -> None:
        for _ in range(1 + self._world.below(5)):
            name, rows = self._table()
            draw = self._world.below(100) / 100
            ident = rows.pick(self._world)
            if ident is None or draw < _INSERTS:
                self._insert(work, name)
            elif draw < _UPDATES:
                work.update(name, ident, makers.mutation(rows.table, rows.by_ident[ident], self._world))
            else:
                rows.removed.append(work.delete(name, ident))

    def _insert(self, work: UpstreamWork, name: str) -> Row:
        """Insert one row; into a table without key sometimes several equal ones."""
        table = self.upstream.rows[name].table
        row = makers.row(table, self._world)
        for _ in range(1 if table.key or self._world.chance(0.7) else 3):
            work.insert(name, row)
        return row

    def _fill_new_table(self, work: UpstreamWork) -> None:
        assert self._fill
        for _ in range(self._bulk):
            self._insert(work, self._fill)
        self._fill = None

    def _bulk_of_one_kind(self, work: UpstreamWork) -> None:
        name, rows = self._table()
        draw, size = self._world.below(100) / 100, self._bulk // 4 + self._world.below(self._bulk)
        for _ in range(size):
            ident = rows.pick(self._world)
            if ident is None or draw < _INSERTS:
                self._insert(work, name)
            elif draw < _UPDATES:
                work.update(name, ident, makers.mutation(rows.table, rows.by_ident[ident], self._world))
            else:
                work.delete(name, ident)

    def _several_changes_of_one_row(self, work: UpstreamWork) -> None:
        """Change a row several times, for one event with the net effect; sometimes it is new before or deleted after."""
        name, rows = self._table()
        ident = rows.pick(self._world)
        if ident is None or self._world.chance(0.3):
            ident = work.insert(name, makers.row(rows.table, self._world))
        for _ in range(1 + self._world.below(4)):
            ident = work.update(name, ident, makers.mutation(rows.table, rows.by_ident[ident], self._world))
        if self._world.chance(0.2):
            work.delete(name, ident)

    def _without_effect(self, work: UpstreamWork) -> None:
        name, rows = self._table()
        work.delete(name, work.insert(name, makers.row(rows.table, self._world)))
        if (ident := rows.pick(self._world)) is not None:
            old = rows.by_ident[ident]
            work.update(name, ident, makers.mutation(rows.table, old, self._world))
            work.update(name, ident, old)

    def _moved_keys(self, work: UpstreamWork) -> None:
        name, rows = self._table()
        for _ in range(1 + self._world.below(3)):
            ident = rows.pick(self._world)
            if ident is not None and rows.table.split_by:
                work.update(name, ident, makers.renamed_key(rows.table, rows.by_ident[ident], self._world))

    def _swapped_handles(self, work: UpstreamWork) -> None:
        """Exchange a unique value between two sellers in one transaction."""
        rows = self.upstream.rows["sellers"]
        one, other = rows.pick(self._world), rows.pick(self._world)
        if one is None or other is None or one == other:
            return
        at = rows.table.at("handle")
        a, b = rows.by_ident[one], rows.by_ident[other]
        work.update("sellers", one, (*a[:at], b[at], *a[at + 1 :]))
        work.update("sellers", other, (*b[:at], a[at], *b[at + 1 :]))

    def _born_again(self, work: UpstreamWork) -> None:
        """Insert a deleted key again, or delete and insert a key in one transaction."""
        name, rows = self._table()
        ident = rows.pick(self._world)
        if rows.removed and self._world.chance(0.6):
            old = rows.removed.popleft()
        elif ident is not None:
            old = work.delete(name, ident)
        else:
            return
        work.insert(name, makers.mutation(rows.table, old, self._world))
