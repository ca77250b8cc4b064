"""The archived objects, read by other libraries, hold every message once, in the layouts of docs/reference/archives.md 1, 2, 9."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from tidelake.demo import archive
from tidelake.demo.archive import LAYOUTS, ArchiveWriter
from tidelake.demo.delivery import Message
from tidelake.demo.history import History
from tidelake.demo.replicator import Replicator
from tidelake.demo.sinks import PROTOCOLS, SINKS
from tidelake.io.storage import open_store

Read = tuple[int | None, int | None, bytes | None, bytes | None]  # offset, ms, key, value
NAME = re.compile(r"(?P<topic>[^+]+)\+(?P<partition>\d+)\+(?P<number>\d+)\.(?P<extension>[a-z.]+)")
EXTENSIONS = {
    "open": "jsonl.gz",
    "simple-json": "jsonl.gz",
    "debezium": "jsonl.gz",
    "debezium-bare": "jsonl.gz",
    "craft": "parquet",
    "canal-json": "json.gz",
    "canal-json-cc": "csv.gz",
    "avro": "avro",
}


def read_jsonl(raw: bytes) -> Iterator[Read]:
    for line in gzip.decompress(raw).decode().split("\n"):
        m = json.loads(line)
        assert m["headers"] == []
        at_ms = round(datetime.fromisoformat(m["timestamp"]).timestamp() * 1000)
        yield m["offset"], at_ms, unpacked(m["key"]), unpacked(m["value"])


def read_csv(raw: bytes) -> Iterator[Read]:
    for key, value, offset, at_ms in csv.reader(io.StringIO(gzip.decompress(raw).decode())):
        yield int(offset), int(at_ms), unpacked(key), unpacked(value)


def read_json(raw: bytes) -> Iterator[Read]:
    text = gzip.decompress(raw).decode()
    assert text.endswith("\n")
    for line in text.splitlines():
        yield None, None, None, unpacked(json.loads(line))


def read_parquet(raw: bytes) -> Iterator[Read]:
    file = pq.ParquetFile(io.BytesIO(raw))
    assert file.metadata.row_group(0).column(1).compression == "UNCOMPRESSED"
    for m in file.read().to_pylist():
        yield m["offset"], m["timestamp"], m["key"], m["value"]


def read_avro(raw: bytes) -> Iterator[Read]:
    reader = fastavro.reader(io.BytesIO(raw))
    assert reader.metadata["avro.codec"] == "deflate"
    record: Any
    for record in reader:
        yield record["offset"], record["timestamp"], record["key"], record["value"]


READERS = {
    "open": read_jsonl,
    "simple-json": read_jsonl,
    "debezium": read_jsonl,
    "debezium-bare": read_jsonl,
    "craft": read_parquet,
    "canal-json": read_json,
    "canal-json-cc": read_csv,
    "avro": read_avro,
}


def unpacked(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


def carried(protocol: str, m: Message) -> Read:
    """A message as far as the layout carries it: csv confuses null and empty, Confluent's JSON holds the value only."""
    if protocol == "canal-json":
        return None, None, None, m.value
    return m.offset, m.timestamp_ms, m.key or b"" if protocol == "canal-json-cc" else m.key, m.value


@pytest.fixture(scope="module", params=PROTOCOLS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, list[Message]]:
    """A protocol, the folder of its archive, and all messages."""
    protocol, root = request.param, tmp_path_factory.mktemp("archive")
    messages = list(Replicator(History(rows_per_hour=800), SINKS[protocol]).messages())
    out = ArchiveWriter(open_store(str(root)), protocol, LAYOUTS[protocol])
    for message in messages:
        out.add(message)
    out.close()
    files = [p for p in root.rglob("*") if p.is_file()]
    assert (out.objects, out.bytes) == (len(files), sum(p.stat().st_size for p in files))
    return protocol, root / protocol, messages


def test_every_message_is_in_exactly_one_object_of_its_partition(written: tuple[str, Path, list[Message]]) -> None:
    protocol, root, messages = written
    want: dict[tuple[str, int], list[Read]] = defaultdict(list)
    for m in messages:
        want[m.topic, m.partition].append(carried(protocol, m))
    got: dict[tuple[str, int], list[Read]] = defaultdict(list)
    for path in objects(root):
        got[named(path)["topic"], int(named(path)["partition"])] += READERS[protocol](path.read_bytes())
    assert got == want
    assert sum(map(len, got.values())) == len(messages) > 1500


def test_objects_of_an_hour_hold_only_messages_of_that_hour(written: tuple[str, Path, list[Message]]) -> None:
    protocol, root, messages = written
    times = {(m.topic, m.partition, m.offset): m.timestamp_ms for m in messages}
    several = 0
    for folder in {p.parent for p in objects(root)}:
        names = [named(p)["partition"] for p in folder.iterdir()]
        several += len(names) > len(set(names))
        for path in folder.iterdir():
            name = named(path)
            assert name["extension"] == EXTENSIONS[protocol]
            assert path.parts[-len(folder.relative_to(root).parts) - 1] == name["topic"]
            start = int(name["number"])
            for i, (_, at_ms, _, _) in enumerate(READERS[protocol](path.read_bytes())):
                known_ms = times[name["topic"], int(name["partition"]), start + i] if at_ms is None else at_ms
                assert f"{datetime.fromtimestamp(known_ms // 1000, UTC):%Y%m%d%H}" == hour_of(path)
    assert several >= 3


def test_aiven_names_say_the_window_s_first_offset_and_confluent_names_the_object_s_own(written: tuple[str, Path, list[Message]]) -> None:
    protocol, root, _ = written
    wrong, numbers = 0, defaultdict(set)
    for path in objects(root):
        name = named(path)
        assert len(name["number"]) == (10 if protocol == "canal-json" else 20)
        numbers[name["topic"], name["partition"], name["number"]].add(hour_of(path))
        first, *_ = READERS[protocol](path.read_bytes())
        wrong += first[0] is not None and first[0] != int(name["number"])
    across = sum(len(hours) > 1 for hours in numbers.values())
    assert (across, wrong) == (0, 0) if protocol == "canal-json" else across >= 3 and wrong == across


def test_a_long_window_is_flushed_early_under_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_WINDOW_MESSAGES", 10)
    out = ArchiveWriter(open_store(str(tmp_path)), "craft", LAYOUTS["craft"])
    for offset in range(25):
        out.add(Message("t", 0, offset, 1_767_607_200_000 + offset, None, b"v"))
    out.close()
    assert [int(named(p)["number"]) for p in sorted(tmp_path.rglob("*.parquet"))] == [0, 10, 20]


def test_timestamps_of_json_lines_have_no_or_three_fraction_digits(tmp_path: Path) -> None:
    out = ArchiveWriter(open_store(str(tmp_path)), "open", LAYOUTS["open"])
    for offset, ms in enumerate((0, 7)):
        out.add(Message("t", 0, offset, 1_767_607_200_000 + ms, None, b""))
    out.close()
    (path,) = tmp_path.rglob("*.gz")
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().split("\n")]
    assert [m["timestamp"] for m in lines] == ["2026-01-05T10:00:00Z", "2026-01-05T10:00:00.007Z"]
    assert [(m["key"], m["value"]) for m in lines] == [(None, ""), (None, "")]


def objects(root: Path) -> list[Path]:
    """All objects by hour and number."""
    return sorted((p for p in root.rglob("*") if p.is_file()), key=lambda p: (hour_of(p), int(named(p)["number"])))


def named(path: Path) -> re.Match[str]:
    """The parts of an object's name."""
    found = NAME.fullmatch(path.name)
    assert found
    return found


def hour_of(path: Path) -> str:
    """YYYYMMDDHH of an object's folder."""
    return "".join(re.findall(r"\d+", "".join(path.parts[path.parts.index(named(path)["topic"]) + 1 : -1])))
