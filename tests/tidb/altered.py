"""Random statements on filled tables of a server: after each the lake's table holds what the server's does, or the statement was refused.

Every lake has some tables of all kinds. In each round every table gets rows and a statement that the server accepts. The round is one
window of the feed's real stages. Then `verify` compares every table, and its columns and types are compared with the server's.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Self

import pytest

from tests.tidb import alters, filled
from tests.tidb.copied import Copy, copied
from tests.tidb.outcomes import Outcome, lines
from tests.tidb.present import DATABASE, Present, Source, present, rows
from tidelake.errors import TidelakeError

SEED, LAKES = "20261125", "8"
TABLES, ROUNDS, TRIES = 14, 3, 200
WANTED = 25  # statements of a lake that are carried out and compared


@dataclass
class Walk:
    """All lakes of a test. name: what the environment's <name>_SEED and <name>_LAKES are for."""

    name: str
    seed: int
    lakes: int
    outcomes: list[Outcome] = field(default_factory=list)

    @classmethod
    def of(cls, name: str) -> Self:
        """With the environment's seed and number of lakes."""
        return cls(name, int(os.environ.get(f"{name}_SEED", SEED)), int(os.environ.get(f"{name}_LAKES", LAKES)))

    def check(self, server: Source, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Walk, print what became of the statements, and check that none made a difference."""
        try:
            for number in range(self.lakes):
                self.outcomes += altered(server, folder / str(number), self.seed + number)
        finally:
            with capsys.disabled():
                print("", *lines(self.outcomes), f"again with {self.name}_SEED={self.seed}", sep="\n")  # noqa: T201 - the table is the point
        assert [o for o in self.outcomes if o.kind == "different"] == []
        assert sum(o.kind == "equal" for o in self.outcomes) >= WANTED * self.lakes


def altered(server: Source, folder: Path, seed: int) -> list[Outcome]:
    """A lake's rounds."""
    random, out = Random(seed), list[Outcome]()
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}")
    tables = [filled.create(server, random, f"t{n}" if random.random() < 0.8 else f"{random.choice(filled.ODD)}{n}") for n in range(TABLES)]
    with copied(server, folder, tables) as copy:
        for number in range(ROUNDS):
            out += _round(copy, random, tables, number, seed)
            unlike = {o.table for o in out if o.kind != "equal"}
            tables = [t for t in (present(server, o.table) for o in out[-len(tables) :]) if t.name not in unlike]
    return out


def _round(copy: Copy, random: Random, tables: list[Present], number: int, seed: int) -> list[Outcome]:
    done: dict[int, tuple[Present, str, str]] = {}
    for table in tables:
        _more_rows(copy, random, table, range(100 + 10 * number, 104 + 10 * number))
        kind, statement, name, ts = _executed(copy, random, table)
        done[ts] = present(copy.server, name), kind, statement
    try:
        at = copy.publish()
    except TidelakeError as e:
        e.add_note("\n".join(f"{ts}: {statement}; now {table.create}" for ts, (table, _, statement) in done.items()))
        raise
    why_not = copy.why_not()
    out = []
    for ts, (table, kind, statement) in done.items():
        said = [why_not[ts]] if ts in why_not else copy.differences(table, at)
        outcome = "refused" if ts in why_not else "different" if said else "equal"
        out.append(Outcome(kind=outcome, of=kind, table=table.name, statement=statement, said=tuple(said), seed=seed))
    return out


def _executed(copy: Copy, random: Random, table: Present) -> tuple[str, str, str, int]:
    """A statement that the server accepts: its kind, its text, the table's name after it, its TSO."""
    import pymysql

    for kind, statement in islice(alters.statements(random, table), TRIES):
        try:
            copy.server.execute(statement)
        except pymysql.Error:
            continue
        ts = copy.server.ts()
        copy.executed(table.name, statement, ts)
        return kind, statement, _name_after(copy.server, table), ts
    raise AssertionError(f"the server accepts no statement for {table.create}")


def _name_after(server: Source, table: Present) -> str:
    found = [str(name) for (name,) in server.execute(f"SHOW TABLES FROM {DATABASE}")]
    return table.name if table.name in found else next(n for n in found if n.startswith(f"{table.name[:9]}r"))


def _more_rows(copy: Copy, random: Random, table: Present, numbers: range) -> None:
    """Rows before the statement of this round, and after that of the round before."""
    before = Counter(rows(copy.server, table))
    filled.insert(copy.server, random, table, numbers)
    found = Counter(rows(copy.server, table)) - before
    copy.inserted(table, list(found.elements()), copy.server.ts())
