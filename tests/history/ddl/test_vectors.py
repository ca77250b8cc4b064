"""Every statement of tests/data/vectors means what is written here by hand."""

from __future__ import annotations

from functools import cache

import pytest

from tests.protocols import vectors
from tidelake.history.ddl.changes import (
    FIRST,
    AddColumn,
    AddPartitions,
    AddPrimary,
    AddUnique,
    Change,
    ColumnDef,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropIndex,
    DropPrimary,
    DropTable,
    EmptyPartitions,
    Index,
    ModifyColumn,
    NoEffect,
    Partition,
    RenameIndex,
    RenameTable,
    TableCharset,
    TableDef,
    Unsupported,
)
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.statement import parse

T1, T3, X1, P1 = ("ddl_db", "t1"), ("ddl_db", "t3"), ("ddl_db", "x1"), ("ddl_db", "p1")


def col(name: str, kind: str, **more: object) -> ColumnDef:
    return ColumnDef(name=name, type=MysqlType.parse(kind), **more)  # type: ignore[arg-type]


def keyed(*names: str, column: str = "id") -> TableDef:
    """A table of one INT column that is its primary key, and others."""
    more = tuple(col(*name.split()) for name in names)
    return TableDef(columns=(col(column, "int", nullable=False, default="0", primary=True), *more), primary_key=(column,))


NO_COLUMNS = "CREATE TABLE without columns"
ORDERS = TableDef(
    columns=(
        col("id", "int", nullable=False, default="0", default_known=False, primary=True),
        col("name", "varchar(20)", default="it's"),
        col("d", "decimal(10,2)", nullable=False, default="1.50"),
    ),
    primary_key=("id",),
)
# (database of the event, statement) → its changes
MEANINGS: dict[tuple[str, str], list[Change]] = {
    # by the real encoders
    ("test", "CREATE TABLE `test`.`x` (`id` INT PRIMARY KEY)"): [CreateTable("test", "x", keyed())],
    ("ddl_db", "CREATE DATABASE `ddl_db` CHARACTER SET = utf8mb4"): [NoEffect("ddl_db", "", "CREATE DATABASE")],
    (
        "ddl_db",
        "CREATE TABLE `ddl_db`.`t1` (`id` INT PRIMARY KEY AUTO_INCREMENT,`name` VARCHAR(20) DEFAULT _UTF8MB4'it''s' COMMENT 'c\"x',"
        "`d` DECIMAL(10,2) NOT NULL DEFAULT 1.5,INDEX `idx_name`(`name`))",
    ): [CreateTable(*T1, ORDERS)],
    ("ddl_db", "CREATE TABLE `uq1` (`id` INT PRIMARY KEY)"): [CreateTable("ddl_db", "uq1", keyed())],
    ("ddl_db", "CREATE TABLE `ddl_db`.`t2` LIKE `ddl_db`.`t1`"): [CreateTable("ddl_db", "t2", None, T1)],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` ADD COLUMN `c1` VARCHAR(30) CHARACTER SET GBK DEFAULT _UTF8MB4'中'"): [
        AddColumn(*T1, col("c1", "varchar(30)", default="中"))
    ],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` ADD COLUMN `c0` BIGINT UNSIGNED NOT NULL DEFAULT 7 FIRST"): [
        AddColumn(*T1, col("c0", "bigint unsigned", nullable=False, default="7"), FIRST)
    ],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` MODIFY COLUMN `c0` INT"): [ModifyColumn(*T1, "c0", col("c0", "int"))],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` CHANGE COLUMN `c1` `c2` VARCHAR(30) CHARACTER SET GBK"): [
        ModifyColumn(*T1, "c1", col("c2", "varchar(30)"))
    ],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` ALTER COLUMN `d` SET DEFAULT 2.5"): [NoEffect(*T1, "ALTER TABLE … ALTER COLUMN d")],
    ("ddl_db", "CREATE INDEX `idx_c2` ON `ddl_db`.`t1` (`c2`, `d`)"): [NoEffect(*T1, "CREATE INDEX")],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` ADD UNIQUE `uk_d`(`d`)"): [AddUnique(*T1, Index(name="uk_d", columns=("d",)))],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` RENAME INDEX `idx_c2` TO `idx_c3`"): [RenameIndex(*T1, "idx_c2", "idx_c3")],
    ("ddl_db", "DROP INDEX `idx_c3` ON `ddl_db`.`t1`"): [DropIndex(*T1, "idx_c3")],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` ADD COLUMN `m1` INT, ADD COLUMN `m2` JSON, DROP COLUMN `c0`"): [
        AddColumn(*T1, col("m1", "int")),
        AddColumn(*T1, col("m2", "json")),
        DropColumn(*T1, "c0"),
    ],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` DROP COLUMN `m1`"): [DropColumn(*T1, "m1")],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t3` DEFAULT COLLATE = UTF8MB4_GENERAL_CI"): [TableCharset(*T3, "ALTER TABLE … DEFAULT COLLATE =")],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` /*T![auto_id_cache] AUTO_ID_CACHE = 100 */"): [NoEffect(*T1, "ALTER TABLE")],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t3`"): [NoEffect(*T3, "ALTER TABLE")],
    ("ddl_db", "ALTER TABLE `ddl_db`.`x1` ADD PRIMARY KEY(`a`) /*T![clustered_index] NONCLUSTERED */"): [AddPrimary(*X1, ("a",))],
    ("ddl_db", "ALTER TABLE `ddl_db`.`x1` ADD CONSTRAINT `fk1` FOREIGN KEY (`b`) REFERENCES `ddl_db`.`x0`(`id`)"): [
        NoEffect(*X1, "ALTER TABLE … ADD INDEX or constraint")
    ],
    ("ddl_db", "ALTER TABLE `ddl_db`.`x1` DROP FOREIGN KEY `fk1`"): [NoEffect(*X1, "ALTER TABLE … DROP FOREIGN KEY")],
    ("ddl_db", "ALTER TABLE `ddl_db`.`x1` DROP PRIMARY KEY"): [DropPrimary(*X1)],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1` ALTER INDEX `uk_d` INVISIBLE"): [NoEffect(*T1, "ALTER TABLE … ALTER INDEX uk_d")],
    ("ddl_db", "ALTER TABLE `ddl_db`.`p1` ADD PARTITION (PARTITION `p2` VALUES LESS THAN (30))"): [
        AddPartitions(*P1, (Partition(name="p2", below="30"),))
    ],
    ("ddl_db", "ALTER TABLE `ddl_db`.`p1` TRUNCATE PARTITION `p1a`"): [EmptyPartitions(*P1, ("p1a",))],
    ("ddl_db", "ALTER TABLE `ddl_db`.`p1` DROP PARTITION `p0`"): [EmptyPartitions(*P1, ("p0",), True)],
    ("ddl_db", "ALTER TABLE `ddl_db`.`t1_new` RENAME AS `ddl_db`.`t1_newer`"): [RenameTable("ddl_db", "t1_new", "ddl_db", "t1_newer")],
    (
        "ddl_db",
        "CREATE ALGORITHM = UNDEFINED DEFINER = CURRENT_USER SQL SECURITY DEFINER VIEW `ddl_db`.`v1` AS SELECT `id` FROM `ddl_db`.`t2`",
    ): [NoEffect("ddl_db", "", "CREATE VIEW")],
    ("ddl_db", "DROP VIEW `ddl_db`.`v1`"): [NoEffect("ddl_db", "", "DROP VIEW")],
    ("ddl_db", "ALTER DATABASE `ddl_db` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_general_ci"): [NoEffect("ddl_db", "", "ALTER DATABASE")],
    ("ddl_db", "DROP DATABASE `ddl_db`"): [DropDatabase("ddl_db", "")],
    # collected by hand
    ("a", "create table a"): [Unsupported("a", "a", NO_COLUMNS)],
    ("a", "create table b"): [Unsupported("a", "b", NO_COLUMNS)],
    ("a", "create table c"): [Unsupported("a", "c", NO_COLUMNS)],
    ("a", "create database a;"): [NoEffect("a", "", "CREATE DATABASE")],
    ("a", "drop database a;"): [DropDatabase("a", "")],
    ("a", "create table c(id int primary key);"): [CreateTable("a", "c", keyed())],
    ("test", "CREATE TABLE test.t1(id int primary key, val varchar(16))"): [CreateTable("test", "t1", keyed("val varchar(16)"))],
    ("test", "CREATE DATABASE `test`"): [NoEffect("test", "", "CREATE DATABASE")],
    ("test", "CREATE TABLE `test`.`t` (`id` INT PRIMARY KEY)"): [CreateTable("test", "t", keyed())],
    ("test", "drop database if exists test"): [DropDatabase("test", "")],
    ("test", "RENAME TABLE `test`.`t1` TO `test`.`t2`"): [RenameTable("test", "t1", "test", "t2")],
    ("simple", "ALTER TABLE `user` ADD COLUMN `createTime` TIMESTAMP"): [AddColumn("simple", "user", col("createTime", "timestamp(0)"))],
    ("test", "DROP TABLE test.table2"): [DropTable("test", "table2")],
}


@cache
def sent() -> frozenset[tuple[str, str]]:
    """Every (database of the event, statement) of the vectors, whatever the protocol."""
    events = [e for v in vectors.every() for e in v["expected"].get("events", [v["expected"]])]
    return frozenset((e["schema"], e["ddl"]["query"]) for e in events if e["type"] == "ddl")


def test_the_meaning_of_every_statement_of_the_vectors_is_written_down() -> None:
    assert sent() == set(MEANINGS)
    assert len(MEANINGS) == 45


@pytest.mark.parametrize(("database", "query"), MEANINGS)
def test_a_statement_means_what_is_written_down(database: str, query: str) -> None:
    assert parse(query, database) == MEANINGS[database, query]


@pytest.mark.parametrize(("database", "query"), MEANINGS)
def test_comments_and_a_semicolon_change_nothing(database: str, query: str) -> None:
    assert parse(f"/* one */ {query} ; -- done", database) == parse(query, database)
