"""What users see when something is wrong, and that nothing is lost until they decide."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.e2e.bazaar import FEED, Bazaar, edit_jsonl
from tidelake.config.feed import load_feed
from tidelake.lake.opened import Lake

pytestmark = pytest.mark.usefixtures("small_hours")


def tables(shop: Bazaar) -> set[str]:
    """The uuids of all tables in the namespaces of feed bazaar-open."""
    with Lake.of(load_feed(shop.folder / "schemas", FEED, shop.variables)) as lake:
        names = [n for n, owner in lake.catalog.namespaces().items() if owner == FEED]
        return {lake.catalog.load(t).uuid for n in names for t in lake.catalog.tables(n)}


def test_a_bad_message_blocks_until_it_is_re_driven_or_accepted(shop: Bazaar, capsys: pytest.CaptureFixture[str]) -> None:
    source = shop.sources(shop.hours[0])[0]
    sound = source.read_bytes()
    place: list[str] = []

    def spoil(records: list[dict[str, Any]]) -> None:
        victim = next(r for r in records if len(r["value"] or "") > 400)
        victim["value"] = base64.b64encode(base64.b64decode(victim["value"])[:-7]).decode()
        place.append(f"bazaar.open[{source.name.split('+')[1]}]@{victim['offset']}")

    edit_jsonl(source, spoil)
    assert shop.run_hours(1) == 3
    said = capsys.readouterr().err
    assert f"error: UNDECIDED {place[0]}: 1 message of feed {FEED} could not be decoded, the first: TRUNCATED" in said
    assert f"list them with `tidelake quarantine list --feed {FEED}`" in said

    assert shop.run("quarantine", "list", "--feed", FEED, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(r["message"], r["code"], r["decision"]) for r in listed] == [(place[0], "TRUNCATED", "undecided")]
    assert shop.run("quarantine", "show", place[0], "--feed", FEED, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["value_base64"] is not None
    assert len(base64.b64decode(shown["value_base64"])) > 100
    assert shop.run("quarantine", "replay", "--feed", FEED) == 3
    assert "re-drove 1 message: 0 decoded, 1 left" in capsys.readouterr().out
    page = (shop.folder / "lake" / "reports" / FEED / f"{shop.hours[0]}.html").read_text()
    assert place[0] in page

    source.write_bytes(sound)
    assert shop.run_hours(1) == 0
    assert not any(shop.differences(shop.hours[0]).values())
    assert shop.run("status", "--feed", FEED, "--json") == 0
    status = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]) or "{}")
    assert (status["quarantine"], status["incomplete"]) == (0, False)


def test_an_accepted_loss_marks_the_cut_incomplete_and_stands_in_the_certificate(shop: Bazaar, capsys: pytest.CaptureFixture[str]) -> None:
    def spoil(records: list[dict[str, Any]]) -> None:
        next(r for r in records if len(r["value"] or "") > 400)["value"] = "AAAA"

    edit_jsonl(shop.sources(shop.hours[0])[0], spoil)
    assert shop.run_hours(1) == 3
    assert shop.run("quarantine", "accept", "--all", "--feed", FEED, "--by", "ada", "--reason", "a test") == 0
    assert shop.run_hours(1) == 0
    assert "INCOMPLETE" in capsys.readouterr().out
    certificate = json.loads(next((shop.folder / "lake" / "certificates" / FEED).glob("*.json")).read_text())["predicate"]
    assert certificate["incomplete"] is True
    assert len(certificate["accepted"]) == 1
    assert certificate["accepted"][0].startswith("bazaar.open[0]@")
    (decision,) = certificate["decisions"]
    assert (decision["by"], decision["reason"], decision["messages"]) == ("ada", "a test", certificate["accepted"])
    report = json.loads((shop.folder / "lake" / "reports" / FEED / f"{shop.hours[0]}.json").read_text())
    assert [[(d["reason"], d["by"]) for d in r["decisions"]] for r in report["rejected"]] == [[("a test", "ada")]]


def test_a_broken_critical_expectation_publishes_nothing_and_a_warning_does(shop: Bazaar, capsys: pytest.CaptureFixture[str]) -> None:
    rules = shop.folder / "schemas" / FEED / "expectations" / "bazaar.listings.toml"
    rule = '\n[[expect]]\ntype = "expect_column_values_to_be_between"\ncolumn = "id"\nmax_value = 3\nseverity = "{}"\n'
    before = rules.read_text()
    rules.write_text(before + rule.format("critical"))
    assert shop.run_hours(1) == 3
    said = capsys.readouterr().err
    assert "error: EXPECTATION_FAILED: bazaar.listings.id:" in said
    assert "nothing of the window is published" in said
    assert shop.run("status", "--feed", FEED, "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["published_ts"], status["tables"]) == (None, {})
    assert shop.run("compact", "--feed", FEED, "--hour", shop.hours[0]) == 3
    rules.write_text(before + rule.format("warning"))
    assert shop.run_hours(1) == 0
    assert not any(shop.differences(shop.hours[0]).values())
    report = json.loads((shop.folder / "lake" / "reports" / FEED / f"{shop.hours[0]}.json").read_text())
    assert [(c["table"], c["column"], c["severity"]) for c in report["checks"] if not c["success"]] == [
        ("bazaar.listings", "id", "warning")
    ]


def test_a_missing_file_blocks_names_the_partition_and_is_landed_when_it_comes_back(
    later_shop: Bazaar, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = later_shop
    lost = [p for p in shop.sources(shop.hours[1]) if "+1+" in p.name]
    kept = {p: p.read_bytes() for p in lost}
    for p in lost:
        p.unlink()
    assert shop.run("run", "--feed", FEED, "--hour", shop.hours[1]) == 3
    said = capsys.readouterr().err
    assert "MISSING_PARTITION bazaar.open[1]" in said
    assert shop.run("run", "--feed", FEED, "--hour", shop.hours[1]) == 3
    for p, data in kept.items():
        p.write_bytes(data)
    assert shop.run("run", "--feed", FEED, "--hour", shop.hours[1]) == 0
    assert not any(shop.differences(shop.hours[1]).values())


def test_a_file_missing_in_the_middle_is_a_gap_with_its_offsets(shop: Bazaar, capsys: pytest.CaptureFixture[str]) -> None:
    files = [p for p in shop.sources(shop.hours[0]) if "+2+" in p.name]
    assert len(files) >= 3, "the workload cuts a partition's hour into several files"
    gone = files[1].read_bytes()
    files[1].unlink()
    assert shop.run("land", "--feed", FEED, "--hour", shop.hours[0]) == 3
    said = capsys.readouterr().err
    assert "error: GAP bazaar.open[2]@" in said
    assert 'on_gap = "warn"' in said
    files[1].write_bytes(gone)
    assert shop.run("land", "--feed", FEED, "--hour", shop.hours[0]) == 0


def test_an_hour_out_of_turn_is_refused_with_the_command_to_run(shop: Bazaar, capsys: pytest.CaptureFixture[str]) -> None:
    assert shop.run("order", "--feed", FEED, "--hour", shop.hours[0]) == 3
    assert f"run `tidelake run --feed {FEED} --hour {shop.hours[0]}`" in capsys.readouterr().err
    assert shop.run("decode", "--feed", FEED, "--hour", shop.hours[0]) == 3
    assert f"run `tidelake land --feed {FEED} --hour {shop.hours[0]}` first" in capsys.readouterr().err


def test_a_namespace_of_another_feed_is_refused(later_shop: Bazaar, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its tables stay, though nothing but the messages tells the second feed's databases."""
    shop = later_shop
    before = tables(shop)
    twin = shop.folder / "schemas" / "bazaar-twin"
    copytree(shop.folder / "schemas" / FEED, twin)
    text = (twin / "feed.toml").read_text().replace('"{feed}_{database}"', '"bazaar_open_{database}"')
    (twin / "feed.toml").write_text(text)
    (twin / "tables.sql").unlink()
    assert shop.run_hours(1, "bazaar-twin") == 2
    said = capsys.readouterr().err
    assert "belongs to feed 'bazaar-open', feed 'bazaar-twin' may not write there" in said
    assert tables(shop) == before
    assert shop.run("run", "--feed", "bazaar-twin", "--hour", shop.hours[0], "--dry-run") == 2
    assert capsys.readouterr().err.partition("error: ")[2] == said.partition("error: ")[2]
