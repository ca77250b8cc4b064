"""Archives of any size: tables `shop.t000`… of seven columns each, filled in a first hour, or by an export, and changed in a second hour.

Canonical Parquet with Open Protocol messages of 16 rows as TiCDC writes them, old values included; exports are Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelake.config.feed import Feed, load_feed
from tidelake.history.event import MESSAGE
from tidelake.tso import from_ms

HOURS = [datetime(2026, 1, 5, 10, tzinfo=UTC) + timedelta(hours=n) for n in range(2)]
EXPORTED_MS = int(HOURS[0].timestamp() * 1000)  # when an export was made
PARTITIONS = 4
BATCH = 16  # rows of a message
COLUMNS = "id BIGINT, buyer STRING, amount DECIMAL(12,2), qty INT, note STRING, placed TIMESTAMP_NTZ, state INT"

_FEED = """protocol = "open"
topics = ["shop"]
partitions = {partitions}
[source]
uri = "{folder}/archive"
layout = "canonical"
closed_by = "quiet"
quiet_minutes = 0
[watermark]
from = "messages"
[lake]
uri = "{folder}/lake"
catalog = "jdbc:sqlite:{folder}/lake.db"
"""
_CREATE = (
    "CREATE TABLE `shop`.`{name}` (`id` BIGINT NOT NULL PRIMARY KEY, `buyer` VARCHAR(40), `amount` DECIMAL(12,2), `qty` INT, "
    "`note` VARCHAR(100), `placed` DATETIME, `state` INT);\n"
)
_ROW = (
    '{"id":{"t":8,"h":true,"f":11,"v":%d},"buyer":{"t":15,"f":64,"v":"buyer%d"},"amount":{"t":246,"f":64,"v":"%d.%02d"},'
    '"qty":{"t":3,"f":64,"v":%d},"note":{"t":15,"f":64,"v":"note of row %d in its version %d"},'
    '"placed":{"t":12,"f":64,"v":"%s"},"state":{"t":3,"f":64,"v":%d}}'
)
_GROUP = 4096  # messages of a row group
_FILE_ROWS = 500_000  # of an export
_MASK_KEY = '[policy]\nmask_key = "${TIDELAKE_MASK_KEY}"\n'
_MASK = '[columns."shop.{name}".buyer]\nmask = "hash"\n'
MASK_KEY = {"TIDELAKE_MASK_KEY": "a key for the benchmark, of 32 bytes"}
VALUES = ("plain", "masked", "zero-dates")  # one column is hashed; every tenth date is a zero date
_BUCKETS = '[tables."shop.{name}"]\nbuckets = {buckets}\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """rows: of each table after the first hour; changes: row events of each in the second, which concern so many keys; hot: how many of
    them are of one key; seeded: the tables begin with an export; values: one of VALUES."""

    tables: int = 1
    rows: int
    changes: int
    keys: int
    hot: int = 0
    seeded: bool = False
    values: str = "plain"

    @property
    def events(self) -> int:
        """Row events of the second hour."""
        return self.tables * self.changes


def names(size: Size) -> list[str]:
    """The tables."""
    return [f"t{n:03d}" for n in range(size.tables)]


def make(folder: Path, size: Size) -> Feed:
    """The archive of both hours, or an export and the second, and a feed that reads them into an empty lake."""
    feed = make_export(folder, size) if size.seeded else make_feed(folder, size)
    make_hours(folder, size)
    return feed


def make_export(folder: Path, size: Size) -> Feed:
    """A feed, and the export that its tables begin with."""
    for name in names(size):
        _export(folder / "export", name, size.rows)
    return make_feed(folder, size)


def make_feed(folder: Path, size: Size) -> Feed:
    """The feed's files."""
    schemas = folder / "schemas" / "scale"
    schemas.mkdir(parents=True)
    buckets = 1 << (size.rows // 1_000_000).bit_length() if size.rows >= 1_000_000 else 1  # as order finds for so many events
    own = "".join(_BUCKETS.format(name=name, buckets=buckets) for name in names(size)) if size.seeded else ""
    own += _MASK_KEY + "".join(_MASK.format(name=name) for name in names(size)) if size.values == "masked" else ""
    (schemas / "feed.toml").write_text(_FEED.format(partitions=PARTITIONS, folder=folder) + own)
    (schemas / "tables.sql").write_text("".join(_CREATE.format(name=name) for name in names(size)))
    return load_feed(folder / "schemas", "scale", MASK_KEY)


def make_hours(folder: Path, size: Size) -> None:
    """The archive."""
    for partition in range(PARTITIONS):
        offset = 0
        for hour, rows in [(HOURS[1], _changed)] if size.seeded else zip(HOURS, (_filled, _changed), strict=True):
            offset += _write(folder / "archive", hour, partition, offset, _messages(size, rows(size, partition), hour))


def _export(folder: Path, name: str, rows: int) -> None:
    """What `_image` says of every key in version 0."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, rows, _FILE_ROWS)):
        keys = pa.array(np.arange(first, min(first + _FILE_ROWS, rows)))
        texts = pc.cast(keys, pa.string())
        zero = pa.array(np.zeros(len(keys), np.int32))
        minute = pa.array(np.asarray(keys) % 60 * 60_000_000 + EXPORTED_MS * 1000)
        columns = {
            "id": keys,
            "buyer": pc.binary_join_element_wise("buyer", pc.cast(pa.array(np.asarray(keys) % 9973), pa.string()), ""),
            "amount": pc.cast(pa.array(np.asarray(keys) % 100_000), pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
            "qty": zero,
            "note": pc.binary_join_element_wise("note of row ", texts, " in its version 0", ""),
            "placed": pc.cast(minute, pa.timestamp("us")),
            "state": zero,
        }
        pq.write_table(pa.table(columns), folder / f"shop.{name}.{number:09d}.parquet")


def _filled(size: Size, partition: int) -> tuple[list[int], list[int]]:
    """Keys and their versions: every row once."""
    keys = range(partition, size.rows, PARTITIONS)
    return list(keys), [0] * len(keys)


def _changed(size: Size, partition: int) -> tuple[list[int], list[int]]:
    """The changed keys lie all over the table, a hot one is in partition 0; versions ascend."""
    spread = np.arange(partition, size.changes - size.hot, PARTITIONS) // PARTITIONS % max(size.keys // PARTITIONS, 1)
    rounds = np.arange(len(spread)) // max(size.keys // PARTITIONS, 1) + 1
    keys = spread * max(size.rows // max(size.keys, 1), 1) * PARTITIONS + partition
    if partition or not size.hot:
        return keys.tolist(), rounds.tolist()
    return [*keys.tolist(), *[0] * size.hot], [*rounds.tolist(), *range(1000, 1000 + size.hot)]


def _image(key: int, version: int, zero_dates: bool) -> str:
    placed = "0000-00-00 00:00:00" if zero_dates and key % 10 == 0 else f"2026-01-05 10:{key % 60:02d}:{version % 60:02d}"
    return _ROW % (key, key % 9973, key % 100_000, version % 100, version % 7, key, version, placed, version % 5)


def _messages(size: Size, rows: tuple[list[int], list[int]], hour: datetime) -> Iterator[tuple[bytes, bytes]]:
    ts, sent, zero = from_ms(int(hour.timestamp() * 1000)), 0, size.values == "zero-dates"
    for name in names(size):
        for first in range(0, len(rows[0]), BATCH):
            heads, bodies = list[bytes](), list[bytes]()
            for key, version in zip(*(side[first : first + BATCH] for side in rows), strict=True):
                sent += 1
                heads.append(b'{"ts":%d,"scm":"shop","tbl":"%s","t":1}' % (ts + (sent << 8), name.encode()))
                old = f',"p":{_image(key, version - 1, zero)}' if version else ""
                bodies.append(f'{{"u":{_image(key, version, zero)}{old}}}'.encode())
            yield (1).to_bytes(8, "big") + _framed(heads), _framed(bodies)
    yield (1).to_bytes(8, "big") + _framed([b'{"ts":%d,"t":3}' % (ts + (3_599_999 << 18))]), _framed([b""])


def _framed(parts: list[bytes]) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _write(archive: Path, hour: datetime, partition: int, offset: int, messages: Iterator[tuple[bytes, bytes]]) -> int:
    """One object; the number of its messages."""
    path = archive / "shop" / f"hour={hour:%Y-%m-%dT%H}" / f"partition={partition}" / "writing"
    path.parent.mkdir(parents=True)
    at, stamp = offset, int(hour.timestamp() * 1000)
    with pq.ParquetWriter(path, MESSAGE, compression="zstd") as writer:
        for group in _groups(messages):
            keys, values = zip(*group, strict=True)
            columns = {"topic": ["shop"] * len(group), "partition": [partition] * len(group), "offset": range(at, at + len(group))}
            columns |= {"timestamp_ms": [stamp] * len(group), "key": keys, "value": values, "headers": [None] * len(group)}
            writer.write_batch(pa.RecordBatch.from_pydict(columns, schema=MESSAGE))
            at += len(group)
    path.rename(path.with_name(f"{offset}-{at - 1}-0000.parquet"))
    return at - offset


def _groups(messages: Iterator[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    group = list[tuple[bytes, bytes]]()
    for message in messages:
        group.append(message)
        if len(group) == _GROUP:
            yield group
            group = []
    if group:
        yield group
