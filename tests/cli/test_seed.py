"""`tidelake seed` before anything is written: the dry run, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import Called, call
from tests.cli.feeds import write
from tests.seed.exports.dumpling import TS, Dump
from tidelake.io import storage

FLAGS = ("seed", "--feed", "shop")


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dump:
    monkeypatch.setenv("TIDELAKE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("TIDELAKE_LAKE", str(tmp_path / "lake"))
    storage.reset()
    write(tmp_path / "schemas")
    made = Dump(tmp_path / "dump").begin()
    made.table("shop.orders", "(`id` BIGINT UNSIGNED PRIMARY KEY, `note` VARCHAR(20))")
    made.table("shop.log", "(`text` TEXT)")
    made.write("shop.orders.000000000.csv", b"12345")
    made.write("shop.orders.000000001.csv", b"123")
    return made


def asked(dump: Dump, *more: str) -> Called:
    """A dry run."""
    return call(*FLAGS, "--from", dump.folder, "--schemas", dump.folder.parent / "schemas", "--dry-run", *more)


def test_a_dry_run_says_what_would_be_loaded_and_makes_no_lake(dump: Dump) -> None:
    said = asked(dump, "--json")
    assert said.code == 0, said.err
    plan = json.loads(said.out)
    assert (plan["ts"], plan["files"], plan["bytes"], plan["left_out"]) == (TS, 2, 8, [])
    assert [(t["name"], t["table"], t["kind"], t["files"], t["key"]) for t in plan["tables"]] == [
        ("shop.log", "shop.log", "", 0, []),
        ("shop.orders", "shop.orders", "csv", 2, ["id"]),
    ]
    lines = asked(dump, "--tables", "shop.orders").out.splitlines()
    assert lines[1:] == [
        "  shop.orders: 2 csv files, 8 bytes, 2 columns, key id → shop.orders, 1 bucket",
        "  shop.log: left out, not among --tables",
    ]
    assert sorted(p.name for p in dump.folder.parent.iterdir()) == ["dump", "schemas"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--ts", str(TS + 1)), "TSO_DIFFERS"),
        (("--tables", "shop.people"), "its tables: shop.log, shop.orders"),
        (("--tables", "shop.log"), "left out, not among --tables"),
        (("--csv-delimiter", "''"), "--csv-delimiter: found \"''\""),
        (("--csv-separator", '"'), "--csv-separator: found"),
    ],
)
def test_what_contradicts_itself_is_wrong_use(dump: Dump, flags: tuple[str, ...], said: str) -> None:
    found = asked(dump, *flags)
    assert said in found.err + found.out
    assert found.code == (0 if "left out" in said else 2)


def test_a_feed_without_commit_ts_cannot_go_on_from_an_export(dump: Dump) -> None:
    feed = dump.folder.parent / "schemas" / "shop" / "feed.toml"
    feed.write_text(feed.read_text().replace('"open"', '"canal"', 1) + '[watermark]\nfrom = "offsets"\n')
    found = asked(dump)
    assert (found.code, "it is unknown which of its changes an export already contains" in found.err) == (2, True)


def test_the_export_and_the_feed_must_tell_the_same_of_a_table(dump: Dump) -> None:
    dump.table("shop.orders", "(`id` BIGINT UNSIGNED PRIMARY KEY, `note` VARCHAR(30))")
    found = asked(dump)
    assert (found.code, "OTHER_DEFINITION" in found.err) == (2, True)
    (dump.folder / "shop.orders-schema.sql").unlink()
    assert asked(dump).code == 0, "tables.sql alone says it, too"
    (dump.folder / "shop.log-schema.sql").unlink()
    dump.write("shop.log.000000000.sql", b"")
    found = asked(dump)
    assert (found.code, "NO_DEFINITION" in found.err) == (2, True)
    for path in dump.folder.glob("shop.orders*"):
        path.unlink()
    dump.table("shop.log", "(`text` TEXT)")
    found = asked(dump)
    assert (found.code, "tables.sql defines shop.orders, which" in found.err) == (2, True)
