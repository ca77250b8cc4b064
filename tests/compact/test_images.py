"""Before images: what changes say stood before them, against what stood in the lake.

One lake, three windows of every table, then one more under one policy after the other; each test asks for what became of its table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.lake.histories import TOPIC, Message, Row, ddl, publish, publish_again, resolved, row, row_schema, rows_of
from tests.lake.windows import KV, TEXT, opened, table
from tidelake.config.feed import TablePolicy
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.errors import QualityError
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.run import compact
from tidelake.tso import parse_hour
from tidelake.validate.quality.facts import HourFacts
from tidelake.validate.report import hour_facts

KEY = "a key of these tests, long enough"
RULE = "old values fit the snapshot"
KEYED = ("k", "fits", "thin", "emptied", "lost", "samples")
BY_ID = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)"
SQL = f"""{" ".join(f"CREATE TABLE d.{name} (id BIGINT PRIMARY KEY, v VARCHAR(20));" for name in KEYED)}
CREATE TABLE d.bare (v VARCHAR(20)); CREATE TABLE d.bare_parts (id BIGINT, v VARCHAR(20)) {BY_ID};
CREATE TABLE d.parts (id BIGINT PRIMARY KEY, v VARCHAR(20)) {BY_ID};
CREATE TABLE d.masked (id VARCHAR(20) PRIMARY KEY, a VARCHAR(20), b VARCHAR(20), c BIGINT, g VARCHAR(20), n BIGINT);
CREATE TABLE d.typed (id BIGINT PRIMARY KEY, v DECIMAL(5,2), w VARCHAR(20), f FLOAT, u DECIMAL(5,2));"""
MASKS = {
    "d.masked": {c: ColumnPolicy(mask=m) for c, m in {"id": "hash", "a": "hash", "b": "truncate(1)", "c": "null", "g": "drop"}.items()}
}
WIDE, ONLY_KEY = row_schema("id bigint", "v varchar", "n int"), row_schema("id bigint")
NO_KEY = row_schema("id bigint", "v varchar", key=())
MASKED = row_schema("id varchar", "a varchar", "b varchar", "c bigint", "g varchar", "n bigint")
TYPED = row_schema("id bigint", "v decimal", "w varchar", "f float", "u decimal")
RETYPED = row_schema("id bigint", "v int", "w varchar", "f float", "u decimal", "n int")
SAMPLES = [str(n) for n in range(64)]


def insert(ts: int, id: str, v: str | None, table: str = "k") -> Message:
    return row(int(table == "k"), "insert", ts, KV, (id, v), table=table)


def update(ts: int, id: str, v: str | None, was: str | None, table: str = "k") -> Message:
    return row(int(table == "k"), "update", ts, KV, (id, v), (id, was), table=table)


def delete(ts: int, id: str, was: str | None, table: str = "k") -> Message:
    return row(int(table == "k"), "delete", ts, KV, None, (id, was), table=table)


def masked(ts: int, after: Row, before: Row | None = None) -> Message:
    return row(0, "update" if before else "insert", ts, MASKED, after, before, table="masked")


def retyped(ts: int, after: Row, before: Row) -> Message:
    return row(0, "update", ts, RETYPED, after, before, table="typed")


FIRST = [
    *(insert(10, i, v) for i, v in (("1", "a"), ("2", "b"), ("3", None), ("4", "d"), ("5", "e"), ("6", "f"))),
    update(11, "6", "g", "x"),
    *(insert(10, i, v, "fits") for i, v in zip("1234", "abcd", strict=True)),
    *(insert(10, i, "a", t) for t in ("thin", "emptied", "lost") for i in "12"),
    *(insert(10, i, "a", "parts") for i in ("1", "11")),
    *(row(0, "insert", 10, NO_KEY, (i, "a"), table="bare_parts") for i in ("1", "11")),
    row(0, "insert", 10, TEXT, ("a",), table="bare"),
    *(masked(10, (i, "a", "bb", "1", "g", "1")) for i in "12"),
    *(row(0, "insert", 10, TYPED, (i, "1.50", "x", "0.1", "1.50"), table="typed") for i in "123"),
    *(insert(10, i, "a", "samples") for i in SAMPLES),
    *resolved(15, 0, 1),
]
SECOND = [
    update(20, "1", "b", "a"),
    update(21, "1", "c", "b"),  # fits the change before it
    update(22, "2", "z", "lost"),  # another old row
    delete(23, "3", "a"),  # NULL here
    insert(24, "4", "d"),  # stands here
    delete(25, "8", "h"),  # does not
    update(26, "9", "j", "i"),  # nor does this
    delete(27, "5", "e"),
    insert(28, "5", "n"),
    update(29, "5", "o", "lost too"),  # not the change before it
    *[update(20, "1", "b", "a", "fits")] * 2,  # a repeat
    *(delete(21, "2", "b", "fits"), insert(21, "2", "c", "fits"), update(21, "2", "c", "b", "fits")),  # a split update and its unsplit copy
    row(0, "update", 22, KV, ("7", "c"), ("3", "c"), table="fits"),  # to another key
    row(0, "update", 23, KV, ("1", "c"), None, table="fits"),  # does not say what it replaces
    *(row(0, "delete", 20, ONLY_KEY, None, (i,), table="thin") for i in ("2", "9")),
    update(20, "1", "b", "not compared", "emptied"),
    *ddl(21, "TRUNCATE emptied", 0, 1),
    insert(22, "1", "a", "emptied"),
    *ddl(21, "DROP TABLE lost", 0, 1),
    *(row(0, "delete", 20, TEXT, None, (v,), table="bare") for v in "ab"),
    *(e for t in ("parts", "bare_parts") for e in ddl(21, f"ALTER TABLE {t} TRUNCATE PARTITION p0", 0, 1)),
    update(22, "11", "b", "not compared", "parts"),
    row(0, "delete", 22, NO_KEY, None, ("12", "not compared"), table="bare_parts"),
    masked(20, ("1", "b", "cc", "2", "h", "2"), ("1", "other", "other", "9", "other", "1")),
    masked(21, ("2", "b", "cc", "2", "h", "2"), ("2", "other", "other", "9", "other", "7")),
    masked(22, ("9", "b", "cc", "2", "h", "2"), ("9", "a", "bb", "1", "g", "1")),
    row(0, "update", 20, TYPED, ("1", "2.50", "x", "0.1", "1.50"), ("1", "1.50", "x", "0.1", "1.50"), table="typed"),
    *ddl(21, "ALTER TABLE typed MODIFY v INT, ADD COLUMN n INT DEFAULT 5, MODIFY u INT", 0, 1),
    *ddl(22, "ALTER TABLE typed MODIFY u DECIMAL(5,2)", 0, 1),
    retyped(23, ("1", "4", "x", "0.1", "2.00", "6"), ("1", "3", "x", "0.1", "2.00", "5")),  # as the server rounds
    retyped(24, ("2", "4", "x", "0.1", "2.00", "6"), ("2", "2", "lost", "0.1", "2.00", "5")),
    *resolved(35, 0, 1),
]
THIRD = [
    update(40, "1", "d", "c"),
    *ddl(40, "ALTER TABLE fits ADD COLUMN n INT DEFAULT 5, MODIFY COLUMN v VARCHAR(30)", 0, 1),
    row(0, "update", 41, WIDE, ("1", "d", "6"), ("1", "C", "0"), table="fits"),  # whatever these were: the statement changed them
    row(0, "delete", 42, ONLY_KEY, None, ("2",), table="fits"),  # carries the key alone
    row(0, "insert", 43, WIDE, ("2", "x", "1"), table="fits"),
    *ddl(40, "RECOVER TABLE lost", 0, 1),
    update(41, "1", "b", "not compared", "lost"),
    update(40, "11", "c", "seen again", "parts"),
    retyped(40, ("1", "5", "x", "0.1", "2.00", "6"), ("1", "4", "x", "0.1001", "2.00", "6")),  # no FLOAT is compared
    retyped(40, ("3", "5", "x", "0.1", "2.00", "6"), ("3", "2", "x", "0.1", "1.50", "7")),  # what the statements left, but for n
    *resolved(45, 0, 1),
]
FOURTH = [*(update(50, i, "b", "lost", "samples") for i in SAMPLES), *resolved(55, 0, 1)]


@dataclass
class Told:
    """What the certificates say of old values: of each window by table, and of the fourth by policy; of that with `block`, the error."""

    windows: list[dict[str, Any]] = field(default_factory=list)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, Any] = field(default_factory=dict)
    facts: HourFacts | None = None
    error: QualityError | None = None


def images(lake: Lake) -> dict[str, Any]:
    """What the newest certificate says, by table."""
    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    assert cut is not None
    said = read_certificate(lake.store, lake.feed.name, cut.seq)
    return {name.removeprefix("d."): counts["before_images"] for name, counts in said["rows"].items() if "before_images" in counts}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, small_hours: None) -> Iterator[Told]:
    out, everything = Told(), Policy(before_images="all", mask_key=KEY)
    folder: Path = tmp_path_factory.mktemp("images")
    with opened(folder, SQL, 2, policy=everything, tables={"d.k": TablePolicy(buckets=2)}, columns=MASKS) as (feed, lake):

        def under(**policy: str) -> None:
            lake.feed = feed.feed.model_copy(update={"policy": everything.model_copy(update=policy)})

        for messages in (FIRST, SECOND, THIRD):
            hour = feed.add(lake, messages)
            publish(lake, hour)
            out.windows.append(images(lake))
            if messages is SECOND:
                out.facts, out.rows["second"] = hour_facts(lake, hour), rows_of(lake, "d.k")
        hour = feed.add(lake, FOURTH)
        under(on_before_image="block")
        with pytest.raises(QualityError) as stopped:
            publish(lake, hour)
        out.error, out.rows["blocked"] = stopped.value, rows_of(lake, "d.samples")
        under(before_images="off", on_before_image="block")
        compact(lake, parse_hour(hour))
        out.policies["off"], out.rows["off"] = images(lake), rows_of(lake, "d.samples")
        under(before_images="sample")
        publish_again(lake, hour, hour)
        out.policies["sample, by a redo"] = images(lake)
        yield out


def test_changes_that_do_not_find_the_row_they_replace_are_counted_and_shown(told: Told) -> None:
    examples = [
        f"id=2 at {TOPIC}[1]@10: v was lost, here b",
        f"id=3 at {TOPIC}[1]@11: v was a, here NULL",
        f"id=4 at {TOPIC}[1]@12: insert of a row that already exists",
        f"id=8 at {TOPIC}[1]@13: delete of a row that does not exist in the lake",
        f"id=9 at {TOPIC}[1]@14: update of a row that does not exist in the lake",
    ]
    counts = {"compared": 7, "differs": 3, "missing": 2, "duplicate_inserts": 1}
    assert told.windows[0] == {}, "the first window has nothing to compare with"
    assert told.windows[1]["k"] == counts | {"columns": {"v": 3}, "examples": examples}
    assert told.windows[2]["k"] == {"compared": 1}
    assert told.facts is not None
    assert told.facts.tables["d.k"].before_images is not None
    assert told.facts.tables["d.k"].before_images.model_dump() == counts
    (check,) = [c for c in told.facts.checks if (c.rule, c.table) == (RULE, "d.k")]
    assert (check.success, check.severity, check.unexpected, check.examples) == (False, "warning", 6, examples)
    assert check.observed == (
        "7 rows compared; 3 changes whose before image differs from the row in the lake (v 3); "
        "2 changes of a row that does not exist in the lake; 1 insert of a row that already exists"
    )
    believed = ("1", "c"), ("2", "z"), ("4", "d"), ("5", "o"), ("6", "g"), ("9", "j")
    assert told.rows["second"] == table(*believed), "the change is believed"


def test_what_may_lawfully_differ_is_no_finding(told: Told) -> None:
    assert told.windows[1]["fits"] == {"compared": 3}
    assert told.windows[2]["fits"] == {"compared": 2}
    (example,) = told.windows[1]["thin"].pop("examples")
    assert (example.split(" at ")[0], example.split(": ")[1]) == ("id=9", "delete of a row that does not exist in the lake")
    assert told.windows[1]["thin"] == {"compared": 2, "missing": 1}
    assert told.windows[1]["emptied"] == {"compared": 1}, "truncated rows do not stand"


def test_a_column_is_compared_again_in_the_window_after_the_statement_that_changed_it(told: Told) -> None:
    second, third = told.windows[1]["typed"], told.windows[2]["typed"]
    assert (second["compared"], second["differs"], second["columns"]) == (2, 1, {"w": 1})
    assert (third["compared"], third["differs"], third["columns"]) == (2, 1, {"n": 1})
    assert [e.partition(": ")[2] for e in third["examples"]] == ["n was 7, here 5"]


def test_masked_columns_are_not_compared_and_their_rows_are(told: Told) -> None:
    found = told.windows[1]["masked"]
    assert {k: n for k, n in found.items() if k != "examples"} == {"compared": 3, "differs": 1, "missing": 1, "columns": {"n": 1}}
    assert [e.partition(": ")[2] for e in found["examples"]] == ["n was 7, here 1", "update of a row that does not exist in the lake"]
    assert all(len(e.partition(" at ")[0]) == len("id=") + 64 for e in found["examples"]), "the key as it is masked"


def test_nothing_is_compared_where_rows_left_or_came_that_no_change_tells_of(told: Told) -> None:
    assert "parts" not in told.windows[1]
    assert "bare_parts" not in told.windows[1]
    assert "lost" not in told.windows[2], "dropped and recovered"
    assert told.windows[2]["parts"]["differs"] == 1, "the window after compares"


def test_rows_without_a_key_are_looked_for_whole(told: Told) -> None:
    assert told.windows[1]["bare"] == {"compared": 2, "missing": 1}


def test_a_feed_may_stop_at_them_or_not_look(told: Told) -> None:
    assert told.error is not None
    assert (told.error.code, told.error.exit_code) == ("BEFORE_IMAGES", 3)
    first = f"id=0 at {TOPIC}[0]@"
    said = "d.samples: 64 rows compared; 64 changes whose before image differs from the row in the lake (v 64); the first: "
    assert said + first in str(told.error)
    assert told.rows["blocked"] == table(*((i, "a") for i in SAMPLES)), "nothing is published"
    assert told.policies["off"] == {}
    assert told.rows["off"] == table(*((i, "b") for i in SAMPLES))


def test_a_redo_compares_with_the_cut_that_it_goes_on_from(told: Told) -> None:
    sample = told.policies["sample, by a redo"]["samples"]
    assert 0 < sample["compared"] < 16
    assert sample["differs"] == sample["columns"]["v"] == sample["compared"]
