"""What a server has beside others: types, keys of tables, partitions, words and clauses of statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from tests.tidb.values import FAMILIES, Families

if TYPE_CHECKING:
    from tests.tidb.present import Present

Clause = Callable[[Random, "Present"], str]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """What random tables and statements of a server are made of.

    Attributes:
        families: Types.
        keys: Definitions of the key's columns, and what follows the columns, by the key's name.
        partitions: What follows PARTITION BY, by the key's name.
        tails: What follows a table's definition, and says the charset of its texts.
        primary: What follows ADD PRIMARY KEY (…).
        charsets: What CONVERT TO CHARACTER SET names.
        options: Clauses that change no row.
        ways: What follows PARTITION BY in ALTER TABLE.
        more: Statements that others do not have, by kind.
        weights: How often a kind is drawn, if not once.
        grows_text: Whether another charset may make a TEXT a MEDIUMTEXT. The statement does not say so, and the lake keeps the word.
    """

    families: Families = FAMILIES
    keys: Mapping[str, tuple[str, str]]
    partitions: Mapping[str, str]
    tails: Sequence[str]
    primary: str = ""
    charsets: Sequence[str]
    options: Sequence[str]
    ways: Sequence[str]
    more: Mapping[str, Clause] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    grows_text: bool = False


def day(number: int) -> str:
    """The `day` of a row, as SQL."""
    return f"'2026-01-0{1 + number % 5}'"


def _tuples(first: int, after: int) -> str:
    return ",".join(f"({n},{day(n)})" for n in range(first, after))


TEXT_KEY = ("`id` VARCHAR(20) COLLATE utf8mb4_bin NOT NULL", "PRIMARY KEY (`id`)")
COMPOSITE_KEY = ("`region` VARCHAR(20) COLLATE utf8mb4_general_ci NOT NULL,`id` INT NOT NULL", "PRIMARY KEY (`region`,`id`)")
UNIQUE_KEY, NO_KEY = ("`id` SMALLINT NOT NULL", "UNIQUE KEY `uk` (`id`)"), ("`id` INT", "")
_WHOLE, _DATED = ("`id` INT NOT NULL", "PRIMARY KEY (`id`)"), ("`id` INT NOT NULL,`day` DATE NOT NULL", "PRIMARY KEY (`id`,`day`)")
PARTITIONED_KEYS = {
    "range": _WHOLE,
    "range of dates": _DATED,
    "range of two": _DATED,
    "list": _WHOLE,
    "list of two": _DATED,
    "hash": _WHOLE,
    "key": _WHOLE,
}
PARTITIONS = {
    "range": "RANGE (`id`) (PARTITION `p0` VALUES LESS THAN (4),PARTITION `p1` VALUES LESS THAN (8),PARTITION `p2` VALUES LESS THAN (100))",
    "range of dates": "RANGE COLUMNS (`day`) (PARTITION `p0` VALUES LESS THAN ('2026-01-04'),PARTITION `p1` VALUES LESS THAN (MAXVALUE))",
    "list": "LIST (`id`) (PARTITION `p0` VALUES IN (0,1,2,3,4),PARTITION `p1` VALUES IN (5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20))",
    "range of two": "RANGE COLUMNS (`day`,`id`) (PARTITION `p0` VALUES LESS THAN ('2026-01-03',7),PARTITION `p1` VALUES LESS THAN"
    " ('2026-01-04',MAXVALUE),PARTITION `p2` VALUES LESS THAN (MAXVALUE,MAXVALUE))",
    "list of two": f"LIST COLUMNS (`id`,`day`) (PARTITION `p0` VALUES IN ({_tuples(0, 7)}),PARTITION `p1` VALUES IN ({_tuples(7, 21)}))",
    "hash": "HASH (`id`) PARTITIONS 3",
    "key": "KEY (`id`) PARTITIONS 3",
}
WAYS = (
    "HASH (`id`) PARTITIONS 2",
    "KEY (`id`) PARTITIONS 4",
    "RANGE (`id`) (PARTITION `a` VALUES LESS THAN (5), PARTITION `b` VALUES LESS THAN (MAXVALUE))",
)
TIDB = Dialect(
    keys={
        "clustered": ("`id` BIGINT NOT NULL", "PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */"),
        "nonclustered": ("`id` INT UNSIGNED NOT NULL", "PRIMARY KEY (`id`) /*T![clustered_index] NONCLUSTERED */"),
        "auto random": ("`id` BIGINT AUTO_RANDOM(5) NOT NULL", "PRIMARY KEY (`id`) CLUSTERED"),
        "composite": COMPOSITE_KEY,
        "composite, nonclustered": ("`id` INT NOT NULL,`day` DATE NOT NULL", "PRIMARY KEY (`day`,`id`) NONCLUSTERED"),
        "text": TEXT_KEY,
        "unique": UNIQUE_KEY,
        "none": NO_KEY,
        **PARTITIONED_KEYS,
    },
    partitions=PARTITIONS,
    tails=("", "", " COLLATE utf8mb4_general_ci", " COLLATE utf8mb4_unicode_ci"),
    primary=" NONCLUSTERED",
    charsets=("utf8mb4 COLLATE utf8mb4_bin", "utf8mb4 COLLATE utf8mb4_general_ci", "utf8mb4"),
    options=(
        "COMMENT = 'it''s'",
        "AUTO_ID_CACHE 100",
        "SHARD_ROW_ID_BITS = 2",
        "ALTER INDEX `uk` INVISIBLE",
        "AUTO_INCREMENT = 500",
        "AUTO_RANDOM_BASE = 900",
        "ADD CONSTRAINT `chk` CHECK (`id` > -9)",
        "ENGINE = InnoDB",
    ),
    ways=WAYS,
)
