"""DDL text → changes."""

from __future__ import annotations

import pytest

from tidelake.errors import ContractError
from tidelake.history.ddl.changes import (
    FIRST,
    AddColumn,
    AddPartitions,
    AddPrimary,
    AddUnique,
    Change,
    CoalescePartitions,
    ColumnDef,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropIndex,
    DropPrimary,
    DropTable,
    EmptyPartitions,
    ExchangePartition,
    Index,
    ModifyColumn,
    NoEffect,
    Partition,
    Partitioning,
    RecoverDatabase,
    RecoverTable,
    RenameColumn,
    RenameIndex,
    RenameTable,
    Repartition,
    ReplacePartitions,
    TableCharset,
    TableDef,
    TruncateTable,
    Unsupported,
)
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.statement import parse

T = ("db", "t")


def col(name: str, kind: str, **more: object) -> ColumnDef:
    return ColumnDef(name=name, type=MysqlType.parse(kind), **more)  # type: ignore[arg-type]


def one(query: str) -> Change:
    (change,) = parse(query, "db")
    return change


def created(query: str) -> TableDef:
    change = one(query)
    assert isinstance(change, CreateTable)
    assert change.definition is not None
    return change.definition


def test_a_table_with_everything_that_a_definition_may_hold() -> None:
    definition = created("""CREATE TABLE `t` (
        `id` BIGINT(20) NOT NULL /*T![auto_rand] AUTO_RANDOM(5) */ COMMENT 'the key, of course)',
        `name` VARCHAR(20) CHARACTER SET UTF8MB4 COLLATE utf8mb4_bin DEFAULT _UTF8MB4'it''s',
        `total` DECIMAL(10,2) UNSIGNED NOT NULL DEFAULT 1.5,
        `twice` DECIMAL(11,2) GENERATED ALWAYS AS (`total` * 2) VIRTUAL,
        `kept` INT AS (`id` % 10) STORED,
        `state` ENUM('a','b,c') NOT NULL,
        PRIMARY KEY (`id`) /*T![clustered_index] NONCLUSTERED */,
        UNIQUE KEY `u` (`state`, `kept`),
        CONSTRAINT `named` UNIQUE (`name`(10)),
        KEY `k` (`total` DESC), INDEX ((lower(`name`))), FULLTEXT INDEX `f` (`name`),
        VECTOR INDEX `v`((VEC_COSINE_DISTANCE(`x`))) USING HNSW,
        CONSTRAINT `fk` FOREIGN KEY (`kept`) REFERENCES `o` (`id`) ON DELETE CASCADE,
        CONSTRAINT CHECK (`total` > 0 AND (`kept` IN (1, 2)))
    ) ENGINE=InnoDB AUTO_INCREMENT=5 COMMENT='x, PRIMARY KEY (y)' PARTITION BY HASH (`id`) PARTITIONS 4""")
    assert definition == TableDef(
        columns=(
            col("id", "bigint", nullable=False, default="0"),
            col("name", "varchar(20)", default="it's"),
            col("total", "decimal(10,2) unsigned", nullable=False, default="1.50"),
            col("twice", "decimal(11,2)", virtual=True),
            col("kept", "int", default_known=False, stored=True),
            col("state", "enum('a','b,c')", nullable=False, default="a"),
        ),
        primary_key=("id",),
        unique=(Index(name="u", columns=("state", "kept")), Index(name="named", columns=("name",))),
        partitioning=Partitioning(kind="hash", column="id", partitions=tuple(Partition(name=f"p{n}", values=(str(n),)) for n in range(4))),
    )
    assert [c.name for c in definition.visible] == ["id", "name", "total", "kept", "state"]


@pytest.mark.parametrize(
    ("body", "handle"),
    [
        ("a INT, b INT", None),
        ("a INT PRIMARY KEY, b INT NOT NULL UNIQUE", ("PRIMARY", ("a",))),
        ("a INT, b INT, PRIMARY KEY (b, a), UNIQUE (a)", ("PRIMARY", ("b", "a"))),
        ("a INT, CONSTRAINT c PRIMARY KEY USING BTREE (A)", ("PRIMARY", ("A",))),
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE ab (a, b), UNIQUE b (b)", ("b", ("b",))),  # the fewest columns
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE x (a), UNIQUE y (b)", ("x", ("a",))),  # the lowest index id
        ("a INT NOT NULL UNIQUE, b INT NOT NULL, UNIQUE y (b)", ("y", ("b",))),  # a column's own index comes after the table's
        ("a INT NOT NULL, b INT, UNIQUE ab (a, b)", None),  # b may be NULL
        ("a INT, UNIQUE (a)", None),
        ("a INT NOT NULL, v INT AS (a) VIRTUAL NOT NULL, UNIQUE v (v), UNIQUE av (a, v)", None),  # v is never sent
        ("a INT NOT NULL, UNIQUE ((a + 1))", None),  # an expression
        ("a INT NOT NULL, UNIQUE KEY (a)", ("a", ("a",))),
        ("a INT NOT NULL, CONSTRAINT c UNIQUE INDEX (a)", ("c", ("a",))),
        ("a INT NOT NULL, CONSTRAINT c UNIQUE KEY d USING BTREE (a)", ("d", ("a",))),
        ("a SERIAL", ("a", ("a",))),
    ],
)
def test_the_handle_is_the_primary_key_or_the_smallest_unique_index_without_nulls(
    body: str, handle: tuple[str, tuple[str, ...]] | None
) -> None:
    found = created(f"CREATE TABLE t ({body})").handle
    assert (found and (found.name, found.columns)) == handle


def test_the_columns_of_the_primary_key_are_not_null() -> None:
    definition = created("CREATE TABLE t (a INT, `B` INT, c INT, PRIMARY KEY (a, b))")
    assert [c.nullable for c in definition.columns] == [False, False, True]


@pytest.mark.parametrize("charset", ["DEFAULT CHARACTER SET = BINARY", "COLLATE binary"])
def test_a_table_s_charset_may_make_its_text_binary(charset: str) -> None:
    query = f"CREATE TABLE t (a VARCHAR(5), b VARCHAR(5) CHARSET utf8mb4, c INT, d NCHAR(5), e CHAR(5) ASCII) {charset}"
    assert [c.type.sql for c in created(query).columns] == ["varbinary(5)", "varchar(5)", "int", "char(5)", "char(5)"]


CREATE = "CREATE TABLE t (a INT)"
TABLE = TableDef(columns=(col("a", "int"),))


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (CREATE, [CreateTable(*T, TABLE)]),
        ("create table if not exists `x.y`.`t` (a int);", [CreateTable("x.y", "t", TABLE, None, True)]),
        ("CREATE TABLE t (a INT) /* CREATE TABLE u (a INT) */ -- end", [CreateTable(*T, TABLE)]),
        ("CREATE TABLE t LIKE s", [CreateTable(*T, None, ("db", "s"))]),
        ("CREATE TABLE IF NOT EXISTS t (LIKE `o`.s)", [CreateTable(*T, None, ("o", "s"), True)]),
        ("CREATE TABLE t", [Unsupported(*T, "CREATE TABLE without columns")]),
        ("CREATE TABLE t SELECT 1", [CreateTable(*T, None)]),
        ("CREATE TABLE IF NOT EXISTS t AS (SELECT 1)", [CreateTable(*T, None, None, True)]),
        ("CREATE TABLE t (SELECT 1)", [CreateTable(*T, None)]),
        ("CREATE TABLE t (a INT) AS SELECT 1", [CreateTable(*T, None)]),
        ("CREATE OR REPLACE TABLE t (a INT)", [DropTable(*T, True), CreateTable(*T, TABLE)]),
        ("CREATE TEMPORARY TABLE t (a INT)", [NoEffect("db", "", "CREATE TEMPORARY TABLE")]),
        ("DROP TABLES t, u", [DropTable(*T), DropTable("db", "u")]),
        ("RENAME TABLES t TO u", [RenameTable(*T, "db", "u")]),
        ("DROP TABLE t", [DropTable(*T)]),
        ("drop table if exists t, `o`.`u`", [DropTable(*T, True), DropTable("o", "u", True)]),
        ("TRUNCATE TABLE `t`", [TruncateTable(*T)]),
        ("TRUNCATE o.t", [TruncateTable("o", "t")]),
        ("RENAME TABLE t TO u", [RenameTable(*T, "db", "u")]),
        (
            "RENAME TABLE a TO tmp, b TO a, tmp TO o.b",
            [RenameTable("db", "a", "db", "tmp"), RenameTable("db", "b", "db", "a"), RenameTable("db", "tmp", "o", "b")],
        ),
        ("DROP DATABASE IF EXISTS `o`", [DropDatabase("o", "")]),
        ("DROP SCHEMA o", [DropDatabase("o", "")]),
        ("CREATE INDEX i ON t (a)", [NoEffect(*T, "CREATE INDEX")]),
        (
            "CREATE UNIQUE INDEX IF NOT EXISTS u USING BTREE ON `o`.t (`a`, b(5))",
            [AddUnique("o", "t", Index(name="u", columns=("a", "b")))],
        ),
        ("CREATE FULLTEXT INDEX f ON t (a)", [NoEffect(*T, "CREATE INDEX")]),
        ("CREATE VECTOR INDEX v ON t ((VEC_L2_DISTANCE(a)))", [NoEffect(*T, "CREATE INDEX")]),
        ("DROP INDEX IF EXISTS i ON o.t", [DropIndex("o", "t", "i")]),
        ("CREATE DATABASE o", [NoEffect("db", "", "CREATE DATABASE")]),
        ("ALTER DATABASE o CHARACTER SET = utf8mb4", [NoEffect("db", "", "ALTER DATABASE")]),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", [NoEffect("db", "", "CREATE VIEW")]),
        ("DROP VIEW v", [NoEffect("db", "", "DROP VIEW")]),
        ("CREATE SEQUENCE s", [NoEffect("db", "", "CREATE SEQUENCE")]),
        ("ALTER PLACEMENT POLICY p", [NoEffect("db", "", "ALTER PLACEMENT POLICY")]),
        ("RECOVER TABLE t", [RecoverTable(*T)]),
        ("FLASHBACK TABLE o.t TO `u`", [RecoverTable("db", "u", ("o", "t"))]),
        ("RECOVER TABLE BY JOB 53", [Unsupported("db", "", "RECOVER TABLE BY JOB")]),
        ("FLASHBACK TABLE t TO TIMESTAMP '2026-01-01'", [Unsupported(*T, "FLASHBACK TABLE … TO TIMESTAMP")]),
        ("FLASHBACK TABLE t, u TO TIMESTAMP '2026-01-01'", [Unsupported(*T, "FLASHBACK TABLE … TO TIMESTAMP")]),
        ("FLASHBACK DATABASE o", [RecoverDatabase("o", "", "o")]),
        ("FLASHBACK SCHEMA o TO `p`", [RecoverDatabase("o", "", "p")]),
        ("FLASHBACK DATABASE o TO TIMESTAMP '2026-01-01'", [Unsupported("o", "", "FLASHBACK DATABASE … TO TIMESTAMP")]),
        ("FLASHBACK CLUSTER TO TIMESTAMP '2026-01-01'", [Unsupported("db", "", "FLASHBACK CLUSTER TO")]),
        ("INSERT INTO t VALUES (1)", [Unsupported("db", "", "INSERT INTO t")]),
        ("", [Unsupported("db", "", "")]),
        (";", [Unsupported("db", "", "")]),
        ("/* nothing */", [Unsupported("db", "", "")]),
    ],
)
def test_a_statement_is_the_list_of_its_changes(query: str, wanted: list[Change]) -> None:
    assert parse(query, "db") == wanted


OTHER_INDEX = NoEffect(*T, "ALTER TABLE … ADD INDEX or constraint")


def effect(what: str) -> NoEffect:
    return NoEffect(*T, f"ALTER TABLE … {what}")


def charset(what: str, *, binary: bool = False, converts: bool = False) -> TableCharset:
    return TableCharset(*T, f"ALTER TABLE … {what}", binary, converts)


HASHED = Partitioning(kind="hash", column="a", partitions=(Partition(name="p0", values=("0",)),))
TWO = (Partition(name="p0", values=("0",)), Partition(name="p1", values=("1",)))


def keyed(column: str, *others: str, parts: tuple[Partition, ...] = TWO) -> list[Change]:
    return [Repartition(*T, Partitioning(kind="key", column=column, others=others, partitions=parts))]


NAMED = (Partition(name="a", values=("0",)), Partition(name="b", values=("1",)))


def unsupported(what: str) -> Unsupported:
    return Unsupported(*T, f"ALTER TABLE … {what}")


@pytest.mark.parametrize(
    ("clauses", "wanted"),
    [
        # columns
        ("ADD COLUMN a INT", [AddColumn(*T, col("a", "int"))]),
        ("add a int default 5 after `b c`", [AddColumn(*T, col("a", "int", default="5"), "b c")]),
        ("ADD COLUMN IF NOT EXISTS a INT FIRST", [AddColumn(*T, col("a", "int"), FIRST)]),
        ("ADD COLUMN (a INT, b TEXT)", [AddColumn(*T, col("a", "int")), AddColumn(*T, col("b", "text"))]),
        ("ADD `key` INT, ADD `index` INT", [AddColumn(*T, col("key", "int")), AddColumn(*T, col("index", "int"))]),
        ("ADD vector VECTOR(3)", [AddColumn(*T, col("vector", "vector(3)"))]),
        ("DROP COLUMN a", [DropColumn(*T, "a")]),
        ("DROP a, DROP COLUMN IF EXISTS `b`", [DropColumn(*T, "a"), DropColumn(*T, "b", True)]),
        ("MODIFY COLUMN a BIGINT UNSIGNED FIRST", [ModifyColumn(*T, "a", col("a", "bigint unsigned"), FIRST)]),
        ("MODIFY a INT AFTER b", [ModifyColumn(*T, "a", col("a", "int"), "b")]),
        ("CHANGE COLUMN a `b` VARCHAR(5) NOT NULL", [ModifyColumn(*T, "a", col("b", "varchar(5)", nullable=False, default=""))]),
        ("CHANGE IF EXISTS a b INT", [ModifyColumn(*T, "a", col("b", "int"))]),
        ("RENAME COLUMN `a b` TO `c`", [RenameColumn(*T, "a b", "c")]),
        # several at once: later clauses see the new name
        ("ADD a INT, RENAME TO u, DROP b", [AddColumn(*T, col("a", "int")), RenameTable(*T, "db", "u"), DropColumn("db", "u", "b")]),
        ("ADD a INT, DROP COLUMN b, MODIFY c INT, ALGORITHM = INPLACE, LOCK=NONE", [
            AddColumn(*T, col("a", "int")),
            DropColumn(*T, "b"),
            ModifyColumn(*T, "c", col("c", "int")),
            effect("ALGORITHM = INPLACE"),
            effect("LOCK = NONE"),
        ]),
        # names
        ("RENAME u", [RenameTable(*T, "db", "u")]),
        ("RENAME AS `o`.`u`", [RenameTable(*T, "o", "u")]),
        ("RENAME = u", [RenameTable(*T, "db", "u")]),
        # indexes
        ("ADD UNIQUE u (a, b)", [AddUnique(*T, Index(name="u", columns=("a", "b")))]),
        ("ADD UNIQUE INDEX IF NOT EXISTS u (a)", [AddUnique(*T, Index(name="u", columns=("a",)))]),
        ("ADD CONSTRAINT c UNIQUE (a)", [AddUnique(*T, Index(name="c", columns=("a",)))]),
        ("ADD UNIQUE (a), ADD KEY k (b)", [AddUnique(*T, Index(name="a", columns=("a",))), OTHER_INDEX]),
        ("ADD VECTOR INDEX v ((VEC_L2_DISTANCE(a))) USING HNSW", [OTHER_INDEX]),
        ("ADD CHECK (a > 0)", [OTHER_INDEX]),
        ("DROP INDEX i, DROP KEY `k`", [DropIndex(*T, "i"), DropIndex(*T, "k")]),
        ("RENAME INDEX a TO b, RENAME KEY c TO d", [RenameIndex(*T, "a", "b"), RenameIndex(*T, "c", "d")]),
        ("ADD PRIMARY KEY (a)", [AddPrimary(*T, ("a",))]),
        ("ADD CONSTRAINT PRIMARY KEY USING BTREE (a, `b`(5))", [AddPrimary(*T, ("a", "b"))]),
        ("ADD COLUMN a INT PRIMARY KEY", [
            AddColumn(*T, col("a", "int", nullable=False, default="0", primary=True)),
            AddPrimary(*T, ("a",)),
        ]),
        ("ADD a INT UNIQUE", [AddColumn(*T, col("a", "int", unique=True)), AddUnique(*T, Index(name="a", columns=("a",)))]),
        ("DROP PRIMARY KEY", [DropPrimary(*T)]),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (a, b)", [AddPrimary(*T, ("a", "b"))]),
        # no row and no column changes
        ("ALTER COLUMN a SET DEFAULT 5", [effect("ALTER COLUMN a")]),
        ("ALTER a DROP DEFAULT", [effect("ALTER a DROP")]),
        ("ALTER INDEX i INVISIBLE", [effect("ALTER INDEX i")]),
        ("COMMENT = 'a, b', AUTO_INCREMENT = 5", [effect("COMMENT = a, b"), effect("AUTO_INCREMENT = 5")]),
        ("DEFAULT CHARACTER SET = utf8mb4", [charset("DEFAULT CHARACTER SET")]),
        ("CHARSET utf8mb4 COLLATE utf8mb4_bin, COMMENT 'c'", [charset("CHARSET utf8mb4 COLLATE"), effect("COMMENT c")]),
        ("DEFAULT COLLATE = binary", [charset("DEFAULT COLLATE =", binary=True)]),
        ("CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", [charset("CONVERT TO CHARACTER", converts=True)]),
        ("SET TIFLASH REPLICA 1", [effect("SET TIFLASH REPLICA")]),
        ("REMOVE TTL", [effect("REMOVE TTL")]),
        ("DROP FOREIGN KEY f, DROP CHECK c", [effect("DROP FOREIGN KEY"), effect("DROP CHECK c")]),
        ("DROP CONSTRAINT d", [effect("DROP CONSTRAINT d")]),
        ("PARTITION p ATTRIBUTES = 'x'", [effect("PARTITION p ATTRIBUTES")]),
        ("REBUILD PARTITION p", [effect("REBUILD PARTITION p")]),
        # no row leaves, all may move
        ("ADD PARTITION (PARTITION p VALUES LESS THAN (5))", [AddPartitions(*T, (Partition(name="p", below="5"),))]),
        ("ADD PARTITION PARTITIONS 4", [AddPartitions(*T, (), 4)]),
        ("ADD PARTITION NO_WRITE_TO_BINLOG PARTITIONS 4", [AddPartitions(*T, (), 4)]),
        ("ADD PARTITION PARTITIONS x", [AddPartitions(*T, (), 0)]),
        ("ADD PARTITION LOCAL (PARTITION a, PARTITION b)", [AddPartitions(*T, tuple(Partition(name=n, known=False) for n in "ab"))]),
        ("REORGANIZE PARTITION p, q INTO (PARTITION r VALUES LESS THAN (9))", [
            ReplacePartitions(*T, ("p", "q"), (Partition(name="r", below="9"),))
        ]),
        ("REORGANIZE PARTITION", [ReplacePartitions(*T, (), ())]),
        ("PARTITION BY HASH (a)", [Repartition(*T, HASHED)]),
        ("PARTITION BY LINEAR HASH (a)", [Repartition(*T, None)]),
        ("PARTITION BY KEY (a) PARTITIONS 2", keyed("a")),
        ("PARTITION BY KEY (a, `b c`) PARTITIONS 2", keyed("a", "b c")),
        ("PARTITION BY KEY () PARTITIONS 2", keyed("")),
        ("PARTITION BY LINEAR KEY ALGORITHM = 1 (a) PARTITIONS 2", keyed("a")),
        ("PARTITION BY KEY ALGORITHM=2 (`a`) (PARTITION a COMMENT = 'x, y', PARTITION b)", keyed("a", parts=NAMED)),
        ("PARTITION BY KEY (a) PARTITIONS 2 (PARTITION a, PARTITION b)", keyed("a", parts=NAMED)),
        ("PARTITION BY KEY (a)", keyed("a", parts=TWO[:1])),
        ("PARTITION BY KEY (a) PARTITIONS 3 (PARTITION a, PARTITION b)", [Repartition(*T, None)]),
        ("PARTITION BY KEY (a(3)) PARTITIONS 2", [Repartition(*T, None)]),
        ("PARTITION BY KEY (a) PARTITIONS 2 UPDATE INDEXES (i GLOBAL)", [Repartition(*T, None)]),
        ("REMOVE PARTITIONING", [Repartition(*T, None)]),
        ("COALESCE PARTITION 2", [CoalescePartitions(*T, 2)]),
        ("COALESCE PARTITION LOCAL 2", [CoalescePartitions(*T, 2)]),
        ("/*T![ttl] TTL = `a` + INTERVAL 1 DAY */", [NoEffect(*T, "ALTER TABLE")]),
        # rows that no event tells of
        ("DROP PARTITION p", [EmptyPartitions(*T, ("p",), True)]),
        ("TRUNCATE PARTITION p, q", [EmptyPartitions(*T, ("p", "q"))]),
        ("TRUNCATE PARTITION ALL", [EmptyPartitions(*T, ())]),
        ("EXCHANGE PARTITION p WITH TABLE u", [ExchangePartition(*T, "p", "db", "u")]),
        ("EXCHANGE PARTITION `p` WITH TABLE `o`.`u` WITHOUT VALIDATION", [ExchangePartition(*T, "p", "o", "u")]),
        ("EXCHANGE PARTITION p WITH TABLE u WITH VALIDATION", [ExchangePartition(*T, "p", "db", "u")]),
        ("CONVERT TO CHARACTER SET binary", [unsupported("CONVERT TO CHARACTER")]),
        ("ADD a INT, FROBNICATE, DROP b", [AddColumn(*T, col("a", "int")), unsupported("FROBNICATE , DROP")]),
    ],
)  # fmt: skip
def test_an_alter_is_the_list_of_its_clauses(clauses: str, wanted: list[Change]) -> None:
    assert parse(f"ALTER TABLE `db`.`t` {clauses}", "db") == wanted
    assert parse(f"alter table t {clauses};", "db") == wanted


def test_a_table_s_new_name_is_in_the_statement_s_database_whatever_the_old_one_s() -> None:
    assert parse("ALTER TABLE o.t RENAME u", "db") == [RenameTable("o", "t", "db", "u")]
    assert parse("RENAME TABLE o.t TO u", "db") == [RenameTable("o", "t", "db", "u")]


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE t (",
        "CREATE TABLE t (a INT",
        "CREATE TABLE t (a)",
        "CREATE TABLE t (a INT,)",
        "CREATE TABLE t (UNIQUE ())",
        "CREATE TABLE t (a INT, A TEXT)",
        "CREATE TABLE t (a INT, PRIMARY KEY (b))",
        "CREATE TABLE t (v INT AS (1), PRIMARY KEY (v))",
        "CREATE TABLE (a INT)",
        "DROP TABLE",
        "DROP TABLE t,",
        "RENAME TABLE t",
        "RENAME TABLE t u",
        "ALTER TABLE",
        "ALTER TABLE t ADD",
        "ALTER TABLE t ADD COLUMN a INT)",
        "ALTER TABLE t ADD COLUMN (a INT",
        "ALTER TABLE t RENAME COLUMN a b",
        "ALTER TABLE t ADD UNIQUE ()",
        "ALTER TABLE t ADD a INT; DROP TABLE t",
        "CREATE UNIQUE INDEX u",
        "CREATE UNIQUE INDEX u ON t ()",
        "DROP INDEX i",
        "'",
    ],
)
def test_half_a_statement_is_refused(query: str) -> None:
    with pytest.raises(ContractError):
        parse(query, "db")
