"""An upstream database that Hypothesis drives: tables, transactions and statements, and the truth at every commit.

The truth is the dictionary of rows itself, kept at every commit; nothing here knows Tidelake's rules of order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count

START = 100  # the ts at which the changefeed begins
KEYED = ("k", "j")
BARE = "m"
PARTS = {"p0": "01", "p1": "3"}  # the keys of each partition
BY = " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN MAXVALUE)"
SQL = (
    f"CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20)){BY}; CREATE TABLE d.j (id BIGINT PRIMARY KEY, v VARCHAR(20)); "
    "CREATE TABLE d.m (v VARCHAR(20));"
)
NEW = "q"  # what rows from before a column hold in it
Cells = tuple[str, ...]
Bag = Counter[tuple[tuple[str, str], ...]]
Step = tuple[str, str, str, str]  # what, table, key or value, another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A row change as committed. life: of the table, which keeps it through renames; key: how many first columns tell its rows apart."""

    ts: int
    table: str
    life: int
    columns: tuple[str, ...]
    key: int
    op: str
    before: Cells | None
    after: Cells | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ddl:
    """A statement. late: the resolved ts that equals its own is sent before it."""

    ts: int
    query: str
    late: bool


@dataclass(frozen=True, slots=True)
class Table:
    """rows: cells by their first one; those of m stand in `bag`. key: how many first columns are the key; by: how it is partitioned."""

    life: int
    columns: tuple[str, ...]
    key: int
    by: str = ""
    rows: dict[str, Cells] = field(default_factory=dict)
    bag: Counter[str] = field(default_factory=Counter)

    def contents(self) -> Bag:
        """As printed."""
        if self.columns == ("v",):
            return Counter({(("v", v),): n for v, n in self.bag.items() if n > 0})
        return Counter(tuple(zip(self.columns, cells, strict=True)) for cells in self.rows.values())


class Upstream:
    """Database d, and everything that happened to it. truth: commit ts → every table from then on; lives: which life bears which name;
    step: between two commit ts."""

    def __init__(self, step: int = 10) -> None:
        self.ts, self._step = START, step
        self.log: list[Change | Ddl] = []
        self.truth: dict[int, dict[str, Bag]] = {}
        self._lives, self._first, self._keys = count(), dict[int, int](), dict[int, int]()
        self.tables = {name: self._fresh(name, BY if name == "k" else "") for name in (*KEYED, BARE)}
        self.lives = {0: {name: t.life for name, t in self.tables.items()}}

    def commit(self, steps: list[Step]) -> None:
        """One transaction; what is impossible is left out. Of a key only one step is taken."""
        self.ts += self._step
        touched: set[tuple[str, str]] = set()
        before = len(self.log)
        for what, table, a, b in steps:
            keys = {(table, a), (table, b)} if what in ("move", "exchange") else {(table, a)}
            if table == BARE and not self.tables[BARE].key:
                self._bare(what, a, b)
            elif table == BARE and not keys & touched:
                touched |= keys
                self._bare(what, a, b)
            elif what == "clear":
                for key in [k for k in self.tables[table].rows if (table, k) not in touched]:
                    touched.add((table, key))
                    self._write(table, key, None)
            elif table != BARE and not keys & touched:
                touched |= keys
                self._keyed(what, table, a, b)
        if len(self.log) > before:
            self._record()

    def alter(self, what: str, table: str, *, late: bool, same: bool) -> None:
        """One statement. same: at the ts of the commit before it, whose rows are then older; if that has none of its own yet."""
        if what == "exchange":
            self._make_fit("p0" if table == "k" else "p1")
        if what == "rekey" and table == BARE:
            self.commit([("drop", BARE, v, "") for v, n in self.tables[BARE].bag.items() for _ in range(n - 1)])
        own = self.log and self.log[-1].ts == self.ts and not isinstance(self.log[-1], Ddl)
        self.ts += 0 if same and own else self._step
        old, before = self.tables[table], len(self.log)
        if what == "truncate":
            self._sent(f"TRUNCATE TABLE {table}", late)
            self.tables[table] = self._life(replace(self._fresh(table, old.by), columns=old.columns, key=old.key))
            self._first[self.tables[table].life] = self.first(old.life)
        elif what == "recreate":
            self._sent(f"DROP TABLE {table}", late)
            del self.tables[table]
            self._record()
            self.ts += self._step
            self._sent(
                f"CREATE TABLE {table} ({'v VARCHAR(20)' if table == BARE else 'id BIGINT PRIMARY KEY, v VARCHAR(20)'}){old.by}", late
            )
            self.tables[table] = self._fresh(table, old.by)
        elif what == "swap":
            self._sent("RENAME TABLE k TO tmp, j TO k, tmp TO j", late)
            self.tables["k"], self.tables["j"] = self.tables["j"], self.tables["k"]
        elif what == "exchange":
            self._exchange("p0" if table == "k" else "p1", late)
        elif what == "rekey":
            self._rekey(table, old, late)
        elif what == "column" and table != BARE:
            self._column(table, old, late)
        if len(self.log) > before:
            self._record()

    def at(self, ts: int) -> dict[str, Bag]:
        """Every table at a TSO."""
        known = [t for t in self.truth if t <= ts]
        return self.truth[max(known)] if known else {name: Counter() for name in (*KEYED, BARE)}

    @property
    def moves(self) -> dict[int, Ddl]:
        """Statements that move rows, by their ts: an exchanged partition, a new key."""
        return {
            e.ts: e
            for e in self.log
            if isinstance(e, Ddl) and ("EXCHANGE" in e.query or "PRIMARY KEY, ADD" in e.query or "m ADD" in e.query)
        }

    @property
    def keys(self) -> dict[int, int]:
        """By life, how many first columns are its key."""
        return self._keys

    def first(self, life: int) -> int:
        """The life that this one goes on from after a TRUNCATE, which gives another one; itself if none."""
        return self._first.get(life, life)

    def _column(self, table: str, old: Table, late: bool) -> None:
        """Column n comes, or goes."""
        if "n" in old.columns:
            self._sent(f"ALTER TABLE {table} DROP COLUMN n", late)
            self.tables[table] = replace(old, columns=("id", "v"), rows={k: cells[:2] for k, cells in old.rows.items()})
        else:
            self._sent(f"ALTER TABLE {table} ADD COLUMN n VARCHAR(9) DEFAULT '{NEW}'", late)
            self.tables[table] = replace(old, columns=("id", "v", "n"), rows={k: (*cells, NEW) for k, cells in old.rows.items()})

    def _rekey(self, table: str, old: Table, late: bool) -> None:
        """Table m gets a key if it has none; the key of the others gets longer, or as it was."""
        if table == BARE and old.key:
            return
        key = {0: 1, 1: 2, 2: 1}[old.key]
        drop = "DROP PRIMARY KEY, " if old.key else ""
        self._sent(f"ALTER TABLE {table} {drop}ADD PRIMARY KEY ({', '.join(old.columns[:key])})", late)
        self.tables[table] = self._life(replace(old, life=next(self._lives), key=key))

    def partitioned(self) -> tuple[str, str]:
        """(the partitioned table, the other one)."""
        k, j = KEYED
        return (k, j) if self.tables[k].by else (j, k)

    def _make_fit(self, part: str) -> None:
        """A transaction deletes the rows of the other table that the partition does not take, as the server would refuse them."""
        _, other = self.partitioned()
        self.commit([("drop", other, key, "") for key in self.tables[other].rows if key not in PARTS[part]])

    def _exchange(self, part: str, late: bool) -> None:
        """The server wants equal columns and keys."""
        names = self.partitioned()
        p, t = (self.tables[name] for name in names)
        if (p.columns, p.key) != (t.columns, t.key):
            return
        self._sent(f"ALTER TABLE {names[0]} EXCHANGE PARTITION {part} WITH TABLE {names[1]}", late)
        left = {k: cells for k, cells in p.rows.items() if k in PARTS[part]}
        self.tables[names[0]] = replace(p, rows={k: cells for k, cells in p.rows.items() if k not in left} | t.rows)
        self.tables[names[1]] = replace(t, rows=left)

    def _fresh(self, table: str, by: str = "") -> Table:
        return self._life(Table(next(self._lives), *((("v",), 0) if table == BARE else (("id", "v"), 1)), by))

    def _life(self, table: Table) -> Table:
        self._keys[table.life] = table.key
        return table

    def _sent(self, query: str, late: bool) -> None:
        self.log.append(Ddl(ts=self.ts, query=query, late=late))

    def _record(self) -> None:
        self.truth[self.ts] = {name: t.contents() for name, t in self.tables.items()}
        self.lives[self.ts] = {name: t.life for name, t in self.tables.items()}

    def _keyed(self, what: str, table: str, a: str, b: str) -> None:
        rows = self.tables[table].rows
        if what == "put" and rows.get(a, ("", ""))[1] != b:
            self._write(table, a, b)
        elif what == "drop" and a in rows:
            self._write(table, a, None)
        elif what == "move" and a in rows and b not in rows:
            old = rows.pop(a)
            rows[b] = (b, *old[1:])
            self._note(table, "update", old, rows[b])
        elif what == "exchange" and a != b and a in rows and b in rows:
            one, two = rows[a], rows[b]
            rows[a], rows[b] = (a, *two[1:]), (b, *one[1:])
            self._note(table, "update", one, rows[b])  # as one statement that exchanges keys
            self._note(table, "update", two, rows[a])

    def _write(self, table: str, key: str, value: str | None) -> None:
        t = self.tables[table]
        old = t.rows.pop(key, None)
        new = None if value is None else (key, value, value.upper())[: len(t.columns)]
        if new is not None:
            t.rows[key] = new
        self._note(table, "delete" if new is None else "insert" if old is None else "update", old, new)

    def _bare(self, what: str, value: str, new: str) -> None:
        bag = self.tables[BARE].bag
        key = self.tables[BARE].key
        if what == "put" and not (key and bag[value]):
            bag[value] += 1
            self._note(BARE, "insert", None, (value,))
        elif what in ("drop", "move") and bag[value] > 0 and not (key and what == "move" and bag[new]):
            bag[value] -= 1
            if what == "move":
                bag[new] += 1
            self._note(BARE, *(("update", (value,), (new,)) if what == "move" else ("delete", (value,), None)))

    def _note(self, table: str, op: str, before: Cells | None, after: Cells | None) -> None:
        t = self.tables[table]
        self.log.append(Change(ts=self.ts, table=table, life=t.life, columns=t.columns, key=t.key, op=op, before=before, after=after))
