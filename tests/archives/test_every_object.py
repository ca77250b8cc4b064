"""Every object of tests/data/archives is read by the layout for it, or refused with the reason (docs/reference/archives.md 9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.archives.objects import Message, read_file
from tests.archives.real_objects import objects, with_siblings
from tests.data_files import data_path
from tidelake.errors import TidelakeError

LAYOUT_OF = {
    "aiven/avro": "aiven-avro",
    "aiven/csv-gzip": "aiven-csv",
    "aiven/json": "aiven-json",
    "aiven/jsonl-gzip": "aiven-jsonl",
    "aiven/jsonl-jsonconverter": "aiven-jsonl-nested",
    "aiven/jsonl-maxrec": "aiven-jsonl",
    "aiven/jsonl-snappy": "aiven-jsonl",
    "aiven/jsonl-stringconverter": "aiven-jsonl-string",
    "aiven/parquet": "aiven-parquet",
    "aiven/parquet-wallclock": "aiven-parquet",
    "confluent/cf-avro": "confluent-avro",
    "confluent/cf-avro-keys": "confluent-avro",
    "confluent/cf-bin": "confluent-bin-open",
    "confluent/cf-bin-keys": "confluent-bin-open",
    "confluent/cf-json-b64": "confluent-json",
    "confluent/cf-json-conv": "confluent-json-nested",
    "confluent/cf-json-str": "confluent-json-string",
    "confluent/cf-null-ignore": "confluent-json",
    "confluent/cf-null-write": "confluent-json",
    "confluent/cf-tag": "confluent-json",
}
REFUSED = {"aiven/default": "aiven-csv", "aiven/jsonl-bare": "aiven-jsonl"}  # no offsets, and names that do not say them
DAMAGED = {  # Open Protocol that was never sound, in a form that needs it
    ("confluent/cf-bin", "cdc.open+0+0000000000.bin"): "not Open Protocol",
    ("confluent/cf-bin-keys", "cdc2.open+1+0000000000.bin"): "not Open Protocol",
}


def test_every_folder_of_objects_has_its_layout() -> None:
    root = data_path("archives/objects")
    assert {str(path.relative_to(root)) for path in root.glob("*/*")} == LAYOUT_OF.keys() | REFUSED.keys()


def outcome(folder: str, layout: str, path: Path, source: object, scratch: Path) -> str:
    try:
        read_file(layout, *with_siblings(path, source, scratch))  # type: ignore[arg-type]
    except TidelakeError as e:
        return str(e)
    return ""


@pytest.mark.parametrize("folder", LAYOUT_OF)
def test_every_object_is_read(folder: str, tmp_path: Path) -> None:
    found = objects(folder, "")
    assert found
    for path, source in found:
        layout = "confluent-bin" if (folder, source.topic) == ("confluent/cf-bin", "cdc.canal") else LAYOUT_OF[folder]
        error = outcome(folder, layout, path, source, tmp_path)
        expected = DAMAGED.get((folder, path.name), "")
        assert expected in error if expected else not error, (path.name, error)


@pytest.mark.parametrize("folder", REFUSED)
def test_every_object_without_offsets_is_refused(folder: str, tmp_path: Path) -> None:
    for path, source in objects(folder, ""):
        assert outcome(folder, REFUSED[folder], path, source, tmp_path).startswith(("ARCHIVE_LAYOUT", "DAMAGED_OBJECT")), path.name


def bulk(folder: str) -> dict[tuple[int, int], Message]:
    """Messages of the topic that has no truth, by partition and offset."""
    out = {}
    for path, source in objects(folder, ""):
        if source.topic == "cdc.bulk":
            out |= {(source.partition, m.offset): m._replace(headers=None) for m in read_file(LAYOUT_OF[folder], path, source)}
    return out


def test_the_large_topic_is_the_same_in_every_layout_that_keeps_it() -> None:
    first = bulk("aiven/jsonl-gzip")
    assert len(first) == 45
    for folder in ("aiven/csv-gzip", "aiven/parquet"):
        others = bulk(folder)
        assert {at: others.get(at) for at in first} == first, folder
