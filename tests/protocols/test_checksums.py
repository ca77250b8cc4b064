"""Row checksums of Avro and Simple (docs/reference/protocols.md 4.2): match, mismatch, and rows that cannot be checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols import avro_messages, vectors
from tests.protocols import simple_messages as simple
from tests.protocols.both_paths import Message, both, decoded, left
from tests.protocols.checksum_oracle import row_sum
from tests.protocols.craft_messages import varint
from tests.searches import examples
from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols import Context, decoder
from tidelake.wire.checksum.checksums import ChecksumRules, Image, verdict

VECTORS = [(p, v) for p in ("avro", "simple-json", "simple-avro") for v in vectors.load(p) if v["expected"].get("checksum")]
NAMES, NUMBERS = ChecksumRules(names_sent=True, mended=False), ChecksumRules(names_sent=False, mended=False)

EVERY = RowSchema(
    (
        *(SchemaColumn(w, w) for w in ("tinyint", "smallint", "mediumint", "int", "bigint", "year")),
        *(SchemaColumn(w, w) for w in ("tinyint unsigned", "int unsigned", "bigint unsigned", "bit")),
        *(SchemaColumn(w, w) for w in ("float", "double", "decimal", "date", "datetime", "timestamp", "time", "json", "vector")),
        *(SchemaColumn(w, w) for w in ("char", "varchar", "text", "longtext", "binary", "varbinary", "blob")),
        SchemaColumn("enum", "enum", elements=("a", "", "b,c", "ß")),
        SchemaColumn("set", "set", elements=tuple(f"m{i}" for i in range(64))),
    )
)


def of(
    row_schema: RowSchema,
    cells: list[bytes | None],
    number: int,
    rules: ChecksumRules = NAMES,
    zone: str | None = "UTC",
    *,
    whole: bool = True,
) -> str:
    image = Image(row_schema=row_schema, cells=cells, number=number, whole=whole)
    return verdict([image], corrupted=False, zone=zone, rules=rules, refuse=False)


def one(word: str | None, cell: bytes, number: int, zone: str | None = "UTC", **more: Any) -> str:
    """The verdict on a row of one column."""
    return of(RowSchema((SchemaColumn("c", word, **more),)), [cell], number, zone=zone)


def summed(word: str, cell: bytes, zone: str = "UTC") -> int:
    return row_sum(RowSchema((SchemaColumn("c", word),)), [cell], zone, names_sent=True)


def test_every_vector_with_a_checksum_adds_up() -> None:
    found = Counter[tuple[str, int, str | None]]()
    for protocol, vector in VECTORS:
        ((event,),) = both(protocol, [vectors.record(vector)], vectors.context(vector))
        found[protocol, vector["expected"]["checksum"]["version"], event.checksum] += 1
    assert found == {("avro", 2, "verified"): 3, ("avro", 0, "verified"): 1, ("simple-json", 2, "verified"): 3}


def test_no_vector_adds_up_with_any_one_cell_changed() -> None:
    changed = 0
    for protocol, vector in VECTORS:
        (event,) = decoder(protocol).read(*vectors.record(vector), vectors.context(vector))
        sent = vector["expected"]["checksum"]
        numbers = (sent.get("current", sent.get("value")), sent.get("previous"))
        for row_schema, cells, number in zip((event.row_schema, event.before_schema), (event.after, event.before), numbers, strict=True):
            if row_schema is None or cells is None:
                continue
            rules = NAMES if protocol == "avro" else NUMBERS
            assert of(row_schema, list(cells), number, rules) == "verified"
            for i, column in enumerate(row_schema.columns):
                other = [*cells[:i], another(column, cells[i]), *cells[i + 1 :]]
                assert of(row_schema, other, number, rules) == "mismatch", (column, other[i])
                changed += 1
    assert changed == 107


def another(column: SchemaColumn, cell: bytes | None) -> bytes:
    """A different value of the column's type."""
    if column.type == "timestamp":
        return b"2024-03-11 08:51:02.461270"
    if column.elements and not (cell or b"").isdigit():
        return b"b" if column.type == "enum" else b"y"
    return b"%d" % (int(cell) ^ 1) if cell and cell.isdigit() else b"7"


def floats(width: int) -> st.SearchStrategy[bytes]:
    numbers = st.floats(width=width, allow_nan=False, allow_infinity=False)
    return numbers.map(lambda x: str(np.float32(x) if width == 32 else x).encode())


def whole_numbers(low: int, high: int) -> st.SearchStrategy[bytes]:
    return st.integers(low, high).map(lambda n: b"%d" % n)


INSTANTS = st.datetimes(datetime(1970, 1, 3), datetime(2038, 1, 17))  # noqa: DTZ001  of any zone
TEXTS = st.text(max_size=40).map(lambda t: t.encode(errors="replace"))
VALUES: dict[str, st.SearchStrategy[bytes]] = {
    "int": whole_numbers(-(1 << 31), (1 << 32) - 1),
    "bigint": whole_numbers(-(1 << 63), (1 << 63) - 1),
    "bigint unsigned": whole_numbers(0, (1 << 64) - 1),
    "bit": whole_numbers(0, (1 << 64) - 1),
    "float": floats(32),
    "double": floats(64),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False, places=4).map(lambda d: f"{d:f}".encode()),
    "timestamp": st.one_of(INSTANTS.map(lambda t: str(t).encode()), st.just(b"0000-00-00 00:00:00.000")),
    "vector": st.lists(floats(32), max_size=20).map(lambda v: b"[" + b",".join(v) + b"]"),
    "enum": st.sampled_from([b"a", b"", b"b,c", "ß".encode()]),
    "set": st.sets(st.sampled_from([f"m{i}" for i in range(64)])).map(lambda s: ",".join(sorted(s)).encode()),
    "binary": st.binary(max_size=40),
}


def cell_of(column: SchemaColumn) -> st.SearchStrategy[bytes | None]:
    word = column.type or ""
    plain = VALUES["int"] if word.removesuffix(" unsigned").endswith("int") or word == "year" else TEXTS
    return st.none() | VALUES.get(word, plain)


@settings(max_examples=examples(400), deadline=None)
@given(st.tuples(*map(cell_of, EVERY.columns)), st.sampled_from(["UTC", "Asia/Shanghai", "America/New_York", "Africa/Casablanca"]))
def test_the_compiled_sum_is_the_plain_one(cells: tuple[bytes | None, ...], zone: str) -> None:
    assert of(EVERY, list(cells), row_sum(EVERY, cells, zone, names_sent=True), zone=zone) == "verified"


def test_times_are_summed_in_utc_on_both_sides_of_every_change_of_the_clocks() -> None:
    zones = ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo", "Asia/Kathmandu")
    verdicts = Counter[str]()
    for zone in zones:
        for hours in range(0, 24 * 365 * 3, 5):
            local = datetime(2010, 1, 1, tzinfo=ZoneInfo(zone)) + timedelta(hours=hours, minutes=30, seconds=7)
            text = local.strftime("%Y-%m-%d %H:%M:%S").encode()
            shown = local.astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) == local.replace(
                tzinfo=None
            )  # not so what they left out
            found = one("timestamp", text, summed("timestamp", text, zone), zone)
            assert found == ("verified" if shown else "unverifiable"), (zone, text)
            verdicts[found] += 1
    assert verdicts == {"verified": 31530, "unverifiable": 6}


def test_an_hour_that_the_clocks_showed_twice_adds_up_as_either() -> None:
    text, zone = b"2024-10-27 02:30:00", "Europe/Berlin"
    assert one("timestamp", text, summed("datetime", b"2024-10-27 00:30:00"), zone) == "verified"
    assert one("timestamp", text, summed("datetime", b"2024-10-27 01:30:00"), zone) == "verified"
    assert one("timestamp", text, summed("datetime", b"2024-10-27 02:30:00"), zone) == "unverifiable"
    assert one("timestamp", b"2024-10-27 03:30:00", summed("datetime", b"2024-10-27 03:30:00"), zone) == "mismatch"
    assert one("timestamp", b"2024-03-31 02:30:00", 5, zone) == "unverifiable"  # the clocks never showed it


@pytest.mark.parametrize("zone", ["Local", "Mars/Olympus", "../../etc/passwd", "", "Europe", None])
def test_a_time_of_an_unknown_zone_is_unverifiable(zone: str | None) -> None:
    assert one("timestamp", b"2024-10-27 02:30:00", 5, zone) == "unverifiable"
    assert one("datetime", b"2024-10-27 02:30:00", summed("datetime", b"2024-10-27 02:30:00"), zone) == "verified"


@pytest.mark.parametrize(
    ("word", "cell", "more"),
    [
        (None, b"5", {}),
        ("geometry", b"5", {}),
        ("enum", b"a", {}),
        ("enum", b"c", {"elements": ("a", "b")}),
        ("set", b"a,c", {"elements": ("a", "b")}),
        ("int", b"five", {}),
        ("int", b"", {}),
        ("int", b"-", {}),
        ("bigint unsigned", b"18446744073709551616", {}),
        ("double", b"1.5x", {}),
        ("double", b"1.23456789012345678901", {}),
        ("vector", b"[1,]", {}),
        ("vector", b"1", {}),
        ("timestamp", b"2024-13-01 00:00:00", {"zone": "Asia/Tokyo"}),
        ("timestamp", b"yesterday", {}),
    ],
)
def test_what_cannot_be_summed_is_unverifiable(word: str | None, cell: bytes, more: Any) -> None:
    assert one(word, cell, 5, **more) == "unverifiable"


def test_a_difference_is_no_mismatch_where_a_column_is_not_there_or_tidb_sent_no_sum() -> None:
    row_schema = RowSchema((SchemaColumn("c", "int"),))
    right = summed("int", b"7")
    assert [of(row_schema, [b"7"], n, whole=w) for n in (right, 5, 0) for w in (True, False)] == [
        *("verified", "verified"),
        *("mismatch", "unverifiable"),
        *("unverifiable", "unverifiable"),
    ]


def test_text_that_came_mended_is_no_mismatch() -> None:
    row_schema, cells = RowSchema((SchemaColumn("c", "text"),)), ["a\ufffdb".encode()]
    assert of(row_schema, list(cells), 5, ChecksumRules(names_sent=False, mended=True)) == "unverifiable"
    assert of(row_schema, list(cells), 5, NUMBERS) == "mismatch"
    assert of(row_schema, [b"ab"], 5, ChecksumRules(names_sent=False, mended=True)) == "mismatch"


# Through the decoders

CELLS = [b"7", b"x", b"2024-07-01 10:00:00", b"2"]
COLUMNS = (
    SchemaColumn("id", "int"),
    SchemaColumn("v", "varchar"),
    SchemaColumn("at", "timestamp"),
    SchemaColumn("e", "enum", elements=("a", "b")),
)
SCHEMA = simple.table_schema(
    [simple.column("id"), simple.column("v", "varchar"), simple.column("at", "timestamp"), simple.column("e", "enum", elements=["a", "b"])],
    [simple.index("id", primary=True)],
)
RIGHT = row_sum(RowSchema(COLUMNS), CELLS, "Asia/Tokyo", names_sent=False)
PROTOCOLS = ("avro", "simple-json", "simple-avro")


def context(protocol: str, **more: Any) -> Context:
    if protocol == "avro":
        kinds = [("v", "string", "TEXT", {}), ("at", "string", "TIMESTAMP", {}), ("e", "string", "ENUM", {"allowed": "a,b"})]
        columns = [avro_messages.field(name, avro_messages.kind(avro, tidb, **p)) for name, avro, tidb, p in kinds]
        value = avro_messages.schema(*avro_messages.ID, *columns, *avro_messages.EXTENSION, *avro_messages.CHECKSUM)
        return replace(avro_messages.context({1: avro_messages.schema(*avro_messages.ID), 2: value}), time_zone="Asia/Tokyo", **more)
    found = Context(**more)
    decoder(protocol).read(*simple.bootstrap(protocol, SCHEMA), found)
    return found


def message(
    protocol: str, number: object, *, v: str = "x", corrupted: bool = False, zone: str = "Asia/Tokyo", version: int = simple.VERSION
) -> Message:
    """A row with this checksum; Simple's is an update, whose old image is the same row and adds up."""
    if protocol == "avro":
        texts = [avro_messages.text(t) for t in (v, "2024-07-01 10:00:00", "b")]
        checksum = avro_messages.text(str(number)) + bytes([corrupted]) + varint(2)
        return avro_messages.KEY, avro_messages.confluent(2, varint(7), *texts, avro_messages.extension("c", simple.TS), checksum)
    if protocol == "simple-json":
        data = {"id": "7", "v": v, "at": {"location": zone, "value": "2024-07-01 10:00:00"}, "e": "2"}
        checksum = {"version": 2, "corrupted": corrupted, "current": number, "previous": RIGHT}
        return simple.json_row("UPDATE", data, data | {"v": "x"}, checksum=checksum, schemaVersion=version)
    old = simple.avro_map({"id": (simple.LONG, 7), "v": (simple.STRING, "x"), "e": (simple.LONG, 2)})[:-1]
    time = simple.text("at") + varint(simple.TIME) + simple.text(zone) + simple.text("2024-07-01 10:00:00")
    new = simple.avro_map({"id": (simple.LONG, 7), "v": (simple.STRING, v), "e": (simple.LONG, 2)})[:-1]
    sent = varint(2) + bytes([corrupted]) + varint(int(str(number))) + varint(RIGHT)
    key, value = simple.avro_row("UPDATE", {}, {}, checksum=sent, version=version)
    assert value is not None
    sides = (simple.some(side + varint(1) + time + b"\0") for side in (new, old))
    return key, value.removesuffix(b"\2\0\2\0") + b"".join(sides)


def event(protocol: str, sent: Message, **more: Any) -> Event:
    """By both paths, compiled; the scan leaves nothing."""
    assert left(protocol, [sent], context(protocol, **more)) == []
    ((found,),) = both(protocol, [sent], context(protocol, **more))
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_row_says_whether_it_adds_up(protocol: str) -> None:
    assert event(protocol, message(protocol, RIGHT)).checksum == "verified"
    assert event(protocol, message(protocol, RIGHT ^ 1)).checksum == "mismatch"
    assert event(protocol, message(protocol, RIGHT, v="y")).checksum == "mismatch"
    assert event(protocol, message(protocol, RIGHT, corrupted=True)).checksum == "mismatch"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refused_mismatch_says_both_sums_and_keeps_its_bytes_and_its_neighbours(protocol: str) -> None:
    bad = message(protocol, RIGHT, v="y")
    rows = [message(protocol, RIGHT), bad, message(protocol, RIGHT), message(protocol, RIGHT, corrupted=True)]
    found = decoded(protocol, rows, context(protocol, refuse_mismatches=True))
    assert [[(e.kind, e.checksum, e.error_code) for e in events] for events in found] == [
        *([("row", "verified", None)], [("rejected", None, "CHECKSUM")]),
        *([("row", "verified", None)], [("rejected", None, "CHECKSUM")]),
    ]
    is_now = row_sum(RowSchema(COLUMNS), [b"7", b"y", *CELLS[2:]], "Asia/Tokyo", names_sent=False)
    assert found[1][0].error == f"the row's checksum is {is_now}, expected {RIGHT}, which came with it"
    assert found[3][0].error == "TiCDC says that the row is corrupted"
    assert (found[1][0].raw_key, found[1][0].raw_value) == bad


def test_avro_without_a_number_has_no_verdict_and_with_a_wrong_one_does_not_add_up() -> None:
    said = [event("avro", message("avro", number)).checksum for number in ("", "12x", "-0", str(1 << 32), str(RIGHT + (1 << 32)))]
    assert said == [None, "mismatch", "mismatch", "mismatch", "mismatch"]
    delete = (avro_messages.KEY, None)
    assert event("avro", delete).checksum is None


def test_an_avro_row_with_fewer_columns_than_its_table_is_no_mismatch() -> None:
    def columns(database: str, table: str) -> tuple[SchemaColumn, ...]:
        assert (database, table) == ("test", "t")
        return (*COLUMNS, SchemaColumn("more", "int"))

    assert event("avro", message("avro", RIGHT), columns=columns).checksum == "verified"
    assert event("avro", message("avro", 5), columns=columns).checksum == "unverifiable"


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_both_images_of_simple_must_add_up(protocol: str) -> None:
    wrong = [replace_previous(protocol, message(protocol, RIGHT)), message(protocol, 5)]
    assert [event(protocol, m).checksum for m in wrong] == ["mismatch", "mismatch"]


def replace_previous(protocol: str, sent: Message) -> Message:
    """The same message with another sum of the old image."""
    key, value = sent
    assert value is not None
    if protocol == "simple-json":
        return key, value.replace(b'"previous":%d' % RIGHT, b'"previous":5')
    return key, value.replace(varint(RIGHT) + varint(RIGHT), varint(RIGHT) + varint(5))


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_a_simple_row_of_an_unknown_schema_is_unverifiable(protocol: str) -> None:
    assert event(protocol, message(protocol, RIGHT, version=1)).checksum == "unverifiable"


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_the_zone_of_a_simple_row_is_its_own(protocol: str) -> None:
    zones = ("Asia/Tokyo", "UTC", "Mars/Olympus", "Etc/GMT-9", "Asia/Tokyo")
    found = decoded(protocol, [message(protocol, RIGHT, zone=zone) for zone in zones], context(protocol))
    assert [e.checksum for (e,) in found] == ["verified", "mismatch", "unverifiable", "verified", "verified"]


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_more_zones_than_a_scan_remembers_are_left_to_the_reader(protocol: str) -> None:
    rows = [message(protocol, RIGHT, zone=f"Etc/GMT-{n}") for n in range(12)]
    assert left(protocol, rows, context(protocol)) == [8, 9, 10, 11]
    found = decoded(protocol, rows, context(protocol))
    assert [e.checksum == "verified" for (e,) in found] == [n == 9 for n in range(12)]


def test_a_verdict_is_one_error_where_mismatches_are_refused() -> None:
    image = Image(row_schema=RowSchema((SchemaColumn("c", "int"),)), cells=[b"7"], number=-1, whole=True)
    with pytest.raises(DecodeError, match=r"expected no number") as caught:
        verdict([image], corrupted=False, zone="UTC", rules=NUMBERS, refuse=True)
    assert caught.value.code == "CHECKSUM"
