"""Rows on a worker's disk: any selection of them is what the whole table has, and only a stream at a time is in memory."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.order.arrow import row_streams
from tidelake.order.arrow.row_streams import SpilledRows, received, stream, streams

MIB = 1 << 20


def spilled(folder: Path, tables: list[pa.Table]) -> SpilledRows:
    """The rows, one stream a table."""
    found = SpilledRows(folder / "rows")
    for t in tables:
        found.add(next(received(stream(t))))
    return found


def rows(first: int, topics: list[str], losses: bool) -> pa.Table:
    """As order sends them: topics as a dictionary, a column of losses only where there are some."""
    n = len(topics)
    columns = {
        "commit_ts": pa.array(range(first, first + n), pa.int64()),
        "topic": pa.array(topics, pa.string()).dictionary_encode(),
        "a1": pa.array([f"value {first + k}" if k % 3 else None for k in range(n)], pa.string()),
    }
    return pa.table(columns | ({"l1": pa.array([1] * n, pa.int8())} if losses else {}))


@given(
    made=st.lists(st.tuples(st.lists(st.sampled_from("xyz"), min_size=1, max_size=6), st.booleans()), min_size=1, max_size=5),
    data=st.data(),
)
def test_a_selection_is_what_the_table_has(made: list[tuple[list[str], bool]], data: st.DataObject) -> None:
    ends = np.cumsum([0, *(len(topics) for topics, _ in made)]).tolist()
    tables = [rows(first, topics, losses) for first, (topics, losses) in zip(ends, made, strict=False)]
    whole = pa.concat_tables(tables, promote_options="default").to_pylist()
    wanted = np.array(data.draw(st.lists(st.booleans(), min_size=ends[-1], max_size=ends[-1])))
    with TemporaryDirectory() as name:
        found = spilled(Path(name), tables)
        assert (found.count, found.ts.tolist()) == (ends[-1], list(range(ends[-1])))
        numbers, parts = [list(x) for x in zip(*found.parts(wanted), strict=True)] or ([], [])
        assert [n for some in numbers for n in some.tolist()] == np.flatnonzero(wanted).tolist()
        assert [t for part in parts for t in part.column("commit_ts").to_pylist()] == np.flatnonzero(wanted).tolist()
        if wanted.any():
            taken = found.take(wanted).to_pylist()
            assert [{"l1": None} | r for r in taken] == [{"l1": None} | whole[n] for n in np.flatnonzero(wanted)]


def test_only_a_stream_at_a_time_is_in_memory(tmp_path: Path) -> None:
    found, before, peaks = SpilledRows(tmp_path / "rows"), pa.total_allocated_bytes(), []
    for n in range(10):
        out = pa.BufferOutputStream()
        table = pa.table({"commit_ts": [n, n + 100], "a1": [b"x" * (2 * MIB)] * 2})
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
        found.add(out.getvalue())
        del out, table, writer
        assert pa.total_allocated_bytes() - before < MIB
    assert found.nbytes > 40 * MIB
    for _, part in found.parts(np.ones(20, np.bool_)):
        assert part.num_rows == 2
        peaks.append(pa.total_allocated_bytes() - before)
    assert len(peaks) == 10
    assert max(peaks) < 13 * MIB  # the stream before, this one, its wanted rows
    few = found.take(found.ts == 103)
    assert (few.num_rows, few.column("commit_ts").to_pylist()) == (1, [103])


@pytest.mark.parametrize(("size", "sizes"), [(1, [1] * 7), (40, [2, 2, 2, 1]), (1 << 20, [7])])
def test_rows_are_sent_in_streams_of_about_one_size(size: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_streams, "STREAM_BYTES", size)
    table = pa.table({"commit_ts": pa.array(range(7), pa.int64()), "x": pa.array(range(7), pa.int64())})
    sent = pa.concat_arrays([pa.nulls(1, pa.binary()), *streams(table), pa.nulls(1, pa.binary())])
    first, *found, last = received(sent)
    assert (first.size, last.size) == (0, 0)
    parts = [pa.ipc.open_stream(s).read_all() for s in found]
    assert [t.num_rows for t in parts] == sizes
    assert pa.concat_tables(parts).equals(table)
    assert [bytes(s) for s in received(sent.slice(1, 1))] == [bytes(found[0])]
    assert [s.size for s in received(pa.nulls(2, pa.binary()))] == [0, 0]
    assert list(streams(table.slice(0, 0))) == []
