"""Small objects that become large: batches are bounded by what records decode to, in every layout and codec."""

from __future__ import annotations

import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archives.objects import Message, secor
from tests.fuzz.peak import MEASURED, Peak, settle
from tidelake.archives import SourceObject, layout_of
from tidelake.errors import OrderError, StorageError

MB = 1 << 20
VALUE = bytes(4 * MB)
TIMES = 2000  # 8 GB
BUDGET = 512 * MB  # of memory, for the first batches of any object
BATCH = 80 * MB  # of one batch


def dictionary(folder: Path) -> Path:
    """One value, which the rows repeat by its number."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(TIMES, np.int32)), pa.array([VALUE], pa.binary()))
    return _parquet(folder, pa.table({"value": column, "offset": np.arange(TIMES)}))


def delta(folder: Path) -> Path:
    """Every value repeats the one before it."""
    return _repeated(folder, "DELTA_BYTE_ARRAY")


def pages(folder: Path) -> Path:
    """Plain values that the codec takes together; a row group says its plain size."""
    return _repeated(folder, "PLAIN")


def uneven(folder: Path) -> Path:
    """A row group of many tiny values and few large ones: by its average many rows are a batch."""
    small = pa.table({"value": pa.array([b""] * 200_000, pa.binary()), "offset": np.arange(200_000)})
    return _repeated(folder, "PLAIN", small, times=300)


def headers(folder: Path) -> Path:
    """One header's value, which all headers of all records repeat."""
    each, rows = 20, 100
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(each * rows, np.int32)), pa.array([VALUE], pa.binary()))
    offsets = pa.array(np.arange(0, each * rows + 1, each, dtype=np.int32))
    maps = pa.MapArray.from_arrays(offsets, pa.array(["k"] * (each * rows)), values)
    return _parquet(folder, pa.table({"value": pa.array([b""] * rows, pa.binary()), "offset": np.arange(rows), "headers": maps}))


def _repeated(folder: Path, encoding: str, before: pa.Table | None = None, times: int = 300) -> Path:
    few = pa.table({"value": pa.array([VALUE] * 20, pa.binary()), "offset": np.arange(20)})
    path = folder / "t+0+00000000000000000000.parquet"
    with pq.ParquetWriter(path, few.schema, compression="zstd", use_dictionary=False, column_encoding={"value": encoding}) as writer:
        for table in [before] if before is not None else []:
            writer.write_table(table, row_group_size=1 << 30)
        for _ in range(times // 20):
            writer.write_table(few, row_group_size=1 << 30)
    return path


def _parquet(folder: Path, table: pa.Table) -> Path:
    path = folder / "t+0+00000000000000000000.parquet"
    pq.write_table(table, path, compression="zstd", store_schema=False)
    return path


@pytest.mark.parametrize("bomb", [dictionary, delta, pages, uneven])
def test_a_parquet_object_s_batches_are_bounded_by_what_its_values_decode_to(bomb: Callable[[Path], Path], tmp_path: Path) -> None:
    path = bomb(tmp_path)
    assert path.stat().st_size < MB
    settle()
    peak = Peak()
    batches = list(islice((batch.nbytes for batch in _batches("aiven-parquet", path)), 3))
    assert len(batches) == 3
    assert max(batches) < BATCH
    assert peak.grown() < BUDGET or not MEASURED


def test_a_parquet_object_is_read_to_its_end_however_small_its_batches_are(tmp_path: Path) -> None:
    found = [offset for batch in _batches("aiven-parquet", _smaller(tmp_path)) for offset in batch.column("offset").to_pylist()]
    assert found == list(range(60))


def _smaller(folder: Path) -> Path:
    """Values of 3 MB, which a dictionary says once."""
    values = pa.array([bytes([65 + n]) * (3 * MB) for n in range(2)], pa.binary())
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(60, dtype=np.int32) % 2), values)
    return _parquet(folder, pa.table({"value": column, "offset": np.arange(60)}))


def test_headers_that_decode_to_more_than_a_gigabyte_are_refused(tmp_path: Path) -> None:
    settle()
    peak = Peak()
    with pytest.raises(StorageError, match=r"column headers\.key_value\.value of a row group decodes to up to 8,388,\d+,\d+ bytes"):
        list(_batches("aiven-parquet", headers(tmp_path)))
    assert peak.grown() < BUDGET or not MEASURED


def avro(packed: Callable[[bytes], bytes], codec: str, records: int, plain: bytes) -> bytes:
    """A container with one block of our own."""
    out = io.BytesIO()
    fields = [{"name": "offset", "type": "long"}, {"name": "value", "type": "bytes"}]
    schema = {"type": "record", "name": "r", "fields": fields}
    fastavro.writer(out, schema, [], codec=codec)
    head = out.getvalue()
    data = packed(plain)
    return head + _long(records) + _long(len(data)) + data + head[-16:]


def _long(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _deflated(plain: bytes) -> bytes:
    stream = zlib.compressobj(1, wbits=-15)
    return stream.compress(plain) + stream.flush()


def _xz(plain: bytes) -> bytes:
    return lzma.compress(plain, preset=0)


def _zstd(plain: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(plain, asbytes=True))


@pytest.mark.long
@pytest.mark.parametrize(("codec", "packed"), [("deflate", _deflated), ("zstandard", _zstd), ("xz", _xz)])
def test_an_avro_block_that_unpacks_to_more_than_a_block_may_have_is_damaged(
    codec: str, packed: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    content = avro(packed, codec, 1, b"\0" + _long(300 * MB) + bytes(300 * MB))
    assert len(content) < 2 * MB
    _refused("aiven-avro", tmp_path / "t+0+00000000000000000000.avro", content, "a block|not readable as Avro")


def test_an_avro_block_of_more_records_than_a_block_may_have_is_damaged(tmp_path: Path) -> None:
    content = avro(_zstd, "zstandard", 64 * MB, bytes(128 * MB))
    _refused("aiven-avro", tmp_path / "t+0+00000000000000000000.avro", content, "a block of 67,108,864 records")


@pytest.mark.parametrize("codec", ["DefaultCodec", "GzipCodec"])
def test_a_sequence_file_s_batches_are_bounded_by_what_its_values_unpack_to(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "t_0_00000000000000000000.seq"
    path.write_bytes(secor([Message(i, VALUE) for i in range(30)], codec=codec))
    assert path.stat().st_size < MB
    settle()
    peak = Peak()
    sizes = [(len(batch), batch.nbytes) for batch in _batches("secor", path)]
    assert sum(rows for rows, _ in sizes) == 30
    assert max(size for _, size in sizes) < 3 * len(VALUE)
    assert peak.grown() < BUDGET or not MEASURED


@pytest.mark.long
def test_a_value_of_a_sequence_file_that_unpacks_to_more_than_a_line_may_have_is_damaged(tmp_path: Path) -> None:
    content = secor([Message(0, bytes(300 * MB))], codec="DefaultCodec")
    _refused("secor", tmp_path / "t_0_00000000000000000000.seq", content, "record 1: decompresses to more than")


@pytest.mark.long
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize(("layout", "name"), [("aiven-jsonl", "jsonl"), ("aiven-csv", "csv"), ("confluent-json", "json"), ("kcat", "json")])
def test_a_line_without_an_end_is_refused(layout: str, name: str, codec: str, tmp_path: Path) -> None:
    path = tmp_path / f"t+0+00000000000000000000.{name}"
    with pa.CompressedOutputStream(str(path), codec) as out:
        for _ in range(300):
            out.write(b"7" * MB)
    assert path.stat().st_size < MB
    _refused(layout, path, path.read_bytes(), "longer than")


def _refused(layout: str, path: Path, content: bytes, said: str) -> None:
    """It raises what readers raise, within the budget."""
    path.write_bytes(content)
    settle()
    peak = Peak()
    with pytest.raises(OrderError, match=said):
        list(_batches(layout, path))
    assert peak.grown() < 2 * BUDGET or not MEASURED


def _batches(layout: str, path: Path) -> Iterator[pa.RecordBatch]:
    return layout_of(layout).read(path, SourceObject("t", 0, path.name, 0, path.stat().st_size, ""))
