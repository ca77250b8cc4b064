"""Cells of Maxwell's own messages whose types are found late, in Arrow."""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.decode.late_maxwell import canonical
from tidelake.history.ddl.column_types import MysqlType

NAME = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=","), max_size=5)


def read(cells: list[bytes | None], text: str) -> list[bytes | None]:
    sent = pa.array(cells, pa.binary())
    found = canonical(sent, MysqlType.parse(text))
    if found is None:
        return cells
    found.validate(full=True)
    assert found.type == pa.binary()
    return list(found.to_pylist())


@pytest.mark.parametrize(
    ("text", "sent", "want"),
    [
        ("decimal(20,10)", b"1E-10", b"0.0000000001"),
        ("decimal(20,10)", b"0E-10", b"0.0000000000"),
        ("decimal(65,30)", b"-1E-30", b"-0.000000000000000000000000000001"),
        ("decimal(10,4)", b"1.5", b"1.5000"),
        ("decimal(10,0)", b"12", b"12"),
        ("blob", b"/wA=", b"\xff\0"),
        ("varbinary(9)", b"AQIA", b"\1\2\0"),
        ("varbinary(9)", b"", b""),
        ("binary(5)", b"AQI=", b"\1\2\0\0\0"),
        ("binary(5)", b"", bytes(5)),
        ("binary", b"", b"\0"),
        ("binary(2)", b"AQI=", b"\1\2"),
        ("set('x','y')", b'["x", "y"]', b"x,y"),
        ("set('x','y')", b"[]", b""),
        ("set('x','y')", b'[""]', b""),
        ("set('x','y')", b"x,y", b"x,y"),
        ("enum('x','it''s, ok')", b"it''s, ok", b"it's, ok"),
        ("enum('x','it''s, ok')", b"x", b"x"),
        ("enum('it''s','it''''s')", b"it''s", b"it''s"),
        ("enum('a\\\\b')", rb"a\\b", rb"a\b"),
        ("set('it''s','y')", b'["it\'\'s", "y"]', b"it's,y"),
        ("json", b'{"a": 1.50}', b'{"a": 1.50}'),
        ("json", b"true", b"true"),
        ("json", b"7", b"7"),
        ("json", b"abc", b'"abc"'),
        ("json", 'say "é"'.encode(), '"say \\"é\\""'.encode()),
        ("json", b"NaN", b'"NaN"'),
        ("json", b"", b'""'),
    ],
)
def test_a_cell_is_canonical_once_its_type_is_known(text: str, sent: bytes, want: bytes) -> None:
    assert read([sent, None, sent], text) == [want, None, want]


@pytest.mark.parametrize(
    "text", ["int", "bit(64)", "bigint unsigned", "datetime(6)", "time", "year", "enum('1','2')", "varchar(9)", "double"]
)
def test_cells_of_other_types_are_canonical_as_they_were_sent(text: str) -> None:
    sent = [b"-7", b"1234", b"20240101", b"AAAA", None]
    assert read([*sent], text) == sent


@given(st.lists(st.none() | st.binary(max_size=7), max_size=9))
def test_bytes_come_back_and_those_of_a_fixed_length_are_filled(raw: list[bytes | None]) -> None:
    sent = [None if r is None else base64.b64encode(r.rstrip(b"\0")) for r in raw]
    assert read(sent, "binary(7)") == [None if r is None else r.ljust(7, b"\0") for r in raw]


@given(st.lists(st.lists(NAME, max_size=4), max_size=9))
def test_members_of_a_set_are_joined(sets: list[list[str]]) -> None:
    sent: list[bytes | None] = [json.dumps(members, ensure_ascii=False).encode() for members in sets]
    assert read(sent, "set('a')") == [",".join(members).encode() for members in sets]


def test_a_part_of_a_column_is_read_alone() -> None:
    sent = pa.array([b"not base64", b"AAAA", None, b"/wA=", b"AQ=="], pa.binary())
    found = canonical(sent[1:4], MysqlType.parse("binary(4)"))
    assert found is not None
    assert found.to_pylist() == [bytes(4), None, b"\xff\0\0\0"]
