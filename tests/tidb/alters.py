"""Statements drawn at random for a table as it is now. The server refuses some of them: then another is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from tests.tidb.dialect import Clause
from tests.tidb.filled import ODD
from tests.tidb.present import DATABASE, Present, SourceField, mysql_type
from tests.tidb.values import any_type, literal, near_type
from tidelake.history.ddl.column_types import MysqlType
from tidelake.query.verify.cell_texts import quoted

_OF_A_KIND = 8  # statements of a kind that are tried before another kind is drawn
OWN_DEFAULTS = {  # literals that need more than reading: rounded, converted, shortened
    "integers": ["'7'", "TRUE", "FALSE", "1.5", "'2.5'", "b'101'", "0x41", "1e1", "-0", "'-3'", "+4"],
    "decimal": ["'1.005'", "1e-1", "2.5", "TRUE", "'-0'", "0x10", "12.34567"],
    "floats": ["'0.1'", "1e10", "-0.0", "0.30000000000000004", "TRUE", "16777217"],
    "moments": ["'2026-1-5'", "'20260105'", "20260105", "'2026-01-05T10:00:00'", "'2026-01-05 10:00:00.999999'", "'26-01-05'", "'10:00'"],
    "texts": ["''", "'it''s'", '"quoted"', "'a\\nb'", "5", "1.50", "x'41'", "_utf8mb4'é'", "'trailing  '", "TRUE", "N'n'"],
    "bytes": ["'a'", "0x00ff", "b'1'", "''", "'é'", "x'61ff'"],
    "members": ["'X'", "1", "'a,b'", "'b,a'", "''", "2"],
    "bit": ["b'1'", "1", "'1'", "0x1", "TRUE"],
}


def statements(random: Random, table: Present) -> Iterator[tuple[str, str]]:
    """(its kind, the statement), some of each kind, without end."""
    every, weights = CLAUSES | table.dialect.more, _WEIGHTS | table.dialect.weights
    weighted = [kind for kind in every for _ in range(weights.get(kind, 1))]
    while True:
        kind = random.choice(weighted)
        for _ in range(_OF_A_KIND):
            yield kind, every[kind](random, table)


def alter(table: Present, clause: str) -> str:
    """An ALTER TABLE."""
    return f"ALTER TABLE {table.sql} {clause}"


def _default(random: Random, mysql: MysqlType) -> str:
    """A default that this type can have, mostly."""
    own = OWN_DEFAULTS.get(_family(mysql), [])
    return random.choice(own) if own and random.random() < 0.5 else literal(random, mysql, "words")


def _family(mysql: MysqlType) -> str:
    if mysql.elements is not None:
        return "members"
    words = {"bit": "bit", "decimal": "decimal", "float": "floats", "double": "floats", "char": "texts", "varchar": "texts"}
    if mysql.word in ("date", "datetime", "timestamp", "time"):
        return "moments"
    if mysql.word in ("tinyint", "smallint", "mediumint", "int", "bigint", "year"):
        return "integers"
    return "bytes" if mysql.word in ("binary", "varbinary") else words.get(mysql.word, "")


def _definition(random: Random, sql: str, mysql: MysqlType) -> str:
    null = random.choice(["", "NULL", "NOT NULL", "NOT NULL"])
    if mysql.word == "vector":
        null = "NULL"  # TiDB cannot read older rows of a NOT NULL column of three dimensions
    default = f"DEFAULT {_default(random, mysql)}" if random.random() < 0.6 and _family(mysql) else ""
    if not default and null != "NOT NULL" and random.random() < 0.2:
        default = "DEFAULT NULL"
    comment = "COMMENT 'it''s, new'" if random.random() < 0.1 else ""
    return " ".join(filter(None, [sql, null, default, comment]))


def position(random: Random, table: Present) -> str:
    """Where a column goes: never after a virtual one, which has no place in the lake."""
    return random.choice(["", "", "FIRST", f"AFTER {quoted(random.choice(table.sent).name)}"])


def fresh(random: Random, table: Present) -> str:
    """A name that no column has, quoted."""
    taken = {f.name.lower() for f in table.fields}
    return quoted(next(n for n in [random.choice(ODD), *(f"n{i}" for i in range(99))] if n.lower() not in taken))


def added(random: Random, table: Present) -> str:
    """The definition of a column that the table does not have."""
    sql = any_type(random, table.dialect.families)
    return f"{fresh(random, table)} {_definition(random, sql, mysql_type(sql))}"


def _add(random: Random, table: Present) -> str:
    return alter(table, f"ADD COLUMN {added(random, table)} {position(random, table)}")


def _add_generated(random: Random, table: Present) -> str:
    of = random.choice(table.fields)
    how = random.choice([f"BIGINT AS (CHAR_LENGTH({quoted(of.name)}))", f"VARCHAR(99) AS (CONCAT('<', {quoted(of.name)}, '>'))"])
    return alter(table, f"ADD COLUMN {fresh(random, table)} {how} {random.choice(['', 'VIRTUAL', 'STORED'])}")


def ordinary(random: Random, table: Present, *, with_key: float = 0.15) -> SourceField:
    """A column to change, seldom one of the key."""
    key = random.random() < with_key
    fit = [f for f in table.fields if f.key is key and not f.generated]
    return random.choice(fit or list(table.fields))


def _drop(random: Random, table: Present) -> str:
    return alter(table, f"DROP COLUMN {quoted(ordinary(random, table).name)}")


def modified(random: Random, table: Present, field: SourceField) -> str:
    """Another definition of a column, without its name."""
    has = table.dialect.families
    sql = random.choice([field.sql, near_type(random, field.type, has), near_type(random, field.type, has), any_type(random, has)])
    null = random.choice(["", "NOT NULL"]) if field.nullable else random.choice(["NOT NULL", "NOT NULL", "NULL"])
    mysql = mysql_type(sql)
    default = f"DEFAULT {_default(random, mysql)}" if random.random() < 0.2 and _family(mysql) else ""
    return " ".join(filter(None, [sql, null, default]))


def _modify(random: Random, table: Present) -> str:
    field = ordinary(random, table)
    return alter(table, f"MODIFY COLUMN {quoted(field.name)} {modified(random, table, field)} {position(random, table)}")


def _change(random: Random, table: Present) -> str:
    field = ordinary(random, table)
    return alter(table, f"CHANGE {quoted(field.name)} {fresh(random, table)} {modified(random, table, field)}")


def _rename(random: Random, table: Present) -> str:
    return alter(table, f"RENAME COLUMN {quoted(random.choice(table.fields).name)} TO {fresh(random, table)}")


def _set_default(random: Random, table: Present) -> str:
    field = ordinary(random, table, with_key=0)
    how = "DROP DEFAULT" if random.random() < 0.4 else f"SET DEFAULT {_default(random, field.type)}"
    return alter(table, f"ALTER COLUMN {quoted(field.name)} {how}")


def _add_index(random: Random, table: Present) -> str:
    names = ", ".join(quoted(f.name) for f in random.sample(table.fields, k=random.choice([1, 2])))
    return alter(table, f"ADD {random.choice(['INDEX', 'UNIQUE INDEX', 'KEY'])} `i{random.randrange(99)}` ({names})")


def _drop_index(random: Random, table: Present) -> str:
    return alter(table, f"DROP INDEX {quoted(random.choice(table.indexes or ('none',)))}")


def _rename_index(random: Random, table: Present) -> str:
    return alter(table, f"RENAME INDEX {quoted(random.choice(table.indexes or ('none',)))} TO `j{random.randrange(99)}`")


def _key(random: Random, table: Present) -> str:
    names = ", ".join(quoted(f.name) for f in random.sample(table.fields, k=random.choice([1, 1, 2])))
    add, drop = f"ADD PRIMARY KEY ({names}){table.dialect.primary}", f"DROP INDEX {quoted(random.choice(table.indexes or ('none',)))}"
    return alter(table, random.choice([add, f"ADD UNIQUE INDEX `u` ({names}), DROP PRIMARY KEY", f"{drop}, {add}", "DROP PRIMARY KEY"]))


def _charset(random: Random, table: Present) -> str:
    to = random.choice(table.dialect.charsets)
    return alter(table, random.choice([f"CONVERT TO CHARACTER SET {to}", f"DEFAULT CHARACTER SET {to}"]))


def _options(random: Random, table: Present) -> str:
    return alter(table, random.choice(table.dialect.options))


def _partition(random: Random, table: Present) -> str:
    part = quoted(random.choice(table.partitions or ("none",)))
    clauses = [
        f"DROP PARTITION {part}",
        f"TRUNCATE PARTITION {part}",
        "ADD PARTITION (PARTITION `p9` VALUES LESS THAN (1000))",
        "ADD PARTITION (PARTITION `p9` VALUES IN (900, 901))",
        "ADD PARTITION PARTITIONS 1",
        "COALESCE PARTITION 1",
        "ADD PARTITION (PARTITION `p9` VALUES IN ((900,'2026-01-01'),(901,'2026-01-02')))",
        "REORGANIZE PARTITION `p0`, `p1` INTO (PARTITION `q` VALUES LESS THAN (8))",
        "REORGANIZE PARTITION `p0`, `p1` INTO (PARTITION `q` VALUES LESS THAN ('2026-01-04',MAXVALUE))",
        "REORGANIZE PARTITION `p1` INTO (PARTITION `q1` VALUES LESS THAN (6), PARTITION `q2` VALUES LESS THAN (8))",
    ]
    return alter(table, random.choice(clauses))


def _repartition(random: Random, table: Present) -> str:
    return alter(table, random.choice(["REMOVE PARTITIONING", *(f"PARTITION BY {w}" for w in table.dialect.ways)]))


def _several(random: Random, table: Present) -> str:
    """Clauses about different columns."""
    one, other = random.sample(table.fields, k=2)
    clauses = [
        f"ADD COLUMN {added(random, table)}",
        f"MODIFY {quoted(one.name)} {modified(random, table, one)}",
        f"DROP COLUMN {quoted(other.name)}",
    ]
    clauses += [f"ADD INDEX `m{random.randrange(99)}` ({quoted(one.name)})", f"RENAME COLUMN {quoted(other.name)} TO `renamed`"]
    return alter(table, ", ".join(random.sample(clauses, k=2)))


def _rename_table(random: Random, table: Present) -> str:
    to = f"{DATABASE}.{quoted(f'{table.name[:9]}r{random.randrange(10**6)}')}"
    return random.choice([f"RENAME TABLE {table.sql} TO {to}", f"ALTER TABLE {table.sql} RENAME TO {to}"])


def _truncate(random: Random, table: Present) -> str:
    return f"TRUNCATE TABLE {table.sql}"


CLAUSES: Mapping[str, Clause] = {
    "add column": _add,
    "add generated column": _add_generated,
    "drop column": _drop,
    "modify column": _modify,
    "change column": _change,
    "rename column": _rename,
    "set default": _set_default,
    "add index": _add_index,
    "drop index": _drop_index,
    "rename index": _rename_index,
    "key": _key,
    "charset": _charset,
    "options": _options,
    "partitions": _partition,
    "repartition": _repartition,
    "several clauses": _several,
    "rename table": _rename_table,
    "truncate table": _truncate,
}
_WEIGHTS = {
    "add column": 12,
    "modify column": 24,
    "change column": 4,
    "several clauses": 4,
    "partitions": 4,
    "rename column": 2,
    "drop column": 2,
}
