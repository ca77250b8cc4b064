from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import quote

import pytest

from tests.airflow.conftest import CHECKOUT, FEEDS
from tests.airflow.test_kept_reader import stand_in
from tests.pages.lakes import lake_of, report
from tests.pages.taken import links, taken
from tidelake.airflow.kept_reader import KeptReader
from tidelake.airflow.stage import dag_id, quality_url
from tidelake.config.feed import Feed, load_feed
from tidelake.config.lake_paths import quality_key
from tidelake.io.storage import open_store
from tidelake.pages.layout import page_policy

HOUR = "2026-01-05T11"
PREFIX = "/tidelake/quality"
PAGE = f"{PREFIX}/bazaar-open/{HOUR}"
FEED = """
protocol = "open"
topics = ["t"]
partitions = 1
[source]
uri = "s3://archive"
layout = "aiven-jsonl"
[lake]
uri = "${{{name}}}"
"""
Get = Callable[..., Any]


def settings(folder: Path) -> dict[str, str]:
    """What the demo feeds name, of a lake in a folder."""
    lake, archive, catalog = str(folder / "lake"), str(folder / "archive"), f"jdbc:sqlite:{folder / 'catalog.db'}"
    return {"TIDELAKE_LAKE": lake, "TIDELAKE_ARCHIVE": archive, "TIDELAKE_CATALOG": catalog}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Feed:
    """The feed bazaar-open, in a lake that nothing made yet."""
    for name, value in settings(tmp_path).items():
        monkeypatch.setenv(name, value)
    return load_feed(CHECKOUT / "schemas", "bazaar-open")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A lake where the feed bazaar-open has a cut and the report of its hour."""
    folder = tmp_path_factory.mktemp("quality")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings(folder).items():
            patch.setenv(name, value)
        feed = load_feed(CHECKOUT / "schemas", "bazaar-open")
        lake_of(feed)
        report(feed, HOUR)
    return settings(folder)


@pytest.fixture
def feed(made: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment points to the lake, which tests only read."""
    for name, value in made.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def server(metadata_database: None) -> Iterator[Any]:
    """Airflow's web server with what the plugin adds to it."""
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    yield TestClient(create_app(apps="core"), raise_server_exceptions=False)
    sys.modules["tidelake.airflow.pages"].reader.close()


@pytest.fixture
def get(server: Any) -> Get:
    """Ask the server as a user with a role, None for somebody who is not logged in."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    def ask(path: str, role: str | None = "VIEWER", **headers: str) -> Any:
        user = SimpleAuthManagerUser(username="reader", role=role)
        login = {"Authorization": f"Bearer {get_auth_manager().generate_jwt(user)}"} if role else {}
        return server.get(path, headers=login | headers, follow_redirects=False)

    return ask


def test_a_report_is_rendered_with_links_and_may_load_nothing(get: Get, feed: None) -> None:
    answer = get(PAGE)
    assert answer.status_code == 200
    words = taken(answer.text).words
    assert words.startswith("Published: bazaar-open, 2026-01-05, 11:00–12:00 UTC · Tidelake")
    assert f"Airflow Feeds bazaar-open {HOUR} DAG in Airflow" in words
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    own = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    assert answer.headers["content-security-policy"] == f"{page_policy()}; {own}"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert get(f"{PAGE}.html").text == answer.text


def test_every_page_leads_to_the_others_and_back_to_the_dag(get: Get, feed: None) -> None:
    seen, new = set[str](), {"index.html"}
    while new:
        path = new.pop()
        seen.add(path)
        answer = get(f"{PREFIX}/{quote(path)}")
        assert answer.status_code == 200, path
        found = taken(answer.text)
        dags = [a["href"] for a in found.elements("a") if (a["href"] or "").startswith("/dags/")]
        feed_of_page = path.partition("/")[0]
        assert dags == ([] if path == "index.html" else [f"/dags/tidelake_{feed_of_page}"])
        new |= {link for link in links(found, path) if link not in seen and link.startswith(("index.html", "bazaar-open/"))}
    tables = {f"bazaar-open/tables/shopdb.{name}.html" for name in ("orders", "lines")}
    assert seen == {"index.html", "bazaar-open/index.html", f"bazaar-open/{HOUR}.html", *tables}


def test_the_first_page_shows_every_feed(get: Get, feed: None) -> None:
    words = taken(get(f"{PREFIX}/index.html").text).words
    assert "bazaar-open ok" in words
    assert [name for name in FEEDS if f"{name} " in words] == list(FEEDS)
    assert get(f"{PREFIX}/").text == get(f"{PREFIX}/index.html").text


def test_a_user_sees_only_the_feeds_whose_dag_he_may_read(get: Get, feed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    def only(self: object, *, details: Any = None, **_: object) -> bool:
        return details.id == dag_id("bazaar-craft")

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", only)
    page = get(f"{PREFIX}/index.html")
    assert page.status_code == 200
    assert "bazaar-craft" in page.text
    assert not any(name in page.text for name in ("bazaar-open", "bazaar-avro", "bazaar-canal", "shopdb"))
    for path in ("index.html", f"{HOUR}", "2026-01.html", "tables/shopdb.orders.html", "tables/shopdb.secret.html"):
        answer = get(f"{PREFIX}/bazaar-open/{path}")
        assert (answer.status_code, answer.json()) == (403, {"detail": "Forbidden"})
    assert get(f"{PREFIX}/nobody/index.html").status_code == 403, "whether a feed exists is not told"
    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)
    assert "There is no feed that you may read." in get(f"{PREFIX}/index.html").text


def test_the_menu_of_airflow_leads_to_the_pages(get: Get) -> None:
    plugins = get("/api/v2/plugins", role="ADMIN").json()["plugins"]
    (entry,) = [view for plugin in plugins if plugin["name"] == "tidelake" for view in plugin["external_views"]]
    assert (entry["name"], entry["destination"], entry["category"], entry["url_route"]) == ("Tidelake", "nav", "browse", None)
    assert entry["href"] == quality_url("index.html") == f"http://airflow.example:8080{PREFIX}/index.html"


def test_the_prefix_without_a_slash_leads_to_the_first_page(get: Get, feed: None) -> None:
    answer = get(PREFIX)
    assert (answer.status_code, answer.headers["location"]) == (307, f"{PREFIX}/index.html")
    assert get("/tidelake/elsewhere").status_code == 404


@pytest.mark.parametrize("path", ["", "/index.html", "/bazaar-open/index.html", "/bazaar-open/tables/shopdb.orders.html"])
def test_a_page_needs_a_login(get: Get, path: str) -> None:
    assert get(f"{PREFIX}{path or '/'}", role=None).status_code == 401


@pytest.mark.parametrize("path", [PAGE, "/tidelake/quality/nobody/nowhen", "/tidelake/quality/openapi.json", "/tidelake/quality/docs"])
def test_nobody_reads_anything_without_a_login(get: Get, path: str) -> None:
    assert get(path, role=None).status_code in (401, 404)
    assert get(PAGE, role=None).status_code == 401


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
OLD_LOGIN = "Bearer eyJhbGciOiJIUzUxMiJ9.eyJzdWIiOiJyZWFkZXIifQ.c2lnbmVkIHdpdGggYW4gb2xkIGtleQ"


@pytest.mark.parametrize("login", [{}, {"Authorization": OLD_LOGIN}], ids=["no login", "a login of before a restart"])
def test_a_browser_without_a_login_is_sent_to_it_and_back_to_the_page(get: Get, server: Any, login: dict[str, str]) -> None:
    answer = get(PAGE, role=None, Accept=BROWSER, **login)
    assert answer.status_code == 307
    assert answer.headers["location"] == f"/api/v2/auth/login?next={quote(PAGE, safe='')}"
    assert answer.headers["cache-control"] == "no-store"
    airflow = server.get(answer.headers["location"], follow_redirects=False)
    assert airflow.headers["location"] == f"/auth/login?next={quote(PAGE, safe='')}"


def test_a_program_without_a_login_gets_json(get: Get) -> None:
    for accept in ("*/*", "application/json"):
        answer = get(PAGE, role=None, Accept=accept)
        assert (answer.status_code, answer.json()) == (401, {"detail": "Not authenticated"})
    answer = get(PAGE, role=None, Authorization=OLD_LOGIN)
    assert (answer.status_code, answer.json()) == (403, {"detail": "Invalid JWT token"})


def test_a_browser_whose_user_may_not_read_the_feed_is_not_sent_to_the_login(get: Get) -> None:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    nobody = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="nobody", role=None))
    answer = get(PAGE, role=None, Accept=BROWSER, Authorization=f"Bearer {nobody}")
    assert (answer.status_code, answer.json()) == (403, {"detail": "Forbidden"})


def test_a_user_without_a_role_reads_nothing(get: Get) -> None:
    assert get(PAGE, role="").status_code in (401, 403)


def test_a_missing_report_says_what_to_run(get: Get, feed: None) -> None:
    answer = get(f"{PREFIX}/bazaar-open/2026-01-05T15")
    assert answer.status_code == 404
    assert "tidelake run --feed bazaar-open --hour 2026-01-05T15" in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (f"nobody/{HOUR}", "There is no feed nobody."),
        ("bazaar-open/2026-01-05T99", "not an hour: &#39;2026-01-05T99&#39;"),
        ("bazaar-open/2031-07.html", "has no hours of 2031-07"),
        ("bazaar-open/tables/shopdb.gone.html", "The newest cut has no such table"),
        ("bazaar-open/tables/<b>x<b>.html", "The newest cut has no such table"),
        ("bazaar-open/<b>now<b>", "There is no page at this address."),
        ("bazaar-open/..%2F..", "There is no page at this address."),
        ("..%2f..%2fetc%2fpasswd", "There is no page at this address."),
        ("%2e%2e%2fbazaar-open%2findex.html", "There is no page at this address."),
        ("bazaar-open/tables/..%2f..%2findex.html", "There is no page at this address."),
        ("bazaar-open/tables/%2e%2e.html", "The newest cut has no such table"),
        ("bazaar-open%00/index.html", "There is no page at this address."),
        ("BAZAAR-OPEN/index.html", "There is no page at this address."),
        ("openapi.json", "There is no page at this address."),
    ],
)
def test_what_cannot_be_is_not_found_and_is_not_echoed_as_html(get: Get, feed: None, path: str, says: str) -> None:
    answer = get(f"{PREFIX}/{path}")
    assert answer.status_code == 404
    assert says in answer.text
    assert "<b>" not in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")


def test_the_folder_of_a_feed_without_a_slash_leads_to_its_page(get: Get, feed: None) -> None:
    answer = get(f"{PREFIX}/bazaar-open")
    assert (answer.status_code, answer.headers["location"]) == (307, "bazaar-open/index.html")


def test_a_feed_that_never_ran_is_told_apart_from_a_broken_lake(get: Get, lake: Feed) -> None:
    answer = get(f"{PREFIX}/bazaar-open/index.html")
    assert answer.status_code == 502
    assert "NO_LAKE: there is no lake at" in answer.text
    assert "bazaar-open never ran" in taken(get(f"{PREFIX}/index.html").text).words


def test_a_lake_that_cannot_be_read_is_told_apart_from_a_missing_report(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIDELAKE_LAKE", "TIDELAKE_ARCHIVE", "TIDELAKE_CATALOG"):
        monkeypatch.delenv(name, raising=False)
    answer = get(PAGE)
    assert answer.status_code == 502
    assert "<p>CONFIG: " in answer.text
    assert "the environment has no TIDELAKE_" in answer.text
    assert "bazaar-open cannot be read CONFIG: " in taken(get(f"{PREFIX}/index.html").text).words


def test_a_damaged_report_says_how_to_write_it_again(get: Get, lake: Feed) -> None:
    open_store(lake.lake.uri).write(quality_key("bazaar-open", HOUR), b"{")
    answer = get(PAGE)
    assert answer.status_code == 502
    assert "remove it: `tidelake report --feed bazaar-open --hour …` writes it again" in answer.text


@pytest.fixture
def kept(tmp_path: Path, lake: Feed, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeptReader]:
    """Pages that do as their path says, or tell what their process is (test_kept_reader.py)."""
    monkeypatch.setenv("STARTED", "")
    made = stand_in(str(tmp_path))
    monkeypatch.setattr("tidelake.airflow.pages.reader", made)
    yield made
    made.close()


@pytest.fixture
def page(schemas: Path) -> Callable[[str, str], Any]:
    """The answer of a page that may stand at no address."""
    from tidelake.airflow.pages import page_answer

    return lambda path, feed: page_answer(schemas, path, [feed], "/")


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    """Feeds `one` and `two`, whose settings name ${ONE} and ${TWO}."""
    for name in ("one", "two"):
        (tmp_path / "schemas" / name).mkdir(parents=True)
        (tmp_path / "schemas" / name / "feed.toml").write_text(FEED.format(name=name.upper()))
    return tmp_path / "schemas"


@pytest.mark.usefixtures("kept")
def test_the_pages_of_two_feeds_see_what_a_connection_gives_their_own(
    page: Callable[[str, str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"ONE": "s3://one", "TWO": "s3://two"}
    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE", json.dumps({"conn_type": "generic", "extra": given}))
    first, second = (json.loads(page("page", name).content) for name in ("one", "two"))
    assert first["kept"] == second["kept"]
    assert {name: first["environment"].get(name) for name in given} == {"ONE": "s3://one", "TWO": None}
    assert {name: second["environment"].get(name) for name in given} == {"ONE": None, "TWO": "s3://two"}


@pytest.mark.usefixtures("kept")
def test_neither_a_page_nor_the_process_that_is_kept_has_airflows_own_settings(get: Get, lake: Feed) -> None:
    found = json.loads(get(PAGE).text)
    kept = Path(f"/proc/{found['kept']}/environ").read_text().split("\0")
    assert found["environment"]["TIDELAKE_LAKE"] == lake.lake.uri
    assert [line for line in (*found["environment"], *kept) if line.startswith(("AIRFLOW", "_AIRFLOW"))] == []


@pytest.mark.usefixtures("kept")
def test_a_reader_that_breaks_says_so_in_a_line(page: Callable[[str, str], Any]) -> None:
    answer = page("breaks", "one")
    assert answer.status == 502
    assert "<p>STORAGE: the reader broke: ImportError: no &lt;tide&gt;\\nat all; see the web server&#x27;s log</p>" in answer.content
    assert "style-src 'sha256-" in answer.policy


@pytest.mark.usefixtures("kept")
def test_few_readers_run_at_a_time_and_each_makes_room_for_the_next(
    page: Callable[[str, str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = BoundedSemaphore(1)
    monkeypatch.setattr("tidelake.airflow.pages._free", free)
    monkeypatch.setattr("tidelake.airflow.pages.READ_SECONDS", 0.01)
    for _ in range(2):
        assert "no answer within 0.01 s; check that the object store is running" in page("hangs", "one").content
    free.acquire()
    answer = page("page", "one")
    assert (answer.status, "4 other pages were read for 0.01 s; reload the page" in answer.content) == (502, True)
    free.release()
