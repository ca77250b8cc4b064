"""`run` over several hours, and what landing's findings look like: without Spark, the stages stand in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import call
from tests.cli.feeds import FEED, write
from tidelake.cli import stages
from tidelake.errors import OrderError
from tidelake.io import storage
from tidelake.land.store.manifest import Finding

RUN = ("run", "--feed", "shop", "--hour", "2026-01-05T10", "--hours", "4")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The archive of feed shop: hours 10 and 11 have an object."""
    monkeypatch.setenv("TIDELAKE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("TIDELAKE_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDELAKE_SCHEMAS", str(tmp_path / "schemas"))
    storage.reset()
    write(tmp_path / "schemas", feed=FEED)
    for hour in (10, 11):
        add(tmp_path / "archive", hour)
    yield tmp_path / "archive"
    storage.reset()


def add(archive: Path, hour: int) -> None:
    path = archive / f"open/shop.open/dt=2026-01-05/hr={hour}/shop.open+0+{hour:010}.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"-")


@pytest.fixture
def ran(archive: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hours that were run; an hour whose name is added with `!` before it fails."""
    hours: list[str] = []

    def run_hour(lake: object, hour: Any, **_: object) -> str:
        name = f"{hour:%Y-%m-%dT%H}"
        if f"!{name}" in hours:
            raise OrderError("offsets 5 to 9 are not landed", code="GAP", remedy="bring them back")
        hours.append(name)
        return name

    monkeypatch.setattr("tidelake.run.run_hour", run_hour)
    monkeypatch.setattr(stages, "_outcome", lambda hour: {"hour": hour, "cut": None, "why": "a test", "rejected": {}})
    return hours


def test_hours_past_the_archive_s_end_are_not_there_yet_and_the_others_are_done(ran: list[str]) -> None:
    done = call(*RUN)
    assert (done.code, ran) == (3, ["2026-01-05T10", "2026-01-05T11"])
    assert done.err == (
        "error: NOT_ARCHIVED: 2 of 4 hours are done, up to 2026-01-05T11; hour 2026-01-05T12: the archive has no objects of this "
        "hour or of later hours yet; when the archive has it, run `tidelake run --feed shop --hour 2026-01-05T12 --hours 2`\n"
    )
    assert len(done.out.splitlines()) == 2
    said = json.loads(call(*RUN, "--json").out)
    assert (said["error"]["code"], [h["hour"] for h in said["done"]]) == ("NOT_ARCHIVED", ran[:2])


def test_an_hour_missing_in_the_middle_is_the_landing_s_affair(ran: list[str], archive: Path) -> None:
    add(archive, 13)
    assert call(*RUN).code == 0
    assert ran == [f"2026-01-05T{n}" for n in range(10, 14)]


def test_what_stops_a_later_hour_says_what_was_done(ran: list[str], archive: Path) -> None:
    add(archive, 12)
    ran.append("!2026-01-05T12")
    done = call(*RUN)
    assert done.code == 3
    assert "GAP: 2 of 4 hours are done, up to 2026-01-05T11; hour 2026-01-05T12: offsets 5 to 9 are not landed; bring them back" in done.err


def test_the_first_hour_fails_in_its_own_words(ran: list[str]) -> None:
    ran.append("!2026-01-05T10")
    assert call(*RUN).err == "error: GAP: offsets 5 to 9 are not landed; bring them back\n"


def test_a_finding_of_several_partitions_is_one_line_that_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        Finding(code="MISSING_PARTITION", severity="critical", topic="t", partition=p, detail="there is no message", remedy="bring it")
        for p in range(3)
    ]
    found.append(Finding(code="EMPTY", severity="info", detail="nothing", remedy="nothing"))
    stages._say_findings(found)
    assert capsys.readouterr().out == (
        "  critical: MISSING_PARTITION t[0], t[1], t[2]: there is no message; bring it\n  info: EMPTY: nothing; nothing\n"
    )
