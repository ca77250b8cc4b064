"""TSO ↔ time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidelake import tso
from tidelake.errors import ConfigError

UINT64 = st.integers(0, (1 << 64) - 1)
MILLISECONDS = st.integers(0, (1 << 46) - 1)
SHANGHAI = timezone(timedelta(hours=8))


@pytest.mark.parametrize(
    ("ts", "ms", "counter"), [(429918007904436226, 1640007049196, 2), (415508856908021766, 1585040500290, 6), (0, 0, 0), (1 << 18, 1, 0)]
)
def test_a_tso_is_milliseconds_and_a_counter(ts: int, ms: int, counter: int) -> None:
    assert (tso.physical_ms(ts), ts & 0x3FFFF) == (ms, counter)
    assert tso.from_ms(ms, counter) == ts


def test_the_reference_s_example_is_at_its_time() -> None:
    assert tso.at(429918007904436226) == datetime(2021, 12, 20, 13, 30, 49, 196000, tzinfo=UTC)


@example((1 << 63) - 1)
@example(1 << 63)
@given(UINT64)
def test_wrapping_into_int64_loses_no_bit(ts: int) -> None:
    wrapped = tso.wrap(ts)
    assert -(1 << 63) <= wrapped < 1 << 63
    assert wrapped % (1 << 64) == ts
    assert tso.unwrap(wrapped) == ts


@given(UINT64)
def test_the_parts_of_a_tso_give_it_back(ts: int) -> None:
    assert tso.from_ms(tso.physical_ms(ts), ts % (1 << 18)) == ts


@given(MILLISECONDS, MILLISECONDS, st.integers(0, (1 << 18) - 1), st.integers(0, (1 << 18) - 1))
def test_tsos_sort_by_time_and_then_by_counter(a: int, b: int, x: int, y: int) -> None:
    assert (tso.from_ms(a, x) < tso.from_ms(b, y)) == ((a, x) < (b, y))


@given(MILLISECONDS)
def test_the_time_of_a_tso_is_exact_to_the_millisecond(ms: int) -> None:
    assert tso.at(tso.from_ms(ms, 77)) - datetime(1970, 1, 1, tzinfo=UTC) == timedelta(milliseconds=ms)


@given(MILLISECONDS, st.integers(0, 999))
def test_the_last_tso_of_a_moment_is_the_last_of_its_millisecond(ms: int, microseconds: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms, microseconds=microseconds)
    last = tso.last_of(moment)
    assert tso.physical_ms(last) == ms
    assert tso.physical_ms(last + 1) == ms + 1


def test_a_millisecond_that_a_float_cannot_hold_is_not_the_one_before() -> None:
    assert tso.physical_ms(tso.last_of(tso.parse_moment("2026-01-05T12:00:00.001Z"))) == 1767614400001


@pytest.mark.parametrize(
    ("ts", "said"),
    [
        (429918007904436226, "429918007904436226 (2021-12-20T13:30:49.196Z)"),
        (0, "0 (1970-01-01T00:00:00.000Z)"),
        (tso.wrap((1 << 64) - 1), "18446744073709551615"),
    ],
)
def test_a_tso_is_shown_unsigned_beside_its_time(ts: int, said: str) -> None:
    assert tso.show(ts) == said


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-05T12:00:00Z", datetime(2026, 1, 5, 12, tzinfo=UTC)),
        ("2026-01-05T12:00:00+08:00", datetime(2026, 1, 5, 4, tzinfo=UTC)),
        ("2026-01-05 12:00:00.250-01:30", datetime(2026, 1, 5, 13, 30, 0, 250000, tzinfo=UTC)),
        ("2026-01-05T12Z", datetime(2026, 1, 5, 12, tzinfo=UTC)),
    ],
)
def test_a_moment_with_a_zone_is_read_as_utc(text: str, moment: datetime) -> None:
    assert tso.parse_moment(text) == moment
    assert tso.parse_moment(text).utcoffset() == timedelta()


@pytest.mark.parametrize("text", ["", "noon", "2026-13-05T12:00:00Z", "2026-02-30T12:00:00Z", "0001-01-01T00:00:00+14:00", "1e9"])
def test_what_is_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        tso.parse_moment(text)
    assert str(error.value) == f"CONFIG: not an ISO 8601 time: {text!r}; write it like 2026-01-05T12:00:00Z"


@pytest.mark.parametrize("text", ["2026-01-05T12:00:00", "2026-01-05"])
def test_a_moment_without_a_zone_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="has no time zone; append Z for UTC"):
        tso.parse_moment(text)


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)))  # noqa: DTZ001 - made aware below
def test_an_hour_s_name_is_read_back(naive: datetime) -> None:
    hour = naive.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
    assert tso.parse_hour(tso.format_hour(hour)) == hour


def test_an_hour_is_named_in_utc() -> None:
    assert tso.format_hour(datetime(2026, 1, 5, 3, 59, tzinfo=SHANGHAI)) == "2026-01-04T19"
    assert tso.parse_hour("2026-01-05T10") == datetime(2026, 1, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-05",
        "2026-01-05T24",
        "2026-1-5T10",
        "2026-02-29T10",
        "2026-01-05T10:00",
        " 2026-01-05T10",
        "２０２６-01-05T10",
        "0000-01-05T10",
    ],
)
def test_what_is_no_hour_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        tso.parse_hour(text)
    assert error.value.exit_code == 2
    assert repr(text) in error.value.message
    assert error.value.remedy == "write it like 2026-01-05T10 (UTC)"
