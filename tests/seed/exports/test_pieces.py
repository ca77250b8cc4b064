"""The scanners give the same rows and refusals wherever a text is cut in two; every way of writing a value has its row here."""

from __future__ import annotations

import pytest

from tidelake.seed.exports.export_rows import ScanPiece
from tidelake.seed.exports.scan.dump_csv import scan_csv
from tidelake.seed.exports.scan.dump_rows import BAD, BAD_COUNT, BAD_ESCAPE, BAD_QUOTE, BAD_TOKEN, END, INSIDE, NUMBER, ROWS, TRUNCATED
from tidelake.seed.exports.scan.dump_sql import scan_sql

HEAD = b"INSERT INTO `t`\nVALUES"
Found = tuple[list[list[bytes | None]], list[int], list[tuple[int, int, int]]]

CSV = (
    b'1,"a\\0\\r\\n\\\\\\"z","b""c"\r\n',
    b"\r\n",
    b"2,x\ry,\\N\n",
    b'3,"\\q ""on",""\r\n',
    b'4,"a","b"x\n',
    b'5,"a"\n',
    b'6,"a","b",""\n',
    b'\\N,"\r\n,",\\N',
)
SQL = (
    b"/*!40101 SET NAMES binary*/;\n-- words; (1)\n/* plain */ " + HEAD + b"\n",
    b"(1,'a\\0\\n\\r\\Z\\\\\\'\\\"z',X'0aF9'),\n",
    b"(2,'b''c',NULL),\n",
    b"(3,'\\q',NULL),\n",
    b"(4,'x'),",
    b"(5,'x',x'',1),\n",
    b"(6,'x',x'0'),\n",
    b"(7,,NULL),\n",
    b"(8,'x',x''):\n",
    b"(9,'x'\n",
    b"( -1.5E+07,'\n)','');\n",
    b"DELETE FROM t;\n",
    b"/* between */;" + HEAD + b"(NULL,x'',2.e-9);\n-- the end",
)


def csv(escape: bool, separator: bytes = b",") -> ScanPiece:
    return lambda piece, number, _, final: scan_csv(piece, 3, number, final, separator, b'"', b"\\N", escape)


def sql(escape: bool) -> ScanPiece:
    return lambda piece, number, inside, final: scan_sql(piece, 3, number, final, HEAD, inside, escape)


def read(scan: ScanPiece, *pieces: bytes) -> Found:
    """Rows, their numbers, and row, byte and code of those that are refused."""
    found: Found = [], [], []
    rest, done, number, inside = b"", 0, 1, False
    for k, piece in enumerate(pieces, 1):
        rest += piece
        room = scan(rest, number, inside, k == len(pieces))
        found[0].extend(room.rows(3).to_pylist())
        found[1].extend(room.numbers[: room.at[ROWS]].tolist())
        found[2].extend((row, done + at, code) for row, at, code in room.bad[: room.at[BAD]].tolist())
        number, inside, end = int(room.at[NUMBER]), bool(room.at[INSIDE]), int(room.at[END])
        rest, done = rest[end:], done + end
    assert rest == b""
    return found


def refused(lines: tuple[bytes, ...], first: int, *codes: int) -> list[tuple[int, int, int]]:
    """The lines of these codes, of which the first is row `first`."""
    start = next(i for i, line in enumerate(lines) if line.startswith((b"%d," % first, b"(%d," % first)))
    return [(first + k, sum(map(len, lines[: start + k])), code) for k, code in enumerate(codes)]


@pytest.mark.parametrize(
    ("scan", "text", "wanted"),
    [
        pytest.param(
            csv(True),
            b"".join(CSV),
            (
                [[b"1", b'a\0\r\n\\"z', b'b"c'], [b"2", b"x\ry", None], [None, b"\r\n,", None]],
                [1, 2, 7],
                refused(CSV, 3, BAD_ESCAPE, BAD_QUOTE, BAD_COUNT, BAD_COUNT),
            ),
            id="csv",
        ),
        pytest.param(
            csv(False, b"|+|"),
            b'1|+|"a\\q""\\"|+|"\\"\n2|+|"\\N"|+||+x\\N\n',
            ([[b"1", b'a\\q"\\', b"\\"], [b"2", b"\\N", b"|+x\\N"]], [1, 2], []),
            id="csv, not escaped",
        ),
        pytest.param(csv(True), b'1,"",""\n2,"b\\', ([[b"1", b"", b""]], [1], [(2, 8, TRUNCATED)]), id="csv, cut off"),
        pytest.param(
            sql(True),
            b"".join(SQL),
            (
                [
                    [b"1", b"a\0\n\r\x1a\\'\"z", b"\x0a\xf9"],
                    [b"2", b"b'c", None],
                    [b"-1.5E+07", b"\n)", b""],
                    [None, b"", b"2.e-9"],
                ],
                [1, 2, 10, 12],
                [
                    *refused(SQL, 3, BAD_ESCAPE, BAD_COUNT, BAD_COUNT, BAD_TOKEN, BAD_TOKEN, BAD_TOKEN, BAD_TOKEN),
                    (11, sum(map(len, SQL[:11])), BAD_TOKEN),
                ],
            ),
            id="sql",
        ),
        pytest.param(
            sql(False),
            HEAD + b"(1,'a\\q''\\','\\'),\n(2,'\\N',NULL);",
            ([[b"1", b"a\\q'\\", b"\\"], [b"2", b"\\N", None]], [1, 2], []),
            id="sql, not escaped",
        ),
        pytest.param(sql(True), HEAD + b"(1,'',''),(2,'b\\", ([[b"1", b"", b""]], [1], [(2, 32, TRUNCATED)]), id="sql, cut off in a text"),
        pytest.param(sql(True), HEAD + b"(1,'',''),(2,NU", ([[b"1", b"", b""]], [1], [(2, 32, TRUNCATED)]), id="sql, cut off in a NULL"),
        pytest.param(
            sql(True), HEAD + b"(1,'',''),(2,'','')", ([[b"1", b"", b""]], [1], [(2, 32, TRUNCATED)]), id="sql, cut off behind a row"
        ),
    ],
)
def test_a_text_is_read_alike_wherever_it_is_cut_in_two(scan: ScanPiece, text: bytes, wanted: Found) -> None:
    assert read(scan, text) == wanted
    assert [cut for cut in range(1, len(text)) if read(scan, text[:cut], text[cut:]) != wanted] == []
