"""MySQL types: from their text, to the lake's."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.config.policy import ValueRules
from tidelake.errors import ContractError
from tidelake.history.ddl.column_types import MysqlType, converts, lake_type

MEMBERS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1).map(tuple)


def typed(word: str, **more: object) -> MysqlType:
    return MysqlType(word, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("int", typed("int")),
        ("INT(11)", typed("int")),
        ("int(11) unsigned", typed("int", unsigned=True)),
        ("int unsigned", typed("int", unsigned=True)),
        ("Integer Unsigned ZeroFill", typed("int", unsigned=True)),
        ("int(5) zerofill", typed("int", unsigned=True)),
        ("int signed", typed("int")),
        ("bigint(20)unsigned", typed("bigint", unsigned=True)),
        ("int8", typed("bigint")),
        ("middleint", typed("mediumint")),
        ("tinyint(1)", typed("tinyint")),
        ("bool", typed("tinyint")),
        ("BOOLEAN", typed("tinyint")),
        ("year(4)", typed("year")),
        ("year unsigned", typed("year")),
        ("bit(64)", typed("bit", length=64)),
        ("bit unsigned", typed("bit")),
        ("decimal", typed("decimal")),
        ("decimal(10, 4)", typed("decimal", length=10, scale=4)),
        ("NUMERIC ( 10 , 4 ) UNSIGNED", typed("decimal", unsigned=True, length=10, scale=4)),
        ("fixed(3)", typed("decimal", length=3, scale=0)),
        ("float", typed("float")),
        ("float(7,3) unsigned", typed("float", unsigned=True, length=7, scale=3)),
        ("float(24)", typed("float")),
        ("float(25)", typed("double")),
        ("double precision unsigned", typed("double", unsigned=True)),
        ("real", typed("double")),
        ("char(5)", typed("char", length=5)),
        ("character varying(3)", typed("varchar", length=3)),
        ("national varchar(3)", typed("varchar", length=3)),
        ("varchar(20) binary", typed("varchar", length=20)),  # a collation, not bytes
        ("char binary", typed("char")),
        ("long varchar", typed("mediumtext")),
        ("varbinary", typed("varbinary")),
        ("binary", typed("binary")),
        ("varbinary(16)", typed("varbinary", length=16)),
        ("long varbinary", typed("mediumblob")),
        ("char byte", typed("binary")),
        ("datetime(6)", typed("datetime", length=6)),
        ("TIMESTAMP", typed("timestamp")),
        ("time(3)", typed("time", length=3)),
        ("json", typed("json")),
        ("TiDBVECTORFloat32", typed("vector")),
        ("VECTOR(768)", typed("vector", length=768)),
        ("\tbigint\n unsigned ", typed("bigint", unsigned=True)),
        ("enum", typed("enum")),
        ("enum('a')", typed("enum", elements=("a",))),
        ("ENUM('x,y','it''s','a)b(')", typed("enum", elements=("x,y", "it's", "a)b("))),
        (r"set('back\\slash','new\nline','q\'q')", typed("set", elements=("back\\slash", "new\nline", "q'q"))),
        ('enum("a","b""c","it\'s")', typed("enum", elements=("a", 'b"c', "it's"))),
        ("set('')", typed("set", elements=("",))),
        ("enum('中','👩‍🔧')", typed("enum", elements=("中", "👩‍🔧"))),
    ],
)
def test_a_type_is_read_from_its_text(text: str, wanted: MysqlType) -> None:
    assert MysqlType.parse(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "5",
        "int(",
        "int)",
        "int)(",
        "decimal()",
        "decimal(a)",
        "enum()",
        "enum(a)",
        "int(5) quick",
        "a-b",
        "int;",
        "int(99999999999)",
    ],
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(ContractError, match=r"^CONTRACT: not a MySQL type: " + re.escape(repr(text))):
        MysqlType.parse(text)


@given(st.text(alphabet="intea (),'\"\\5unsigned") | st.text())
def test_hostile_text_is_a_type_or_a_contract_error(text: str) -> None:
    try:
        parsed = MysqlType.parse(text)
    except ContractError:
        return
    assert MysqlType.parse(parsed.sql) == parsed


def test_a_length_of_many_digits_is_refused_before_it_is_read() -> None:
    with pytest.raises(ContractError):
        MysqlType.parse(f"varchar({'9' * 100_000})")


@given(st.sampled_from(["enum", "set"]), MEMBERS)
def test_members_of_any_characters_are_read_back(word: str, members: tuple[str, ...]) -> None:
    assert MysqlType.parse(MysqlType(word, elements=members).sql).elements == members


@pytest.mark.parametrize(
    ("text", "name", "sql"),
    [
        ("bigint(20) unsigned", "bigint unsigned", "bigint unsigned"),
        ("decimal(10,4) unsigned", "decimal unsigned", "decimal(10,4) unsigned"),
        ("decimal(10)", "decimal", "decimal(10,0)"),
        ("decimal", "decimal", "decimal"),
        ("datetime(6)", "datetime", "datetime(6)"),
        ("enum('a','b''c')", "enum", "enum('a','b''c')"),
        ("varbinary(16)", "varbinary", "varbinary(16)"),
        ("int(6) zerofill", "int unsigned", "int unsigned zerofill"),
        ("decimal(6,2) unsigned zerofill", "decimal unsigned", "decimal(6,2) unsigned zerofill"),
    ],
)
def test_a_type_has_the_protocols_word_and_sql_that_reads_back(text: str, name: str, sql: str) -> None:
    parsed = MysqlType.parse(text)
    assert (parsed.name, parsed.sql) == (name, sql)
    assert MysqlType.parse(sql) == parsed


@pytest.mark.parametrize(
    ("text", "lake"),
    [
        ("tinyint", "int"),
        ("tinyint unsigned", "int"),
        ("smallint unsigned", "int"),
        ("mediumint unsigned", "int"),
        ("int", "int"),
        ("int unsigned", "bigint"),
        ("bigint", "bigint"),
        ("bigint unsigned", "decimal(20,0)"),
        ("year", "int"),
        ("bit(1)", "bigint"),
        ("bit(63)", "bigint"),
        ("bit(64)", "decimal(20,0)"),
        ("bit", "decimal(20,0)"),  # a protocol's bare word: any length
        ("decimal(10,4)", "decimal(10,4)"),
        ("decimal(38,38)", "decimal(38,38)"),
        ("decimal(12)", "decimal(12,0)"),
        ("decimal(39,4)", "string"),
        ("decimal", "string"),
        ("float unsigned", "float"),
        ("double", "double"),
        ("char(3)", "string"),
        ("longtext", "string"),
        ("json", "string"),
        ("time(6)", "string"),
        ("binary(3)", "binary"),
        ("varbinary", "binary"),
        ("longblob", "binary"),
        ("enum('a')", "string"),
        ("set('a')", "string"),
        ("enum", "bigint"),
        ("set", "decimal(20,0)"),
        ("vector(3)", "array<float>"),
        ("date", "date"),
        ("datetime(6)", "timestamp_ntz"),
        ("timestamp", "timestamp"),
    ],
)
def test_every_type_has_a_lake_type(text: str, lake: str) -> None:
    assert lake_type(MysqlType.parse(text)) == lake
    assert lake_type(MysqlType.parse(text), ValueRules(zero_date="reject", invalid_values="null")) == lake


@pytest.mark.parametrize(("text", "lake"), [("date", "string"), ("datetime(6)", "string"), ("timestamp", "string"), ("int", "int")])
def test_zero_dates_kept_as_text_make_text_columns_of_dates_only(text: str, lake: str) -> None:
    assert lake_type(MysqlType.parse(text), ValueRules(zero_date="string")) == lake


@pytest.mark.parametrize(("text", "lake"), [("decimal(39,4)", "decimal(38,6)"), ("decimal(38,4)", "decimal(38,4)"), ("decimal", "string")])
def test_only_decimals_of_more_than_38_digits_are_wide(text: str, lake: str) -> None:
    assert lake_type(MysqlType.parse(text), ValueRules(wide_decimal="decimal(38,6)")) == lake


@pytest.mark.parametrize(("text", "lake"), [("int", "string"), ("vector(3)", "string"), ("enum", "string"), ("blob", "binary")])
def test_a_column_that_keeps_what_does_not_fit_is_text_unless_it_is_binary(text: str, lake: str) -> None:
    assert lake_type(MysqlType.parse(text), ValueRules(invalid_values="string")) == lake


@pytest.mark.parametrize("text", ["geometry", "point", "intunsigned"])
def test_a_type_that_no_protocol_carries_has_no_lake_type(text: str) -> None:
    with pytest.raises(ContractError) as error:
        lake_type(MysqlType.parse(text))
    assert (error.value.code, error.value.message) == ("UNKNOWN_TYPE", f"no lake type for MySQL type {text!r}")


@pytest.mark.parametrize(
    ("text", "binary"), [("binary", True), ("varbinary(3)", True), ("tinyblob", True), ("text", False), ("bit", False)]
)
def test_cells_of_binary_types_are_bytes(text: str, binary: bool) -> None:
    assert MysqlType.parse(text).is_binary is binary


@pytest.mark.parametrize(
    ("text", "digits"), [("datetime(6)", 6), ("timestamp(0)", 0), ("time(3)", 3), ("datetime", None), ("varchar(6)", None), ("date", None)]
)
def test_only_temporal_types_have_fraction_digits(text: str, digits: int | None) -> None:
    assert MysqlType.parse(text).fraction_digits == digits


@pytest.mark.parametrize(
    ("old", "new", "known"),
    [
        ("int(6) zerofill", "varchar(20)", False),  # MySQL: 000042
        ("decimal(6,2) zerofill", "text", False),
        ("int(6) zerofill", "bigint", True),
        ("int unsigned", "varchar(20)", True),
        ("float", "double(10,3)", False),  # 99999.9921875 becomes 99999.992
        ("double", "double(10,3)", False),
        ("double(10,3)", "double(10,2)", False),
        ("double(10,2)", "double(12,3)", True),
        ("float(8,2)", "double(10,3)", False),
        ("double(10,3)", "double", True),
        ("float", "double", True),
    ],
)
def test_what_values_become_in_another_type_is_known_or_not(old: str, new: str, known: bool) -> None:
    assert converts(MysqlType.parse(old), MysqlType.parse(new)) is known
