"""`tidelake expectations suggest | export`: where files go, what is refused, and what goes to stdout."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.calls import Called, call
from tests.cli.lakes import TS, lake_of
from tests.lake import lakes
from tests.query.verify import everything
from tidelake.config.lake_paths import certificate_key
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.identity import establish
from tidelake.spark.lake_settings import lake_settings

TABLES = [("shop", "orders"), ("shop", "lines"), ("a.b", "t")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lake_of(tmp_path, TABLES)
    return tmp_path


def suggest(folder: Path, *arguments: object) -> Called:
    return call("expectations", "suggest", "--feed", "shop", "--schemas", folder / "schemas", *arguments)


def test_stdout_has_the_rules_of_one_table_or_all_as_toml(folder: Path) -> None:
    one = suggest(folder, "--table", "SHOP.orders")
    assert one.code == 0
    assert tomllib.loads(one.out) == {}
    assert one.out.startswith(
        "# Suggested by `tidelake expectations suggest` for shop.orders of feed shop, from cut 1 (hour 2026-01-05T10): 1 row,\n"
    )
    assert "# nothing is suggested: a rule of values needs 20 rows, a rule of counts one change\n" in one.out
    every = suggest(folder)
    assert (every.code, every.out.count("# Suggested by")) == (0, 3)


def test_a_folder_gets_a_file_for_each_table_and_existing_files_stay(folder: Path) -> None:
    target = folder / "schemas" / "shop" / "expectations"
    done = suggest(folder, "--output", target)
    assert (done.code, done.out) == (0, "")
    names = ["a%2Eb.t.toml", "shop.lines.toml", "shop.orders.toml"]
    assert sorted(p.name for p in target.iterdir()) == names
    assert f"{target / names[0]}: 0 expectations" in done.err
    (target / names[0]).unlink()
    (target / names[1]).write_text("# mine\n")
    again = suggest(folder, "--output", target)
    assert (again.code, again.err) == (
        2,
        f"error: CONFIG: --output: {target / names[1]} (and 1 more) already exists, nothing is written; remove it, or add --force to "
        "overwrite it\n",
    )
    assert sorted(p.name for p in target.iterdir()) == names[1:]
    assert (target / names[1]).read_text() == "# mine\n"
    assert suggest(folder, "--output", target, "--force").code == 0
    assert (target / names[1]).read_text().startswith("# Suggested by")


def test_a_file_gets_one_table(folder: Path) -> None:
    file = folder / "new" / "rules.toml"
    several = suggest(folder, "--output", file)
    assert (several.code, file.exists()) == (2, False)
    assert f"--output {file}: 3 tables do not fit into one file; name one with --table, or give a folder" in several.err
    assert suggest(folder, "--output", file, "--table", "`a.b`.t").code == 0
    assert "for `a.b`.t of feed shop" in file.read_text()


def test_json_has_the_rules_by_table(folder: Path) -> None:
    assert json.loads(suggest(folder, "--json").out) == {"`a.b`.t": [], "shop.lines": [], "shop.orders": []}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["--table", "shop.nope"],
            2,
            "error: UNKNOWN_TABLE: feed shop has no table shop.nope; its tables: `a.b`.t, shop.lines, shop.orders\n",
        ),
        (["--table", "nope"], 2, "error: TABLE_NAME: "),
        (["--hours", "0"], 2, "error: USAGE: "),
    ],
)
def test_a_wrong_use_is_told(folder: Path, arguments: list[str], code: int, said: str) -> None:
    done = suggest(folder, *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(said)


def test_before_the_first_cut_there_are_no_rows_to_look_at(tmp_path: Path) -> None:
    feed = lakes.feed(tmp_path)
    feed.folder.mkdir(parents=True)
    (feed.folder / "feed.toml").write_text(everything.FEED.format(folder=tmp_path))
    none = suggest(tmp_path)
    assert (none.code, none.out) == (2, "")
    establish(feed, open_store(feed.lake.uri), lake_settings(feed), LakeCatalog(lake_settings(feed)))
    early = suggest(tmp_path)
    assert (early.code, early.out) == (1, "")
    assert early.err == (
        "error: NOT_PUBLISHED: feed shop: nothing is published yet, so there are no rows to look at; `tidelake run --feed shop` "
        "publishes a cut\n"
    )


RULE = '[[expect]]\ntype = "expect_column_values_to_be_between"\ncolumn = "id"\nmin_value = 0\nseverity = "warning"\n'
CHECK = {
    "table": "shop.orders",
    "rule": "column values to be between",
    "severity": "warning",
    "success": False,
    "column": "id",
    "observed": "1 bad value among 9 (11.1 %)",
    "expected": "id values to be greater than or equal to 0",
    "unexpected": 1,
    "seen": {"element_count": 9},
    "origin": "/opt/airflow/schemas/shop/expectations/shop.orders.toml: [[expect]] 1",
}
CERTIFICATE = dict.fromkeys(("messages", "message_bytes", "late_events", "waiting_events"), 0) | {
    "feed": "shop",
    "cut": 1,
    "hour": "2026-01-05T10",
    "applied_ts": 1,
    "resolved_ts": TS,
    "incomplete": False,
    "events": {},
    "rows": {},
    "ddl": [],
    "rejected": {},
    "seconds": {},
    "version": "0",
    "run": "r",
}


def export(folder: Path, *arguments: object) -> Called:
    return call("expectations", "export", "--feed", "shop", "--schemas", folder / "schemas", "--gx", folder / "gx", *arguments)


def rules(folder: Path, text: str = RULE) -> None:
    (folder / "schemas" / "shop" / "expectations").mkdir(exist_ok=True)
    (folder / "schemas" / "shop" / "expectations" / "shop.orders.toml").write_text(text)


def certificate(folder: Path, *checks: object) -> None:
    document = CERTIFICATE | {"expectations": {"checked": len(checks), "failed": len(checks), "checks": checks}}
    open_store(str(folder / "lake")).write(certificate_key("shop", 1), json.dumps(document).encode())


def test_export_writes_suites_results_and_data_docs_and_says_so(folder: Path) -> None:
    rules(folder)
    certificate(folder, CHECK)
    done = export(folder)
    page = folder / "gx" / "gx" / "uncommitted" / "data_docs" / "local_site" / "index.html"
    assert (done.code, done.err) == (0, "")
    assert done.out == f"1 suite in {folder / 'gx'}, 1 result of hour 2026-01-05T10\nfile://{page}\n"
    assert page.is_file()
    assert (folder / "gx" / "gx" / "expectations" / "shop" / "shop" / "orders.json").is_file()


def test_export_names_results_whose_rule_has_changed(folder: Path) -> None:
    rules(folder, RULE.replace("min_value = 0", "min_value = 5"))
    certificate(folder, CHECK)
    done = export(folder, "--no-docs")
    assert done.out == (
        f"1 suite in {folder / 'gx'}, 0 results of hour 2026-01-05T10\n"
        f"left out: the result of shop.orders: column values to be between, whose rule has changed since ({CHECK['origin']})\n"
    )
    as_json = json.loads(export(folder, "--no-docs", "--json").out)
    changed = [{"table": "shop.orders", "rule": "column values to be between", "origin": CHECK["origin"]}]
    assert as_json == {"suites": ["shop.shop.orders"], "hour": "2026-01-05T10", "results": 0, "changed": changed, "docs": None}


def test_export_without_rules_or_of_an_hour_without_verdict_is_refused(folder: Path) -> None:
    none = export(folder)
    assert (none.code, none.out) == (2, "")
    assert "feed shop has no expectations to export; `tidelake expectations suggest --feed shop` suggests some" in none.err
    rules(folder)
    early = export(folder, "--hour", "2026-01-05T12")
    assert (early.code, early.out) == (2, "")
    assert "hour 2026-01-05T12 of feed shop is not validated, so it has no results; `tidelake status --feed shop`" in early.err
    assert export(folder, "--hour", "noon").code == 2
    assert not (folder / "gx").exists()


def test_export_before_the_first_cut_writes_suites_only(tmp_path: Path) -> None:
    feed = lakes.feed(tmp_path)
    feed.folder.mkdir(parents=True)
    (feed.folder / "feed.toml").write_text(everything.FEED.format(folder=tmp_path))
    establish(feed, open_store(feed.lake.uri), lake_settings(feed), LakeCatalog(lake_settings(feed)))
    rules(tmp_path)
    assert export(tmp_path, "--no-docs").out == f"1 suite in {tmp_path / 'gx'}, 0 results\n"
