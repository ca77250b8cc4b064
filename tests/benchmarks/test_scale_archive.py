"""The archives of `scale_archive` hold what the demo's encoders and the decoders say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.benchmarks.scale_archive import Size, make
from tests.benchmarks.scale_avro import schemas, varints
from tests.benchmarks.scale_messages import STATEMENTS
from tests.benchmarks.scale_rows import Rows, cells
from tidelake.demo.messages.varints import zigzag
from tidelake.history.event import MESSAGE, Event
from tidelake.protocols import Context, decoder

SIZE = Size(rows=400, changes=803, keys=100, hours=2)


def events(folder: Path, size: Size) -> list[Event]:
    """All events of the archive, by hour, partition and offset."""
    make(folder, size)
    registry = schemas(["t000"])
    context, protocol = Context(avro_schema=lambda n: registry[int(n)]), "avro" if size.values == "avro" else "open"
    messages = [pq.ParquetFile(p).read() for p in sorted((folder / "archive").rglob("*.parquet"))]
    assert all(m.schema.equals(MESSAGE) for m in messages)
    rows = [(m["key"], m["value"]) for m in pa.concat_tables(messages).to_pylist()]
    return [e for key, value in rows for e in decoder(protocol).read(key, value, context)]


def row_of(key: int, version: int, extra: bool = False, zero_dates: bool = False) -> list[bytes]:
    """The cells of a row as text."""
    found = cells(Rows.of(np.array([key]), np.array([version])), extra=extra, zero_dates=zero_dates)
    return [str(c[0].as_py()).encode() for c in found.values()]


@pytest.mark.parametrize("values", ["plain", "masked", "zero-dates", "keyless", "avro"])
def test_every_key_is_filled_once_and_changes_follow_one_another(tmp_path: Path, values: str) -> None:
    found = [e for e in events(tmp_path, replace(SIZE, values=values)) if e.kind == "row"]
    filled, changed = found[: SIZE.rows], found[SIZE.rows :]
    zero = values == "zero-dates"
    assert sorted(e.after or [] for e in filled) == sorted(row_of(key, 0, zero_dates=zero) for key in range(SIZE.rows))
    assert len(changed) == SIZE.changes * 2
    if values == "avro":
        at = [n for n, e in enumerate(changed) if e.op == "delete"]
        assert all(changed[n].before == (changed[n + 1].after or [])[:1] and changed[n + 1].op == "insert" for n in at)
        assert len(at) == pytest.approx(len(changed) / 40, rel=0.1)
        return
    state = {after[0]: after for after in (e.after or [] for e in filled)}
    for e in changed:
        after = e.after or []
        assert e.op == "update"
        assert e.before == state[after[0]]
        state[after[0]] = after


@pytest.mark.parametrize("kind", STATEMENTS)
def test_the_statement_comes_before_the_rows_of_its_hour_in_every_partition(tmp_path: Path, kind: str) -> None:
    found = events(tmp_path, replace(SIZE, hours=1, statement=kind))
    at = [n for n, e in enumerate(found) if e.kind == "ddl"]
    assert len(at) == 4
    assert {found[n].ddl for n in at} == {STATEMENTS[kind].format(name="t000")}
    ts = found[at[0]].commit_ts or 0
    rows = [e for e in found if e.kind == "row"]
    new = [len(e.after or []) == 8 if kind == "column" else _key(e) == {"id", "buyer"} for e in rows]
    assert new == [(e.commit_ts or 0) > ts for e in rows]
    assert sum(new) == SIZE.changes


def _key(e: Event) -> set[str]:
    return {c.name for c in e.row_schema.columns if c.key} if e.row_schema else set()


def test_numbers_are_written_as_the_demo_writes_them() -> None:
    numbers = [0, -1, 1, 63, 64, -64, -65, 8191, 8192, 463368565555200256, 2**63 - 1, -(2**63)]
    assert varints(np.array(numbers, np.int64)).to_pylist() == [zigzag(n) for n in numbers]
