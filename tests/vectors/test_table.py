"""Every vector of both files is decoded by its tests or listed with a reason, and the table at the end of a run says so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.protocols import vectors
from tests.vectors.table import lines, reason
from tidelake.protocols.table_schemas import table_schemas


@dataclass
class Report:
    nodeid: str


def test_all_964_vectors_are_messages_or_listed() -> None:
    listed = Counter(v["protocol"] for v in vectors.every() if reason(v))
    messages = [v for v in vectors.every() if not reason(v)]
    assert (len(vectors.every()), listed.total(), len(messages)) == (964, 46, 918)
    assert Counter(v["protocol"] for v in messages) == {p: len(vectors.load(p)) for p in vectors.PROTOCOLS}
    assert listed == {
        "craft-primitive": 22,
        "partition-hash": 8,
        "tso": 7,
        "avro-name": 4,
        "storage-schema-file": 2,
        "avro": 1,
        "storage-metadata": 1,
        "storage-index": 1,
    }


def test_the_table_counts_what_passed_by_both_paths_and_what_did_not() -> None:
    by_reader = "tests/protocols/test_vectors.py::test_the_general_reader_gives_what_the_vector_says"
    by_columns = "tests/protocols/test_vectors.py::test_the_columnar_path_gives_what_the_vector_says"
    passed = [Report(f"{by_reader}[open:a]"), Report(f"{by_columns}[open:a]"), Report(f"{by_reader}[open:b[0]]"), Report("x::y[open:c]")]
    found = [line.split() for line in lines({"passed": passed, "failed": [Report(f"{by_columns}[open:b[0]]")]})]
    rows = {words[0]: [int(n) for n in words[-3:]] for words in found[1 : 2 + len(vectors.PROTOCOLS)]}
    assert rows["open"][1:] == [1, 1]
    assert rows["all"][1:] == [1, 1]
    assert rows["csv"][1:] == [0, 0]
    assert list(lines({"passed": [Report("x::y[open:c]")]})) == []


def test_a_schema_file_says_the_columns_of_its_table(tmp_path: Path) -> None:
    files = [v for v in vectors.every() if v["protocol"] == "storage-schema-file"]
    for i, vector in enumerate(files):
        (tmp_path / f"schema_{i}.json").write_bytes(bytes.fromhex(vector["value_hex"]))
    found = table_schemas(tmp_path)
    wanted = [(v["expected"]["schema"], v["expected"]["table"]) for v in files]
    columns = found(*wanted[0])
    assert wanted == [("schema1", "table1"), ("schema1", "")]
    assert columns is not None
    assert [(c.name, c.type, c.key) for c in columns] == [
        ("Id", "int", True),
        ("LastName", "varchar", False),
        ("FirstName", "varchar", False),
        ("Birthday", "datetime", False),
    ]
    assert found(*wanted[1]) is None


def test_names_are_spelled_as_avro_spells_them() -> None:
    names = [v for v in vectors.every() if v["protocol"] == "avro-name"]
    assert [vectors.avro_name(bytes.fromhex(v["value_hex"]).decode()) for v in names] == [v["expected"]["value"] for v in names]


def test_the_frame_of_a_record_says_its_schema() -> None:
    (vector,) = (v for v in vectors.every() if v["expected"]["type"] == "avro-record")
    assert vectors.schema_id(bytes.fromhex(vector["value_hex"])) == vector["expected"]["schema_id"] == 8
