"""The hour in whose span offsets get their commit ts."""

from __future__ import annotations

from tidelake.tso import begin_ts, end_ts, parse_hour

HOUR = "2026-01-05T10"
BEGIN, END = begin_ts(parse_hour(HOUR)), end_ts(parse_hour(HOUR))
