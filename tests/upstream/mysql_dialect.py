"""What MySQL 8 has: its tables, and statements that TiDB does not have."""

from __future__ import annotations

from random import Random

from tests.tidb.alters import added, alter, fresh, modified, ordinary, position
from tests.tidb.dialect import COMPOSITE_KEY, NO_KEY, PARTITIONED_KEYS, PARTITIONS, TEXT_KEY, UNIQUE_KEY, WAYS, Dialect
from tests.tidb.present import Present, SourceField
from tests.tidb.values import BITS, BYTES, ENUMS, EXACT, FLOATS, FOREIGN, MOMENTS, NUMBERS, TEXTS
from tidelake.query.verify.cell_texts import quoted

_LATIN = [f"{t} CHARACTER SET latin1" for t in ("CHAR(12)", "VARCHAR(40)", "TEXT", "ENUM('x','y','é')")]
_LATIN += ["VARCHAR(40) CHARACTER SET utf8", "VARCHAR(40) COLLATE utf8mb4_0900_as_cs", "NCHAR(9)"]
_EXPRESSIONS = ("(1 + 6)", "(UUID())", "(NOW())", "('x')", "(CONCAT('a', 'b'))", "(`id` + 1)", "CURRENT_TIMESTAMP", "(CURRENT_DATE)")
_COMPUTED = ("CHAR_LENGTH({})", "CONCAT('<', {}, '>')", "HEX({})", "LENGTH({})", "{}")
_YEARS = "RANGE (YEAR(`day`)) (PARTITION `p0` VALUES LESS THAN (2000),PARTITION `p1` VALUES LESS THAN MAXVALUE)"


def _generated(random: Random, table: Present) -> str:
    of = quoted(random.choice(table.fields).name)
    return f"{random.choice(['BIGINT', 'VARCHAR(200)', 'TEXT'])} AS ({random.choice(_COMPUTED).format(of)})"


def _add_generated(random: Random, table: Present) -> str:
    how = random.choice(["STORED", "STORED NOT NULL", "VIRTUAL", ""])
    return alter(table, f"ADD {fresh(random, table)} {_generated(random, table)} {how} {position(random, table)}")


def _modify_generated(random: Random, table: Present) -> str:
    """Another expression or type, or an ordinary column that is computed from now on, or one that no longer is."""
    field = random.choice([f for f in table.fields if f.generated] or table.fields)
    to = random.choice([f"{_generated(random, table)} STORED", f"{_generated(random, table)} VIRTUAL", modified(random, table, field)])
    return alter(table, f"CHANGE {quoted(field.name)} {random.choice([quoted(field.name), fresh(random, table)])} {to}")


def _expression_default(random: Random, table: Present) -> str:
    one = quoted(random.choice(table.fields).name)
    what, of = random.choice(_EXPRESSIONS), random.choice(["INT", "VARCHAR(40)", "DATETIME", "TEXT", "TIMESTAMP(3)", "DATE"])
    clauses = [f"ADD {fresh(random, table)} {of} DEFAULT {what}", f"ALTER {one} SET DEFAULT {what}", f"MODIFY {one} {of} DEFAULT {what}"]
    return alter(table, random.choice(clauses))


def _add_several(random: Random, table: Present) -> str:
    one, other = added(random, table), f"`more` {random.choice(['INT', 'TEXT', 'INT NOT NULL DEFAULT 7'])}"
    how = random.choice(["", ", ALGORITHM=INSTANT", ", ALGORITHM=COPY, LOCK=SHARED"])
    clauses = [f"ADD COLUMN ({one}, {other})", f"ADD {one}, ADD {other} FIRST", f"ADD {other}, RENAME COLUMN `id` TO `num`"]
    return alter(table, random.choice(clauses) + how)


def _move(random: Random, table: Present) -> str:
    """Columns that only change their order, or their names with one another."""
    a, b = random.sample([f for f in table.fields if not f.generated], k=2)
    swap = f"RENAME COLUMN {quoted(a.name)} TO {quoted(b.name)}, RENAME COLUMN {quoted(b.name)} TO {quoted(a.name)}"
    first, after = f"MODIFY {_as_is(a)} FIRST", f"MODIFY {_as_is(b)} AFTER {quoted(a.name)}"
    return alter(table, random.choice([first, after, f"{first}, {after}", swap]))


def _as_is(f: SourceField) -> str:
    return f"{quoted(f.name)} {f.sql} {'NULL' if f.nullable else 'NOT NULL'}"


def _some_index(random: Random, table: Present) -> str:
    one = quoted(random.choice(table.fields).name)
    parts = [f"{one}(1)", f"{one}(3) DESC", f"(LENGTH({one}))", "(`id` + 1)", f"{one} DESC"]
    return alter(table, f"ADD {random.choice(['INDEX', 'UNIQUE INDEX'])} `x{random.randrange(99)}` ({random.choice(parts)})")


def _key_column(random: Random, table: Present) -> str:
    """Statements about columns of the key."""
    key = ordinary(random, table, with_key=1)
    name = quoted(key.name)
    clauses = [f"DROP COLUMN {name}", f"DROP COLUMN {name}, ADD `nr` INT AUTO_INCREMENT PRIMARY KEY", f"MODIFY {name} {key.sql} NULL"]
    clauses += ["DROP PRIMARY KEY, ADD UNIQUE INDEX `was` (`id`)", f"CHANGE {name} `k` {modified(random, table, key)}"]
    return alter(table, random.choice(clauses))


def _more_partitions(random: Random, table: Present) -> str:
    one, *_ = table.partitions or ("none",)
    clauses = ["REBUILD PARTITION ALL", "TRUNCATE PARTITION ALL", f"OPTIMIZE PARTITION {quoted(one)}", f"TRUNCATE PARTITION {quoted(one)}"]
    return alter(table, random.choice(clauses))


MYSQL = Dialect(
    families=(
        NUMBERS,
        [*EXACT, "DECIMAL(6,2) ZEROFILL"],
        [*FLOATS, "FLOAT(8,2)"],
        MOMENTS,
        TEXTS,
        [*FOREIGN, *_LATIN],
        BYTES,
        BITS,
        ENUMS,
        ["JSON"],
    ),
    keys={
        "number": ("`id` BIGINT NOT NULL", "PRIMARY KEY (`id`)"),
        "unsigned": ("`id` INT UNSIGNED NOT NULL", "PRIMARY KEY (`id`)"),
        "auto increment": ("`id` BIGINT NOT NULL AUTO_INCREMENT", "PRIMARY KEY (`id`)"),
        "composite": COMPOSITE_KEY,
        "text": TEXT_KEY,
        "latin1": ("`id` VARCHAR(20) CHARACTER SET latin1 NOT NULL", "PRIMARY KEY (`id`)"),
        "unique": UNIQUE_KEY,
        "prefix": ("`id` VARCHAR(20) COLLATE utf8mb4_bin NOT NULL", "UNIQUE KEY `uk` (`id`(5) DESC)"),
        "two uniques": ("`id` INT NOT NULL,`day` DATE NOT NULL", "UNIQUE KEY `both` (`day`,`id`),UNIQUE KEY `uk` (`id`)"),
        "none": NO_KEY,
        **PARTITIONED_KEYS,
        "range of years": PARTITIONED_KEYS["range of dates"],
        "linear hash": PARTITIONED_KEYS["hash"],
        "subpartitions": PARTITIONED_KEYS["range of dates"],
    },
    partitions={
        **PARTITIONS,
        "range of years": _YEARS,
        "linear hash": "LINEAR HASH (`id`) PARTITIONS 3",
        "subpartitions": f"{_YEARS.replace(' (PARTITION', ' SUBPARTITION BY HASH (`id`) SUBPARTITIONS 2 (PARTITION', 1)}",
    },
    tails=("", "", " COLLATE utf8mb4_0900_as_cs", " COLLATE utf8mb4_unicode_ci", " CHARACTER SET latin1", " CHARACTER SET gbk"),
    charsets=("utf8mb4 COLLATE utf8mb4_bin", "utf8mb4 COLLATE utf8mb4_0900_as_ci", "utf8mb4", "latin1", "gbk", "utf8", "binary"),
    options=(
        "COMMENT = 'it''s'",
        "AUTO_INCREMENT = 500",
        "ALTER INDEX `uk` INVISIBLE",
        "ADD CONSTRAINT `chk` CHECK (`id` > -9)",
        "ENGINE = InnoDB",
        "FORCE",
        "ORDER BY `id`",
        "STATS_PERSISTENT = 0, ROW_FORMAT = COMPACT",
        "ALGORITHM = COPY",
        "ENCRYPTION = 'N', KEY_BLOCK_SIZE = 8",
    ),
    ways=(*WAYS, "LINEAR HASH (`id`) PARTITIONS 3", "HASH (`id` + 1) PARTITIONS 2"),
    more={
        "add computed column": _add_generated,
        "modify computed column": _modify_generated,
        "expression default": _expression_default,
        "add several columns": _add_several,
        "move columns": _move,
        "prefix index": _some_index,
        "column of the key": _key_column,
        "more partitions": _more_partitions,
    },
    grows_text=True,
    weights={"charset": 4, "add computed column": 3, "modify computed column": 4, "expression default": 2, "move columns": 2},
)
