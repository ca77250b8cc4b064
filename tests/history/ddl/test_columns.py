"""Column definitions, and what rows from before an added column hold in it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidelake.errors import ContractError
from tidelake.history.ddl.changes import FIRST, ColumnDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.columns import column_def, position
from tidelake.history.ddl.tokens import END, Cursor

LONG = "12345678901234567890123456789012345.123456789012345678901234567891"


def column(sql: str, **more: bool) -> ColumnDef:
    """The column that the whole text defines."""
    cursor = Cursor(f"`c` {sql}")
    found = column_def(cursor, **more)
    assert cursor.next is END
    return found


def plain(sql: str, **changes: object) -> ColumnDef:
    """A nullable column of this type, but for the changes."""
    return ColumnDef(**({"name": "c", "type": MysqlType.parse(sql)} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("INT", plain("int")),
        ("int(11) NULL", plain("int")),
        ("BIGINT(20) UNSIGNED NOT NULL", plain("bigint unsigned", nullable=False, default="0")),
        ("INT /* x */ UNSIGNED /* y */ ZEROFILL", plain("int unsigned")),
        ("DOUBLE\n\n  PRECISION", plain("double")),
        ("DECIMAL", plain("decimal(10,0)")),
        ("DECIMAL(12)", plain("decimal(12)")),
        ("BIT", plain("bit(1)")),
        ("CHAR", plain("char(1)")),
        ("BINARY", plain("binary(1)")),
        ("BINARY(4) NOT NULL", plain("binary(4)", nullable=False, default="00000000")),
        ("DATETIME", plain("datetime(0)")),
        ("TIMESTAMP(3)", plain("timestamp(3)")),
        ("TIME", plain("time(0)")),
        ("VARCHAR(5) CHARACTER SET gbk COLLATE gbk_bin", plain("varchar(5)")),
        ("NATIONAL CHARACTER VARYING(5)", plain("varchar(5)")),
        ("CHAR VARYING(5)", plain("varchar(5)")),
        ("VARCHAR(5) CHARACTER SET binary", plain("varbinary(5)")),
        ("CHAR(5) CHARSET = BINARY", plain("binary(5)")),
        ("TEXT CHARACTER SET binary NOT NULL", plain("blob", nullable=False, default="")),
        ("LONGTEXT CHARSET binary", plain("longblob")),
        ("VARCHAR(5) BINARY", plain("varchar(5)")),
        ("ENUM('a','b(','c)') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", plain("enum('a','b(','c)')")),
        ("SET('x,y', 'it''s')", plain("set('x,y','it''s')")),
        ("JSON", plain("json")),
        ("VECTOR(3) COMMENT 'v'", plain("vector(3)")),
        ("INT PRIMARY KEY", plain("int", nullable=False, default="0", primary=True)),
        ("INT KEY", plain("int", nullable=False, default="0", primary=True)),
        ("BIGINT AUTO_INCREMENT UNIQUE KEY", plain("bigint", default_known=False, unique=True)),
        ("INT UNIQUE COMMENT 'PRIMARY KEY, NOT NULL'", plain("int", unique=True)),
        ("BIGINT /*T![auto_rand] AUTO_RANDOM(5) */ NOT NULL", plain("bigint", nullable=False, default="0")),
        ("SERIAL", plain("bigint unsigned", nullable=False, default="0", default_known=False, unique=True)),
        ("INT AS (a + b)", plain("int", virtual=True)),
        ("INT AS (a) PERSISTENT", plain("int", default_known=False, stored=True)),  # MariaDB's word for STORED
        ("INT GENERATED ALWAYS AS (concat(')', `x`)) VIRTUAL NOT NULL", plain("int", virtual=True, nullable=False, default="0")),
        ("INT GENERATED ALWAYS AS (a) STORED", plain("int", default_known=False, stored=True)),
        ("INT REFERENCES `o` (`id`) ON DELETE SET NULL ON UPDATE CASCADE", plain("int")),
        ("INT CHECK (`c` > (1)) COLUMN_FORMAT FIXED", plain("int")),
        ("TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP", plain("timestamp(0)")),
        (
            "TIMESTAMP(6) NOT NULL DEFAULT '2020-01-01 00:00:00' ON UPDATE CURRENT_TIMESTAMP(6)",
            plain("timestamp(6)", nullable=False, default="2020-01-01 00:00:00.000000"),
        ),
    ],
)
def test_a_column_is_what_its_definition_says(sql: str, wanted: ColumnDef) -> None:
    assert column(sql) == wanted


def test_the_table_s_charset_makes_binary_what_names_no_other() -> None:
    assert column("VARCHAR(5)", binary=True) == plain("varbinary(5)")
    assert column("VARCHAR(5) CHARSET utf8mb4", binary=True) == plain("varchar(5)")
    assert column("VARCHAR(5) COLLATE utf8mb4_bin", binary=True) == plain("varchar(5)")
    assert column("INT", binary=True) == plain("int")


@pytest.mark.parametrize(
    ("sql", "default"),
    [
        # integers
        ("INT DEFAULT 7", "7"),
        ("INT DEFAULT -7", "-7"),
        ("INT DEFAULT +7", "7"),
        ("INT DEFAULT '7'", "7"),
        ("INT DEFAULT ' 7 '", "7"),
        ("INT DEFAULT 2.5", "3"),  # away from zero, as MySQL rounds
        ("INT DEFAULT -2.5", "-3"),
        ("INT DEFAULT 1e3", "1000"),
        ("INT DEFAULT x'0a'", "10"),
        ("BIGINT UNSIGNED NOT NULL DEFAULT 18446744073709551615", "18446744073709551615"),
        ("TINYINT(1) DEFAULT TRUE", "1"),
        ("TINYINT(1) DEFAULT false", "0"),
        ("BIT(8) DEFAULT b'101'", "5"),
        ("BIT(64) DEFAULT 0xffffffffffffffff", "18446744073709551615"),
        ("BIT(3) DEFAULT 5", "5"),
        ("YEAR DEFAULT 2024", "2024"),
        ("YEAR DEFAULT '69'", "2069"),
        ("YEAR DEFAULT 70", "1970"),
        ("YEAR DEFAULT '0'", "2000"),
        ("YEAR DEFAULT '0000'", "0"),
        # exact and approximate numbers
        ("DECIMAL(10,2) NOT NULL DEFAULT 1.5", "1.50"),
        ("DECIMAL(10,2) DEFAULT 1.005", "1.01"),
        ("DECIMAL(10,2) DEFAULT '-0.001'", "0.00"),
        ("DECIMAL(10) DEFAULT 12", "12"),
        (f"DECIMAL(65,30) DEFAULT {LONG}", LONG),
        ("DECIMAL(10,2) DEFAULT 0x10", "16.00"),
        ("FLOAT DEFAULT 0.1", "0.1"),
        ("DOUBLE DEFAULT 1e21", "1e+21"),
        ("DOUBLE DEFAULT -1.5", "-1.5"),
        ("DOUBLE DEFAULT '5e-324'", "5e-324"),
        # times
        ("DATE DEFAULT '2024-02-29'", "2024-02-29"),
        ("DATETIME DEFAULT '2024-02-29'", "2024-02-29 00:00:00"),
        ("DATETIME(3) DEFAULT '2024-02-29 10:11:12'", "2024-02-29 10:11:12.000"),
        ("DATETIME(3) DEFAULT '2024-02-29 10:11:12.5'", "2024-02-29 10:11:12.500"),
        ("DATETIME(1) DEFAULT '2024-02-29 10:11:12.5000'", "2024-02-29 10:11:12.5"),
        ("TIMESTAMP DEFAULT '0000-00-00 00:00:00'", "0000-00-00 00:00:00"),
        ("TIMESTAMP(6) DEFAULT 0", "0000-00-00 00:00:00.000000"),
        ("DATE DEFAULT 0", "0000-00-00"),
        ("TIME DEFAULT '-838:59:59'", "-838:59:59"),
        ("TIME(2) DEFAULT '10:11:12'", "10:11:12.00"),
        # text and bytes
        ("VARCHAR(20) DEFAULT _UTF8MB4'it''s'", "it's"),
        ('VARCHAR(20) DEFAULT "a\\\\b"', "a\\b"),
        ("VARCHAR(20) DEFAULT ''", ""),
        ("VARCHAR(20) DEFAULT 'NULL'", "NULL"),
        ("VARCHAR(20) DEFAULT 5", "5"),
        ("VARCHAR(20) DEFAULT -1.50", "-1.50"),
        ("VARCHAR(20) DEFAULT x'e4b8ad'", "中"),
        ("VARCHAR(20) DEFAULT N'wide'", "wide"),
        ("CHAR(5) DEFAULT 'ab  '", "ab"),
        ("VARCHAR(5) DEFAULT 'ab  '", "ab  "),
        ("VARBINARY(5) DEFAULT 'ab'", "6162"),
        ("VARBINARY(5) DEFAULT x'0061'", "0061"),
        ("VARBINARY(5) DEFAULT 0xf61", "0f61"),
        ("VARBINARY(5) DEFAULT b'100000000'", "0100"),
        ("VARBINARY(5) DEFAULT x''", ""),
        ("BINARY(4) DEFAULT 'ab'", "61620000"),
        ("BINARY(4) DEFAULT 0x61", "61000000"),
        ("VARCHAR(5) CHARACTER SET binary DEFAULT _BINARY'é'", "c3a9"),
        # members
        ("ENUM('a','b,c') DEFAULT 'b,c'", "b,c"),
        ("ENUM('A','b') DEFAULT 'a'", "A"),
        ("SET('a','b','c') DEFAULT 'c,A'", "a,c"),
        ("SET('a','b') DEFAULT ''", ""),
    ],
)
def test_older_rows_hold_the_default_as_canonical_text(sql: str, default: str) -> None:
    found = column(sql)
    assert (found.default, found.default_known) == (default, True)


@pytest.mark.parametrize(
    ("sql", "default"),
    [
        ("BIGINT UNSIGNED", "0"),
        ("YEAR", "0"),
        ("BIT(3)", "0"),
        ("DECIMAL(10,3)", "0.000"),
        ("DECIMAL(10)", "0"),
        ("FLOAT", "0.0"),
        ("DOUBLE", "0.0"),
        ("DATE", "0000-00-00"),
        ("DATETIME", "0000-00-00 00:00:00"),
        ("TIMESTAMP(3)", "0000-00-00 00:00:00.000"),
        ("TIME", "00:00:00"),
        ("TIME(2)", "00:00:00.00"),
        ("CHAR(3)", ""),
        ("LONGTEXT", ""),
        ("VARBINARY(3)", ""),
        ("BINARY(3)", "000000"),
        ("BLOB", ""),
        ("ENUM('b','a')", "b"),
        ("SET('b','a')", ""),
        ("JSON", "null"),
    ],
)
def test_older_rows_hold_the_type_s_zero_where_nothing_else_may_be(sql: str, default: str) -> None:
    needed = column(f"{sql} NOT NULL")
    assert (needed.default, needed.default_known) == (default, True)
    free = column(sql)
    assert (free.default, free.default_known) == (None, True)
    assert column(f"{sql} DEFAULT NULL").default is None


@pytest.mark.parametrize(
    "sql",
    [
        "TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
        "DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)",
        "DATETIME DEFAULT now()",
        "VARCHAR(36) DEFAULT (uuid())",
        "INT DEFAULT (1 + 1)",
        "BIGINT DEFAULT NEXT VALUE FOR `s`",
        "INT DEFAULT `other`",
        "INT AS (1) STORED",
        "DATETIME DEFAULT '2024-1-2'",
        "DATETIME DEFAULT '20240102'",
        "DATETIME DEFAULT 20240102030405",
        "DATETIME DEFAULT '2024-01-02 03:04:05.6'",
        "DATE DEFAULT '2024-01-02 03:04:05'",
        "TIME DEFAULT '10:11'",
        "TIME DEFAULT -10",
        "BIT(8) DEFAULT '5'",
        "ENUM('a') DEFAULT 1",
        "VECTOR(3) NOT NULL",
        "VARBINARY(5) DEFAULT x'00ff'",
        "BINARY(4) DEFAULT 0xff",
        "VARCHAR(9) DEFAULT 1e1",
        "VARCHAR(9) DEFAULT -0",
        "CHAR(9) DEFAULT 007",
        "VARBINARY(9) DEFAULT 1.",
        "BIT(8) DEFAULT 1.5",
        "BIT(8) DEFAULT 'many'",
        "YEAR DEFAULT 0",
        "YEAR DEFAULT '-0'",
        "FLOAT(8,2) DEFAULT 1.005",
        "DOUBLE(10,3) DEFAULT '2.0005'",
    ],
)
def test_what_older_rows_hold_is_unknown_where_it_is_not_written_down(sql: str) -> None:
    found = column(sql)
    assert (found.default, found.default_known) == (None, False)


@pytest.mark.parametrize(
    ("sql", "literal", "kind"),
    [
        ("INT DEFAULT 'many'", "many", "int"),
        ("INT DEFAULT 'nan'", "nan", "int"),
        ("INT DEFAULT 'Infinity'", "Infinity", "int"),
        ("INT DEFAULT 1e999999999", "1e999999999", "int"),
        ("DECIMAL(3,1) DEFAULT 'x'", "x", "decimal(3,1)"),
        ("DOUBLE DEFAULT 1e400", "1e400", "double"),
        ("DOUBLE DEFAULT 'inf'", "inf", "double"),
        ("VARCHAR(5) DEFAULT 0xff", "ff", "varchar(5)"),
        ("ENUM('a') DEFAULT 'b'", "b", "enum('a')"),
        ("SET('a') DEFAULT 'a,b'", "a,b", "set('a')"),
    ],
)
def test_a_default_that_is_no_value_of_the_type_is_refused(sql: str, literal: str, kind: str) -> None:
    with pytest.raises(ContractError) as error:
        column(sql)
    assert error.value.message == f"column 'c': {literal!r} is no default for {kind}"


@pytest.mark.parametrize(
    "sql", ["", "`int`", "'int'", "(5)", "INT(5", "DECIMAL()", "ENUM()", "INT DEFAULT", "INT AS", "VARCHAR(5) CHARSET"]
)
def test_half_a_definition_is_refused(sql: str) -> None:
    with pytest.raises(ContractError):
        column(sql)


@pytest.mark.parametrize("name", ["first", "after", "default", "a b", "a.b", "a`b", "列", "😀", "PRIMARY", "1st", " "])
def test_a_column_may_have_any_name_in_back_quotes(name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    found = column_def(Cursor(f"{quoted} INT DEFAULT 5 AFTER {quoted}"))
    assert (found.name, found.type.word, found.default) == (name, "int", "5")


@pytest.mark.parametrize(("sql", "after"), [("FIRST", FIRST), ("AFTER `b c`", "b c"), ("AFTER after", "after"), ("", None), (", x", None)])
def test_a_position_follows_the_definition(sql: str, after: str | None) -> None:
    cursor = Cursor(f"c INT NOT NULL {sql}")
    column_def(cursor)
    assert position(cursor) == after


@given(st.integers(-(1 << 63), (1 << 64) - 1))
def test_any_integer_default_is_its_digits(n: int) -> None:
    assert column(f"BIGINT DEFAULT {n}").default == str(n)


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1.7976931348623157e308)
@example(-5e-324)
def test_any_double_default_is_the_shortest_text_of_the_same_number(x: float) -> None:
    found = column(f"DOUBLE DEFAULT {x!r}").default
    assert found is not None
    assert struct.pack("<d", float(found) + 0.0) == struct.pack("<d", x + 0.0)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_default_is_itself(text: str) -> None:
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
    assert column(f"VARCHAR(200) DEFAULT {quoted}").default == text
    assert column(f"VARBINARY(200) DEFAULT {quoted}").default == text.encode().hex()
