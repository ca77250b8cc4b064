"""Statements of MySQL 8 on tables with rows: the lake's table holds what the server's does, or the statement is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidb.copied import copied, in_this_process
from tests.tidb.present import DATABASE, present, rows
from tests.upstream.mysql_source import MySQLSource
from tidelake.lake.opened import Lake

COLUMNS = {  # name: (type, two values)
    "id": ("INT PRIMARY KEY", "1", "2"),
    "a": ("VARCHAR(20)", "'a'", "'B '"),
    "n": ("DECIMAL(10,2)", "1.25", "-2.55"),
    "d": ("DATETIME(3)", "'2026-01-05 10:20:30.567'", "'2026-12-31 23:59:59.500'"),
    "e": ("ENUM('x','y')", "'x'", "'y'"),
    "t": ("TINYINT(1)", "1", "-3"),
    "j": ("JSON", "'{}'", "'[]'"),
    "f": ("FLOAT", "1.5", "0.1"),
    "ts": ("TIMESTAMP NULL", "'2026-01-05 10:20:30'", "'2026-01-05 10:20:31'"),
    "bl": ("BIT(9)", "5", "511"),
    "s": ("SET('p','q')", "'p,q'", "''"),
}
EQUAL = """ADD COLUMN c INT DEFAULT 5, ALGORITHM=INSTANT
ADD COLUMN c VARCHAR(9) COLLATE utf8mb4_0900_as_cs NOT NULL
ADD COLUMN c TIMESTAMP NOT NULL
ADD COLUMN c ENUM('z','w') NOT NULL
ADD COLUMN c YEAR DEFAULT 70
ADD COLUMN c JSON NOT NULL
ADD COLUMN c BINARY(4) NOT NULL
ADD COLUMN c BOOL NOT NULL DEFAULT TRUE
ADD COLUMN c FLOAT(25) DEFAULT 1.1
ADD COLUMN c NUMERIC(5,1) DEFAULT 1.25
ADD COLUMN (c INT, c2 INT DEFAULT 3)
ADD COLUMN c INT AS (id + 1) VIRTUAL
ADD INDEX k ((id + 1))
ADD INDEX k (a DESC) INVISIBLE
ADD CHECK (id > 0)
CHANGE a a2 VARCHAR(20) FIRST
CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_as_ci
CONVERT TO CHARACTER SET latin1
ENCRYPTION='N', STATS_PERSISTENT=0
MODIFY n INT
MODIFY t VARCHAR(5)
MODIFY e ENUM('y','x')
MODIFY s SET('p','q','r')
MODIFY f DOUBLE
MODIFY ts TIMESTAMP(3)
MODIFY id VARCHAR(20)
ALTER COLUMN a SET DEFAULT ('q')
DROP PRIMARY KEY, ADD PRIMARY KEY (id)""".splitlines()
REFUSED = """ADD COLUMN c SERIAL
ADD COLUMN c INT AUTO_INCREMENT, ADD INDEX (c)
ADD COLUMN c YEAR DEFAULT 0
ADD COLUMN c INT DEFAULT (1 + 6)
ADD COLUMN c JSON DEFAULT (JSON_ARRAY())
ADD COLUMN c DATETIME DEFAULT CURRENT_TIMESTAMP
ADD COLUMN c INT AS (id + 1) STORED
MODIFY j TEXT
MODIFY bl INT
MODIFY d DATETIME
RENAME COLUMN a TO n, RENAME COLUMN n TO a""".splitlines()


def test_a_statement_leaves_what_mysql_has_or_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pymysql", reason="needs PyMySQL, of the extra `mysql`")
    monkeypatch.setattr(Lake, "workers", in_this_process)
    columns = ", ".join(f"{name} {sql}" for name, (sql, *_) in COLUMNS.items())
    values = ", ".join(f"({', '.join(row)})" for row in zip(*(v for _, *v in COLUMNS.values()), strict=True))
    statements, done = {f"t{n}": s for n, s in enumerate([*EQUAL, *REFUSED])}, dict[int, str]()
    with MySQLSource() as server:
        server.execute(f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}")
        for name in statements:
            server.execute(f"CREATE TABLE {name} ({columns})", f"INSERT INTO {name} VALUES {values}, (3{', NULL' * (len(COLUMNS) - 1)})")
        with copied(server, tmp_path, [present(server, name) for name in statements]) as copy:
            for name, clause in statements.items():
                statement = f"ALTER TABLE {DATABASE}.{name} {clause}"
                server.execute(statement)
                done[server.ts()] = name
                copy.executed(name, statement, max(done))
                now = present(server, name)
                before = rows(server, now)
                server.execute("SET sql_mode = ''", f"INSERT INTO {name} (id) VALUES (9)", "SET sql_mode = DEFAULT")
                copy.inserted(now, [r for r in rows(server, now) if r not in before], server.ts())
            at = copy.publish()
            refused = [statements[done[ts]] for ts in sorted(copy.why_not())]
            assert refused == REFUSED
            tables = [present(server, name) for name, clause in statements.items() if clause in EQUAL]
            assert {statements[t.name]: d for t in tables if (d := copy.differences(t, at))} == {}
