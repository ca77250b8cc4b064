"""Which events are repeats, from files in any order and windows one after another, is what a loop over all events says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tidelake.errors import TopicPartition
from tidelake.history.event import EVENT
from tidelake.history.ordering import RowChange, without_repeats
from tidelake.history.source_names import batch_names, batch_number, source_name
from tidelake.lake.cut import BinlogNames
from tidelake.order.arrow.event_groups import REPEATED, any_of
from tidelake.order.arrow.row_streams import read_stream, stream
from tidelake.order.repeats import names_seen, runs_reader
from tidelake.order.repeats.copies import compared, copies, wanted_names
from tidelake.order.repeats.copies_reader import CopiesJob, Wanted, copies_of
from tidelake.order.repeats.names_seen import NamesSeen, Run, Suspect, suspects
from tidelake.order.repeats.runs_reader import RunsJob, runs_of

SCHEMA = pa.schema(
    [pa.field("hour", pa.string()), *(f.with_type(pa.dictionary(pa.int32(), pa.string())) if f.name in REPEATED else f for f in EVENT)]
)
Row = dict[str, Any]


def name(position: int, row: int = 0, base: str = "b", server: int = 1) -> str:
    found = source_name(server, f"{base}.000001", position, row)
    assert found is not None
    return found


def row(hour: int, offset: int, ordinal: int, source: str | None, op: str = "insert", cell: str = "x", partition: int = 0) -> Row:
    """A row event; its commit ts is its hour's number."""
    return {
        "hour": f"h{hour}",
        "topic": "t",
        "partition": partition,
        "offset": offset,
        "ordinal": ordinal,
        "commit_ts": hour,
        "kind": "row",
        "op": op,
        "database": "d",
        "table": "m",
        "after": [cell.encode()],
        "source": source,
    }


def table(rows: Sequence[Row]) -> pa.Table:
    found = pa.Table.from_pylist(list(rows), schema=pa.schema([pa.field("hour", pa.string()), *EVENT]))
    coded = {c: found.column(c).combine_chunks().dictionary_encode() for c in ("hour", *REPEATED)}
    return pa.table([coded.get(c, found.column(c)) for c in found.column_names], names=found.column_names)


class Window:
    """Windows of one hour each, as `sent_again` finds their repeats."""

    def __init__(self) -> None:
        self.names: dict[TopicPartition, list[BinlogNames]] = {}
        self.hours = list[list[pa.Table]]()
        self.found: dict[TopicPartition, list[Suspect]] = {}

    def repeats(self, hour: int, files: Sequence[Sequence[Row]], passes: int = 1) -> list[Row]:
        """The rows of an hour that are repeats. files: each has whole objects of ten offsets."""
        shared: dict[str, Any] = {"events": "", "parts": [], "after_ts": hour - 1, "until_ts": hour, "again": []}
        shared["objects"] = {"t": {p: list(range(0, 1000, 10)) for p in range(2)}}
        tables = [table(f) for f in files]
        runs = defaultdict[TopicPartition, list[Run]](list)
        for t in tables:
            for run in runs_of(t, RunsJob(**shared)):
                runs[run.topic, run.partition].append(run)
        seen = {at: NamesSeen.of(known) for at, known in self.names.items()}
        every = {at: suspects(seen.setdefault(at, NamesSeen()), runs[at]) for at in runs}
        self.found = {at: some for at, some in every.items() if some}
        self.names = {at: s.known() for at, s in seen.items()}
        self.hours.append(tables)
        wanted = [w for at in sorted(self.found) for w in wanted_names(*at, self.found[at])]
        ours, hours = defaultdict[TopicPartition, list[pa.Table]](list), [f"h{n}" for n in range(1, hour + 1)]
        for number in range(passes):
            several = defaultdict[TopicPartition, list[pa.Table]](list)
            job = CopiesJob(wanted=wanted, late=[], pass_of=(number, passes), **shared)
            for t in (t for some in self.hours for t in some):
                for (h, topic, p), places in copies_of(t, job):
                    sent = read_stream(stream(places)[0].as_py())
                    several[topic, p].append(sent.append_column("hour", pa.array([hours.index(h)] * sent.num_rows, pa.int32())))
            for at, some in several.items():
                found = pa.concat_tables(some).combine_chunks()
                found = found.append_column("copied", pa.array(copies(found)))
                ours[at].append(found.filter(found.column("ours")))
        again = [a for at, some in ours.items() for a in compared(pa.concat_tables(some), hours, *at, self.found.get(at, [])).again]
        for t, f in zip(tables, files, strict=True):
            assert any_of(again, t).tolist() == [any(a.has(r) for a in again) for r in f]
        return [r for f in files for r in f if any(a.has(r) for a in again)]


EVENTS = st.tuples(
    st.sampled_from(["next", "next", "next", "again", "again", "odd", "none", "pair"]),
    st.integers(1, 12),
    st.booleans(),  # in a new message
    st.integers(0, 1),  # partition
)


def at_of(r: Row) -> tuple[str, int, int, int]:
    return r["topic"], r["partition"], r["offset"], r["ordinal"]


def change(r: Row) -> RowChange:
    return RowChange(table=r["table"], op=r["op"], commit_ts=0, at=at_of(r), after=tuple(r["after"]), source=r["source"])


class Producers:
    """Two partitions, whose producers send, repeat, and make what no producer should."""

    def __init__(self) -> None:
        self.sent: list[list[Row]] = [[], []]

    def send(self, hour: int, wish: tuple[str, int, bool, int]) -> None:
        kind, back, fresh, p = wish
        mine = self.sent[p]
        last = mine[-1] if mine else row(hour, -1, 0, None)
        fresh = fresh or not mine or last["hour"] != f"h{hour}"
        offset, ordinal = (last["offset"] + 1, 0) if fresh else (last["offset"], last["ordinal"] + 1)
        named = [r for r in mine if r["source"]]
        if kind == "again" and named:
            for n, r in enumerate(named[-back:]):
                mine.append(
                    r | {"hour": f"h{hour}", "commit_ts": hour, "offset": offset + n * fresh, "ordinal": 0 if fresh else ordinal + n}
                )
        elif kind == "none":
            mine.append(row(hour, offset, ordinal, None, partition=p))
        elif kind == "odd":  # another binlog, or a name that something else has
            mine.append(row(hour, offset, ordinal, name(back, base="bc"[back % 2]), "delete", "y", p))
        else:
            position = max([int(r["source"].split(":")[1]) for r in named], default=0) + back
            mine.append(row(hour, offset, ordinal, name(position), "insert", "x", p))
            if kind == "pair":
                mine.append(row(hour, offset + 1, 0, name(position), "delete", "x", p))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(EVENTS, max_size=12), min_size=1, max_size=4), st.integers(1, 3), st.sampled_from([2, 1024]), st.integers(0, 9))
@example(
    [[("next", 1, True, 0)] * 3 + [("again", 2, True, 0)], [("again", 3, False, 0), ("pair", 2, True, 0), ("again", 2, True, 0)]],
    1,
    2,
    None,
)
def test_repeats_are_those_of_a_loop_over_all_events(
    hours: list[list[tuple[str, int, bool, int]]], passes: int, most_runs: int, seed: int
) -> None:
    producers, window = Producers(), Window()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs_reader, "MOST_RUNS", most_runs)
        patch.setattr(names_seen, "MOST_SPANS", 3)
        for hour, wishes in enumerate(hours, 1):
            for wish in wishes:
                producers.send(hour, wish)
            every = [r for mine in producers.sent for r in mine]
            files: list[list[Row]] = [[], []]
            for r in every:
                if r["hour"] == f"h{hour}":
                    files[(r["offset"] // 10 + r["partition"]) % 2].append(r)
            for f in files:
                Random(seed).shuffle(f)
            found = window.repeats(hour, files, passes)
            kept = {c.at for c in without_repeats(map(change, every))}
            assert sorted(map(at_of, found)) == sorted(at_of(r) for f in files for r in f if at_of(r) not in kept)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(st.integers(1, 4), max_size=24), min_size=1, max_size=4), st.integers(0, 9))
def test_numbers_of_batches_fall_where_a_loop_says_and_make_no_repeat(hours: list[list[int]], seed: int) -> None:
    window, before, offset = Window(), 0, -1
    for hour, numbers in enumerate(hours, 1):
        files: list[list[Row]] = [[], []]
        falls = []
        for number in numbers:
            offset += 1
            files[offset // 10 % 2].append(row(hour, offset, 0, batch_names(pa.array([number]))[0].as_py()))
            falls += [(offset, before, number)] if number < before else []
            before = number
        for f in files:
            Random(seed).shuffle(f)
        assert window.repeats(hour, files) == []
        found = [(s.run.first, batch_number(str(s.before)), batch_number(s.run.low)) for s in window.found.get(("t", 0), [])]
        assert found == falls


def test_a_batch_of_many_changes_is_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_reader, "MOST_RUNS", 2)
    window = Window()
    for hour in (1, 2):
        assert window.repeats(hour, [[row(hour, 10 * hour + n, 0, batch_names(pa.array([hour]))[0].as_py()) for n in range(9)]]) == []
        assert window.found == {}


def test_names_that_ascend_are_never_read_twice() -> None:
    window = Window()
    for hour in range(1, 4):
        rows = [row(hour, 10 * hour + n, 0, name(100 * hour + n)) for n in range(10)]
        moved = [row(hour, 10 * hour + 20, 0, name(100 * hour + 50), "delete"), row(hour, 10 * hour + 21, 0, name(100 * hour + 50))]
        assert window.repeats(hour, [rows, moved]) == []
        assert window.found == {}
    assert window.names == {("t", 0): [BinlogNames(newest=name(350), spans=[(name(100), name(350))])]}


def test_a_binlog_that_begins_anew_below_all_names_has_a_span_of_its_own() -> None:
    window = Window()
    window.repeats(1, [[row(1, 0, 0, name(700)), row(1, 1, 0, name(900))]])
    assert window.repeats(2, [[row(2, 2, 0, name(4)), row(2, 3, 0, name(5))]]) == []
    assert [(s.low, s.before) for s in window.found["t", 0]] == [("", name(900))]
    assert window.names["t", 0] == [BinlogNames(newest=name(5), spans=[(name(4), name(5)), (name(700), name(900))])]
    assert window.repeats(3, [[row(3, 4, 0, name(6)), row(3, 5, 0, name(5))]]) == [row(3, 5, 0, name(5))]


def test_an_event_that_no_table_has_is_not_one_that_was_sent_before() -> None:
    events = table([row(1, 0, 0, name(4)), row(1, 1, 0, name(5)), row(2, 2, 0, name(4)), row(2, 3, 0, name(5))])
    wanted = [Wanted(topic="t", partition=0, low=name(4), high=name(5), offsets=((2, 3),))]
    shared: dict[str, Any] = {"events": "", "parts": [], "after_ts": 1, "until_ts": 2, "again": [], "objects": {}, "pass_of": (0, 1)}
    for late, copied in ([], [True, True]), ([("h1", "t", 0, [(1, 0)])], [True, False]):
        found = dict(copies_of(events, CopiesJob(wanted=wanted, late=late, **shared)))
        hours = [found["h1", "t", 0].append_column("hour", pa.array([0] * (2 - len(late)), pa.int32()))]
        every = pa.concat_tables([*hours, found["h2", "t", 0].append_column("hour", pa.array([1, 1], pa.int32()))])
        assert copies(every)[-2:].tolist() == copied


def test_files_of_an_earlier_version_have_no_names() -> None:
    events = table([row(1, 0, 0, None), row(2, 2, 0, None)]).drop_columns(["source"])
    wanted = [Wanted(topic="t", partition=0, low=name(4), high=name(5), offsets=((2, 2),))]
    shared: dict[str, Any] = {"events": "", "parts": [], "after_ts": 1, "until_ts": 2, "again": [], "objects": {}, "pass_of": (0, 1)}
    ((place, found),) = copies_of(events, CopiesJob(wanted=wanted, late=[], **shared))
    assert (place, found.select(["offset", "ours", "named"]).to_pylist()) == (("h2", "t", 0), [{"offset": 2, "ours": True, "named": False}])
