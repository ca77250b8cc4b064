"""Plots over the last hours: scales, gaps, and what those are told who cannot see them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.validate.facts import Page, page, published
from tidelake.validate.quality.facts import HourFacts, RejectedFacts, TableFacts
from tidelake.validate.quality.plots import Plot, Series, line, stacked
from tidelake.validate.quality.trends import HOURS, trends

START = datetime(2026, 1, 4, 22, tzinfo=UTC)


def plot(*values: float | None, unit: str = "rows", **more: object) -> Plot:
    hours = [START + timedelta(hours=n) for n in range(len(values))]
    return Plot(title="Rows", unit=unit, hours=hours, series=[Series(name="inserts", values=values)], **more)  # type: ignore[arg-type]


def earlier(hour: str, **more: object) -> HourFacts:
    return published(hour=hour, **more)


def bars(svg: str) -> list[tuple[float, float]]:
    """(top, height) of every bar."""
    return [(float(y), float(h)) for y, h in re.findall(r'<rect class="c\d" x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', svg)]


def labels(svg: str) -> list[str]:
    """The y axis from below."""
    return re.findall(r'<text class="y"[^>]*>([^<]*)<', svg)


def test_the_axis_has_round_ticks_that_reach_over_the_highest_bar() -> None:
    svg = stacked(plot(12, 180, 90))
    assert labels(svg) == ["0", "50", "100", "150", "200"]
    assert min(top for top, _ in bars(svg)) > 10


@pytest.mark.parametrize(
    ("highest", "expected"),
    [
        (0, ["0", "0.25", "0.5", "0.75", "1"]),
        (3, ["0", "1", "2", "3"]),
        (7, ["0", "2", "4", "6", "8"]),
        (3_000_000, ["0", "1 M", "2 M", "3 M"]),
    ],
)
def test_ticks_suit_every_size(highest: float, expected: list[str]) -> None:
    assert labels(stacked(plot(0, highest))) == expected


def test_bars_are_as_high_as_their_numbers() -> None:
    (_, first), (_, second) = bars(stacked(plot(50, 100)))
    assert second == pytest.approx(2 * first, abs=0.2)


def test_the_series_of_an_hour_stand_on_one_another() -> None:
    two = Plot(title="t", unit="", hours=[START], series=[Series(name="a", values=[30]), Series(name="b", values=[10], colour=1)])
    (lower_top, _), (upper_top, upper_height) = bars(stacked(two))
    assert upper_top + upper_height == pytest.approx(lower_top, abs=0.2)


def test_one_message_among_a_million_is_seen() -> None:
    assert min(height for _, height in bars(stacked(plot(1, 1_000_000)))) >= 1


def test_hours_without_data_are_one_gap_and_not_zero() -> None:
    svg = stacked(plot(1, None, None, 0, 5))
    assert svg.count('class="gap"') == 1
    assert len(bars(svg)) == 2
    assert "2026-01-04 23:00 UTC: no data" in svg
    assert "2026-01-05 01:00 UTC: inserts 0 rows" in svg


def test_a_line_is_broken_where_an_hour_is_missing() -> None:
    svg = line(plot(1, 2, None, 3))
    assert svg.count("<circle") == 3
    assert svg.count('class="line') == 1


def test_a_lag_below_zero_stays_inside_the_plot() -> None:
    svg = line(plot(-0.5, 2))
    assert labels(svg)[0] == "-1"
    assert all(10 <= float(y) <= 176 for y in re.findall(r'cy="([\d.-]+)"', svg))


def test_the_date_stands_below_the_first_hour_of_each_day() -> None:
    svg = stacked(plot(1, 1, 1, 1))
    assert re.findall(r'<text class="x day"[^>]*>([^<]*)<', svg) == ["4 Jan", "5 Jan"]


def test_at_most_seven_hours_are_labelled() -> None:
    assert stacked(plot(*range(48))).count('<text class="x" ') <= 7


def test_a_plot_is_described_in_words() -> None:
    described = Page(str(stacked(plot(1, 1200, 7)))).elements("svg")[0]
    assert described["role"] == "img"
    assert described["aria-label"] == (
        "Rows, 2026-01-04 22:00 to 2026-01-05 00:00 UTC: 7 rows in the hour from 00:00, "
        "at most 1,200 rows in the hour from 2026-01-04 23:00"
    )


def test_names_of_series_are_escaped() -> None:
    assert "<script" not in stacked(Plot(title="<script>", unit="<script>", hours=[START], series=[Series(name="<script>", values=[1])]))


def test_missing_hours_between_the_first_and_the_current_are_gaps() -> None:
    drawn = trends(published(), [earlier("2026-01-05T07")])
    assert len(drawn.facts) == 2
    assert [f.gaps for f in drawn.figures] == [True] * 4
    assert "2026-01-05 08:00 UTC: no data" in drawn.figures[0].svg


def test_plots_hold_rows_lag_quarantine_and_durations_of_every_hour() -> None:
    other = {"a.b": TableFacts(inserts=7)}
    rejected = [RejectedFacts(code="BAD_JSON", messages=3)]
    before = earlier("2026-01-05T09", tables=other, lag_seconds=1.5, rejected=rejected, seconds={"order": 9.0})
    rows, lag, quarantined, seconds = (f.svg for f in trends(published(), [before]).figures)
    assert "09:00 UTC: inserts 7 rows, updates 0 rows, deletes 0 rows" in rows
    assert "10:00 UTC: inserts 1,020 rows, updates 250 rows, deletes 33 rows" in rows
    assert "09:00 UTC: lag 1.5 s" in lag
    assert "09:00 UTC: quarantined 3 messages" in quarantined
    assert "10:00 UTC: order 3.2 s, validate 6.0 s, compact 70.0 s" in seconds
    assert "09:00 UTC: order 9.0 s" in seconds


def test_a_blocked_hour_is_marked() -> None:
    figure = trends(published(status="blocked"), [earlier("2026-01-05T09")]).figures[0]
    assert figure.stops
    assert "10:00 UTC (stopped)" in figure.svg


def test_hours_long_ago_and_hours_after_this_one_are_left_out() -> None:
    long_ago = earlier("2025-12-01T00")
    later = earlier("2026-01-05T11")
    drawn = trends(published(), [long_ago, earlier("2026-01-05T09"), later])
    assert [f.hour for f in drawn.facts] == ["2026-01-05T10", "2026-01-05T09"]
    assert HOURS == 48


def test_one_hour_alone_is_not_plotted() -> None:
    assert trends(published(), []).figures == ()
    assert "plots begin with the second" in page(published()).words


def test_the_numbers_of_the_plots_stand_in_a_table() -> None:
    words = page(published(), earlier("2026-01-05T09", lag_seconds=None)).words
    assert "2026-01-05T10 published 1,020 250 33 0 3.4 0 79.2" in words
    assert "2026-01-05T09 published 1,020 250 33 0 – 0 79.2" in words


def test_a_superseded_hour_stays_in_the_plots_and_is_marked_in_their_table() -> None:
    replaced = earlier("2026-01-05T09", superseded_by=12, superseded_hour="2026-01-05T10", tables={"a.b": TableFacts(inserts=7)})
    drawn = trends(published(), [replaced])
    assert "09:00 UTC: inserts 7 rows" in drawn.figures[0].svg
    assert not drawn.figures[0].gaps
    assert "2026-01-05T09 superseded 7 0 0 0" in page(published(), replaced).words
