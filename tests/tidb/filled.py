"""Tables drawn at random and filled: keys of all kinds, partitions, generated columns, odd names, values of all types."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random

from tests.tidb.present import DATABASE, Present, Source, SourceField, present
from tests.tidb.values import FLAVOURS, any_type, literal, string
from tidelake.query.verify.cell_texts import quoted

ODD = ("select", "a b", "Ünï", "日本", "A.B", "_offset", "q`q", "it's", "_commit_ts", "x__src", "C-1", "1st")
ROWS = 12
_TRIES = 3
_KEYS = {  # definitions of the key's columns, and what follows the columns
    "clustered": ("`id` BIGINT NOT NULL", "PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */"),
    "nonclustered": ("`id` INT UNSIGNED NOT NULL", "PRIMARY KEY (`id`) /*T![clustered_index] NONCLUSTERED */"),
    "auto random": ("`id` BIGINT AUTO_RANDOM(5) NOT NULL", "PRIMARY KEY (`id`) CLUSTERED"),
    "composite": ("`region` VARCHAR(20) COLLATE utf8mb4_general_ci NOT NULL,`id` INT NOT NULL", "PRIMARY KEY (`region`,`id`)"),
    "composite, nonclustered": ("`id` INT NOT NULL,`day` DATE NOT NULL", "PRIMARY KEY (`day`,`id`) NONCLUSTERED"),
    "text": ("`id` VARCHAR(20) COLLATE utf8mb4_bin NOT NULL", "PRIMARY KEY (`id`)"),
    "unique": ("`id` SMALLINT NOT NULL", "UNIQUE KEY `uk` (`id`)"),
    "none": ("`id` INT", ""),
    "range": ("`id` INT NOT NULL", "PRIMARY KEY (`id`)"),
    "range of dates": ("`id` INT NOT NULL,`day` DATE NOT NULL", "PRIMARY KEY (`id`,`day`)"),
    "range of two": ("`id` INT NOT NULL,`day` DATE NOT NULL", "PRIMARY KEY (`id`,`day`)"),
    "list": ("`id` INT NOT NULL", "PRIMARY KEY (`id`)"),
    "list of two": ("`id` INT NOT NULL,`day` DATE NOT NULL", "PRIMARY KEY (`id`,`day`)"),
    "hash": ("`id` INT NOT NULL", "PRIMARY KEY (`id`)"),
    "key": ("`id` INT NOT NULL", "PRIMARY KEY (`id`)"),
}


def _day(number: int) -> str:
    return f"'2026-01-0{1 + number % 5}'"


def _tuples(first: int, after: int) -> str:
    return ",".join(f"({n},{_day(n)})" for n in range(first, after))


_PARTITIONS = {
    "range": "RANGE (`id`) (PARTITION `p0` VALUES LESS THAN (4),PARTITION `p1` VALUES LESS THAN (8),PARTITION `p2` VALUES LESS THAN (100))",
    "range of dates": "RANGE COLUMNS (`day`) (PARTITION `p0` VALUES LESS THAN ('2026-01-04'),PARTITION `p1` VALUES LESS THAN (MAXVALUE))",
    "list": "LIST (`id`) (PARTITION `p0` VALUES IN (0,1,2,3,4),PARTITION `p1` VALUES IN (5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20))",
    "range of two": "RANGE COLUMNS (`day`,`id`) (PARTITION `p0` VALUES LESS THAN ('2026-01-03',7),PARTITION `p1` VALUES LESS THAN"
    " ('2026-01-04',MAXVALUE),PARTITION `p2` VALUES LESS THAN (MAXVALUE,MAXVALUE))",
    "list of two": f"LIST COLUMNS (`id`,`day`) (PARTITION `p0` VALUES IN ({_tuples(0, 7)}),PARTITION `p1` VALUES IN ({_tuples(7, 21)}))",
    "hash": "HASH (`id`) PARTITIONS 3",
    "key": "KEY (`id`) PARTITIONS 3",
}


def create(server: Source, random: Random, name: str) -> Present:
    """A table with rows."""
    key = random.choice(list(_KEYS))
    columns, constraint = _KEYS[key]
    taken = {"id", "region", "day"}
    made = [columns]
    for n in range(random.randint(3, 5)):
        column = random.choice(ODD) if random.random() < 0.2 else f"c{n}"
        if column not in taken:
            taken.add(column)
            made.append(f"{quoted(column)} {any_type(random)} {random.choice(['NULL', 'NULL', 'NOT NULL'])}")
    if random.random() < 0.25:
        made.append("`g` BIGINT AS (`id` + 1) VIRTUAL")
    if random.random() < 0.25:
        made.append("`s` VARCHAR(30) AS (CONCAT('#', `id`)) STORED")
    made += [constraint] * bool(constraint)
    by = f" PARTITION BY {_PARTITIONS[key]}" if key in _PARTITIONS else ""
    collation = random.choice(["", "", " COLLATE utf8mb4_general_ci", " COLLATE utf8mb4_unicode_ci"])
    server.execute(f"CREATE TABLE {DATABASE}.{quoted(name)} ({','.join(made)}){collation}{by}")
    table = present(server, name)
    insert(server, random, table, range(ROWS), zero_dates=random.random() < 0.3)
    return table


def insert(server: Source, random: Random, table: Present, numbers: range, *, zero_dates: bool = False) -> None:
    """Rows with these numbers as their `id`, in one statement each. The server refuses some of them: then others are drawn."""
    import pymysql

    flavours = {f.name: random.choice(FLAVOURS) for f in table.fields}
    server.execute(f"SET sql_mode = {string('' if zero_dates else 'STRICT_TRANS_TABLES')}")
    for number in numbers:
        for _ in range(_TRIES):
            with suppress(pymysql.Error):
                server.execute(insertion(random, table, number, flavours, zero_dates=zero_dates))
                break
    server.execute("SET sql_mode = DEFAULT")


def insertion(random: Random, table: Present, number: int, flavours: Mapping[str, str], *, zero_dates: bool = False) -> str:
    """An INSERT of one row. flavours: what the texts of each column look like."""
    given = [f for f in table.fields if not f.generated]
    cells = [_value(random, f, number, flavours[f.name], zero_dates) for f in given]
    return f"INSERT INTO {table.sql} ({','.join(quoted(f.name) for f in given)}) VALUES ({','.join(cells)})"


def _value(random: Random, field: SourceField, number: int, flavour: str, zero_dates: bool) -> str:
    if field.name == "id":
        return str(number)
    if field.name == "day":
        return _day(number)
    if field.name == "region":
        return string(["north", "North", "süd", ""][number % 4])
    if field.nullable and random.random() < 0.2:
        return "NULL"
    return literal(random, field.type, flavour, zero_dates=zero_dates)
