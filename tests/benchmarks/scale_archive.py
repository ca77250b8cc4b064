"""Archives of any size: tables `shop.t000`… of seven columns each, filled in a first hour, or by an export, and changed in later hours.

Canonical Parquet with messages of Open Protocol or Avro (`scale_messages`, `scale_avro`); exports are Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.benchmarks import scale_avro, scale_messages
from tests.benchmarks.scale_rows import Rows, cells
from tidelake.config.feed import Feed, load_feed
from tidelake.history.event import MESSAGE
from tidelake.tso import from_ms

EXPORTED_MS = int(datetime(2026, 1, 5, 10, tzinfo=UTC).timestamp() * 1000)  # when an export was made
PARTITIONS = 4
COLUMNS = "id BIGINT, buyer STRING, amount DECIMAL(12,2), qty INT, note STRING, placed TIMESTAMP_NTZ, state INT"

_FEED = """protocol = "{protocol}"
topics = ["shop"]
partitions = {partitions}
[source]
uri = "{folder}/archive"
layout = "canonical"
closed_by = "quiet"
quiet_minutes = 0
[lake]
uri = "{folder}/lake"
catalog = "jdbc:sqlite:{folder}/lake.db"
"""
_OPEN = '[watermark]\nfrom = "messages"\n'
_AVRO = """[options]
enable_tidb_extension = true
avro_decimal_handling_mode = "string"
[avro]
schemas = "avro_schemas.json"
[watermark]
from = "checkpoints"
uri = "{folder}/checkpoints.json"
"""
_CREATE = (
    "CREATE TABLE `shop`.`{name}` (`id` BIGINT NOT NULL{key}, `buyer` VARCHAR(40), `amount` DECIMAL(12,2), `qty` INT, "
    "`note` {note}, `placed` DATETIME, `state` INT);\n"
)
_GROUP, _GROUP_BYTES = 4096, 256 << 20  # messages of a row group
_FILE_ROWS = 500_000  # of an export
LAST_MS = 3_599_000  # of an hour: up to here it is resolved
_MASK_KEY = '[policy]\nmask_key = "${TIDELAKE_MASK_KEY}"\n'
_MASK = '[columns."shop.{name}".buyer]\nmask = "hash"\n'
MASK_KEY = {"TIDELAKE_MASK_KEY": "a key for the benchmark, of 32 bytes"}
VALUES = {  # what --values makes of tables and messages
    "plain": "all values as they are",
    "masked": "one column is hashed",
    "zero-dates": "every tenth date is a zero date",
    "keyless": "tables without primary key",
    "avro": "an Avro feed, 5 % of whose changes are deletes and inserts, placed by recorded checkpoints",
}
_BUCKETS = '[tables."shop.{name}"]\nbuckets = {buckets}\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What an archive holds.

    rows: of each table after the first hour; changes: row events of each in every later hour, which concern so many keys; hours: how
    many later hours; hot: how many changes of an hour are of one key; seeded: the tables begin with an export; values: one of VALUES;
    statement: the one of scale_messages.STATEMENTS that the second hour begins with, for every table; buckets: of each table, else those of
    so many rows if seeded; wide: bytes of each note.
    """

    tables: int = 1
    rows: int
    changes: int
    keys: int
    hours: int = 1
    hot: int = 0
    seeded: bool = False
    values: str = "plain"
    statement: str | None = None
    buckets: int | None = None
    wide: int = 0

    @property
    def events(self) -> int:
        """Row events of a later hour."""
        return self.tables * self.changes


def names(size: Size) -> list[str]:
    """The tables."""
    return [f"t{n:03d}" for n in range(size.tables)]


def hour_at(number: int) -> datetime:
    """The hours of an archive: 0 fills the tables, later ones change them."""
    return datetime.fromtimestamp(EXPORTED_MS / 1000, UTC) + timedelta(hours=number)


def make(folder: Path, size: Size) -> Feed:
    """The archive of all hours, or an export and the later ones, and a feed that reads them into an empty lake."""
    feed = make_export(folder, size) if size.seeded else make_feed(folder, size)
    make_hours(folder, size)
    return feed


def make_export(folder: Path, size: Size) -> Feed:
    """A feed, and the export that its tables begin with."""
    for name in names(size):
        _export(folder / "export", name, size.rows, zero_dates=size.values == "zero-dates")
    return make_feed(folder, size)


def make_feed(folder: Path, size: Size) -> Feed:
    """The feed's files."""
    schemas = folder / "schemas" / "scale"
    schemas.mkdir(parents=True)
    avro = size.values == "avro"
    text = _FEED.format(protocol="avro" if avro else "open", partitions=PARTITIONS, folder=folder)
    text += _AVRO.format(folder=folder) if avro else _OPEN
    if buckets := size.buckets or _buckets(size):
        text += "".join(_BUCKETS.format(name=name, buckets=buckets) for name in names(size))
    if size.values == "masked":
        text += _MASK_KEY + "".join(_MASK.format(name=name) for name in names(size))
    key, note = "" if size.values == "keyless" else " PRIMARY KEY", "LONGTEXT" if size.wide else "VARCHAR(100)"
    (schemas / "feed.toml").write_text(text)
    (schemas / "tables.sql").write_text("".join(_CREATE.format(name=name, key=key, note=note) for name in names(size)))
    if avro:
        (schemas / "avro_schemas.json").write_text(json.dumps(scale_avro.schemas(names(size))))
        marks = [{"at_ms": ms_of(n) + LAST_MS + 500, "checkpoint_ts": from_ms(ms_of(n) + LAST_MS)} for n in range(size.hours + 1)]
        (folder / "checkpoints.json").write_text(json.dumps(marks))
    return load_feed(folder / "schemas", "scale", MASK_KEY)


def make_hours(folder: Path, size: Size, hours: Iterable[int] | None = None) -> None:
    """The archive, or some of its hours."""
    wanted = range(1 if size.seeded else 0, size.hours + 1) if hours is None else hours
    for number in wanted:
        for partition in range(PARTITIONS):
            write(folder / "archive", number, partition, _messages(size, partition, number))


def _buckets(size: Size) -> int | None:
    """As order finds for so many row events."""
    if not size.seeded or size.values == "keyless":
        return None
    return 1 << (size.rows // 1_000_000).bit_length() if size.rows >= 1_000_000 else 1


def ms_of(number: int) -> int:
    """When an hour begins, in ms."""
    return int(hour_at(number).timestamp() * 1000)


def _export(folder: Path, name: str, rows: int, *, zero_dates: bool) -> None:
    """Every key in version 0. The lake keeps zero dates as NULL, and no timestamp of an export is one."""
    folder.mkdir(parents=True, exist_ok=True)
    types = {"amount": pa.decimal128(21, 2), "placed": pa.timestamp("us")}
    for number, first in enumerate(range(0, rows, _FILE_ROWS)):
        keys = np.arange(first, min(first + _FILE_ROWS, rows))
        found = cells(Rows.of(keys, np.zeros_like(keys)), zero_dates=zero_dates)
        found["placed"] = pc.if_else(pc.starts_with(found["placed"], "0000"), None, found["placed"])
        columns = {c: v.cast(types[c]) if c in types else v for c, v in found.items()}
        pq.write_table(pa.table(columns), folder / f"shop.{name}.{number:09d}.parquet")


def _rows(size: Size, partition: int, number: int) -> Rows:
    """Rows of each table in an hour. First every key once. Then the changed keys lie all over the table, and versions ascend; a hot key is
    in partition 0."""
    if number == 0:
        keys = np.arange(partition, size.rows, PARTITIONS)
        return Rows.of(keys, np.zeros_like(keys))
    of_partition, per_hour = max(size.keys // PARTITIONS, 1), len(range(partition, size.changes - size.hot, PARTITIONS))
    at = np.arange(per_hour) + (number - 1) * per_hour
    keys = at % of_partition * max(size.rows // max(size.keys, 1), 1) * PARTITIONS + partition
    versions = at // of_partition + 1
    if size.hot and partition == 0:
        begin = len(at[keys == 0]) + 1
        keys = np.append(keys, np.zeros(size.hot, np.int64))
        versions = np.append(versions, np.arange(begin, begin + size.hot))
    rows = Rows.of(keys, versions)
    return rows.replaced() if size.values == "avro" else rows


def _messages(size: Size, partition: int, number: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Keys and values of messages."""
    ts, sent, rows, avro = from_ms(ms_of(number)), 0, _rows(size, partition, number), size.values == "avro"
    shape = scale_messages.Shape(
        keyless=size.values == "keyless",
        zero_dates=size.values == "zero-dates",
        statement=size.statement if number else None,
        wide=size.wide,
    )
    if shape.statement and number == 1:
        yield scale_messages.statements(shape.statement, names(size), ts + 1)
    for table, name in enumerate(names(size)):
        for part in rows.parts(shape.chunk):
            stamps = ts + (np.arange(sent + 1, sent + 1 + len(part)) << 8)
            sent += len(part)
            yield scale_avro.messages(table, part, stamps) if avro else scale_messages.messages(name, part, stamps, shape)
    if not avro:
        yield scale_messages.resolved(from_ms(ms_of(number) + LAST_MS))


def write(archive: Path, number: int, partition: int, messages: Iterator[tuple[pa.Array, pa.Array]]) -> None:
    """One object, whose offsets follow those of the hour before."""
    topic, stamp = archive / "shop", ms_of(number)
    before = sorted(topic.glob(f"hour=*/partition={partition}/*.parquet"))
    offset = at = int(before[-1].name.split("-")[1]) + 1 if before else 0
    path = topic / f"hour={hour_at(number):%Y-%m-%dT%H}" / f"partition={partition}" / "writing"
    path.parent.mkdir(parents=True)
    with pq.ParquetWriter(path, MESSAGE, compression="zstd") as writer:
        for keys, values in _groups(messages):
            n = len(keys)
            columns = [pa.repeat("shop", n), pa.repeat(pa.scalar(partition, pa.int32()), n), pa.array(np.arange(at, at + n))]
            columns += [pa.repeat(pa.scalar(stamp, pa.int64()), n), keys, values, pa.nulls(n, MESSAGE.field("headers").type)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=MESSAGE))
            at += n
    if at > offset:
        path.rename(path.with_name(f"{offset}-{at - 1}-0000.parquet"))
    else:
        path.unlink()


def _groups(messages: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Messages of a row group each, joined where they are few."""
    held, count, nbytes = list[tuple[pa.Array, pa.Array]](), 0, 0
    for keys, values in messages:
        held.append((keys, values))
        count, nbytes = count + len(keys), nbytes + values.nbytes
        if count >= _GROUP or nbytes >= _GROUP_BYTES:
            yield _joined(held)
            held, count, nbytes = [], 0, 0
    if held:
        yield _joined(held)


def _joined(held: list[tuple[pa.Array, pa.Array]]) -> tuple[pa.Array, pa.Array]:
    keys, values = zip(*held, strict=True)
    return pa.concat_arrays(keys), pa.concat_arrays(values)
