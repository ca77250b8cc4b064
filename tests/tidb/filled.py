"""Tables drawn at random and filled: keys of all kinds, partitions, generated columns, odd names, values of all types."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random

from tests.tidb.dialect import Dialect, day
from tests.tidb.present import DATABASE, Present, Source, SourceField, present
from tests.tidb.values import FLAVOURS, any_type, literal, string
from tidelake.query.verify.cell_texts import quoted

ODD = ("select", "a b", "Ünï", "日本", "A.B", "_offset", "q`q", "it's", "_commit_ts", "x__src", "C-1", "1st")
ROWS = 12
_TRIES = 3


def create(server: Source, random: Random, name: str) -> Present:
    """A table with rows. The server may refuse definitions: then others are drawn."""
    import pymysql

    while True:
        with suppress(pymysql.Error):
            server.execute(_definition(server.dialect, random, name))
            break
    table = present(server, name)
    insert(server, random, table, range(ROWS), zero_dates=random.random() < 0.3)
    return table


def _definition(has: Dialect, random: Random, name: str) -> str:
    key = random.choice(list(has.keys))
    columns, constraint = has.keys[key]
    taken = {"id", "region", "day"}
    made = [columns]
    for n in range(random.randint(3, 5)):
        column = random.choice(ODD) if random.random() < 0.2 else f"c{n}"
        if column not in taken:
            taken.add(column)
            made.append(f"{quoted(column)} {any_type(random, has.families)} {random.choice(['NULL', 'NULL', 'NOT NULL'])}")
    if random.random() < 0.25:
        made.append("`g` BIGINT AS (`id` + 1) VIRTUAL")
    if random.random() < 0.25:
        made.append("`s` VARCHAR(30) AS (CONCAT('#', `id`)) STORED")
    made += [constraint] * bool(constraint)
    by = f" PARTITION BY {has.partitions[key]}" if key in has.partitions else ""
    return f"CREATE TABLE {DATABASE}.{quoted(name)} ({','.join(made)}){random.choice(has.tails)}{by}"


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
        return day(number)
    if field.name == "region":
        return string(["north", "North", "süd", ""][number % 4])
    if field.nullable and random.random() < 0.2:
        return "NULL"
    return literal(random, field.type, flavour, zero_dates=zero_dates)
