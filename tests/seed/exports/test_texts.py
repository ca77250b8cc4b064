"""CSV and SQL as Dumpling writes them come back as the values that they were, wherever a file is cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.seed.exports import dumpling
from tests.seed.exports.dumpling import Writing
from tidelake.errors import ContractError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.seed.exports import export_rows as reader
from tidelake.seed.exports.dialect import Dialect
from tidelake.seed.exports.export_files import ExportFile
from tidelake.seed.exports.export_rows import ExportReading, FileReport, read_rows

COLUMNS = (("n", "decimal(20,4)"), ("t", "varchar(99)"), ("b", "blob"))
NASTY = ['"', "'", "\\", "\n", "\r", "\r\n", "\0", "\\N", "NULL", ",", '","', "\\0", "),\n(", ";\n", "x'00'", "\x1a", "😀", "", '\\"', "--"]
TEXT = st.lists(st.sampled_from(NASTY) | st.text(max_size=3), max_size=4).map("".join).map(str.encode)
BYTES = st.lists(st.sampled_from([b"\xff", b"\x00", b'"', b"\\", b"\r\n", b","]) | st.binary(max_size=3), max_size=4).map(b"".join)
NUMBER = st.decimals(-(10**9), 10**9, allow_nan=False, places=4).map(str).map(str.encode)
ROW = st.tuples(*(st.none() | v for v in (NUMBER, TEXT, BYTES)))
WRITING = st.builds(
    Writing,
    escape=st.booleans(),
    header=st.booleans(),
    separator=st.sampled_from([b",", b"|", b"|+|", b"\t"]),
    newline=st.sampled_from([b"\n", b"\r\n"]),
    null=st.sampled_from([b"\\N", b"NULL", b""]),
)
Cells = list[tuple[bytes | None, ...]]


def read(content: bytes, kind: str, how: Writing, folder: Path, columns: Sequence[tuple[str, str]] = COLUMNS) -> tuple[Cells, FileReport]:
    path = folder / "file"
    path.write_bytes(content)
    reading = ExportReading(
        columns=[(n, MysqlType.parse(t)) for n, t in columns],
        may_lack=frozenset(),
        dialect=Dialect(separator=how.separator.decode(), null=how.null.decode(), escape=how.escape, header=how.header),
        time_zone="UTC",
        names_sent=True,
    )
    report = FileReport(key="f")
    file = ExportFile(key=f"d.t.000000000.{kind}", size=len(content), etag="", kind=kind)
    batches = list(read_rows(path, file, reading, report))
    cells = [tuple(r) for b in batches for r in b.cells.to_pylist()]
    assert report.rows == len(cells)
    assert report.refused or [n for b in batches for n in b.numbers.to_pylist()] == list(range(1, len(cells) + 1))
    return cells, report


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, max_size=6), how=WRITING, piece=st.sampled_from([1, 7, 64, 1 << 20]))
def test_what_dumpling_writes_comes_back(rows: Cells, how: Writing, piece: int, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "PIECE", piece)
        assert read(dumpling.csv(COLUMNS, rows, how), "csv", how, tmp_path)[0] == rows
        assert read(dumpling.sql("t", COLUMNS, rows, how), "sql", how, tmp_path)[0] == rows
        assert read(dumpling.sql("t", COLUMNS, rows, how, names=True), "sql", how, tmp_path)[0] == rows


@pytest.mark.parametrize(
    ("content", "wanted", "refused"),
    [
        (b'1,"a",""\n2,"b"\n3,"c",""\n', [b"1", b"3"], [(2, 9, "BAD_STRUCTURE")]),
        (b'1,"a",""\n2,"b","",""\n3,"c",""', [b"1", b"3"], [(2, 9, "BAD_STRUCTURE")]),
        (b'1,"a\\qb",""\n2,"b",""\n', [b"2"], [(1, 0, "BAD_VALUE")]),
        (b'1,"a"b,""\r\n2,"b",""\r\n', [b"2"], [(1, 0, "BAD_STRUCTURE")]),
        (b'1,"a",""\n2,"b","c\n3,"c",""\n', [b"1"], [(2, 9, "BAD_STRUCTURE")]),
        (b'1,"a",""\n2,"b","c', [b"1"], [(2, 9, "TRUNCATED")]),
        (b'\n\r\n1,"a",""\n\n', [b"1"], []),
    ],
)
def test_csv_rows_that_are_none_are_told_by_number_and_byte(
    content: bytes, wanted: list[bytes], refused: list[tuple[int, int, str]], tmp_path: Path
) -> None:
    cells, report = read(content, "csv", Writing(header=False), tmp_path)
    assert [r[0] for r in cells] == wanted
    assert [(x.row, x.byte, x.code) for x in report.examples] == refused
    assert report.refused == len(refused)


@pytest.mark.parametrize(
    ("content", "wanted", "refused"),
    [
        (b"(1,'a',x''),\n(2,'b'),\n(3,'c',x'');\n", [b"1", b"3"], [(2, 36, "BAD_STRUCTURE")]),
        (b"(1,'a',x''),\n(2,'\\q',x''),\n(3,'c',x'');\n", [b"1", b"3"], [(2, 36, "BAD_VALUE")]),
        (
            b"(1,'a',x'0'),\n(2,'b',x'0g'),\n(3,now(),NULL);\n",
            [],
            [(1, 23, "BAD_STRUCTURE"), (2, 37, "BAD_STRUCTURE"), (3, 52, "BAD_STRUCTURE")],
        ),
        (b"(1,'a',x''),\n(2,'b',x'", [b"1"], [(2, 36, "TRUNCATED")]),
        (b"(1,'a',x'');\nDELETE FROM t;\nINSERT INTO `t` VALUES\n(3,'c',x'');\n", [b"1", b"3"], [(2, 36, "BAD_STRUCTURE")]),
    ],
)
def test_sql_rows_that_are_none_are_told_by_number_and_byte(
    content: bytes, wanted: list[bytes], refused: list[tuple[int, int, str]], tmp_path: Path
) -> None:
    cells, report = read(b"INSERT INTO `t` VALUES\n" + content, "sql", Writing(), tmp_path)
    assert [r[0] for r in cells] == wanted
    assert [(x.row, x.byte, x.code) for x in report.examples] == refused


def test_a_row_longer_than_any_can_be_ends_the_reading_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PIECE", 8)
    monkeypatch.setattr(reader, "MAX_ROW", 64)
    cells, report = read(b'1,"a",""\n2,"' + b"b" * 1000 + b'",""\n3,"c",""\n', "csv", Writing(header=False), tmp_path)
    assert [r[0] for r in cells] == [b"1"]
    assert [(x.row, x.byte, x.code) for x in report.examples] == [(2, 9, "TOO_LARGE")]


@pytest.mark.parametrize(
    ("kind", "content"), [("csv", b'"n","x"\r\n'), ("csv", b'"n","t"\r\n'), ("sql", b"INSERT INTO `t` (`n`,`t`) VALUES\n")]
)
def test_other_columns_than_the_table_has_are_refused(kind: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"has column 'x'|lacks the table's column 'b'") as error:
        read(content, kind, Writing(), tmp_path)
    assert error.value.code == "OTHER_COLUMNS"


def test_a_file_written_in_another_time_zone_is_refused(tmp_path: Path) -> None:
    begin = b"/*!40103 SET TIME_ZONE='%s' */;\nINSERT INTO `t` VALUES\n(1,'',x'');\n"
    assert read(begin % b"+00:00", "sql", Writing(), tmp_path)[0] == [(b"1", b"", b"")]
    with pytest.raises(ContractError, match=r"written in time zone '\+08:00', the feed's is 'UTC'"):
        read(begin % b"+08:00", "sql", Writing(), tmp_path)


def test_an_empty_null_word_is_refused_where_a_null_would_be_a_blank_line(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="a NULL would be a blank line"):
        read(b"", "csv", Writing(header=False, null=b""), tmp_path, COLUMNS[:1])
