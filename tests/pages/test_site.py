"""`tidelake report --site`: files, links between them, what a second run writes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.calls import call
from tests.pages.lakes import ELEVEN, LINES, ORDERS, TEN, checks, declared, hours, lake_of, orders, report, shop
from tests.pages.taken import links, taken
from tests.validate.facts import published
from tidelake.config.lake_paths import quality_key
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cuts import newest_cut, record
from tidelake.pages import site, site_folder
from tidelake.pages.reports import Reports
from tidelake.pages.site import write_site
from tidelake.pages.site_folder import RECORD
from tidelake.spark.lake_settings import lake_settings

TWELVE = "2026-01-05T12"
SHOP = {
    "index.html",
    "shop/index.html",
    "shop/2026-01.html",
    *(f"shop/{hour}.html" for hour in (TEN, ELEVEN, TWELVE)),
    f"shop/tables/{ORDERS}.html",
    f"shop/tables/{LINES}.html",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Feeds whose lakes tests only read: `shop`."""
    folder = tmp_path_factory.mktemp("shop")
    shop(folder)
    return folder / "schemas"


@pytest.fixture
def shown(made: Path, tmp_path: Path) -> Path:
    """A folder for a site of these feeds."""
    (tmp_path / "schemas").symlink_to(made)
    return tmp_path


def write(folder: Path, *more: object, code: int = 0) -> tuple[int, int, int]:
    """Write the site of a folder's feeds; the numbers of files written, unchanged and removed."""
    done = call("report", "--site", folder / "site", "--schemas", folder / "schemas", "--json", *more)
    assert done.code == code, done.err
    said = json.loads(done.out)
    return said["written"], said["unchanged"], said["removed"]


def files(folder: Path) -> dict[str, str]:
    """The pages of the site by path."""
    root = folder / "site"
    return {str(p.relative_to(root)): p.read_text(encoding="utf-8") for p in root.rglob("*.html")}


def test_the_site_has_every_page_and_no_link_leads_nowhere(tmp_path: Path) -> None:
    shop(tmp_path)
    declared(tmp_path, "never")
    assert write(tmp_path) == (8, 0, 0)
    found = files(tmp_path)
    assert found.keys() == SHOP
    for path, html in found.items():
        assert links(taken(html), path) <= SHOP, path
        assert 'href="/' not in html
    assert {p for path, html in found.items() for p in links(taken(html), path)} >= SHOP - {"shop/2026-01.html"}


def test_a_second_run_writes_nothing_and_the_same_lake_gives_the_same_site(shown: Path) -> None:
    write(shown)
    before = {p: p.stat().st_mtime_ns for p in (shown / "site").rglob("*.html")}
    assert write(shown) == (0, 8, 0)
    assert {p: p.stat().st_mtime_ns for p in (shown / "site").rglob("*.html")} == before
    first = files(shown)
    (shown / "site").rename(shown / "moved")
    assert write(shown) == (8, 0, 0)
    assert files(shown) == first


def test_a_new_hour_reads_and_writes_its_page_and_those_that_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = declared(tmp_path)
    every = hours("2026-01-01T00", 60)
    lake_of(feed, hour=every[-1], first_hour=every[0])
    for hour in every:
        report(feed, hour)
    assert write(tmp_path)[0] == 60 + 5
    made, original = list[str](), site.hour_page

    def watched(reports: Reports, hour: str, tables: Sequence[str]) -> str | None:
        made.append(hour)
        return original(reports, hour, tables)

    monkeypatch.setattr(site, "hour_page", watched)
    (new,) = hours("2026-01-03T12", 1)
    report(feed, new)
    written, unchanged, _ = write(tmp_path)
    assert made == [every[-1], new], "the page before it has a link to it"
    assert (written, unchanged) == (2 + 4, 59 + 1), "and the feed's pages and tables, but not the first page"


def test_a_changed_report_is_written_again_with_the_pages_whose_plots_show_it(tmp_path: Path) -> None:
    feed = shop(tmp_path)
    write(tmp_path)
    report(feed, TEN, cut=1, superseded_by=2, superseded_hour=ELEVEN, tables={ORDERS: orders(77_000)}, checks=checks())
    write(tmp_path)
    found = files(tmp_path)
    assert "Superseded by cut 2" in taken(found[f"shop/{TEN}.html"]).words
    assert f"{TEN} superseded 1,000" in taken(found[f"shop/{ELEVEN}.html"]).words
    assert f"{TEN} 77,000" in taken(found[f"shop/tables/{ORDERS}.html"]).words
    assert "S superseded: a redo replaced its cut: 1" in taken(found["shop/index.html"]).words


def test_the_pages_of_a_dropped_table_and_of_a_removed_feed_go_and_so_do_the_links(tmp_path: Path) -> None:
    feed = shop(tmp_path)
    other = declared(tmp_path, "other")
    lake_of(other, tables=["d.k"], real=False)
    write(tmp_path)
    catalog, store = LakeCatalog(lake_settings(feed)), open_store(feed.lake.uri)
    cut = newest_cut(catalog, store, "shop")
    assert cut is not None
    kept = type(cut.catalog)({k: i for k, i in cut.catalog.incarnations.items() if i.name == ORDERS})
    record(catalog, store, cut.model_copy(update={"seq": 3, "catalog": kept}))
    (other.folder / "feed.toml").unlink()
    assert write(tmp_path)[2] == 1 + 3
    found = files(tmp_path)
    assert found.keys() == SHOP - {f"shop/tables/{LINES}.html"}
    for path, html in found.items():
        assert links(taken(html), path) <= found.keys(), path


def test_one_feed_is_written_beside_the_others(tmp_path: Path) -> None:
    shop(tmp_path)
    other = declared(tmp_path, "other")
    lake_of(other, tables=["d.k"], real=False)
    assert write(tmp_path, "--feed", "other") == (4, 0, 0)
    assert links(taken(files(tmp_path)["index.html"]), "index.html") == {"other/index.html", "other/tables/d.k.html"}
    write(tmp_path, "--feed", "shop")
    found = files(tmp_path)
    assert found.keys() == SHOP | {"other/index.html", "other/2026-01.html", "other/tables/d.k.html"}
    assert {"other/index.html", "shop/index.html"} <= links(taken(found["index.html"]), "index.html")
    declared(tmp_path, "never")
    write(tmp_path, "--feed", "shop")
    assert "never" not in taken(files(tmp_path)["index.html"]).words, "it has no pages and was not asked for"


def test_a_feed_that_cannot_be_read_keeps_its_pages_and_the_command_fails(tmp_path: Path) -> None:
    feed = shop(tmp_path)
    write(tmp_path)
    (feed.folder / "feed.toml").write_text("protocol = 7")
    done = call("report", "--site", tmp_path / "site", "--schemas", tmp_path / "schemas")
    assert done.code == 1
    assert "error: shop: CONFIG: " in done.err
    found = files(tmp_path)
    assert found.keys() == SHOP
    assert "shop cannot be read CONFIG: " in taken(found["index.html"]).words
    assert links(taken(found["index.html"]), "index.html") == {"shop/index.html"}


def test_a_damaged_report_has_a_page_that_says_so_and_the_command_fails_until_it_is_mended(tmp_path: Path) -> None:
    feed = shop(tmp_path)
    store = open_store(feed.lake.uri)
    store.write(quality_key("shop", TEN), b"{")
    write(tmp_path, code=1)
    words = taken(files(tmp_path)[f"shop/{TEN}.html"]).words
    assert "The report cannot be read" in words
    assert "`" not in words
    assert "tidelake report --feed shop --hour …" in words
    write(tmp_path, code=1)
    store.write(quality_key("shop", TEN), published(feed="shop", hour=TEN).model_dump_json().encode())
    write(tmp_path)
    assert "Published: cut 12 of feed shop" in taken(files(tmp_path)[f"shop/{TEN}.html"]).words


def test_pages_of_another_version_are_made_again(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shown)
    for page in (shown / "site" / "shop").glob("*T*.html"):
        page.write_text("of an earlier version")
    assert write(shown) == (0, 8, 0)
    monkeypatch.setattr(site_folder, "__version__", "99")
    assert write(shown)[0] == 3
    assert "earlier version" not in "".join(files(shown).values())


@pytest.mark.parametrize("content", [b"", b"{", b'{"maker": 1}'])
def test_a_damaged_record_of_the_site_makes_all_pages_again(shown: Path, content: bytes) -> None:
    write(shown)
    (shown / "site" / RECORD).write_bytes(content)
    assert write(shown) == (0, 8, 0)


def test_a_folder_with_other_files_is_refused_and_left_alone(shown: Path) -> None:
    (shown / "site").mkdir()
    (shown / "site" / "thesis.html").write_text("mine")
    done = call("report", "--site", shown / "site", "--schemas", shown / "schemas")
    assert done.code == 2
    assert f"error: NOT_A_SITE: {shown / 'site'} is not empty, and has no {RECORD}: nothing was written; give --site a new" in done.err
    assert [p.name for p in (shown / "site").iterdir()] == ["thesis.html"]
    done = call("report", "--site", shown / "site" / "thesis.html", "--schemas", shown / "schemas")
    assert (done.code, "is not a folder" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--site", "s", "--hour", TEN), "--site writes the pages of all hours; leave out --hour and --output"),
        (("--site", "s", "--feed", "x", "-o", "f"), "leave out --hour and --output"),
        (("--site", "s", "--feed", "nobody"), "no feed 'nobody' in"),
        ((), "give --feed F, or --site DIR for the pages of all feeds"),
    ],
)
def test_wrong_use_is_refused(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    declared(tmp_path)
    done = call("report", *arguments, "--schemas", tmp_path / "schemas")
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_bucket_is_refused_and_no_folder_of_its_name_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = call("report", "--site", "s3://bucket/pages", "--schemas", "schemas")
    assert done.code == 2
    assert "s3:/bucket/pages is not a local folder; write the site into a folder, then copy it there" in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["schemas"]


def test_a_relative_folder_is_made_with_its_parents_also_before_any_feed_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert call("report", "--site", "out/deep/site", "--schemas", "schemas").code == 0
    words = taken((tmp_path / "out" / "deep" / "site" / "index.html").read_text(encoding="utf-8")).words
    assert "1 never ran." in words


def test_without_feeds_there_is_no_site(tmp_path: Path) -> None:
    done = call("report", "--site", tmp_path / "site", "--schemas", tmp_path)
    assert done.code == 2
    assert f"no feeds in {tmp_path}" in done.err
    assert not (tmp_path / "site").exists()


def test_the_bar_counts_the_pages_of_a_feed(shown: Path) -> None:
    seen = list[tuple[int, int]]()
    write_site(shown / "schemas", site_folder.SiteFolder(shown / "site"), ["shop"], lambda done, most: seen.append((done, most)))
    assert seen == [(n, 7) for n in range(1, 8)]
