"""tables.sql, ddl.jsonl, expectations: what is read, and what wrong files are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidelake.errors import ConfigError, ContractError
from tidelake.history.contract import Expectation, RecordedDdl, read_expectations, read_history_actions, read_recorded_ddl, read_tables
from tidelake.history.ddl.changes import ColumnDef, Index, TableDef
from tidelake.history.ddl.column_types import MysqlType

TABLES = """
-- the shop, as SHOW CREATE TABLE prints it; also: DROP TABLE x;
CREATE DATABASE IF NOT EXISTS `shop`;
USE `shop`;
CREATE TABLE `orders` (
  `id` bigint(20) unsigned NOT NULL /*T![auto_rand] AUTO_RANDOM(5) */,
  `note` varchar(20) DEFAULT 'a;b' COMMENT 'semicolon; and (parenthesis',
  `state` enum('new','paid, sent') NOT NULL,
  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin /*T! SHARD_ROW_ID_BITS=4 */;

/* a keyless one in another database */
CREATE TABLE IF NOT EXISTS `logs`.`Lines` (`line` text);
use other; create table t (a int not null, b int not null, unique key u (a, b), unique (b))
"""


def tables(folder: Path, text: str) -> None:
    (folder / "tables.sql").write_text(text, encoding="utf-8")


def refused_tables(folder: Path, text: str) -> str:
    """What the error says after the file's name."""
    tables(folder, text)
    with pytest.raises(ContractError) as error:
        read_tables(folder)
    assert error.value.exit_code == 2
    start = f"CONTRACT: {folder / 'tables.sql'}:"
    assert str(error.value).startswith(start)
    return str(error.value).removeprefix(start)


def test_the_tables_of_a_script_are_read_with_the_database_in_use(tmp_path: Path) -> None:
    tables(tmp_path, TABLES)
    found = read_tables(tmp_path)
    assert [(t.database, t.table) for t in found] == [("shop", "orders"), ("logs", "Lines"), ("other", "t")]
    assert found[0].definition == TableDef(
        columns=(
            ColumnDef(name="id", type=MysqlType("bigint", unsigned=True), nullable=False, default="0"),
            ColumnDef(name="note", type=MysqlType("varchar", length=20), default="a;b"),
            ColumnDef(name="state", type=MysqlType("enum", elements=("new", "paid, sent")), nullable=False, default="new"),
        ),
        primary_key=("id",),
    )
    assert found[1].definition.handle is None
    assert found[2].definition.handle == Index(name="b", columns=("b",))


def test_a_feed_may_say_nothing_about_its_tables(tmp_path: Path) -> None:
    assert read_tables(tmp_path) == []
    assert read_recorded_ddl(tmp_path) == []
    assert read_expectations(tmp_path) == []
    tables(tmp_path, "-- nothing yet\n")
    assert read_tables(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("USE a;\n\nDROP TABLE x;", "3: found 'DROP TABLE x'; only USE, CREATE DATABASE and CREATE TABLE with its columns belong here"),
        ("USE a;\nCREATE TABLE x LIKE y;", "2: found 'CREATE TABLE x LIKE y'; only USE, CREATE DATABASE and CREATE TABLE with its"),
        ("USE a;\nINSERT INTO x VALUES (1);", "2: found 'INSERT INTO x VALUES (1)'; only USE"),
        ("USE a; CREATE TABLE x AS SELECT 1;", "1: found 'CREATE TABLE x AS SELECT 1'; only USE"),
        ("CREATE TABLE x (a int);", "1: 'x' has no database; write USE `database`; first, or qualify the name"),
        ("USE a;\nCREATE TABLE x (\n  a int,\n  b nosuch(\n);", "2: the statement ends too early"),
        ("USE a;\nCREATE TABLE x (a int(x y);", "2: the statement ends too early"),
        ("USE a;\nCREATE TABLE x (a 'int');", "2: expected a type, found 'int' in"),
        ("USE a;\nCREATE TABLE x (a int, A int);", "2: column 'a' is defined twice in"),
        ("USE a;\nCREATE TABLE x (a int, PRIMARY KEY (b));", "2: the primary key names 'b', which is no stored column in"),
        ("USE a;\nCREATE TABLE x (a int DEFAULT 'many');", "2: column 'a': 'many' is no default for int"),
        ("USE a;\nCREATE TABLE x (a int);\n\nCREATE TABLE A.X (a int);", "4: A.X is defined twice"),
        ("USE;", "1: the statement ends too early: 'USE'"),
    ],
)
def test_a_wrong_script_is_told_with_line_and_statement(tmp_path: Path, text: str, said: str) -> None:
    assert refused_tables(tmp_path, text).startswith(said)


def test_the_line_is_that_of_the_statement_even_where_another_is_alike(tmp_path: Path) -> None:
    text = "USE a;\nCREATE TABLE b (c int);\nUSE d;\nCREATE TABLE b (c int);\nUSE a;\n\nCREATE TABLE b (c int);"
    assert refused_tables(tmp_path, text).startswith("7: a.b is defined twice")


def test_a_script_that_is_no_sql_is_told_with_the_file(tmp_path: Path) -> None:
    assert " not SQL from line 1 on: " in refused_tables(tmp_path, "USE a; CREATE TABLE x (`a int);")


def test_a_script_that_is_no_utf_8_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "tables.sql").write_bytes(b"USE \xff;")
    with pytest.raises(ContractError, match=r"tables\.sql: not readable as UTF-8 text: 'utf-8' codec can't decode byte 0xff"):
        read_tables(tmp_path)


def ddl(folder: Path, *lines: str) -> None:
    (folder / "ddl.jsonl").write_text("\n".join(lines), encoding="utf-8")


def statement(ts: object, query: object = "DROP TABLE x", database: object = "shop") -> str:
    return json.dumps({"commit_ts": ts, "database": database, "query": query})


def test_recorded_statements_are_read_in_order_of_their_commit_ts(tmp_path: Path) -> None:
    ddl(tmp_path, statement(7, "TRUNCATE x"), "", statement(3, "DROP TABLE `\u2028`"), statement(7, "DROP TABLE x"), "")
    assert read_recorded_ddl(tmp_path) == [
        RecordedDdl(commit_ts=3, database="shop", query="DROP TABLE `\u2028`"),
        RecordedDdl(commit_ts=7, database="shop", query="TRUNCATE x"),
        RecordedDdl(commit_ts=7, database="shop", query="DROP TABLE x"),
    ]


def test_a_line_separator_inside_a_statement_does_not_end_the_line(tmp_path: Path) -> None:
    ddl(tmp_path, '{"commit_ts": 1, "database": "shop", "query": "DROP TABLE `a\u2028b`"}')
    assert [d.query for d in read_recorded_ddl(tmp_path)] == ["DROP TABLE `a\u2028b`"]


WANTED = '; a line is {"commit_ts": TSO, "database": "…", "query": "…"}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", f"Expecting property name enclosed in double quotes: line 1 column 2 (char 1){WANTED}"),
        ('{"commit_ts": 1, "database": "x"}', f"query: missing{WANTED}"),
        ('{"database": "x", "query": "y"}', f"commit_ts: missing{WANTED}"),
        ("[1]", f"list indices must be integers or slices, not str{WANTED}"),
        ("null", f"'NoneType' object is not subscriptable{WANTED}"),
        ("[" * 100_000, "maximum recursion depth exceeded"),
        (statement("1"), f"members of a wrong type: {statement('1')}{WANTED}"),
        (statement(True), f"members of a wrong type: {statement(True)}{WANTED}"),
        (statement(1, None), f"members of a wrong type: {statement(1, None)}{WANTED}"),
        (statement(1, "DROP TABLE x", None), f"members of a wrong type: {statement(1, 'DROP TABLE x', None)}{WANTED}"),
        (statement(1, "DROP TABLE"), "the statement ends too early: 'DROP TABLE'"),
        (statement(1, "DROP TABLE a; DROP TABLE b"), "more than one statement: 'DROP TABLE a; DROP TABLE b'"),
    ],
    ids=range(12),
)
def test_a_wrong_recorded_statement_is_told_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    ddl(tmp_path, statement(1), "", line)
    with pytest.raises(ContractError) as error:
        read_recorded_ddl(tmp_path)
    assert str(error.value).startswith(f"CONTRACT: {tmp_path / 'ddl.jsonl'}:3: {said}")


def expectations(folder: Path, text: str, name: str = "shop.orders") -> Path:
    (folder / "expectations").mkdir(exist_ok=True)
    path = folder / "expectations" / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


RULE = '[[expect]]\ntype = "expect_column_values_to_not_be_null"\ncolumn = "id"\n'


def test_expectations_are_of_the_table_that_the_file_is_named_after(tmp_path: Path) -> None:
    path = expectations(tmp_path, RULE + 'severity = "warning"\nmostly = 0.9\n' + RULE)
    expectations(tmp_path, '[[expect]]\ntype = "unexpected_rows_expectation"\nunexpected_rows_query = "x"\n', "logs.a.b")
    expectations(tmp_path, "", "shop.empty")
    kind = "expect_column_values_to_not_be_null"
    assert read_expectations(tmp_path) == [
        Expectation(
            table="logs.`a.b`",
            type="unexpected_rows_expectation",
            arguments={"unexpected_rows_query": "x"},
            severity="critical",
            origin=f"{tmp_path / 'expectations' / 'logs.a.b.toml'}: [[expect]] 1",
        ),
        Expectation(
            table="shop.orders",
            type=kind,
            arguments={"column": "id", "mostly": 0.9},
            severity="warning",
            origin=f"{path}: [[expect]] 1",
        ),
        Expectation(table="shop.orders", type=kind, arguments={"column": "id"}, severity="critical", origin=f"{path}: [[expect]] 2"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("orders", RULE, ": the file's name must name the table; name it <database>.<table>.toml"),
        ("shop.orders", "x = [", ": not TOML: Invalid value (at end of document)"),
        ("shop.orders", "rules = 1", ": unknown keys ['rules']; a file holds [[expect]] tables"),
        ("shop.orders", "expect = 5", ": expect: found 5; a file holds [[expect]] tables"),
        ("shop.orders", "expect = [5]", ": expect: found [5]; a file holds [[expect]] tables"),
        ("shop.orders", "[expect]\ntype = 'x'", ": expect: found {'type': 'x'}; a file holds [[expect]] tables"),
        ("shop.orders", 'history = "critical"', ": history: found 'critical'; block, warn, ignore, or leave it out"),
        ("shop.orders", "history = []", ": history: found []; block, warn, ignore, or leave it out"),
        ("shop.orders", RULE + "[[expect]]\n", ": [[expect]] 2: type: found None; a Great Expectations type, such as expect_column"),
        ("shop.orders", '[[expect]]\ntype = "not_null"\n', ": [[expect]] 1: type: found 'not_null'; a Great Expectations type, such as"),
        ("shop.orders", RULE + 'severity = "fatal"\n', ": [[expect]] 1: severity: found 'fatal'; critical or warning"),
        ("shop.orders", RULE + "severity = []\n", ": [[expect]] 1: severity: found []; critical or warning"),
    ],
)
def test_a_wrong_expectation_is_told_with_file_number_and_key(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = expectations(tmp_path, text, name)
    with pytest.raises(ConfigError) as error:
        read_expectations(tmp_path)
    assert str(error.value).startswith(f"CONFIG: {path}{said}")


def test_a_file_of_expectations_decides_about_unusual_numbers_of_its_table(tmp_path: Path) -> None:
    assert read_history_actions(tmp_path) == {}
    expectations(tmp_path, 'history = "block"\n' + RULE)
    expectations(tmp_path, 'history = "ignore"\n', "logs.a.b")
    expectations(tmp_path, RULE, "shop.lines")
    assert read_history_actions(tmp_path) == {"shop.orders": "block", "logs.`a.b`": "ignore"}
    assert [e.table for e in read_expectations(tmp_path)] == ["shop.lines", "shop.orders"]
