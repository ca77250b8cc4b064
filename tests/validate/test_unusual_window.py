"""Unusual numbers of a real window: in the verdict, the certificate, the page, the report's JSON and the status."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.lake.histories import Message, publish, resolved, row
from tests.lake.windows import KV, opened
from tests.validate.facts import published
from tidelake.config.lake_paths import quality_key, report_key
from tidelake.config.policy import Policy
from tidelake.errors import QualityError
from tidelake.lake.cut_documents import read_certificate
from tidelake.query.status import feed_status
from tidelake.tso import begin_ts, format_hour, from_ms, parse_hour
from tidelake.validate.quality.facts import HourFacts, TableFacts

HOUR = "2026-01-05T11"
SAID = "rows 2, the same hour of the last 7 days had 900 to 900 (median 900)"


def reports(write: Callable[[str, bytes], None]) -> None:
    """Seven earlier days with 900 inserts into d.k, and none into d.m."""
    end = begin_ts(parse_hour(HOUR) + timedelta(hours=1)) - from_ms(1000)
    for day in range(1, 8):
        shift, hour = from_ms(day * 86_400_000), format_hour(parse_hour(HOUR) - timedelta(days=day))
        facts = {
            "hour": hour,
            "applied_ts": end - from_ms(3_600_000) - shift,
            "resolved_ts": end - shift,
            "lag_seconds": 1.0,
            "tables": {"d.k": TableFacts(inserts=900), "d.m": TableFacts()},
        }
        document = HourFacts.model_validate(published().model_dump() | facts).model_dump_json()
        write(quality_key("shop", hour), document.encode())


def hours() -> tuple[list[Message], list[Message]]:
    """An hour with one row, and the next with two."""
    at = [begin_ts(parse_hour(h)) for h in ("2026-01-05T10", HOUR, "2026-01-05T12")]
    first = [row(0, "insert", at[0] + 1, KV, ("1", "a")), *resolved(at[1] - from_ms(1000))]
    second = [row(0, "insert", at[1] + n, KV, (str(n), "b")) for n in (2, 3)]
    return first, [*second, *resolved(at[2] - from_ms(1000))]


@pytest.mark.usefixtures("small_hours")
def test_an_unusual_hour_is_published_with_a_warning_everywhere(tmp_path: Path) -> None:
    first, second = hours()
    with opened(tmp_path) as (feed, lake):
        reports(lake.store.write)
        publish(lake, feed.add(lake, first))
        said = read_certificate(lake.store, "shop", 1)["expectations"]["checks"]
        assert [c for c in said if c["rule"].startswith("numbers")] == []
        cut = publish(lake, feed.add(lake, second))
        assert cut is not None
        certificate = read_certificate(lake.store, "shop", 2)
        page, facts = lake.store.read(report_key("shop", HOUR)).decode(), json.loads(lake.store.read(quality_key("shop", HOUR)))
        status = feed_status(lake)
    checks = [c for c in certificate["expectations"]["checks"] if c["rule"] == "numbers as in the same hour of earlier days"]
    assert [(c["table"], c["success"], c["severity"]) for c in checks] == [("", False, "warning"), ("d.k", False, "warning")]
    assert SAID in checks[1]["observed"]
    assert page.count(SAID) == 2
    assert "Rule from" in page
    assert "by more than 3 MAD, by more than 25% of the nearest end" in page
    assert next(c for c in facts["checks"] if not c["success"])["observed"].startswith(SAID)
    assert (status["checks"]["failed"], status["checks"]["checked"]) == (2, len(certificate["expectations"]["checks"]))
    assert [(c["table"], c["observed"]) for c in status["checks"]["first"]] == [(c["table"], c["observed"]) for c in checks]


@pytest.mark.usefixtures("small_hours")
def test_a_feed_may_block_on_unusual_numbers(tmp_path: Path) -> None:
    first, second = hours()
    with opened(tmp_path, policy=Policy(on_finding={"UNUSUAL_NUMBERS": "block"})) as (feed, lake):
        reports(lake.store.write)
        publish(lake, feed.add(lake, first))
        with pytest.raises(QualityError, match=r"^EXPECTATION_FAILED: the window: numbers as in the same hour") as error:
            publish(lake, feed.add(lake, second))
    assert SAID in error.value.message
    assert "look for the cause at the source" in error.value.remedy
