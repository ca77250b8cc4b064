"""What the real Maxwell wrote, as a feed: its untyped cells become the values that the source had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.histories import printed, publish, rows_of
from tests.lake.windows import table
from tests.order.offset_feeds import opened
from tests.protocols.json_messages import compact
from tests.protocols.test_maxwell_upstream import recorded
from tests.protocols.untyped_messages import daemon, maxwell, maxwell_rows

FIRST_RUN = 33  # messages of the recorded ones
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("spark_app")]


def test_recorded_rows_have_the_values_of_the_source_in_tables_that_statements_made(tmp_path: Path) -> None:
    with opened(tmp_path, "maxwell", partitions=1) as (feed, lake):
        (feed.feed.folder / "tables.sql").write_text("CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(40));")
        publish(lake, feed.put(lake, {0: recorded()[:FIRST_RUN]}))
        log = sorted(printed(lake, "shop.log2"), key=lambda row: row["line"])
        raw = {"hex": "0001ff"}
        assert [tuple(row.values()) for row in log] == [("a", "1", None), ("a", "1", None), ("b", "2", raw), ("end", "9", None)]
        every = {row["id"]: row for row in printed(lake, "shop.every")}
        assert set(every) == {"1", "4", "5", "10"}
        names = ("iu", "b", "bu", "d", "d65", "f", "b9", "b64", "v", "bin", "vb", "bl", "dt", "ts", "y", "e", "s")
        assert {n: every["1"][n] for n in names} == {
            "iu": "4294967295",
            "b": "-9223372036854775808",
            "bu": "18446744073709551615",
            "d": "0.0000000001",
            "d65": "-0.000000000000000000000000000001",
            "f": "3.4e+38",
            "b9": "341",
            "b64": "18446744073709551615",
            "v": "new",
            "bin": {"hex": "0102000000"},
            "vb": {"hex": "010200"},
            "bl": None,
            "dt": "2024-02-29 12:34:56.123456",
            "ts": "2024-02-29 07:04:56.123456",
            "y": "2024",
            "e": "paid",
            "s": "y",
        }
        assert [(every[n]["bin"], every[n]["e"], every[n]["s"]) for n in ("4", "5", "10")] == [
            ({"hex": "0000000000"}, None, ""),
            ({"hex": "0000000000"}, "a,b", "x,y,z"),
            (None, None, None),
        ]


def test_members_of_an_enum_are_names_from_maxwell_and_numbers_from_ticdc(tmp_path: Path) -> None:
    with opened(tmp_path, "maxwell", partitions=1) as (feed, lake):
        (feed.feed.folder / "tables.sql").write_text("CREATE TABLE db.t (id INT PRIMARY KEY, e ENUM('2','1'), s SET('x','y'), j JSON);")
        own = [
            (None, compact(daemon("insert", data={"id": n, "e": e, "s": s, "j": j})))
            for n, e, s, j in ((1, "2", ["x", "y"], {"a": [1]}), (2, "1", [], "text"))
        ]
        ticdc = maxwell_rows(maxwell("insert", data={"id": 3, "e": 2, "s": 2, "j": "[1]"}))
        publish(lake, feed.put(lake, {0: [*own, ticdc]}))
        assert rows_of(lake, "db.t") == table(
            ("1", "2", "x,y", '{"a": [1]}'), ("2", "1", "", '"text"'), ("3", "1", "y", "[1]"), names=("id", "e", "s", "j")
        )
