from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.airflow.conftest import CHECKOUT
from tidelake.config.lake_paths import report_key
from tidelake.io.storage import open_store
from tidelake.validate.quality.stored import main as stored

HOUR = "2026-01-05T10"
PAGE = f"/tidelake/quality/bazaar-open/{HOUR}"
Get = Callable[..., Any]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake in a folder, for the demo feeds."""
    folder = tmp_path / "lake"
    monkeypatch.setenv("TIDELAKE_LAKE", str(folder))
    monkeypatch.setenv("TIDELAKE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("TIDELAKE_CATALOG", f"jdbc:sqlite:{tmp_path / 'catalog.db'}")
    return folder


@pytest.fixture(scope="session")
def server(metadata_database: None) -> Any:
    """Airflow's web server with what the plugin adds to it."""
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    return TestClient(create_app(apps="core"), raise_server_exceptions=False)


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


def test_the_page_is_the_stored_report_and_may_load_nothing(get: Get, lake: Path) -> None:
    open_store(str(lake)).write(report_key("bazaar-open", HOUR), "<h1>Ebb &amp; flow ≥ 1</h1>".encode())
    answer = get(PAGE)
    assert answer.status_code == 200
    assert answer.text == "<h1>Ebb &amp; flow ≥ 1</h1>"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_link_from_one_report_to_another_leads_to_its_page(get: Get, lake: Path) -> None:
    open_store(str(lake)).write(report_key("bazaar-open", HOUR), b"<h1>new</h1>")
    assert (get(f"{PAGE}.html").status_code, get(f"{PAGE}.html").text) == (200, "<h1>new</h1>")


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


def test_a_missing_report_says_what_to_run(get: Get, lake: Path) -> None:
    answer = get(PAGE)
    assert answer.status_code == 404
    assert f"tidelake run --feed bazaar-open --hour {HOUR}" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "says"),
    [(f"nobody/{HOUR}", "no feed &#x27;nobody&#x27;"), ("bazaar-open/<b>now<b>", "not an hour"), ("bazaar-open/..%2F..", "")],
)
def test_what_cannot_be_is_not_found_and_is_not_echoed_as_html(get: Get, lake: Path, path: str, says: str) -> None:
    answer = get(f"/tidelake/quality/{path}")
    assert answer.status_code == 404
    assert says in answer.text
    assert "<b>" not in answer.text


def test_a_lake_that_cannot_be_read_is_told_apart_from_a_missing_report(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIDELAKE_LAKE", "TIDELAKE_ARCHIVE", "TIDELAKE_CATALOG"):
        monkeypatch.delenv(name, raising=False)
    answer = get(PAGE)
    assert answer.status_code == 502
    assert "<p>CONFIG: " in answer.text
    assert "the environment has no TIDELAKE_" in answer.text


def test_a_reader_that_breaks_says_so_in_a_line(get: Get, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = subprocess.CompletedProcess([], 1, "", "Traceback (most recent call last):\n  File …\nImportError: no <tide>\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: broken)
    answer = get(PAGE)
    assert answer.status_code == 502
    assert "<p>STORAGE: the reader ended with status 1: ImportError: no &lt;tide&gt;</p>" in answer.text


def test_the_reader_prints_the_page_and_ends_as_the_command_line_does(lake: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    schemas = str(CHECKOUT / "schemas")
    assert stored([schemas, "bazaar-open", HOUR]) == 0
    assert capfdbinary.readouterr().out == b""
    open_store(str(lake)).write(report_key("bazaar-open", HOUR), b"<h1>page</h1>")
    assert stored([schemas, "bazaar-open", HOUR]) == 0
    assert capfdbinary.readouterr().out == b"<h1>page</h1>"
    assert stored([schemas, "nobody", HOUR]) == 2
    assert capfdbinary.readouterr().err.startswith(b"error: CONFIG: no feed 'nobody'")
