"""A small model that replays random statements on plain dicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

DATABASES = ("shop", "other")
TABLES = ("t", "u", "v")
COLUMNS = ("w", "x", "y", "z")
Place = tuple[str, str]


@dataclass
class Table:
    """A life number, and the columns in order as [number of the column in the life, name]."""

    life: int
    columns: list[list[object]]
    made: int = 2

    @property
    def free(self) -> list[str]:
        return [c for c in COLUMNS if c not in [name for _, name in self.columns]]

    @property
    def others(self) -> list[str]:
        return [str(name) for _, name in self.columns if name != "k"]

    def find(self, name: str) -> list[object]:
        return next(c for c in self.columns if c[1] == name)

    def new(self, name: str) -> list[object]:
        self.made += 1
        return [self.made, name]


State = dict[Place, tuple[int, list[tuple[int, str]]]]


@dataclass
class Model:
    """Tables by name, and how they stood after every statement."""

    tables: dict[Place, Table] = field(default_factory=dict)
    lives: int = 0
    states: list[tuple[int, State]] = field(default_factory=list)

    def record(self, ts: int) -> None:
        self.states.append((ts, {n: (t.life, [(int(str(i)), str(c)) for i, c in t.columns]) for n, t in self.tables.items()}))

    def of_row(self, ts: int) -> State:
        """What a row at ts meets: statements before ts."""
        return next((s for at, s in reversed(self.states) if at < ts), {})

    def asof(self, ts: int) -> State:
        return next((s for at, s in reversed(self.states) if at <= ts), {})


Draw = Callable[[st.SearchStrategy[str]], str]


def create(draw: Draw, m: Model, at: Place) -> str:
    if at in m.tables:
        del m.tables[at]
        return f"DROP TABLE {at[0]}.{at[1]}"
    m.lives += 1
    m.tables[at] = Table(m.lives, [[1, "k"], [2, "w"]])
    return f"CREATE TABLE {at[0]}.{at[1].upper()} (k INT PRIMARY KEY, w INT)"


def rename(draw: Draw, m: Model, at: Place) -> str:
    to = (draw(st.sampled_from(DATABASES)), draw(st.sampled_from(TABLES)))
    if at not in m.tables:
        return f"ALTER TABLE {at[0]}.{at[1]} RENAME {at[0]}.nobody"
    if to in m.tables and to != at:
        m.tables[at], m.tables[to] = m.tables[to], m.tables[at]
        a, b = ".".join(at), ".".join(to)
        return f"RENAME TABLE {a} TO shop.tmp, {b} TO {a}, shop.tmp TO {b}"
    m.tables[to] = m.tables.pop(at)
    return f"RENAME TABLE {at[0]}.{at[1]} TO {to[0]}.{to[1]}"


def add(draw: Draw, m: Model, at: Place) -> str:
    start = f"ALTER TABLE {at[0]}.{at[1]} ADD COLUMN"
    t = m.tables.get(at)
    if t is None or not t.free:
        return f"{start} k INT"
    name, where = draw(st.sampled_from(t.free)), draw(st.sampled_from(["", "FIRST", *(str(n) for _, n in t.columns)]))
    position = len(t.columns) if where == "" else 0 if where == "FIRST" else t.columns.index(t.find(where)) + 1
    t.columns.insert(position, t.new(name))
    return f"{start} {name} INT {'' if where in ('', 'FIRST') else 'AFTER '}{where}"


def drop(draw: Draw, m: Model, at: Place) -> str:
    start = f"ALTER TABLE {at[0]}.{at[1]} DROP COLUMN"
    t = m.tables.get(at)
    if t is None or not t.others:
        return f"{start} nothing"
    name = draw(st.sampled_from(t.others))
    t.columns.remove(t.find(name))
    return f"{start} {name.upper()}"


def change(draw: Draw, m: Model, at: Place) -> str:
    start = f"ALTER TABLE {at[0]}.{at[1]}"
    t = m.tables.get(at)
    if t is None or not t.others or not t.free:
        return f"{start} COMMENT 'nothing'"
    name, to = draw(st.sampled_from(t.others)), draw(st.sampled_from(t.free))
    column = t.find(name)
    column[1] = to
    if draw(st.sampled_from(["rename", "change"])) == "rename":
        return f"{start} RENAME COLUMN {name} TO {to}"
    t.columns.remove(column)
    t.columns.insert(0, column)
    return f"{start} CHANGE {name} {to} BIGINT FIRST"


def clear(draw: Draw, m: Model, at: Place) -> str:
    for name in [n for n in m.tables if n[0] == at[0]]:
        del m.tables[name]
    return f"DROP DATABASE {at[0]}"


STEPS = [create] * 4 + [rename] * 3 + [add] * 3 + [drop] * 2 + [change] * 3 + [clear]
