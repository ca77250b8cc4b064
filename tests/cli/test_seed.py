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


def test_all_tables_that_cannot_be_loaded_are_named_before_anything_starts(dump: Dump) -> None:
    """A definition that is missing, a stored generated column that Dumpling left out, a type without a place in the lake, a mask."""
    dump.table("shop.sums", "(`id` INT PRIMARY KEY, `n` INT, `twice` INT AS (`n` * 2) STORED, `seen` INT AS (`n`) VIRTUAL)")
    dump.write("shop.sums.000000000.csv", b'"id","n"\r\n1,2\r\n')
    found = asked(dump)
    what = "shop.sums: shop.sums.000000000.csv lacks the table's column 'twice'"
    assert (found.code, found.err.startswith(f"error: OTHER_COLUMNS: {what}"), found.out) == (2, True, "")
    dump.table("shop.places", "(`id` INT PRIMARY KEY, `at` GEOMETRY)")
    dump.write("shop.lost.000000000.csv", b"")
    feed = dump.folder.parent / "schemas" / "shop" / "feed.toml"
    feed.write_text(feed.read_text() + '[columns."shop.orders".id]\nmask = "null"\n')
    found = asked(dump)
    assert found.err.startswith("error: TABLES_REFUSED: 4 tables cannot be loaded: (1) NO_DEFINITION: ")
    for said in ("rows of shop.lost, but", "shop.places: no lake type for MySQL type 'geometry'", "id is in the key of shop.orders", what):
        assert said in found.err, said
    assert found.err.count("\n") == 1
    assert asked(dump, "--tables", "shop.log").code == 0
    assert sorted(p.name for p in dump.folder.parent.iterdir()) == ["dump", "schemas"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("shop.sums.000000000.csv.gz", b'"id","n","twice"\r\n1,2,4\r\n'),
        ("shop.sums.000000000.sql", b"INSERT INTO `sums` (`id`,`n`,`twice`) VALUES\n(1,2,4);\n"),
    ],
)
def test_a_stored_generated_column_is_loaded_if_the_files_have_it_or_the_feed_drops_it(dump: Dump, name: str, content: bytes) -> None:
    dump.table("shop.sums", "(`id` INT PRIMARY KEY, `n` INT, `twice` INT AS (`n` * 2) STORED)")
    dump.write(name, content)
    assert asked(dump).code == 0
    dump.write(name, content.replace(b',"twice"', b"").replace(b",`twice`", b""))
    assert asked(dump).code == 2
    feed = dump.folder.parent / "schemas" / "shop" / "feed.toml"
    feed.write_text(feed.read_text() + '[columns."shop.sums".twice]\nmask = "drop"\n')
    assert asked(dump).code == 0
