"""A history folded by the executable specification (history.ordering.py), cut by cut, without Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.lake.histories import TOPIC, Message
from tests.lake.invented import History
from tests.lake.upstream import PARTS, Bag, Change, Ddl
from tidelake.errors import Coordinates
from tidelake.history.ordering import (
    RowCells,
    RowChange,
    deduplicated,
    exchanged,
    fold,
    fold_multiset,
    in_window,
    ordered,
    rekeyed,
    resolved_ts,
)


def states(history: History) -> Iterator[tuple[int, dict[str, Bag]]]:
    """(resolved ts, every table's first two columns) at each cut. Columns that a statement fills are not the specification's."""
    lives = {(e.table, e.ts): (e.life, e.key) for e in history.upstream.log if isinstance(e, Change)}
    names = history.upstream.lives
    reader, applied = _Reader(lives, history.manner.partitions), 0
    keyed: dict[str, dict[RowCells, RowCells]] = defaultdict(dict)
    bare: dict[str, Counter[RowCells]] = defaultdict(Counter)
    for hour in history.hours:
        for message in hour:
            reader.read(message)
        if None in reader.marks.values() or (resolved := resolved_ts(reader.marks)) <= applied:
            continue
        changes = ordered(deduplicated(in_window(reader.changes, applied, resolved)))
        for ts in sorted({ts for ts in history.upstream.moves if applied < ts <= resolved} | {resolved}):
            upto = in_window(changes, applied, ts)
            for life in {c.table for c in upto}:
                mine, key = [c for c in upto if c.table == life], history.upstream.keys[int(life)]
                if key:
                    keyed[life] = fold(keyed[life], mine, tuple(range(key)))
                else:
                    bare[life] = fold_multiset(bare[life], mine)
            if (statement := history.upstream.moves.get(ts)) is not None:
                before, now = (names[max(t for t in names if t < ts + n)] for n in (0, 1))
                if "EXCHANGE" in statement.query:
                    _exchange(statement, now, keyed)
                else:
                    _rekey(statement.query.split()[2], before, now, history.upstream.keys, keyed, bare)
            applied = ts
        now = names[max(ts for ts in names if ts <= resolved)]
        yield resolved, {name: _printed(bare[str(n)] + Counter(keyed[str(n)].values())) for name, n in now.items()}
        applied = resolved


def _rekey(
    name: str,
    before: dict[str, int],
    now: dict[str, int],
    keys: dict[int, int],
    keyed: dict[str, dict[RowCells, RowCells]],
    bare: dict[str, Counter[RowCells]],
) -> None:
    """ALTER TABLE name … ADD PRIMARY KEY."""
    old, new = before[name], now[name]
    rows = keyed[str(old)].values() if keys[old] else bare[str(old)].elements()
    keyed[str(new)] = rekeyed(rows, tuple(range(keys[new])))


def _exchange(statement: Ddl, lives: dict[str, int], keyed: dict[str, dict[RowCells, RowCells]]) -> None:
    """ALTER TABLE p EXCHANGE PARTITION part WITH TABLE t."""
    _, _, p, _, _, part, _, _, t = statement.query.split()
    one, other = str(lives[p]), str(lives[t])
    keyed[one], keyed[other] = exchanged(keyed[one], keyed[other], lambda row: str(row[0]) in PARTS[part])


class _Reader:
    """Messages → changes with coordinates, lives and replay epochs."""

    def __init__(self, lives: dict[tuple[str, int], tuple[int, int]], partitions: int) -> None:
        self.changes: list[RowChange] = []
        self.marks: dict[Coordinates, int | None] = {Coordinates(TOPIC, p): None for p in range(partitions)}
        self._lives = lives
        self._offsets, self._epoch, self._last = Counter[int](), Counter[int](), Counter[int]()

    def read(self, message: Message) -> None:
        p, e = message.partition, message.event
        at = (TOPIC, p, self._offsets[p], 0)
        self._offsets[p] += 1
        ts = e.commit_ts or 0
        if e.kind == "resolved":
            self._epoch[p] += ts < self._last[p]
            self._last[p] = ts
            where = Coordinates(TOPIC, p)
            self.marks[where] = max(self.marks[where] or 0, ts)
        elif e.kind == "row":
            before, after = _cells(e.before), _cells(e.after)
            whole = after or before
            assert whole is not None
            life, key_cells = self._lives[str(e.table), ts]
            key = whole[:key_cells] if key_cells else None
            change = RowChange(
                table=str(life), op=str(e.op), commit_ts=ts, at=at, key=key, before=before, after=after, replay_epoch=self._epoch[p]
            )
            self.changes.append(change)


def _cells(sent: object) -> RowCells | None:
    return tuple(cell.decode() for cell in sent[:2]) if isinstance(sent, list) else None


def _printed(rows: Counter[RowCells]) -> Bag:
    """As the truth names cells."""
    return Counter({tuple(zip(("id", "v") if len(r) > 1 else ("v",), map(str, r), strict=True)): n for r, n in rows.items()})
