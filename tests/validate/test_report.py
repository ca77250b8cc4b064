"""The report: what it says, that nothing in it is executed or fetched, and that it reads well where there is nothing to say."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import pytest

from tests.validate.facts import HOSTILE, HOUR, RESOLVED, check, hostile, page, published
from tidelake.errors import QualityError
from tidelake.validate.quality.facts import (
    DdlFacts,
    DecisionFacts,
    FindingFacts,
    HourFacts,
    RedoFacts,
    RedoneTable,
    RejectedFacts,
    TableFacts,
)
from tidelake.validate.quality.report import render
from tidelake.validate.quality.verdict import Verdict


def test_a_published_hour_says_its_cut_its_time_and_its_lag_in_one_sentence() -> None:
    words = page(published()).words
    assert "Published: cut 12 of feed shop-open; all 3 tables at" in words
    assert f"tables at 2026-01-05 10:59:56.593Z (TSO {RESOLVED}), 3.4 s before the end of the hour." in words


def test_what_came_in_is_counted_with_thousands_separators() -> None:
    words = page(published()).words
    for said in ("Messages 7,000", "Size 3.0 MiB", "Row changes 1,320", "DDL statements 1", "Resolved timestamps 3,600"):
        assert said in words
    assert re.search(r"Repeats dropped .{0,60} 17 ", words)
    assert re.search(r"Late .{0,60} 5 ", words)
    assert re.search(r"Waiting .{0,60} 44 ", words)


def test_what_went_out_has_a_row_for_every_changed_table_and_one_for_all() -> None:
    words = page(published()).words
    assert "2 tables changed in the window" in words
    assert "shop.orders 1,300 17 1,000 250 33 50,000 → 50,967 +967 all" in words
    assert "shop.lines 20 0 20 0 0 0 → 20 +20 2 of 8 buckets" in words
    assert "All tables 1,320 17 1,020 250 33 50,009 → 50,996 +987" in words


def test_a_table_that_did_not_change_is_named_without_numbers() -> None:
    assert "1 table did not change: shop.zones ." in page(published()).words


def test_upserts_have_a_column_only_where_there_are_any() -> None:
    assert "Upserts" not in page(published()).words
    assert "Upserts" in page(published(tables={"a.b": TableFacts(events=1, upserts=1)})).words


def test_a_blocked_hour_says_the_error_the_command_and_what_readers_see() -> None:
    failed = check(False, column="price", expected="price values to be at least 0", observed="3 bad values among 900", examples=["-1.50"])
    with pytest.raises(QualityError) as refused:
        Verdict(feed="shop-open", hour=HOUR, seq=12, run="r", checks=[failed]).refuse()
    blocked = published(status="blocked", cut=None, error=str(refused.value), checks=[failed])
    words = page(blocked, published(hour="2026-01-05T08", cut=10), published(hour="2026-01-05T09", cut=11)).words
    assert "Blocked: nothing of the hour is published in feed shop-open" in words
    assert "EXPECTATION_FAILED shop.orders.price: key not null: expected price values to be at least 0, found 3 bad values" in words
    assert f"tidelake run --feed shop-open --hour {HOUR}" in words
    assert "Readers still see cut 11, at" in words
    assert "(staged, not published)" in words


def test_an_undecided_message_leads_to_the_commands_of_the_quarantine() -> None:
    error = "UNDECIDED shop[0]@7: 1 messages could not be decoded; list them with `tidelake quarantine list --feed shop-open`"
    words = page(HourFacts(feed="shop-open", hour=HOUR, status="blocked", error=error)).words
    assert "UNDECIDED shop[0]@7: 1 messages could not be decoded" in words
    for command in ("list", "replay", "accept"):
        assert f"tidelake quarantine {command} --feed shop-open" in words


def test_an_error_without_code_is_shown_as_it_is() -> None:
    words = page(published(status="failed", cut=None, error="Connection refused")).words
    assert "Failed: nothing of the hour is published" in words
    assert "Connection refused" in words


def test_a_published_hour_whose_later_run_failed_is_still_published() -> None:
    words = page(published(status="failed", error="STORAGE: no answer")).words
    assert "Failed: cut 12 of feed shop-open is still published, a later run stopped; the run can be repeated at any time." in words
    assert "STORAGE no answer" in words
    assert "staged" not in words


def test_failed_checks_stand_before_warnings_and_passed_ones_are_collapsed() -> None:
    checks = [check(rule="is fine"), check(False, rule="odd", severity="warning"), check(False, rule="broken")]
    words = page(published(checks=checks)).words
    assert words.index("broken") < words.index("odd") < words.index("1 check passed") < words.index("is fine")
    assert "2 of 3 checks failed." in words


def test_quarantine_names_codes_examples_and_how_many_wait() -> None:
    rejected = [RejectedFacts(code="BAD_JSON", messages=1204, accepted=4, examples=["shop[2]@48811: ends inside a string"])]
    words = page(published(rejected=rejected)).words
    assert "1,204 messages of this hour could not be decoded; 1,200 of them wait for a decision" in words
    assert "BAD_JSON 1,204 messages, 4 accepted" in words
    one = page(published(rejected=[RejectedFacts(code="BAD_JSON", messages=1)])).words
    assert "1 message of this hour could not be decoded; it waits for a decision" in one
    assert "shop[2]@48811: ends inside a string" in words
    assert f"tidelake quarantine accept --feed shop-open --hour {HOUR}" in words


def test_accepted_losses_make_a_published_cut_incomplete() -> None:
    words = page(published(incomplete=True, rejected=[RejectedFacts(code="BAD_JSON", messages=1, accepted=1)])).words
    assert "Published, incomplete: cut 12" in words
    assert "the loss of all is accepted" in words
    assert "quarantine accept" not in words


def test_an_accepted_loss_says_who_accepted_it_when_and_why() -> None:
    decisions = [
        DecisionFacts(by="ada", reason="test messages of the platform team", decided_at_ms=1_767_614_400_250),
        DecisionFacts(by="ben", reason="", decided_at_ms=1_767_614_460_000),
    ]
    words = page(published(rejected=[RejectedFacts(code="BAD_JSON", messages=2, accepted=2, decisions=decisions)])).words
    assert "Loss accepted by ada at 2026-01-05 12:00:00.250Z : test messages of the platform team" in words
    assert "Loss accepted by ben at 2026-01-05 12:01:00.000Z : no reason given" in words


def test_conversions_that_lost_something_are_listed_by_column() -> None:
    table = TableFacts(
        events=1,
        nulled_zero_dates={"day": 14},
        repaired={"nick": 3},
        invalid_values={"level": 1200},
        nulled_values={"tax": 2},
        ambiguous={"at": 5},
    )
    words = page(published(tables={"shop.orders": table})).words
    assert "shop.orders.day 14 zero dates, now NULL" in words
    assert "shop.orders.nick 3 texts with invalid UTF-8" in words
    assert "shop.orders.level 1,200 values that did not fit the type" in words
    assert "shop.orders.tax 2 values that did not fit the type, now NULL" in words
    assert "shop.orders.at 5 ambiguous values" in words


def test_checksums_are_counted_by_table_and_a_mismatch_is_said_in_the_verdict() -> None:
    tables = {"shop.a": TableFacts(events=9, checksums={"verified": 7, "mismatch": 2}), "shop.b": TableFacts(events=1)}
    words = page(published(tables=tables)).words
    assert "Verified Mismatch Unverifiable shop.a 7 2 0" in words
    assert "2 row events arrived damaged: TiCDC's checksum does not match the row." in words
    whole = page(published(tables={"shop.a": TableFacts(events=9, checksums={"verified": 7})})).words
    assert "shop.a 7 0 0" in whole
    assert "damaged" not in whole
    assert "Row checksums" not in page(published()).words


def test_masked_columns_are_named_with_their_masks_and_how_many_values() -> None:
    words = page(published(tables={"shop.a": TableFacts(events=9, masked={"mail": {"hash": 1234}, "note": {"truncate(4)": 7}})})).words
    assert "shop.a.mail 1,234 hash" in words
    assert "shop.a.note 7 truncate(4)" in words


def test_float_columns_of_craft_are_named_as_untrusted() -> None:
    words = page(published(tables={"shop.a": TableFacts(events=9, untrusted=["f", "g"])})).words
    assert "FLOAT columns by Craft" in words
    assert "shop.a : f , g" in words
    assert "Craft" not in page(published()).words


def test_unsettled_deletes_are_said_in_the_verdict() -> None:
    assert (
        "2 deletes without commit ts may belong before or after" in page(published(tables={"a.b": TableFacts(events=2, unsettled=2)})).words
    )


def test_statements_stand_with_time_tso_and_effect() -> None:
    words = page(published(ddl=[DdlFacts(commit_ts=RESOLVED, query="DROP TABLE shop.old", effect="applied")])).words
    assert f"applied 2026-01-05 10:59:56.593Z (TSO {RESOLVED}) DROP TABLE shop.old" in words


def test_a_statement_that_was_passed_over_is_a_note_and_says_why() -> None:
    passed = DdlFacts(commit_ts=RESOLVED, query="ALTER TABLE t FROBNICATE", effect="ignored", why="UNSUPPORTED_DDL: not this one")
    words = page(published(ddl=[passed, DdlFacts(commit_ts=RESOLVED, query="DROP TABLE x", effect="applied")])).words
    assert "1 DDL statement ignored by policy, tables may differ from the source" in words
    assert "UNSUPPORTED_DDL: not this one" in words
    assert "ignored by policy" not in page(published(ddl=[DdlFacts(commit_ts=RESOLVED, query="DROP TABLE x", effect="applied")])).words


def test_findings_of_landing_say_what_to_do() -> None:
    finding = FindingFacts(code="GAP", severity="critical", where="shop[1]", detail="offsets 3-9 are missing", remedy="bring back the file")
    assert "critical GAP shop[1] offsets 3-9 are missing What to do: bring back the file" in page(published(findings=[finding])).words


@pytest.mark.parametrize("status", ["landed", "decoded", "ordered", "validated"])
def test_an_hour_on_its_way_says_its_next_stage(status: str) -> None:
    following = {"landed": "decode", "decoded": "order", "ordered": "validate", "validated": "compact"}[status]
    assert f"the next stage is {following}." in page(HourFacts.model_validate(published().model_dump() | {"status": status})).words


def test_an_hour_of_which_nothing_is_known_reads_well() -> None:
    words = page(HourFacts(feed="shop-open", hour=HOUR, status="landed")).words
    for said in (
        "No message is landed for this hour.",
        "Nothing yet: the hour is not ordered.",
        "Every message of this hour was decoded.",
        "Nothing was checked yet.",
        "Nothing was converted.",
        "This is the first hour on record",
        "Nothing of this feed is published yet.",
    ):
        assert said in words
    assert "None" not in words


def test_a_first_hour_without_rows_reads_well() -> None:
    words = page(published(cut=1, applied_ts=0, tables={}, events={"resolved": 3600}, checks=[])).words
    assert "cut 1 of feed shop-open; no tables at" in words
    assert "The window reaches from the first message to" in words
    assert "No row of any table changed in the window." in words
    assert "No statement changed a table in the window." in words


def test_nothing_hostile_becomes_markup() -> None:
    source = render(hostile(), [hostile().model_copy(update={"hour": "2026-01-05T09"})])
    taken = page(hostile(), hostile().model_copy(update={"hour": "2026-01-05T09"}))
    assert "<script" not in source
    assert taken.elements("script") == []
    assert taken.words.count(HOSTILE) > 20


def test_hostile_errors_are_escaped_too() -> None:
    for status in ("blocked", "failed", "ordered"):
        assert "<script" not in render(hostile().model_copy(update={"status": status}), [])


def test_texts_that_would_not_show_or_would_reorder_the_page_are_replaced() -> None:
    source = render(published(checks=[check(False, observed="a\x00b\u202ec\ud800d", examples=["\x1b[31m"])]), [])
    assert "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c\N{REPLACEMENT CHARACTER}d" in source
    assert "\N{REPLACEMENT CHARACTER}[31m" in source
    source.encode("utf-8")


def test_a_long_text_is_clipped_with_what_is_left_out() -> None:
    words = page(published(ddl=[DdlFacts(commit_ts=RESOLVED, query="x" * 5000, effect="applied")])).words
    assert "… (3,000 more characters)" in words


def test_the_page_needs_nothing_but_itself() -> None:
    taken = page(hostile(), published(hour="2026-01-05T09"))
    assert not re.search(r"(https?:)?//[a-z]", taken.source)
    assert taken.elements("link") == taken.elements("img") == taken.elements("script") == []
    assert all((a["href"] or "").startswith("#") for a in taken.elements("a"))
    assert "url(" not in taken.source
    assert not any(name.startswith("on") for _, attributes in taken.tags for name in attributes)
    policy = next(m for m in taken.elements("meta") if m.get("http-equiv") == "Content-Security-Policy")
    style = taken.source.partition("<style>")[2].partition("</style>")[0]
    assert policy["content"] == f"default-src 'none'; style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"
    assert not any("style" in attributes for _, attributes in taken.tags)


def test_the_page_has_a_title_one_first_heading_and_every_anchor() -> None:
    taken = page(published(), published(hour="2026-01-05T09"))
    assert taken.words.startswith("Published: shop-open, 2026-01-05, 10:00–11:00 UTC · Tidelake")
    assert len(taken.elements("h1")) == 1
    assert taken.elements("html")[0]["lang"] == "en"
    ids = {attributes["id"] for _, attributes in taken.tags if "id" in attributes}
    assert {(a["href"] or "").removeprefix("#") for a in taken.elements("a")} <= ids
    assert len(taken.elements("caption")) == len(taken.elements("table"))


def test_dark_mode_is_left_to_the_screen() -> None:
    source = render(published(), [])
    assert "@media screen and (prefers-color-scheme: dark)" in source
    assert "@media print" in source


def test_a_phone_shows_the_page_in_its_own_width() -> None:
    (viewport,) = [m for m in page(published()).elements("meta") if m.get("name") == "viewport"]
    assert viewport["content"] == "width=device-width, initial-scale=1"


def test_a_superseded_hour_says_by_which_cut_and_links_to_its_report() -> None:
    taken = page(published(superseded_by=15, superseded_hour="2026-01-05T12"))
    assert "Superseded by cut 15: a redo replaced cut 12 of feed shop-open." in taken.words
    assert "Report of cut 15, 2026-01-05, 12:00–13:00 UTC" in taken.words
    assert [a["href"] for a in taken.elements("a") if not (a["href"] or "").startswith("#")] == ["2026-01-05T12.html"]
    assert taken.words.startswith("Superseded by cut 15: shop-open")


def test_a_run_that_stops_on_a_superseded_hour_does_not_say_that_its_cut_is_published() -> None:
    stopped = published(status="blocked", error="GAP: lost", superseded_by=15, superseded_hour="2026-01-05T12")
    taken = page(stopped)
    assert "Blocked: cut 12 of feed shop-open is superseded by cut 15, a later run stopped" in taken.words
    assert "2026-01-05T12.html" in [a["href"] for a in taken.elements("a")]


def test_readers_never_see_a_superseded_cut() -> None:
    replaced = published(hour="2026-01-05T09", cut=11, superseded_by=12, superseded_hour="2026-01-05T08")
    words = page(published(status="blocked", cut=None, error="GAP: lost"), published(hour="2026-01-05T08", cut=12), replaced).words
    assert "Readers still see cut 12, at" in words


def test_a_redo_says_what_it_replaces_and_how_many_rows_of_which_tables_differ() -> None:
    tables = {"shop.lines": RedoneTable(added=1200, changed=3), "shop.old": RedoneTable(removed=7, table=1)}
    words = page(published(redo=RedoFacts(replaces=11, parent=8, tables=tables))).words
    assert "A redo: it replaces the cuts after cut 8 up to cut 11; 2 tables differ." in words
    assert "Rows that differ from cut 11, which this cut replaces Table Added Removed Changed" in words
    assert "shop.lines 1,200 0 3 shop.old in one of the two cuts only 0 7 0" in words
    assert "What the redo changed" not in page(published()).words


@pytest.mark.parametrize(("replaces", "parent", "said"), [(11, 10, "cut 11"), (11, 0, "all cuts up to cut 11")])
def test_a_redo_without_a_difference_says_that_every_table_holds_the_same_rows(replaces: int, parent: int, said: str) -> None:
    words = page(published(redo=RedoFacts(replaces=replaces, parent=parent))).words
    assert f"A redo: it replaces {said}; no table differs." in words
    assert "Every table holds the same rows as in cut 11, which this cut replaces." in words


def test_a_table_that_is_called_like_markup_is_shown_by_its_name_with_its_counts() -> None:
    taken = page(published(tables={f"shop.{HOSTILE}": TableFacts(events=1300, inserts=1300, changes=1300, rows_before=0, rows_after=1300)}))
    assert taken.elements("script") == []
    assert f"shop.{HOSTILE} 1,300 0 1,300 0 0 0 → 1,300 +1,300" in taken.words


def test_on_paper_long_boxes_are_divided_between_pages_and_details_are_open() -> None:
    """Chromium prints such a page without gaps, with every check in it."""
    paper = render(published(), []).partition("@media print {")[2].partition("</style>")[0]
    rules = re.findall(r"^  ([^{}]+?) \{ (.*?) \}", paper, re.MULTILINE)
    whole = {selector for selectors, rule in rules if "break-inside: avoid" in rule for selector in selectors.split(", ")}
    assert whole == {".verdict", "figure", "tr", ".numbers > div"}
    assert ("details::details-content", "content-visibility: visible; block-size: auto;") in rules
    assert (".wide", "overflow: visible;") in rules
