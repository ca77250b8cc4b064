"""Tables PARTITION BY KEY: each row is in the partition that the rule names, and leaves the lake with it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from tests.tidb.copied import in_this_process
from tests.tidb.present import DATABASE, Present, SourceField, present
from tests.tidb.server import TiDB
from tests.tidb.truncated import HASHES, MOVES, truncated
from tests.tidb.values import literal
from tidelake.history.ddl.changes import CreateTable
from tidelake.history.ddl.column_types import lake_type
from tidelake.history.ddl.statement import parse
from tidelake.lake.columns.key_partitions import key_partitions
from tidelake.lake.opened import Lake
from tidelake.query.verify.cell_texts import quoted

SEED = 20261126
ROWS, MOST = 400, 9  # rows and partitions of a table
WHOLE = [f"{word}{sign}" for word in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT") for sign in ("", " UNSIGNED", " ZEROFILL")]
TYPES = [*WHOLE, "YEAR", "BINARY(1)", "BINARY(9)", "VARBINARY(20)"]
ODD = ["NULL", "''", "' '", "'a '", "'0'", "0", "1.5", "'1e2'", "-1", "X'00'", "X'6100'", "X'ff20'", "TRUE", "_utf8mb4'é '", "10/4"]
WAYS = ["KEY", "LINEAR KEY", "KEY ALGORITHM = 1", "KEY ALGORITHM = 2"]
ARROW = {"int": pa.int32(), "bigint": pa.int64(), "decimal(20,0)": pa.decimal128(20, 0), "binary": pa.binary()}


def test_every_row_is_in_the_partition_that_the_rule_names(tidb: TiDB) -> None:
    random, counted = Random(SEED), 0
    _empty(tidb)
    for number, first in enumerate(TYPES):
        types = [first, *random.sample(TYPES, k=number % 3)]
        partitions = random.randint(2, MOST)
        columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(types))
        order = random.sample(range(len(types)), k=len(types))
        by = f"{random.choice(WAYS)} ({', '.join(f'c{n}' for n in order)}) PARTITIONS {partitions}"
        tidb.execute(f"CREATE TABLE {DATABASE}.t{number} (nr INT, {columns}) PARTITION BY {by}")
        table = present(tidb, f"t{number}")
        _fill(tidb, random, table)
        counted += _checked(tidb, table, [f"c{n}" for n in order])
        tidb.execute(f"ALTER TABLE {table.sql} PARTITION BY KEY ({', '.join(f'c{n}' for n in order)}) PARTITIONS {partitions + 1}")
        _checked(tidb, present(tidb, table.name), [f"c{n}" for n in order])
    assert counted > ROWS * len(TYPES) // 2


def test_a_key_without_columns_is_the_primary_key(tidb: TiDB) -> None:
    _empty(tidb)
    tidb.execute(f"CREATE TABLE {DATABASE}.t (a INT, b BIGINT UNSIGNED, c YEAR, PRIMARY KEY (b, a)) PARTITION BY KEY () PARTITIONS 5")
    values = ",".join(f"({n - 50},{n * n},{2000 + n % 100})" for n in range(200))
    tidb.execute(f"INSERT INTO {DATABASE}.t VALUES {values}")
    assert _checked(tidb, present(tidb, "t"), ["b", "a"]) == 200


@pytest.mark.parametrize("moves", MOVES)
def test_the_rows_of_a_truncated_partition_leave_the_lake(
    moves: list[str], tidb: TiDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lake, "workers", in_this_process)
    _empty(tidb)
    made = {
        "one": "id INT PRIMARY KEY, v VARCHAR(9)) PARTITION BY KEY (id) PARTITIONS 3",
        "two": "id BIGINT UNSIGNED, b VARBINARY(20), v VARCHAR(9), PRIMARY KEY (b, id)) PARTITION BY KEY ()"
        " (PARTITION x, PARTITION p1, PARTITION z)",
        "none": "id SMALLINT, b BINARY(3), v VARCHAR(9)) PARTITION BY LINEAR KEY (b, id) PARTITIONS 4",
    }
    truncated(tidb, tmp_path, made | HASHES, moves)


def _empty(server: TiDB) -> None:
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}")


def _fill(server: TiDB, random: Random, table: Present) -> None:
    """Rows of values that fit and of values that the server converts, as it does without strict mode."""
    server.execute("SET sql_mode = ''")
    fields = table.fields[1:]
    drawn = []
    for n in range(ROWS):
        cells = [random.choice(ODD) if random.random() < 0.2 else literal(random, f.type, "words") for f in fields]
        drawn.append(f"({n},{','.join(cells)})")
    server.execute(f"INSERT IGNORE INTO {table.sql} VALUES {','.join(drawn)}")
    for n in range(ROWS // 8):
        f = random.choice(fields)
        server.execute(f"UPDATE IGNORE {table.sql} SET {f.name} = {literal(random, f.type, 'words')} WHERE nr = {n}")
    server.execute(f"INSERT INTO {table.sql} SELECT * FROM {table.sql} WHERE nr >= {ROWS - 50}", "SET sql_mode = DEFAULT")


def _checked(server: TiDB, table: Present, key: list[str]) -> int:
    """Compare each row's partition; the number of rows."""
    (made,) = parse(table.create, DATABASE)
    assert isinstance(made, CreateTable)
    assert made.definition is not None
    by = made.definition.partitioning
    assert by is not None
    assert by.kind == "key"
    assert [by.column, *by.others] in (key, [""])
    assert [p.name for p in by.partitions] == list(table.partitions)
    fields, counted = [table.field(name) for name in key], 0
    for number, part in enumerate(table.partitions):
        found = server.execute(f"SELECT {', '.join(f.cell for f in fields)} FROM {table.sql} PARTITION ({quoted(part)})")
        cells = [pa.array([_value(row[n], f) for row in found], ARROW[lake_type(f.type)]) for n, f in enumerate(fields)]
        if found:
            assert set(key_partitions(cells, len(table.partitions)).tolist()) == {number}, (table.create, found)
        counted += len(found)
    assert counted == int(server.execute(f"SELECT COUNT(*) FROM {table.sql}")[0][0])
    return counted


def _value(cell: bytes | str | None, field: SourceField) -> bytes | int | None:
    if cell is None:
        return None
    text = cell.decode() if isinstance(cell, bytes) else str(cell)
    return bytes.fromhex(text) if field.type.is_binary else int(text)
