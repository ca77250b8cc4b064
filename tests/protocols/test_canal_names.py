"""Names of the changes in Canal protobuf messages: where they stand in the binlog, by the general reader and by the compiled scan."""

from __future__ import annotations

from tests.protocols.canal_messages import ALTER, INSERT, At, Column, change, entry, header, packet, row_data
from tests.protocols.test_canal import events
from tidelake.history.source_names import source_name

V = Column("v", "varchar", "x")


def rows(at: At | None, many: int = 1, table: str = "t") -> bytes:
    """An entry with so many equal rows."""
    return entry(header(table=table, at=at), change(INSERT, *[row_data([V])] * many))


def names(*messages: bytes, compiled: bool = True) -> list[str | None]:
    return [e.source for e in events(*messages, compiled=compiled)]


def test_a_row_is_named_by_its_event_s_place_in_the_binlog_and_its_number() -> None:
    found = names(packet(rows(At(4567), 2), rows(At(5000)), rows(At(4, "mysql-bin.000013", 7))))
    assert found == [
        "1/mysql-bin.0000000012:0000000000000004567:0000000000",
        "1/mysql-bin.0000000012:0000000000000004567:0000000001",
        "1/mysql-bin.0000000012:0000000000000005000:0000000000",
        "7/mysql-bin.0000000013:0000000000000000004:0000000000",
    ]


def test_rows_of_one_event_that_canal_sends_as_entries_of_their_own_are_numbered_on() -> None:
    found = names(packet(rows(At(4567)), rows(At(4567), 2), rows(At(5000)), rows(At(4567))), packet(rows(At(4567))))
    assert found == [
        source_name(1, "mysql-bin.000012", p, n) for p, n in ((4567, 0), (4567, 1), (4567, 2), (5000, 0), (4567, 0), (4567, 0))
    ]


def test_a_statement_has_a_name_and_the_rows_around_it() -> None:
    statement = entry(header(kind=ALTER, at=At(4600)), change(ALTER, ddl=1, sql="ALTER TABLE t ADD n INT", schema="s"))
    found = names(packet(rows(At(4567)), statement, rows(At(4700))), compiled=False)
    assert found == [source_name(1, "mysql-bin.000012", p, 0) for p in (4567, 4600, 4700)]


def test_what_says_no_place_has_no_name() -> None:
    found = names(
        packet(rows(None), rows(At(4, "")), rows(At(4, "binlog")), rows(At(4, b"b\xff.000001")), rows(At(-1)), rows(At(4, server=-1)))
    )
    assert found == [None] * 6
