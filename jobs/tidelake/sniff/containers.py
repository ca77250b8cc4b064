"""Kind of a file, and its messages: lines of `tidelake inspect`, an archive object, lines of bare values, or one bare value.

inspect lines   {"topic"?, "partition"?, "offset"?, "key": hex | null, "value": hex | null}
archive object  in a layout of tidelake.archives, recognised by content, not by name; topic, partition and offset come from the name
bare lines      several JSON objects, one per line: files of the storage sink; each line is the value of a message without key. With an
                archive's name, `t+0+0000000007.bin` or `.json`, they are Confluent's
bare value      anything else: the value of one message without key
"""

from __future__ import annotations

import json
import re
from binascii import Error as BinasciiError
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.archives import SourceObject, layout_of
from tidelake.archives.readers.base64_text import is_base64
from tidelake.archives.readers.codecs import decompressed
from tidelake.errors import TidelakeError
from tidelake.history.event import MESSAGE

PLAIN_CSV = "Aiven's csv without base64"
INSPECT, BARE_LINES, BARE = "inspect lines", "lines of bare values", "one bare value"
MAX_BYTES = 64 << 20  # maximum size of keys and values that are read; also of one message
_HEAD = 1 << 20
_LINE = 2 * MAX_BYTES + (1 << 16)  # maximum length of a message in hex or base64
_BATCH = 500
_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]+?)(?P<joint>[+-])(?P<partition>\d{1,9})(?P=joint)(?P<offset>\d{1,20})(?![\dA-Za-z+-])")
FORMATS = {  # by the first bytes of a file
    b"PAR1": ("canonical", "lenses-parquet", "confluent-parquet", "aiven-parquet"),
    b"Obj\x01": ("lenses-avro", "confluent-avro", "aiven-avro"),
    b"SEQ": ("secor",),
}
_FIELDS = re.compile(rb"[A-Za-z0-9+/=]*,[A-Za-z0-9+/=]*,\d{1,19},-?\d{0,18}(,.*)?")
_PLAIN_FIELDS = re.compile(rb"[^,]*,.+,\d{1,19},\d{13}(,[^,]*)?")  # unquoted values that contain commas
_ARRAY = re.compile(rb'\s*\[\s*\{\s*"(headers|key|value|offset|timestamp)"')  # Aiven: an array of records
_OPEN = "confluent-bin-open"
_LINES = {"bin": "confluent-bin", "json": "confluent-json-nested"}  # layouts of lines of JSON objects, by extension
_SAMPLE = 5
_LARGEST = 1 << 62  # maximum offset: records are counted from it
READING = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError, MemoryError)


@dataclass(slots=True)
class Found:
    """A file and its messages.

    Attributes:
        container: Kind of the file.
        layout: Layout of tidelake.archives, if it is an archive object.
        compressed: The whole file is compressed with a codec of archives.
        cut: While batches are read: why not all messages were read.
        problem: While batches are read: what is wrong with the rest of the file.
    """

    container: str
    path: Path
    limit: int
    layout: str | None = None
    compressed: bool = False
    cut: str = ""
    problem: str = ""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield MESSAGE batches, up to `limit` messages and MAX_BYTES of payload, or up to damage in the file. Never raises."""
        messages = size = 0
        try:
            for batch in self._read():
                taken = batch.slice(0, self.limit - messages)
                messages, size = messages + len(taken), size + taken.nbytes
                if len(taken):
                    yield taken
                if len(taken) < len(batch) or size > MAX_BYTES:
                    self.cut = f"only the first {messages} messages were looked at"
                    return
        except TidelakeError as e:
            self.problem = e.message
        except READING as e:  # what readers raise for files of other formats
            self.problem = first_line(e)

    def _read(self) -> Iterator[pa.RecordBatch]:
        if self.layout is not None:
            yield from layout_of(self.layout).read(self.path, _source(self.path))
            return
        with decompressed(self.path, _source(self.path)) if self.container != BARE else self.path.open("rb") as stream:
            if self.container == BARE:
                yield _batch([_place(0) | {"value": stream.read(MAX_BYTES + 1)}])
            else:
                yield from _lines(stream, self.container)


def recognised(path: Path, limit: int) -> Found:
    """Return the kind of a file, judging by its first bytes. Raises OSError if it cannot be opened."""
    with path.open("rb") as file:
        start = file.read(_HEAD)
    for mark, layouts in FORMATS.items():
        if start.startswith(mark):
            layout = _first_that_reads(path, layouts)
            return Found(layout, path, limit, layout)
    head = _decompressed_head(path)
    container = _of_lines(head)
    if container is None and head.startswith(b"\x00"):
        container = _OPEN if _reads(path, _OPEN) else None
    if container == BARE_LINES and _NAME.search(path.name):
        container = next((form for word, form in _LINES.items() if word in path.name.lower().split(".")), container)
    if container is None:
        return Found(BARE, path, limit)
    return Found(container, path, limit, None if container in (INSPECT, BARE_LINES) else container, compressed=head != start)


def first_line(error: Exception) -> str:
    """Return a reader's message about bytes of another format, for people."""
    says = str(error).splitlines()[0] if str(error) and isinstance(error, (ValueError, OSError)) else ""
    return says or "its content does not match its first bytes"


def _reads(path: Path, layout: str) -> bool:
    """Whether the layout's reader reads the whole file."""
    try:
        return sum(map(len, layout_of(layout).read(path, _source(path)))) > 0
    except (TidelakeError, *READING):
        return False


def _first_that_reads(path: Path, layouts: Sequence[str]) -> str:
    """The first layout whose reader reads the start of the file; the last one if none does."""
    for layout in layouts:
        try:
            first = next(iter(layout_of(layout).read(path, _source(path))), None)
            if layout != "confluent-parquet" or first is None or not has_keys(path):
                return layout
        except (TidelakeError, *READING):
            continue
    return layouts[-1]


def has_keys(path: Path) -> bool:
    """Whether a Parquet file has a column `key`, which Confluent's connector does not write. False for a damaged file."""
    try:
        return "key" in pq.read_schema(path).names
    except READING:
        return False


def is_empty(path: Path) -> bool:
    """Whether a file is empty after decompression."""
    try:
        with decompressed(path, _source(path)) as stream:
            return not stream.read(1)
    except (TidelakeError, *READING):
        return False


def is_plain_csv(path: Path) -> bool:
    """Whether a file has lines of Aiven's CSV with unquoted values, in which the end of a value cannot be found."""
    lines = [line.strip() for line in _decompressed_head(path).split(b"\n", _SAMPLE)[:_SAMPLE] if line.strip()]
    return bool(lines) and all(map(_PLAIN_FIELDS.fullmatch, lines))


def _decompressed_head(path: Path) -> bytes:
    """The first decompressed bytes; empty if the file is damaged."""
    try:
        with decompressed(path, _source(path)) as stream:
            return stream.read(_HEAD)
    except (TidelakeError, *READING):
        return b""


def _of_lines(head: bytes) -> str | None:
    """The kind of a text's lines; None if unknown."""
    whole = head if len(head) < _HEAD else head.rpartition(b"\n")[0]
    lines = [line.strip() for line in whole.split(b"\n", 2 * _SAMPLE)[: 2 * _SAMPLE] if line.strip()][:_SAMPLE]
    if not lines:
        return None
    if lines[0].startswith(b"[") and _ARRAY.match(head):
        return "aiven-json"
    if all(line.startswith(b'"') and line.endswith(b'"') and len(line) >= 2 for line in lines):
        return "confluent-json" if all(is_base64(line[1:-1]) for line in lines) else "confluent-json-string"
    if all(_FIELDS.fullmatch(line) and all(map(is_base64, line.split(b",")[:2])) for line in lines):
        return "aiven-csv"
    records = [_record(line) for line in lines]
    if not all(isinstance(record, dict) for record in records):
        return None
    if all(_is_ours(record) for record in records):
        return INSPECT
    for members, layout in _RECORDS:
        if all(members <= record.keys() for record in records):
            return layout if layout != "aiven-jsonl" else _aiven(records)
    return BARE_LINES if len(records) > 1 else None


_RECORDS: tuple[tuple[frozenset[str], str], ...] = (  # the members of a record → its layout
    (frozenset({"offset", "value"}), "aiven-jsonl"),
    (frozenset({"value", "metadata"}), "lenses-json"),
    (frozenset({"offset", "payload", "tstype"}), "kcat"),
)


def _aiven(records: Sequence[dict[str, Any]]) -> str:
    """The layout, judging by the converter that wrote the values."""
    if all(_texts(record, is_base64) for record in records):
        return "aiven-jsonl"
    return "aiven-jsonl-nested" if any(isinstance(record["value"], dict) for record in records) else "aiven-jsonl-string"


def _record(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_ours(record: dict[str, Any]) -> bool:
    return {"key", "value"} & record.keys() != set() and record.keys() <= _MEMBERS and _texts(record, _is_hex)


_MEMBERS = frozenset({"topic", "partition", "offset", "ts_ms", "key", "value"})


def _texts(record: dict[str, Any], fits: Any) -> bool:
    """Whether key and value, if present, are null or matching texts."""
    sides = (record.get(name) for name in ("key", "value"))
    return all(side is None or (isinstance(side, str) and side.isascii() and fits(side.encode())) for side in sides)


def _is_hex(text: bytes) -> bool:
    try:
        bytes.fromhex(text.decode())
    except ValueError:
        return False
    return True


def _source(path: Path) -> SourceObject:
    """The file as an object of an archive. Its name gives no codec, and no offset that is too large."""
    found = _NAME.search(path.name)
    if found is None or int(found["offset"]) > _LARGEST:
        return SourceObject("", 0, "the file", 0, 0, "")
    return SourceObject(found["topic"], int(found["partition"]), "the file", int(found["offset"]), 0, "")


def _lines(stream: IO[bytes], container: str) -> Iterator[pa.RecordBatch]:
    """Batches of lines. Raises ValueError with the line's number for a line of another kind."""
    rows, number, rest, size = list[dict[str, Any]](), 0, b"", 0
    while data := stream.read(_HEAD):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _LINE:
            raise ValueError(f"line {number + len(lines) + 1} is longer than {_LINE} bytes")
        for line in lines:
            rows += _row(line, number, container)
            number, size = number + 1, size + len(line)
            if len(rows) == _BATCH or size > _HEAD:
                yield _batch(rows)
                rows, size = [], 0
    rows += _row(rest, number, container)
    if rows:
        yield _batch(rows)


def _row(line: bytes, number: int, container: str) -> list[dict[str, Any]]:
    """One message, or none for a blank line."""
    line = line.strip()
    if not line:
        return []
    if container == BARE_LINES:
        return [_place(number) | {"value": line}]
    record = _record(line)
    try:
        sides = {side: None if record.get(side) is None else bytes.fromhex(record[side]) for side in ("key", "value")}
        topic, partition, offset = record.get("topic") or "", record.get("partition") or 0, record.get("offset")
        place = {"topic": topic, "partition": partition, "offset": number if offset is None else offset}
        _batch([place])  # reports wrong coordinates as an error of this line
    except (AttributeError, TypeError, ValueError, OverflowError, BinasciiError) as e:
        raise ValueError(f"line {number + 1} is not a line of `tidelake inspect`: {e}") from e
    return [place | sides]


def _place(number: int) -> dict[str, Any]:
    return {"topic": "", "partition": 0, "offset": number}


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=MESSAGE)
