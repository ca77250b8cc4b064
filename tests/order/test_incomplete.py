"""A cut that lacks something says what, wherever it is shown, and is not published where the feed says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lake import lakes
from tests.lake.histories import Message, resolved, row
from tests.lake.windows import KV, opened
from tidelake import __version__
from tidelake.cli.stages import _say
from tidelake.config.lake_paths import quality_key
from tidelake.config.policy import Policy
from tidelake.errors import Coordinates, OrderError
from tidelake.history.event import Event
from tidelake.lake.cut import Cut, LateCounts, Reason, TableCounts
from tidelake.lake.cut_documents import read_certificate
from tidelake.order.incomplete import Lack, known, of_holes, of_tables, reasons, refuse
from tidelake.query.status import feed_status
from tidelake.run import compact, order, validate
from tidelake.tso import parse_hour
from tidelake.validate.report import hour_facts

OLD = (
    '{"feed": "shop", "seq": 3, "hour": "2026-01-05T10", "applied_ts": 1, "resolved_ts": 2, "run": "r", "version": "0", "incomplete": true}'
)


def cut(seq: int, *because: Reason) -> Cut:
    return Cut(
        feed="shop",
        seq=seq,
        hour="2026-01-05T10",
        applied_ts=0,
        resolved_ts=seq,
        run="r",
        version="0",
        incomplete=bool(because),
        incomplete_because=list(because),
    )


def test_a_cut_says_its_own_reasons_and_by_code_the_first_of_those_before() -> None:
    first = cut(1, *reasons([Lack("GAP", "one"), Lack("LATE_ROWS", "two")], 1, "2026-01-05T10", None))
    second = cut(2, *reasons([Lack("GAP", "three")], 2, "2026-01-05T11", first))
    assert [(r.code, r.detail, r.cut, r.hour) for r in second.incomplete_because] == [
        ("GAP", "three", 2, "2026-01-05T11"),
        ("GAP", "one", 1, "2026-01-05T10"),
        ("LATE_ROWS", "two", 1, "2026-01-05T10"),
    ]
    third = cut(3, *reasons([], 3, "2026-01-05T12", second))
    assert {(r.detail, r.cut) for r in third.incomplete_because} == {("one", 1), ("two", 1)}
    assert reasons([], 4, "2026-01-05T13", cut(3)) == []


def test_a_cut_of_an_earlier_version_is_read_and_its_mark_goes_on() -> None:
    old = Cut.model_validate_json(OLD)
    assert [(r.code, r.cut) for r in known(old)] == [("EARLIER", 3)]
    assert [(r.code, r.cut) for r in reasons([], 4, "2026-01-05T11", old)] == [("EARLIER", 3)]


def test_what_tables_lack_is_counted_by_kind() -> None:
    late = {"d.k": LateCounts(replays=5, late=2, conflicts=1), "d.m": LateCounts(replays=3)}
    found = of_tables({"SCHEMA_MISMATCH": 2}, ["t[0]@1 (2 rows)"], {"a": TableCounts(partial=3)}, late)
    assert found == [
        ("SCHEMA_MISMATCH", "2 rows left out: rows with columns that no statement added (accepted: t[0]@1 (2 rows))"),
        ("PARTIAL_ROWS", "3 rows of which only the key was sent"),
        ("LATE_ROWS", "rows arrived after the cut that should contain them: d.k (2 missing, 1 in conflict)"),
    ]
    assert of_tables({}, [], {"a": TableCounts()}, {"d.m": LateCounts(replays=3)}) == []
    assert of_holes({Coordinates("t", 1): (5, 9)}) == [("GAP", "missing messages were skipped: t[1] offsets 5 to 9")]
    assert of_holes({}) == []


def test_a_window_is_refused_for_its_own_reasons_and_not_for_those_of_earlier_cuts(tmp_path: Path) -> None:
    blocks = lakes.feed(tmp_path, policy=Policy(incomplete="block"))
    inherited = cut(2, Reason(code="GAP", detail="one", cut=1, hour="2026-01-05T09"))
    refuse(blocks, inherited)
    own = cut(2, Reason(code="GAP", detail="t[0] offsets 5 to 9", cut=2, hour="2026-01-05T10"))
    refuse(lakes.feed(tmp_path), own)
    with pytest.raises(OrderError) as refused:
        refuse(blocks, own)
    assert (refused.value.code, refused.value.exit_code) == ("INCOMPLETE", 3)
    assert "would be published incomplete: GAP: t[0] offsets 5 to 9" in str(refused.value)


@pytest.mark.usefixtures("small_hours")
def test_a_message_that_is_left_out_is_named_in_certificate_status_and_report_or_blocks(tmp_path: Path) -> None:
    policy = Policy(on_reject="publish_incomplete", incomplete="block")
    with opened(tmp_path, policy=policy) as (feed, lake):
        broken = Event(kind="rejected", error_code="TRUNCATED", error="ends early", raw_value=b"x")
        hour = feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), Message(partition=0, event=broken), *resolved(20)])
        at = parse_hour(hour)
        with pytest.raises(OrderError, match=r"would be published incomplete: UNDECIDED: 1 message .*: t\[0\]@1 \(TRUNCATED\)"):
            order(lake, at)
        assert feed_status(lake)["cut"] is None
        assert hour_facts(lake, hour).version == __version__, "the report's footer names it"

        lake.feed = lake.feed.model_copy(update={"policy": Policy(on_reject="publish_incomplete")})
        order(lake, at)
        validate(lake, at)
        blocking = lake.feed.model_copy(update={"policy": policy})
        lake.feed, publishing = blocking, lake.feed
        with pytest.raises(OrderError, match="INCOMPLETE"):
            compact(lake, at)  # what was ordered under the other policy
        lake.feed = publishing
        done = compact(lake, at).cut
        assert done is not None
        said = [{"code": "UNDECIDED", "detail": "1 message that could not be decoded: t[0]@1 (TRUNCATED)", "cut": 1, "hour": hour}]
        assert read_certificate(lake.store, "shop", 1)["incomplete_because"] == said
        assert (feed_status(lake)["incomplete"], feed_status(lake)["incomplete_because"]) == (True, said)
        facts = json.loads(lake.store.read(quality_key("shop", hour)))
        assert facts["incomplete_because"] == [f"UNDECIDED: 1 message that could not be decoded: t[0]@1 (TRUNCATED) (cut 1, hour {hour})"]


def test_the_line_of_a_run_says_that_the_cut_is_incomplete_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    run: dict[str, Any] = {
        "hour": "2026-01-05T10",
        "messages": 5,
        "rejected": {},
        "cut": 2,
        "tables": {"d.k": 3},
        "published": 5,
        "seconds": {"land": 1.0},
    }
    _say(run | {"incomplete_because": [{"code": "GAP", "detail": "t[0] offsets 5 to 9", "cut": 2, "hour": "2026-01-05T10"}]})
    _say(run | {"incomplete_because": []})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(", INCOMPLETE: GAP: t[0] offsets 5 to 9  [1.0 s]")
    assert "INCOMPLETE" not in lines[1]
