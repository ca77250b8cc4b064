"""Rows that fit their table neither before nor after any statement: they block, or are left out and told; their statement brings them."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.lake.histories import Feeder, Message, publish, publish_again, resolved, row, row_schema, rows_of
from tests.lake.windows import KV, opened, table
from tests.land import archive
from tidelake.cli import run
from tidelake.config.policy import Policy
from tidelake.errors import Coordinates, OrderError
from tidelake.history.event import Event
from tidelake.io.storage import open_store
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.opened import Lake
from tidelake.land import land_hour
from tidelake.order.schema_mismatches import raw_message
from tidelake.query.status import feed_status
from tidelake.run import order
from tidelake.tso import parse_hour, show

pytestmark = pytest.mark.usefixtures("small_hours")
MORE = row_schema("id bigint", "v varchar", "extra int")
SENT = "sent (id bigint, v varchar, extra int), known (id bigint, v varchar(20))"
FITTING = table(("1", "a"), ("9", "z"))
ALL = table(("1", "b", "6"), ("2", "b", "5"), ("3", "c", "7"), ("9", "z", None), names=("id", "v", "extra"))
BROUGHT = {"commit_ts": 11, "database": "d", "query": "ALTER TABLE k ADD extra INT"}


def first_hour() -> list[Message]:
    return [
        row(0, "insert", 10, KV, ("1", "a")),
        row(0, "insert", 12, MORE, ("2", "b", "5")),
        row(0, "update", 13, MORE, ("1", "b", "6"), ("1", "a", None)),
        row(0, "insert", 14, KV, ("9", "z")),
        *resolved(15),
        row(0, "insert", 16, MORE, ("3", "c", "7")),
    ]


def said_of(rows: int, ts: int) -> str:
    of = f"{rows} row{'s' if rows > 1 else ''} from TSO {show(ts)} on"
    return f"the schema of d.k, before and after every statement, does not fit {of}: {SENT}"


def said(feed: Feeder) -> None:
    """People found the statement."""
    (feed.feed.folder / "ddl.jsonl").write_text(json.dumps(BROUGHT) + "\n")


def quarantine(lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    monkeypatch.setattr("tidelake.cli.quarantine.opened", lambda *_, **__: nullcontext(lake))
    assert run(["quarantine", arguments[0], "--feed", "shop", *arguments[1:]]) == 0
    return capsys.readouterr().out


def blocked_and_accepted(lake: Lake, hour: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Their loss is accepted after they blocked the hour."""
    with pytest.raises(OrderError, match="SCHEMA_MISMATCH"):
        order(lake, parse_hour(hour))
    quarantine(lake, monkeypatch, capsys, "accept", "--all", "--reason", "a test")


def test_they_block_their_window_with_both_schemas_until_their_statement_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path) as (feed, lake):
        hour = feed.add(lake, first_hour())
        with pytest.raises(OrderError) as refused:
            order(lake, parse_hour(hour))
        error = refused.value
        assert (error.code, error.exit_code, str(error.at)) == ("SCHEMA_MISMATCH", 3, "t[0]@1")
        assert error.message == said_of(2, 12)
        assert "Write the statement that added extra into ddl.jsonl" in error.remedy
        (listed,) = json.loads(quarantine(lake, monkeypatch, capsys, "list", "--json"))
        assert listed == {
            "message": "t[0]@1",
            "hour": hour,
            "timestamp_ms": 1,
            "code": "SCHEMA_MISMATCH",
            "rows": 2,
            "error": error.message,
            "decision": "undecided",
        }
        assert feed_status(lake)["quarantine"] == 1
        assert "1 group of rows that fit no table: add the missing statement" in quarantine(lake, monkeypatch, capsys, "replay")
        said(feed)
        cut = publish(lake, hour)
        assert cut is not None
        assert (cut.incomplete, cut.accepted, rows_of(lake, "d.k")) == (False, [], ALL - table(("3", "c", "7"), names=("id", "v", "extra")))
        assert quarantine(lake, monkeypatch, capsys, "list") == "the quarantine is empty\n"
        assert feed_status(lake)["quarantine"] == 0


def test_an_accepted_loss_is_told_and_ends_with_its_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path) as (feed, lake):
        hour = feed.add(lake, first_hour())
        blocked_and_accepted(lake, hour, monkeypatch, capsys)
        cut = publish(lake, hour)
        assert cut is not None
        assert (cut.incomplete, cut.accepted, rows_of(lake, "d.k")) == (True, ["t[0]@1 (2 rows)"], FITTING)
        certificate = read_certificate(lake.store, "shop", cut.seq)
        assert (certificate["rejected"], certificate["accepted"]) == ({"SCHEMA_MISMATCH": 2}, ["t[0]@1 (2 rows)"])
        assert feed_status(lake)["quarantine"] == 0
        later = feed.add(lake, resolved(20))
        with pytest.raises(OrderError, match=re.escape(f"SCHEMA_MISMATCH t[0]@5: {said_of(1, 16)}; nothing is lost")):
            order(lake, parse_hour(later))
        assert feed_status(lake)["quarantine"] == 1


def test_a_decision_about_rows_that_fit_by_now_hides_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path) as (feed, lake):
        hour = feed.add(lake, first_hour())
        blocked_and_accepted(lake, hour, monkeypatch, capsys)
        said(feed)
        publish(lake, hour)
        feed.add(lake, [Message(partition=0, event=Event(kind="rejected", error_code="TRUNCATED", error="a test"))])
        listed = json.loads(quarantine(lake, monkeypatch, capsys, "list", "--json"))
        assert [(r["message"], r["code"], r["decision"]) for r in listed] == [("t[0]@6", "TRUNCATED", "undecided")]
        assert feed_status(lake)["quarantine"] == 1


def test_a_feed_may_go_on_without_them_and_a_redo_brings_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path, policy=Policy(on_reject="publish_incomplete")) as (feed, lake):
        hours = [feed.add(lake, first_hour()), feed.add(lake, resolved(20))]
        cuts = [publish(lake, hour) for hour in hours]
        assert [(c.incomplete, c.accepted) for c in cuts if c] == [(True, []), (True, [])]
        assert rows_of(lake, "d.k") == FITTING
        listed = json.loads(quarantine(lake, monkeypatch, capsys, "list", "--json"))
        assert [(r["message"], r["hour"], r["rows"], r["decision"]) for r in listed] == [
            ("t[0]@1", hours[0], 2, "undecided"),
            ("t[0]@5", hours[0], 1, "undecided"),
        ]
        assert feed_status(lake)["quarantine"] == 2
        said(feed)
        cut, differs = publish_again(lake, hours[1], hours[0])
        assert (cut.incomplete, rows_of(lake, "d.k")) == (False, ALL)
        assert differs == {"d.k": {"added": 2, "changed": 1}}
        assert quarantine(lake, monkeypatch, capsys, "list") == "the quarantine is empty\n"


def test_they_are_put_aside_without_spark_in_a_small_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Lake, "spark")
    with opened(tmp_path, policy=Policy(on_reject="publish_incomplete")) as (feed, lake):
        publish(lake, feed.add(lake, first_hour()))
        assert rows_of(lake, "d.k") == FITTING


def test_a_message_is_shown_with_the_bytes_that_were_landed(tmp_path: Path) -> None:
    feed = archive.make_feed(tmp_path, partitions=1)
    archive.put(feed, 0, archive.messages(3, 8))
    land_hour(feed, archive.HOUR)
    store, hour = open_store(feed.lake.uri), f"{archive.HOUR:%Y-%m-%dT%H}"
    assert raw_message(store, feed.name, hour, Coordinates(archive.TOPIC, 0, 5)) == (b"k5", b"v5")
    assert raw_message(store, feed.name, hour, Coordinates(archive.TOPIC, 0, 9)) == (None, None)
    assert raw_message(store, feed.name, "2026-01-05T23", Coordinates(archive.TOPIC, 0, 5)) == (None, None)


BARE = row_schema("id bigint", "price decimal", "status enum")
PRICES = "CREATE TABLE d.new (id BIGINT PRIMARY KEY, price DECIMAL(10,2), status ENUM('open','paid'));"
HERE = ("id", "price", "status")
LEFT = (
    "neither tables.sql nor a CREATE TABLE statement defines d.new, and open messages do not carry the types of its columns: "
    "price (decimal without precision and scale), status (enum without its elements); 2 rows from TSO "
)


def undefined() -> list[Message]:
    return [
        row(0, "insert", 10, KV, ("1", "a")),
        row(0, "insert", 12, BARE, ("1", "1.5", "2"), table="new"),
        row(0, "update", 13, BARE, ("1", "2.5", "1"), ("1", "1.5", "2"), table="new"),
        *resolved(15),
    ]


def test_a_table_whose_types_nothing_says_blocks_its_window_until_tables_sql_defines_it(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, resolved(5)))
        hour = feed.add(lake, undefined())
        with pytest.raises(OrderError) as refused:
            order(lake, parse_hour(hour))
        error = refused.value
        assert (error.code, error.exit_code, str(error.at)) == ("UNDEFINED_TABLE", 3, "t[0]@2")
        assert error.message.startswith(LEFT)
        assert f"Write CREATE TABLE (SHOW CREATE TABLE prints it) of 1 table into {feed.feed.folder / 'tables.sql'}" in error.remedy
        (feed.feed.folder / "tables.sql").write_text(feed.tables_sql + PRICES)
        cut = publish(lake, hour)
        assert cut is not None
        assert (cut.incomplete, rows_of(lake, "d.new")) == (False, table(("1", "2.50", "open"), names=HERE))
        assert feed_status(lake)["definitions"] == []


def test_a_feed_may_go_on_without_such_a_table_and_is_told_the_redo_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path, policy=Policy(on_reject="publish_incomplete")) as (feed, lake):
        hours = [feed.add(lake, undefined()), feed.add(lake, [row(0, "insert", 18, BARE, ("9", "9", "1"), table="new"), *resolved(20)])]
        first = publish(lake, hours[0])
        assert first is not None
        assert (first.incomplete, [i.name for i in first.catalog.alive()]) == (True, ["d.k", "d.m"])
        assert read_certificate(lake.store, "shop", first.seq)["rejected"] == {"UNDEFINED_TABLE": 2}
        (listed,) = json.loads(quarantine(lake, monkeypatch, capsys, "list", "--json"))
        assert (listed["code"], listed["rows"], listed["decision"]) == ("UNDEFINED_TABLE", 2, "undecided")
        aside = "d.new: 2 rows are set aside, because the table was not defined; "
        redo = "`tidelake redo --feed shop --from {} --to {}`".format
        assert feed_status(lake)["definitions"] == [f"{aside}define it in tables.sql, then {redo(hours[0], hours[0])}"]
        (feed.feed.folder / "tables.sql").write_text(feed.tables_sql + PRICES)
        publish(lake, hours[1])
        assert rows_of(lake, "d.new") == table(("9", "9.00", "open"), names=HERE)
        assert feed_status(lake)["definitions"] == [f"{aside}it is defined now: {redo(hours[0], hours[1])}"]
        cut, differs = publish_again(lake, hours[1], hours[0])
        assert (cut.incomplete, differs) == (False, {"d.new": {"added": 1}})
        assert rows_of(lake, "d.new") == table(("1", "2.50", "open"), ("9", "9.00", "open"), names=HERE)
        assert feed_status(lake)["definitions"] == []


def test_a_table_published_as_messages_said_takes_its_definition_by_a_redo(tmp_path: Path) -> None:
    said = row_schema("id bigint", "v varchar")
    with opened(tmp_path) as (feed, lake):
        hours = [feed.add(lake, [row(0, "insert", ts - 1, said, (str(ts), "7"), table="new"), *resolved(ts)]) for ts in (15, 25)]
        for hour in hours:
            publish(lake, hour)
        assert feed_status(lake)["tables"]["d.new"]["types"] == "messages"
        assert feed_status(lake)["definitions"] == []
        (feed.feed.folder / "tables.sql").write_text(
            feed.tables_sql.replace("m (v VARCHAR(20))", "m (v INT)") + "CREATE TABLE d.new (id INT PRIMARY KEY, v INT);"
        )
        redo = f"`tidelake redo --feed shop --from {hours[0]} --to {hours[1]}`"
        assert feed_status(lake)["definitions"] == [
            f"d.m.v: published as varchar(20), tables.sql defines int: {redo}",
            f"d.new.id: published as bigint, tables.sql defines int; d.new.v: published as varchar, tables.sql defines int: {redo}",
        ]
        cut, _ = publish_again(lake, hours[1], hours[0])
        assert [(c.name, c.type) for c in lake.catalog.load("d.new").columns()][:2] == [("id", "int"), ("v", "int")]
        assert (feed_status(lake)["definitions"], cut.incomplete) == ([], False)
