"""Partitions of HASH and KEY that are truncated and change their number: a lake's tables beside the server's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.tidb.copied import copied
from tests.tidb.present import DATABASE, Present, Source, present, rows
from tidelake.config.table_name import written
from tidelake.query.asof import life_at

MOVES = [
    [],
    ["ADD PARTITION PARTITIONS 3", "TRUNCATE PARTITION p3"],
    ["ADD PARTITION (PARTITION y)", "TRUNCATE PARTITION y"],
    ["COALESCE PARTITION 1", "TRUNCATE PARTITION p1"],
    ["ADD PARTITION (PARTITION y)", "COALESCE PARTITION 2", "ADD PARTITION PARTITIONS 2", "TRUNCATE PARTITION p1"],
]
HASHES = {  # tables by HASH: what follows their name in CREATE TABLE; each has a partition p1
    "whole": "id INT PRIMARY KEY, v VARCHAR(9)) PARTITION BY HASH (id) PARTITIONS 3",
    "large": "id BIGINT UNSIGNED PRIMARY KEY, v VARCHAR(9)) PARTITION BY HASH (id) (PARTITION x, PARTITION p1, PARTITION z)",
    "signed": "id SMALLINT, v VARCHAR(9)) PARTITION BY HASH (id) PARTITIONS 4",
}
_FIRST, _MORE = range(100), range(100, 120)  # numbers of rows before the statements, and of those after each


def truncated(server: Source, folder: Path, made: Mapping[str, str], moves: Sequence[str]) -> None:
    """Truncate p1 of each table, then execute the clauses, with rows after each: the lake has the server's rows and partitions."""
    for name, definition in made.items():
        server.execute(f"CREATE TABLE {DATABASE}.{name} ({definition}")
    tables = [present(server, name) for name in made]
    for t in tables:
        _insert(server, t, _FIRST)
    with copied(server, folder, tables) as copy:
        stood = {t.name: len(rows(server, t)) for t in tables}
        for t in tables:
            for clause in ("TRUNCATE PARTITION p1", *moves):
                server.execute(f"ALTER TABLE {t.sql} {clause}")
                copy.executed(t.name, f"ALTER TABLE {t.sql} {clause}", server.ts())
            before = rows(server, t)
            _insert(server, t, _MORE)
            copy.inserted(t, [r for r in rows(server, t) if r not in before], server.ts())
        at = copy.publish()
        assert copy.why_not() == {}
        assert [copy.differences(t, at) for t in tables] == [[]] * len(tables)
        assert all(20 < len(rows(server, t)) < stood[t.name] + 20 for t in tables)
        for t in tables:
            by = life_at(copy.lake, written(DATABASE, t.name), at)[1].partitions
            assert by is not None
            assert tuple(p.name for p in by.parts) == present(server, t.name).partitions


def _insert(server: Source, table: Present, numbers: range) -> None:
    """Rows with these numbers: of a signed column every other one is negative, of BIGINT UNSIGNED beyond 63 bits."""
    has = {f.name: f.type.name for f in table.fields}
    for n in numbers:
        odd = {"bigint unsigned": 2**64 - n, "smallint": -n}.get(has["id"], n) if n % 2 else n
        cells = {"id": f"{odd}", "b": f"'{n % 7} '", "v": f"'v{n}'"}
        server.execute(f"INSERT INTO {table.sql} VALUES ({', '.join(cells[c] for c in has)})")
