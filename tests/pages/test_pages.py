"""What the pages say of a lake, and that no text of it is executed."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.pages.lakes import ELEVEN, LINES, ORDERS, TEN, declared, hours, lake_of, landed, report, resolved_at, set_aside, shop
from tests.pages.taken import AIRFLOW, links, page, taken
from tests.validate.facts import HOSTILE, check
from tidelake.config.lake_paths import quality_key
from tidelake.config.table_name import written
from tidelake.io.storage import open_store
from tidelake.lake.cut import Reason
from tidelake.pages.addresses import table_stem
from tidelake.pages.layout import page_policy
from tidelake.pages.page import page_at
from tidelake.pages.reader import answer
from tidelake.validate.quality.facts import TableFacts

TWELVE = "2026-01-05T12"
PATHS = ("index.html", "shop/index.html", "shop/2026-01.html", f"shop/{ELEVEN}.html", f"shop/tables/{ORDERS}.html")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Feeds shop (blocked after two published hours) and never (without a lake)."""
    made = tmp_path_factory.mktemp("pages")
    shop(made)
    declared(made, "never")
    return made


def test_the_first_page_shows_the_state_of_every_feed(folder: Path) -> None:
    found = page(folder, "index.html")
    assert "1 blocked, 1 never ran." in found.words
    assert (
        f"shop blocked Hour {TWELVE}: GAP t[0]: offsets 7 to 9 are not landed 2026-01-05 11:59 UTC cut 2, hour {ELEVEN} 2 1 0"
        in found.words
    )
    assert "never never ran tidelake run --feed never --hour … runs its first hour. nothing published none 0 0 0" in found.words
    assert links(found, "index.html") == {"shop/index.html", f"shop/tables/{ORDERS}.html", f"shop/tables/{LINES}.html"}


def test_a_feed_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    shop(tmp_path)
    declared(tmp_path, "odd")
    (tmp_path / "schemas" / "odd" / "feed.toml").write_text("protocol = 7")
    words = page(tmp_path, "index.html").words
    assert "odd cannot be read CONFIG: " in words
    assert "shop blocked" in words


def test_a_user_sees_the_feeds_that_he_may_read_and_no_name_of_others(folder: Path) -> None:
    only = taken(page_at(folder / "schemas", "index.html", ["never"]).html)
    assert "1 never ran." in only.words
    assert "shop" not in only.source.replace("shop-", "")
    nothing = taken(page_at(folder / "schemas", "index.html", [], AIRFLOW).html)
    assert "There is no feed that you may read." in nothing.words


def test_the_page_of_a_feed_shows_its_state_its_hours_and_its_tables(folder: Path) -> None:
    found = page(folder, "shop/index.html")
    assert "Blocked: cut 2, resolved up to 2026-01-05 11:59 UTC" in found.words
    assert f"Report of hour {TWELVE}" in found.words
    assert "P published: 1 I published, incomplete: 1 B blocked: 1" in found.words
    labels = [a["aria-label"] for a in found.elements("a") if "aria-label" in a]
    assert labels == [f"P, {TEN}: published", f"I, {ELEVEN}: published, incomplete", f"B, {TWELVE}: blocked"]
    assert "Quarantine messages without a decision 1" in found.words
    assert f"{LINES} 50,967 {LINES} {ORDERS} 50,967 {ORDERS}" in found.words
    reports = {f"shop/{hour}.html" for hour in (TEN, ELEVEN, TWELVE)}
    assert links(found, "shop/index.html") == {"index.html", *reports, f"shop/tables/{ORDERS}.html", f"shop/tables/{LINES}.html"}


def test_an_incomplete_feed_says_why(tmp_path: Path) -> None:
    reason = Reason(code="GAP", detail="offsets 7 to 9 of t[0] are not landed", cut=2, hour=ELEVEN)
    lake_of(declared(tmp_path), incomplete=True, incomplete_because=[reason])
    assert (
        f"Incomplete: cut 2, resolved up to 2026-01-05 11:59 UTC GAP: {reason.detail} (cut 2, hour {ELEVEN})"
        in page(tmp_path, "shop/").words
    )
    other = tmp_path / "other"
    lake_of(declared(other))
    assert "Ok: cut 2" in page(other, "shop/").words


def test_a_feed_without_a_cut_shows_what_is_landed(tmp_path: Path) -> None:
    feed = declared(tmp_path)
    store = open_store(feed.lake.uri)
    landed(store, "shop", TEN)
    found = page(tmp_path, "shop/index.html")
    assert f"Not published yet The newest landed hour is {TEN}." in found.words
    assert "L landed: 1" in found.words
    assert "Nothing is published yet." in found.words


def test_hours_without_a_report_are_shown_without_a_link(tmp_path: Path) -> None:
    feed = declared(tmp_path)
    lake_of(feed)
    report(feed, ELEVEN)
    landed(open_store(feed.lake.uri), "shop", TEN)
    found = page(tmp_path, "shop/index.html")
    assert "P published: 1 W published within the cut of a later hour: 1" in found.words
    assert f"shop/{TEN}.html" not in links(found, "shop/index.html")


def test_months_lead_from_one_to_the_next(tmp_path: Path) -> None:
    feed = declared(tmp_path)
    lake_of(feed, hour="2026-02-01T01", first_hour="2025-12-31T22")
    for hour in hours("2025-12-31T22", 28):
        report(feed, hour)
    report(feed, "2026-02-01T01")
    newest, january = page(tmp_path, "shop/index.html"), page(tmp_path, "shop/2026-01.html")
    assert "Hours of 2026-02" in newest.words
    assert {a["href"] for a in newest.elements("a") if a.get("rel")} == {"2026-01.html"}
    assert {a["href"] for a in january.elements("a") if a.get("rel")} == {"2025-12.html", "2026-02.html"}
    assert "P published: 26" in january.words
    assert {a["href"] for a in page(tmp_path, "shop/2025-12.html").elements("a") if a.get("rel")} == {"2026-01.html"}
    first = page(tmp_path, "shop/2026-01-01T00.html")
    assert [a["href"] for a in first.elements("a") if a.get("rel")] == ["2025-12-31T23.html", "2026-01-01T01.html"], (
        "over the end of a month"
    )


def test_the_report_of_an_hour_leads_to_the_hours_and_tables_around_it(folder: Path) -> None:
    found = page(folder, f"shop/{ELEVEN}")
    assert f"Feeds shop {ELEVEN} ← Previous: {TEN} Next: {TWELVE} →" in found.words
    assert "Published, incomplete: cut 2 of feed shop" in found.words
    assert "shop-open" not in found.words
    around = {
        "index.html",
        "shop/index.html",
        f"shop/{TEN}.html",
        f"shop/{TWELVE}.html",
        f"shop/tables/{ORDERS}.html",
        f"shop/tables/{LINES}.html",
    }
    assert links(found, f"shop/{ELEVEN}.html") == around
    assert f"{TEN} published 1000" in found.words.replace(",", ""), "the plots have the hour before"


def test_a_table_shows_its_columns_masks_hours_checks_statements_lineage_and_queries(folder: Path) -> None:
    found = page(folder, f"shop/tables/{ORDERS}.html")
    for said in (
        "id key bigint NOT NULL bigint – –",
        "total decimal(12,2) decimal(12,2) – –",
        "note varchar(200) string null –",
        "_commit_ts – bigint – added by Tidelake",
        f"{ELEVEN} 50,967 1,000 250 33 0 {TEN} 50,000 1,000 250 33 0",
        f"id : key not null critical passed {ELEVEN} no bad value among 1,283 1 of 2 hours: {TEN}",
        f"SCHEMA_MISMATCH t[0]@17 , hour {ELEVEN} the schema of {ORDERS} does not fit 3 rows",
        "applied 2026-01-05 10:59:56.593Z",
        "ALTER TABLE orders ADD note varchar(200)",
        f"Source {ORDERS}, table of the upstream database Topics t (open) Archive aiven-jsonl Events _tidelake.shop_events "
        f"Changelog shopdb_changelog.orders Snapshot {ORDERS}",
        "SELECT * FROM `lake`.`shopdb`.`orders` VERSION AS OF ",
        "FROM `lake`.`shopdb_changelog`.`orders` WHERE _commit_ts > ",
        f"tidelake asof --feed shop --table {ORDERS} --ts {resolved_at(ELEVEN)}",
    ):
        assert said in found.words
    plots = [s["aria-label"] for s in found.elements("svg")]
    assert [(p or "").partition(",")[0] for p in plots] == ["Rows after each hour", "Changed rows in each hour"]
    assert "at most 1,283 rows" in (plots[1] or "")


def test_the_queries_of_a_table_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyiceberg.catalog

    from tidelake.config.feed import load_feed
    from tidelake.lake.catalog import LakeCatalog
    from tidelake.spark.lake_settings import lake_settings

    catalog = LakeCatalog(lake_settings(load_feed(folder / "schemas", "shop"))).catalog
    monkeypatch.setattr(pyiceberg.catalog, "load_catalog", lambda name: catalog)
    found = re.findall(
        r'aria-label="(pyiceberg|DuckDB, by pyiceberg)"><code>(.*?)</code>', page(folder, f"shop/tables/{ORDERS}.html").source, re.DOTALL
    )
    assert len(found) == 2
    for _, code in found:
        made: dict[str, object] = {}
        exec(code.replace("&#39;", "'").replace("&#34;", '"'), made)
        assert made["table"].metadata.table_uuid  # type: ignore[attr-defined]


def test_a_table_without_a_snapshot_is_queried_by_its_changelog(tmp_path: Path) -> None:
    from tidelake.lake.catalog import LakeCatalog
    from tidelake.lake.cuts import record
    from tidelake.spark.lake_settings import lake_settings

    feed = declared(tmp_path)
    cut = lake_of(feed)
    without = cut.model_copy(update={"seq": 3, "snapshots": {}})
    record(LakeCatalog(lake_settings(feed)), open_store(feed.lake.uri), without)
    words = page(tmp_path, f"shop/tables/{ORDERS}.html").words
    assert "The newest cut has no snapshot of this table, only its changelog." in words
    assert "VERSION AS OF" not in words
    assert "load_table('shopdb_changelog.orders')" in words


def test_names_of_any_spelling_have_pages(tmp_path: Path) -> None:
    odd = written("a.b/../c", f"<i>{HOSTILE}`%2e")
    feed = declared(tmp_path)
    lake_of(feed, tables=[odd], real=False)
    report(feed, ELEVEN, tables={odd: TableFacts(events=1, inserts=1)}, checks=[check(table=odd, rule=HOSTILE, observed=HOSTILE)])
    set_aside(feed, odd, 3)
    file = f"shop/tables/{table_stem(odd)}.html"
    for path in ("index.html", "shop/index.html", f"shop/{ELEVEN}.html"):
        assert file in links(page(tmp_path, path), path)
    found = page(tmp_path, file)
    assert found.words.count(HOSTILE) >= 5
    assert "<i>" not in found.source
    assert "<script>alert" not in found.source


@pytest.mark.parametrize(
    ("path", "title", "said"),
    [
        ("shop/%2e%2e", "No such page", "There is no page at this address."),
        ("../index.html", "No such page", "There is no page at this address."),
        ("nobody/index.html", "No such feed", "There is no feed nobody."),
        ("shop/2026-01-05T99", "No such hour", "not an hour: '2026-01-05T99'"),
        ("shop/2026-01-05T15", "No report yet", "tidelake run --feed shop --hour 2026-01-05T15"),
        ("shop/2031-01.html", "No such month", "Feed shop has no hours of 2031-01."),
        ("shop/tables/shopdb.gone.html", "No such table", "it was dropped or renamed, or never existed"),
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(folder: Path, path: str, title: str, said: str) -> None:
    found = page_at(folder / "schemas", path)
    assert found.status == 404
    words = taken(found.html).words
    assert words.startswith(f"{title} · Tidelake")
    assert said in words


def test_a_damaged_report_is_marked_in_the_calendar_and_the_pages_around_it_are_whole(tmp_path: Path) -> None:
    feed = shop(tmp_path)
    open_store(feed.lake.uri).write(quality_key("shop", TEN), b"{")
    assert f"X, {TEN}: report cannot be read" in [a.get("aria-label") for a in page(tmp_path, "shop/index.html").elements("a")]
    assert "Published, incomplete: cut 2" in page(tmp_path, f"shop/{ELEVEN}").words
    assert f"{ELEVEN} 50,967" in page(tmp_path, f"shop/tables/{ORDERS}.html").words


@pytest.mark.parametrize("path", PATHS)
def test_a_page_allows_its_own_style_and_script_and_loads_nothing(folder: Path, path: str) -> None:
    html = page_at(folder / "schemas", path, airflow=AIRFLOW).html
    (policy,) = [m["content"] for m in taken(html).elements("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    parts = re.findall(r"<(style|script)>(.*?)</\1>", html, re.DOTALL)
    hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for _, text in parts]
    assert sorted(re.findall(r"'sha256-[^']+'", policy or "")) == sorted(hashes)
    assert (policy or "").startswith("default-src 'none'; style-src ")
    assert all(h in page_policy() for h in hashes), "the header that Airflow's pages have allows it, too"
    assert not re.search(r"(https?:)?//[a-z]", html)
    assert not re.search(r'\s(on\w+|style|src)="', html)


@pytest.mark.parametrize("path", PATHS)
def test_a_page_leads_to_the_feeds_dag_in_airflow(folder: Path, path: str) -> None:
    found = page(folder, path, AIRFLOW)
    own = [a["href"] for a in found.elements("a") if (a["href"] or "").startswith("/")]
    assert own == (["/"] if path == "index.html" else ["/", "/dags/tidelake_shop"])


@pytest.mark.parametrize("path", PATHS)
def test_a_page_has_one_first_heading_landmarks_and_a_caption_for_each_table(folder: Path, path: str) -> None:
    found = page(folder, path)
    assert [len(found.elements(tag)) for tag in ("h1", "main", "header", "footer")] == [1, 1, 1, 1]
    assert len(found.elements("caption")) == len(found.elements("table"))
    assert found.elements("a")[0]["href"] == "#main"
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for a in found.elements("a") if (a["href"] or "").startswith("#")} <= set(ids)


def read(folder: Path, path: str) -> dict[str, Any]:
    """What the reader answers."""
    return answer(str(folder / "schemas"), path, ["shop"], "/", "/dags/tidelake_{feed}", dict(os.environ))


def test_the_reader_answers_with_status_policy_and_page(folder: Path) -> None:
    found = page_at(folder / "schemas", f"shop/{ELEVEN}", airflow=AIRFLOW).html
    assert read(folder, f"shop/{ELEVEN}") == {"status": 200, "policy": page_policy(), "content": found}
    assert read(folder, "shop/2026-01-05T15")["status"] == 404


def test_the_reader_answers_with_the_error_of_the_command_line(tmp_path: Path) -> None:
    feed = shop(tmp_path)
    open_store(feed.lake.uri).write(quality_key("shop", ELEVEN), b"{")
    found = read(tmp_path, f"shop/{ELEVEN}")
    assert found.keys() == {"error"}
    assert re.match(r"DAMAGED: .*reports/shop/2026-01-05T11.json \(1 bytes\) cannot be read", found["error"])
