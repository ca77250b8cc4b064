"""A producer that was started again repeats its last changes: tables, changelogs and counts are those of the history without repeats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.lake.histories import TOPIC, publish
from tests.order.offset_feeds import KINDS, A, OffsetFeeder, Sent, Step, Truth, ddl, drop, opened, put
from tests.order.offset_feeds import encoded as json_messages
from tests.protocols import canal_messages as packets
from tests.protocols.simple_messages import compact
from tidelake.audit.audit import audit
from tidelake.history.ordering import RowChange, without_repeats
from tidelake.history.source_names import source_name
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.opened import Lake
from tidelake.run import order
from tidelake.tso import parse_hour

TYPES = {"id": "bigint", "v": "varchar(20)", "n": "int"}
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
Message = tuple["Change", ...]


@dataclass(frozen=True)
class Change:
    """A step and where it stands in the binlog; no place: a producer that says none."""

    step: Step
    at: packets.At | None


def entry(change: Change) -> bytes:
    s = change.step
    if s.op == "ddl":
        head = packets.header("d", s.table, packets.ALTER, change.at)
        return packets.entry(head, packets.change(packets.ALTER, ddl=1, sql=s.sql, schema="d"))
    image = packets.row_data(columns(s.after), columns(s.before))
    return packets.entry(packets.header("d", s.table, KINDS[s.op], change.at), packets.change(KINDS[s.op], image))


def columns(row: Any) -> list[packets.Column]:
    return [packets.Column(name, TYPES[name], value, key=name == "id") for name, value in (row or {}).items()]


def encoded(message: Message) -> Sent:
    return None, packets.packet(*map(entry, message))


@dataclass
class Source:
    """A source with one binlog."""

    file: str = "mysql-bin.000012"
    position: int = 4
    history: list[Change] = field(default_factory=list)

    def did(self, *steps: Step) -> list[Change]:
        """These steps, one binlog event each."""
        new = []
        for s in steps:
            self.position += 100
            new.append(Change(s, packets.At(self.position, self.file)))
        self.history += new
        return new


def bag(lake: Lake, cut: Cut, table: str) -> Counter[tuple[tuple[str, Any], ...]]:
    """The rows of a snapshot, or of a table without a key."""
    number = next(i for i, c in cut.catalog.incarnations.items() if c.name == f"d.{table}")
    if number not in cut.snapshots:
        return Counter()
    found = lake.catalog.load(cut.snapshots[number].identifier).scan(snapshot_id=cut.snapshots[number].snapshot_id).read_all()
    rows = found.drop_columns([c for c in found.column_names if c.startswith("_")]).to_pylist()
    return Counter(tuple((k, v if v is None else str(v)) for k, v in r.items()) for r in rows)


def changelog(lake: Lake, cut: Cut, table: str) -> list[tuple[str, int, int]]:
    """Type and place of the changes, in order."""
    number = next(i for i, c in cut.catalog.incarnations.items() if c.name == f"d.{table}")
    if number not in cut.changelogs:
        return []
    wanted = ["_change_seq", "_change_type", "_offset", "_ordinal"]
    rows = lake.catalog.load(cut.changelogs[number].identifier).scan(None, wanted, cut.changelogs[number].snapshot_id).read_all()
    return [(r["_change_type"], r["_offset"], r["_ordinal"]) for r in sorted(rows.to_pylist(), key=lambda r: r["_change_seq"])]


def published(feed: OffsetFeeder, lake: Lake, *messages: Message) -> Cut:
    cut = publish(lake, feed.put(lake, {0: [encoded(m) for m in messages]}))
    assert cut is not None
    return cut


def counted(lake: Lake, cut: Cut) -> dict[str, dict[str, int]]:
    """Where the events went; the sums are whole."""
    counts = read_certificate(lake.store, cut.feed, cut.seq)["counts"]
    for c in counts["tables"].values():
        assert c["in"] == c["out"] + c["duplicate"] + c["late"] + c["quarantined"]
    assert counts["window"]["in"] == sum(c["out"] + c["duplicate"] + c["quarantined"] for c in counts["tables"].values())
    return {name: {k: v for k, v in c.items() if k in ("in", "out", "duplicate")} for name, c in counts["tables"].items()}


def findings(lake: Lake, cut: Cut) -> list[dict[str, str]]:
    return [f for f in read_certificate(lake.store, cut.feed, cut.seq)["findings"] if f["code"] != "ORDERED_BY_OFFSETS"]


X = {"v": "x"}


def test_a_repeat_counts_once_within_an_hour_and_over_its_end(tmp_path: Path) -> None:
    source = Source()
    a, b, c = source.did(put("m", X), put("m", X), put("k", {"id": "1", "v": "a"}))
    with opened(tmp_path, "canal", 1) as (feed, lake):
        cut = published(feed, lake, (a,), (b,), (b,), (c,))
        assert bag(lake, cut, "m") == Counter({(("v", "x"),): 2})
        assert counted(lake, cut) == {"d.k": {"in": 1, "out": 1, "duplicate": 0}, "d.m": {"in": 3, "out": 2, "duplicate": 1}}
        (d,) = source.did(put("m", X))
        cut = published(feed, lake, (b,), (c, d))
        assert bag(lake, cut, "m") == Counter({(("v", "x"),): 3})
        assert changelog(lake, cut, "m") == [("INSERT", 0, 0), ("INSERT", 1, 0), ("INSERT", 5, 1)]
        assert counted(lake, cut) == {"d.k": {"in": 1, "out": 0, "duplicate": 1}, "d.m": {"in": 2, "out": 1, "duplicate": 1}}
        (found,) = findings(lake, cut)
        assert (found["code"], found["severity"], found["where"]) == ("SENT_AGAIN", "info", "t[0]@4")
        assert found["detail"].startswith("2 row events had come before at lower offsets with the same place in the binlog")
        audited = audit(lake.feed.name, lake.store.uri)
        assert (audited.wrong, audited.checked["tables' counts"]) == ([], 4), "the audit adds up the same counts"


def test_a_statement_that_comes_again_is_carried_out_once(tmp_path: Path) -> None:
    source = Source()
    steps = source.did(put("k", A), ddl("k", "TRUNCATE TABLE d.k"), put("k", {"id": "2", "v": "b"}))
    with opened(tmp_path, "canal", 1) as (feed, lake):
        published(feed, lake, tuple(steps))
        (more,) = source.did(put("k", {"id": "3", "v": "c"}))
        cut = published(feed, lake, tuple(steps[1:]), (more,), (steps[1], steps[2], more))
        assert bag(lake, cut, "k") == Counter({(("id", "2"), ("v", "b")): 1, (("id", "3"), ("v", "c")): 1})
        (found,) = findings(lake, cut)
        assert found["where"] == "t[0]@1"
        assert found["detail"].startswith("3 row events and 2 statements had come before")


def test_an_hour_that_is_done_again_finds_the_same_repeats(tmp_path: Path) -> None:
    source = Source()
    a, b = source.did(put("m", X), put("m", X))
    with opened(tmp_path, "canal", 1) as (feed, lake):
        published(feed, lake, (a, b))
        hour = feed.put(lake, {0: [encoded((b,)), encoded(tuple(source.did(put("m", X))))]})
        first = publish(lake, hour)
        at = parse_hour(hour)
        staged = order(lake, at, hour).staged
        assert first is not None
        assert staged is not None
        assert (staged.cut.names, staged.repeated, staged.window_events) == (first.names, {"d.m": 1}, 1)


def test_a_binlog_that_begins_anew_is_no_repeat_and_a_finding_says_so(tmp_path: Path) -> None:
    old, new = Source(), Source(position=4)
    with opened(tmp_path, "canal", 1) as (feed, lake):
        published(feed, lake, tuple(old.did(put("m", X), put("m", X))))
        cut = published(feed, lake, tuple(new.did(put("m", {"v": "y"}), put("m", {"v": "y"}), put("m", X))))
        assert bag(lake, cut, "m") == Counter({(("v", "x"),): 3, (("v", "y"),): 2})
        (found,) = findings(lake, cut)
        assert (found["code"], found["severity"], found["where"]) == ("BINLOG_WENT_BACK", "warning", "t[0]@1")
        assert found["detail"] == (
            "the changes from mysql-bin.000012:104, row 0, server 1 on come after mysql-bin.000012:204, row 0, server 1, and 2 row events "
            "of them are not among the earlier events that are kept: counted as new"
        )
        other = Source(file="mysql-bin.000001")
        cut = published(feed, lake, tuple(other.did(put("m", X))))
        assert bag(lake, cut, "m")[("v", "x"),] == 4
        assert [f["code"] for f in findings(lake, cut)] == ["BINLOG_WENT_BACK"]


def test_what_has_no_name_counts_as_often_as_it_comes(tmp_path: Path) -> None:
    with opened(tmp_path, "canal", 1) as (feed, lake):
        cut = published(feed, lake, (Change(put("m", X), None),), (Change(put("m", X), None),))
        assert bag(lake, cut, "m") == Counter({(("v", "x"),): 2})
        assert (cut.names, findings(lake, cut)) == ({}, [])


def flat(number: int, *steps: Step) -> Sent:
    """As Alibaba's server writes it: members in the order of their names. number: of the batch."""
    ((key, value),) = json_messages("canal-json", steps)
    assert value is not None
    return key, compact(dict(sorted((json.loads(value) | {"id": number}).items())))


def test_flat_messages_of_a_canal_that_was_started_again_count_as_new_and_a_finding_says_so(tmp_path: Path) -> None:
    x, k, empty = put("m", X), put("k", A), ddl("k", "TRUNCATE TABLE k")
    with opened(tmp_path, "canal-json", 1) as (feed, lake):

        def of(*messages: Sent) -> tuple[Cut, list[dict[str, str]]]:
            cut = publish(lake, feed.put(lake, {0: messages}))
            assert cut is not None
            return cut, findings(lake, cut)

        other = put("k", {"id": "2", "v": "a"})
        _, said = of(flat(1, x, x), flat(1, k), flat(1, empty), flat(1, other), flat(1, empty), flat(3, k), flat(4, x))
        assert said == []
        cut, (found,) = of(flat(4, x), flat(5, x), flat(1, x), flat(9, x))
        assert bag(lake, cut, "m")[("v", "x"),] == 7
        assert (found["code"], found["severity"], found["where"]) == ("CANAL_STARTED_AGAIN", "warning", "t[0]@9")
        assert found["detail"].startswith("the number of the batch (`id`) fell from 5 to 1: Canal was started again")
        cut, (found,) = of(flat(2, x), flat(1, x), flat(7, x))
        assert bag(lake, cut, "m")[("v", "x"),] == 10
        assert found["where"] == "t[0]@11"
        assert found["detail"].startswith("the number of the batch (`id`) fell from 9 to 2, and 1 time more after that: Canal")
        assert bag(lake, cut, "k") == Counter({(("id", "1"), ("v", "a")): 1}), "no statement and no row is left out"
        _, said = of(flat(7, x))
        assert said == []


def test_batches_of_ticdc_have_no_numbers(tmp_path: Path) -> None:
    with opened(tmp_path, "canal-json", 1) as (feed, lake):
        cut = publish(lake, feed.put(lake, {0: json_messages("canal-json", [put("m", X)])}))
        assert cut is not None
        assert cut.names == {}


def test_rows_without_names_between_repeats_stay(tmp_path: Path) -> None:
    source = Source()
    a, b = source.did(put("m", X), put("m", X))
    with opened(tmp_path, "canal", 1) as (feed, lake):
        cut = published(feed, lake, (a, b), (a, Change(put("m", X), None), b))
        assert changelog(lake, cut, "m") == [("INSERT", 0, 0), ("INSERT", 0, 1), ("INSERT", 1, 1)]


STEPS = st.tuples(st.sampled_from("pppdmxxya"), st.sampled_from("123"), st.sampled_from("123"), st.sampled_from("ab"))
CRASHES = st.tuples(st.integers(1, 6), st.integers(1, 4))  # changes that are repeated; changes in a message
HOURS = st.lists(st.lists(st.one_of(st.lists(STEPS, min_size=1, max_size=5), CRASHES), min_size=1, max_size=5), min_size=1, max_size=3)


class World:
    """A source, its tables, and the messages of its producer."""

    def __init__(self) -> None:
        self.source, self.truth, self.added = Source(), Truth(), 0

    def step(self, wish: tuple[str, str, str, str]) -> Iterator[Step]:
        """What of a wish is possible, done to the tables."""
        kind, key, other, value = wish
        rows = {r["id"]: r for r in self.truth.tables["k"]}
        before = dict(rows[key]) if key in rows else None
        if kind in "xy":
            yield put("m", {"v": kind})
        elif kind == "a" and self.added < 1:
            self.added += 1
            yield ddl("k", "ALTER TABLE d.k ADD COLUMN n INT")
        elif kind == "p":
            yield put("k", {"id": key, "v": value} | ({"n": None} if self.added else {}), before)
        elif kind == "d" and before is not None:
            yield drop("k", before)
        elif kind == "m" and before is not None and other not in rows:
            yield put("k", before | {"id": other}, before)

    def messages(self, wishes: Sequence[tuple[str, str, str, str]]) -> list[Message]:
        made = list[Change]()
        for wish in wishes:
            for s in self.step(wish):
                self.truth.apply(s)
                made += self.source.did(s)
        return [tuple(made)] if made else []

    def repeated(self, many: int, size: int) -> list[Message]:
        again = self.source.history[-many:]
        return [tuple(again[n : n + size]) for n in range(0, len(again), size)]


FEW = settings(max_examples=4, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)


@FEW
@given(HOURS)
@example([[[("p", "1", "1", "a"), ("a", "1", "1", "a"), ("p", "1", "1", "b")], (2, 2)], [(3, 2), [("x", "1", "1", "a")], (4, 3), (2, 1)]])
@example([[[("x", "1", "1", "a")] * 3, (3, 1), (2, 2)], [(3, 1), (1, 1)], [[("x", "1", "1", "a")], (4, 4), (4, 1)]])
def test_every_cut_is_that_of_the_history_without_repeats(hours: list[list[Any]]) -> None:
    check_cuts(hours)


@pytest.mark.long
@settings(FEW, max_examples=40)
@given(HOURS)
def test_every_cut_is_that_of_the_history_without_repeats_for_many_histories(hours: list[list[Any]]) -> None:
    check_cuts(hours)


def check_cuts(hours: list[list[Any]]) -> None:
    """Every cut of these hours has the tables, counts and changelogs of the history without its repeats."""
    with TemporaryDirectory() as folder, opened(Path(folder), "canal", 1) as (feed, lake):
        world, sent = World(), list[tuple[int, int, Change]]()
        for parts in hours:
            messages = [m for p in parts for m in (world.messages(p) if isinstance(p, list) else world.repeated(*p)) if m]
            if not messages:
                continue
            begin, before = feed.offsets[0], len(sent)
            cut = published(feed, lake, *messages)
            sent += [(begin + n, i, change) for n, m in enumerate(messages) for i, change in enumerate(m)]
            assert bag(lake, cut, "k") == world.truth.of("k")
            assert bag(lake, cut, "m") == world.truth.of("m")
            kept = {c.at[2:]: c for c in without_repeats(map(as_change, sent))}
            new = [(o, i, c) for o, i, c in sent[before:] if c.step.op != "ddl"]
            for table, counts in counted(lake, cut).items():
                mine = [(o, i) for o, i, c in new if f"d.{c.step.table}" == table]
                assert counts["in"] == len(mine)
                assert counts["out"] == sum(at in kept for at in mine), "and the others are duplicates"
            for table in "km":
                assert changelog(lake, cut, table) == [
                    (kind, *c.at[2:]) for c in kept.values() if c.table == table for kind in kinds_of(c)
                ], table
            assert [f["code"] for f in findings(lake, cut) if f["code"] != "SENT_AGAIN"] == []


def as_change(sent: tuple[int, int, Change]) -> RowChange:
    offset, ordinal, c = sent
    assert c.at is not None
    cells = [None if row is None else tuple(row.items()) for row in (c.step.before, c.step.after)]
    return RowChange(
        table=c.step.table if c.step.op != "ddl" else "",
        op=c.step.op,
        commit_ts=0,
        at=(TOPIC, 0, offset, ordinal),
        before=cells[0],
        after=cells[1],
        source=source_name(c.at.server, str(c.at.file), c.at.position, 0),
    )


def kinds_of(c: RowChange) -> list[str]:
    if c.op != "update":
        return [c.op.upper()]
    moved = c.before is not None and c.after is not None and c.before[0] != c.after[0]
    return ["DELETE", "INSERT"] if moved else ["UPDATE_BEFORE", "UPDATE_AFTER"]
