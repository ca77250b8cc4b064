"""Lines of JSON out of record batches."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from tidelake.io.duckdb_door import write_jsonl

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
