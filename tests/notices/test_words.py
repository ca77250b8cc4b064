"""The words of a notice."""

from __future__ import annotations

from tidelake.notices.cause import Cause, Notice, Standing
from tidelake.notices.words import words

PUBLISHED = Standing(cut=7, hour="2026-01-05T09", resolved_ts=463368548000000000)
CAUSE = Cause(
    event="blocked",
    code="GAP",
    hour="2026-01-05T10",
    id="x",
    ends="x",
    why="shop.open[3]@100: offsets 100–120 are missing\nmore of it",
    todo="restore the file <and> `land` again",
)
SEEN = "cut 7, hour 2026-01-05T09, 2026-01-05 10:58:53.032Z (TSO 463368548000000000)"
PAGES = "http://airflow.example:8080/tidelake/quality/shop"


def notice(told: str = "blocked", standing: Standing = PUBLISHED, **changes: str) -> Notice:
    return Notice.model_validate({"number": 1, "event": told, "cause": CAUSE.model_copy(update=changes), "standing": standing})


def test_a_blocked_hour_says_feed_hour_what_why_what_to_do_what_readers_see_and_where_the_report_is() -> None:
    said = words(notice(), "shop", PAGES)
    assert said.subject == "shop: hour 2026-01-05T10 is blocked (GAP)"
    assert said.text.splitlines() == [
        "Feed shop: hour 2026-01-05T10 is blocked (GAP).",
        "",
        "Why: GAP: shop.open[3]@100: offsets 100–120 are missing",
        "What to do: restore the file <and> `land` again",
        f"Published: {SEEN}",
        "Quality report: http://airflow.example:8080/tidelake/quality/shop/2026-01-05T10",
    ]
    assert "<p><b>What to do</b>: restore the file &lt;and&gt; <code>land</code> again</p>" in said.html
    assert said.html.endswith(f'<p><a href="{PAGES}/2026-01-05T10">Quality report</a></p>')


def test_a_recovery_says_which_cause_ended_and_what_blocks_now() -> None:
    said = words(notice("recovered", PUBLISHED.model_copy(update={"blocked": "2026-01-05T11 (UNDECIDED)"})), "shop", "")
    assert said.text.splitlines() == [
        "Feed shop: hour 2026-01-05T10 is no longer blocked by GAP.",
        "",
        "It was: GAP: shop.open[3]@100: offsets 100–120 are missing",
        f"Published: {SEEN}; hour 2026-01-05T11 (UNDECIDED) is blocked",
    ]
    assert "<a" not in said.html


def test_every_event_begins_and_ends_with_a_sentence_of_its_own() -> None:
    said = {
        event: [words(notice(kind, event=event), "shop", "").what for kind in (event, "recovered")]
        for event in ("blocked", "incomplete", "warning", "lag")
    }
    assert said == {
        "blocked": ["hour 2026-01-05T10 is blocked (GAP)", "hour 2026-01-05T10 is no longer blocked by GAP"],
        "incomplete": [
            "hour 2026-01-05T10 is published incomplete (GAP)",
            "the newest cut no longer lacks what hour 2026-01-05T10 lacked (GAP)",
        ],
        "warning": ["hour 2026-01-05T10 is published with a warning (GAP)", "the warning of hour 2026-01-05T10 ended (GAP)"],
        "lag": ["the published data is late", "the published data is no longer late"],
    }


def test_a_text_of_a_message_cannot_leave_its_line_and_is_cut_short() -> None:
    said = words(notice(why="\x1b[31m" + "x" * 5000), "shop", "")
    assert "Why: GAP: \\x1b[31mxxx" in said.text
    assert len(said.text.splitlines()) == 5
    assert "more characters" in said.why


def test_a_feed_without_a_cut_has_published_nothing_yet() -> None:
    assert words(notice(standing=Standing()), "shop", "").published == "nothing yet"
