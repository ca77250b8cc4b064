"""Who reads parts, and what a process without Spark makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.lake import lakes
from tidelake.errors import Coordinates, OrderError
from tidelake.lake.opened import Lake
from tidelake.spark import session
from tidelake.spark.part_reader import PartReader
from tidelake.spark.run_parts import SparkWorkers, Task, ThisProcess, is_small
from tidelake.spark.worker_errors import errors_as_text
from tidelake.spark.worker_secrets import Handed, Secrets

KIB, MIB = 1 << 10, 1 << 20
BY_SIZE = Lake.workers  # before any test puts another in its place
SECRETS = Secrets(mask_key="a key of more than 16 bytes")
ROWS = pa.schema([("task", pa.int32()), ("word", pa.string())])


class Words(PartReader[str]):
    """A row a letter of a part, and one of the mask's key."""

    def __init__(self, *parts: str) -> None:
        super().__init__(parts, ROWS)

    def rows(self, part: str, secrets: Secrets) -> Iterator[pa.RecordBatch]:
        if part == "bad":
            raise OrderError("a bad part", code="NO_COMMIT_TS", at=Coordinates("t", 0, 7), remedy="mend it")
        yield pa.RecordBatch.from_pylist([{"task": 0, "word": w} for w in (*part, secrets.mask_key)], schema=ROWS)


def counted(handed: Handed) -> Task:
    """A task that says how many rows it got, and the key that it knows."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with errors_as_text():
            yield pa.RecordBatch.from_pylist([{"task": sum(b.num_rows for b in batches), "word": handed.secrets().mask_key}], schema=ROWS)

    return count


@pytest.mark.parametrize(
    ("sizes", "small"),
    [([], True), ([16 * MIB], True), ([16 * MIB + 1], False), ([8 * MIB, 8 * MIB, 1], False), ([1] * 256, True), ([1] * 257, False)],
)
def test_parts_are_small_by_their_bytes_and_their_number(sizes: Sequence[int], small: bool) -> None:
    assert is_small(sizes) is small


@pytest.mark.parametrize(
    ("sizes", "up", "here"),
    [
        pytest.param([5], "", True, id="small"),
        pytest.param([17 * MIB], "", False, id="large"),
        pytest.param([5], "for this lake", False, id="Spark runs for this lake"),
        pytest.param([5], "for all lakes", False, id="an application runs for several lakes"),
        pytest.param([5], "spark-submit", False, id="spark-submit runs the process"),
    ],
)
def test_a_lake_reads_small_parts_itself_until_spark_runs(
    sizes: Sequence[int], up: str, here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda _: "4"))
    monkeypatch.setattr(session, "_kept", [fake] if up == "for all lakes" else [])
    if up == "spark-submit":
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(session, "spark_session", lambda *_, **__: nullcontext(fake))
    (tmp_path / "lake").mkdir()
    with Lake.of(lakes.feed(tmp_path)) as lake:
        lake._spark = fake if up == "for this lake" else None
        found = BY_SIZE(lake, sizes)
    assert (type(found), found.tasks) == ((ThisProcess, 1) if here else (SparkWorkers, 4))


def test_this_process_reads_all_parts_with_the_secrets_that_workers_get() -> None:
    workers, key = ThisProcess(SECRETS), SECRETS.mask_key
    assert [r["word"] for r in workers.rows(Words("ab", "c"))] == ["a", "b", key, "c", key]
    assert workers.rows(Words("a"), ["word"]) == [{"word": "a"}, {"word": key}]
    assert workers.rows(Words()) == []
    assert workers.exchanged(Words("ab", "c"), 1, counted, ROWS) == [{"task": 5, "word": key}]


def test_this_process_is_one_task() -> None:
    with pytest.raises(ValueError, match="2 tasks in one process"):
        ThisProcess(SECRETS).exchanged(Words("a"), 2, counted, ROWS)


@pytest.mark.parametrize("exchanged", [False, True])
def test_errors_of_this_process_are_those_that_the_reader_raised(exchanged: bool) -> None:
    workers = ThisProcess(SECRETS)
    with pytest.raises(OrderError) as found:
        workers.exchanged(Words("a", "bad"), 1, counted, ROWS) if exchanged else workers.rows(Words("a", "bad"))
    assert (found.value.code, found.value.at, found.value.remedy) == ("NO_COMMIT_TS", Coordinates("t", 0, 7), "mend it")


def test_a_stream_of_this_process_has_all_rows_and_its_errors_come_before_its_rows(tmp_path: Path) -> None:
    here = ThisProcess(SECRETS)
    rows = here.stream(Words("ab", "c"), tmp_path).read_all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.arrow", "1.arrow"]
    assert rows.schema == ROWS
    assert rows.column("word").to_pylist() == ["a", "b", SECRETS.mask_key, "c", SECRETS.mask_key]
    assert here.stream(Words(), tmp_path).read_all().num_rows == 0
    with pytest.raises(OrderError) as failed:
        here.stream(Words("ab", "bad"), tmp_path)
    assert (failed.value.code, failed.value.at) == ("NO_COMMIT_TS", Coordinates("t", 0, 7))
