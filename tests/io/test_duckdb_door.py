"""Lines of JSON out of record batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa

from tidelake.io.duckdb_door import to_text, write_jsonl

TEXTS = ["plain", "next\x85line", "line\u2028and\u2029paragraph", "é…ü", 'quote " and \\u2028 spelt', None]


def written(path: Path, texts: list[str | None]) -> list[str]:
    rows = pa.table({"t": pa.array(texts, pa.string())}).to_reader()
    assert write_jsonl(rows, ["t"], path) == len(texts)
    return path.read_text(encoding="utf-8").splitlines()


def test_a_row_is_a_line_for_every_reader_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert [json.loads(line)["t"] for line in written(path, TEXTS)] == TEXTS
    assert [p.name for p in tmp_path.iterdir()] == ["rows.jsonl"]


def test_no_rows_are_no_lines(tmp_path: Path) -> None:
    assert written(tmp_path / "rows.jsonl", []) == []


def test_rows_that_are_read_while_others_are_written_are_their_own(tmp_path: Path) -> None:
    inner = pa.record_batch([pa.array(["inner"])], ["t"])
    seen: list[list[tuple[str | None, ...]]] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for text in ("a", "b"):
            seen.append(to_text(pa.RecordBatchReader.from_batches(inner.schema, [inner]), ["t"], 9))
            yield pa.record_batch([pa.array([text])], ["t"])

    assert write_jsonl(pa.RecordBatchReader.from_batches(inner.schema, batches()), ["t"], tmp_path / "rows.jsonl") == 2
    assert (tmp_path / "rows.jsonl").read_text().splitlines() == ['{"t":"a"}', '{"t":"b"}']
    assert seen == [[("inner",)]] * 2


def first_text() -> list[tuple[str | None, ...]]:
    return to_text(pa.table({"t": ["a"]}).to_reader(), ["t"], 1)


def test_a_fork_reads_too() -> None:
    assert first_text() == [("a",)]
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        assert pool.submit(first_text).result(30) == [("a",)]
