"""The folder of TiCDC's storage sink."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelake.archives.storage_sink import DataFile, Sink, list_sink, read_lines
from tidelake.errors import OrderError, StorageError
from tidelake.io.storage import open_store

DAY = "shop/orders/441/2026-01-05"
WHOLE = {
    f"{DAY}/CDC00000000000000000001.json": b"{}",
    f"{DAY}/CDC00000000000000000002.json": b"{}",
    f"{DAY}/meta/CDC.index": b"CDC00000000000000000002.json\n",
    "shop/orders/meta/schema_441_0123456789.json": b"{}",
    "shop/meta/schema_440_0123456789.json": b"{}",
    "metadata": b'{"checkpoint-ts":449}',
}


def listed(root: Path, contents: dict[str, bytes]) -> Sink:
    store = open_store(str(root))
    for key, content in contents.items():
        store.write(key, content)
    return list_sink(store)


def test_a_whole_sink_has_files_schemas_a_checkpoint_and_no_problem(tmp_path: Path) -> None:
    sink = listed(tmp_path, WHOLE)
    assert [(f.database, f.table, f.version, f.physical, f.date, f.dispatcher, f.number) for f in sink.files] == [
        ("shop", "orders", 441, 0, "2026-01-05", "", 1),
        ("shop", "orders", 441, 0, "2026-01-05", "", 2),
    ]
    assert sink.schemas == {("shop", "orders", 441): "shop/orders/meta/schema_441_0123456789.json"}
    assert (sink.checkpoint_ts, sink.problems) == (449, ())


def test_files_are_read_by_version_then_date_then_number_whatever_their_width(tmp_path: Path) -> None:
    keys = [
        "a/t/9/2026-01-05/CDC000002.csv",
        "a/t/9/2026-01-05/CDC000010.csv",
        "a/t/9/2026-01-06/CDC000001.csv",
        "a/t/10/2026-01-05/CDC000001.csv",
        "a/t/10/77/2026-01-05/CDC_d1_000001.csv",
    ]
    assert [f.key for f in listed(tmp_path, dict.fromkeys(reversed(keys), b"x")).files] == keys


@pytest.mark.parametrize(
    ("gone", "more", "problem"),
    [
        (f"{DAY}/CDC00000000000000000001.json", {}, f"{DAY}: 1 of 2 files are missing, the first is number 1"),
        (
            f"{DAY}/CDC00000000000000000002.json",
            {},
            f"{DAY}: the index names CDC00000000000000000002.json, and the newest file is number 1",
        ),
        (f"{DAY}/meta/CDC.index", {}, f"{DAY}: no index file names the newest file"),
        ("shop/orders/meta/schema_441_0123456789.json", {}, "shop/orders: no schema file for table version 441"),
        (
            "",
            {"a/t/1/2026-01-05/meta/CDC_d1.index": b"CDC_d1_000001.csv"},
            "a/t/1/2026-01-05: the index names CDC_d1_000001.csv, and",
        ),
    ],
)
def test_what_is_missing_is_a_problem_that_says_where(gone: str, more: dict[str, bytes], problem: str, tmp_path: Path) -> None:
    sink = listed(tmp_path, {key: content for key, content in (WHOLE | more).items() if key != gone})
    assert len(sink.problems) == 1
    assert sink.problems[0].startswith(problem)


def test_a_sink_that_has_just_started_has_no_checkpoint(tmp_path: Path) -> None:
    assert listed(tmp_path, {"a/t/1/2026-01-05/CDC000001.csv": b"x"}).checkpoint_ts is None
    with pytest.raises(StorageError, match=r"BAD_OBJECT: .*/metadata has no checkpoint-ts"):
        listed(tmp_path, {"metadata": b"{}"})


@pytest.mark.parametrize(("separator", "key"), [("none", "a/t/1/CDC000001.csv"), ("year", "a/t/1/2026/CDC000001.csv")])
def test_dates_are_as_the_sink_separates_them(separator: str, key: str, tmp_path: Path) -> None:
    open_store(str(tmp_path)).write(key, b"x")
    (file,) = list_sink(open_store(str(tmp_path)), separator).files  # type: ignore[arg-type]
    assert (file.physical, file.date) == (0, "" if separator == "none" else "2026")


def rows(folder: Path, form: str, content: bytes, **settings: str) -> list[bytes]:
    path = folder / "file"
    path.write_bytes(content)
    file = DataFile("a", "t", 1, 0, "", "", 1, f"a/t/1/CDC000001.{form}", len(content), "")
    return [row for array in read_lines(path, file, **settings) for row in array.to_pylist()]


def test_lines_end_with_either_line_end(tmp_path: Path) -> None:
    assert rows(tmp_path, "json", b'{"a":1}\r\n{"b":2}\r\n') == [b'{"a":1}', b'{"b":2}']
    assert rows(tmp_path, "csv", b'"I","t"\n"D","t"', quote="") == [b'"I","t"', b'"D","t"']


@pytest.mark.parametrize("block", [8 << 20, 7])
def test_newlines_in_quoted_text_end_no_row(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelake.archives.readers.lines.BATCH_BYTES", block)
    whole = [b'"I","a\r\nb""\n""",1', b'"D","",\\N', b'"I","""",2']
    assert rows(tmp_path, "csv", b"\r\n".join(whole) + b"\r\n") == whole


def test_a_file_that_ends_inside_quoted_text_is_cut_short(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"BAD_OBJECT: a/t/1/CDC000001\.csv: cut short inside a quoted text"):
        rows(tmp_path, "csv", b'"I","a\n')


def test_quoted_text_without_an_end_takes_no_memory_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelake.archives.readers.lines.BATCH_BYTES", 100)
    monkeypatch.setattr("tidelake.archives.storage_sink.MAX_LINE", 1_000)
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT: .*quoted text of more than 1000 bytes"):
        rows(tmp_path, "csv", b'"I","a\n' + b"text\n" * 1_000)
