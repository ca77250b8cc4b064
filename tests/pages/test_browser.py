"""The pages in a real browser: accessible in light and dark, on a phone, by keyboard, on paper, and the script under its policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pages import browser
from tests.pages.lakes import ELEVEN, LINES, ORDERS, declared, shop
from tidelake.pages.site import write_site
from tidelake.pages.site_folder import SiteFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("playwright", reason="needs Playwright, of the group `dev`")
PATHS = ("index.html", "shop/index.html", f"shop/{ELEVEN}.html", "shop/2026-01-05T12.html", f"shop/tables/{ORDERS}.html")
Show = Callable[..., "Page"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two feeds."""
    folder = tmp_path_factory.mktemp("browser")
    shop(folder)
    declared(folder, "never")
    write_site(folder / "schemas", SiteFolder(folder / "site"), ["never", "shop"])
    return folder / "site"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.opened() as found:
        yield found


@pytest.fixture
def show(chromium: Browser, site: Path) -> Iterator[Show]:
    """Open a page in a context of its own. A message on the console, such as one about the policy, fails the test."""
    said, contexts = list[str](), list[Any]()

    def open_(path: str, width: int = 1280, **options: Any) -> Page:
        contexts.append(chromium.new_context(viewport={"width": width, "height": 900}, **options))
        page: Page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((site / path).as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing(show: Show, path: str, scheme: str) -> None:
    page = show(path, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.violations(page) == []


@pytest.mark.parametrize("path", PATHS)
def test_a_phone_needs_no_scrolling_to_the_side(show: Show, path: str) -> None:
    page = show(path, width=320)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    outside = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 321 && !e.closest('.wide, .hidden, svg'))"
        ".map(e => e.outerHTML.slice(0, 90))"
    )
    assert outside == []
    assert [v for v in browser.violations(page) if v[1] in ("serious", "critical")] == []


def test_the_keyboard_skips_to_the_content_and_shows_where_it_is(show: Show) -> None:
    page = show("shop/index.html")
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.textContent") == "Skip to the content"
    assert page.evaluate(f"{focused}.getBoundingClientRect().left") >= 0, "it is seen while it has the focus"
    page.keyboard.press("Enter")
    assert page.evaluate(f"{focused}.id") == "main"
    seen = list[str]()
    while (page.keyboard.press("Tab") or page.evaluate(f"{focused}.tagName")) != "BODY" and len(seen) < 20:
        seen.append(page.evaluate(f"{focused}.getAttribute('aria-label') || {focused}.textContent || {focused}.type"))
        assert page.evaluate(f"getComputedStyle({focused}).outlineStyle") == "solid", seen
    assert seen == [
        "Skip the hours",
        "P, 2026-01-05T10: published",
        "I, 2026-01-05T11: published, incomplete",
        "B, 2026-01-05T12: blocked",
        "search",
        LINES,
        ORDERS,
    ]


def test_the_field_finds_feeds_and_tables_and_says_how_many(show: Show) -> None:
    page = show("index.html")
    page.get_by_label("Find a feed or table").fill("SHOP ord")
    shown = page.evaluate("[...document.querySelectorAll('[data-words]')].filter(e => e.offsetParent).map(e => e.dataset.words)")
    assert shown == [f"shop {ORDERS}"]
    assert page.get_by_role("status").text_content() == "1 of 4 shown"
    page.get_by_label("Find a feed or table").fill("")
    assert page.evaluate("[...document.querySelectorAll('[data-words]')].filter(e => e.offsetParent).length") == 4


def test_without_a_script_everything_but_the_field_is_there(show: Show) -> None:
    page = show("index.html", java_script_enabled=False)
    assert not page.locator("form").first.is_visible()
    assert page.get_by_role("link", name=ORDERS).is_visible()
    assert page.locator("time").first.text_content() == "2026-01-05 11:59 UTC"


def test_a_time_has_its_age(show: Show) -> None:
    page = show("index.html")
    assert page.evaluate("[30, 60, 3599, 3600, 172799, 172800].map(age)") == [
        "now",
        "1 min ago",
        "59 min ago",
        "1 h 0 min ago",
        "47 h 59 min ago",
        "2 days ago",
    ]
    assert page.locator(".ago").first.text_content() == f" ({page.evaluate('age((Date.now() - Date.UTC(2026, 0, 5, 11, 59, 56)) / 1000)')})"


def test_a_query_is_copied(show: Show) -> None:
    page = show(f"shop/tables/{ORDERS}.html", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy: Command line").click()
    page.get_by_role("button", name="Copy: Command line").filter(has_text="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("pre.copy").last.text_content()
    assert copied.startswith(f"tidelake asof --feed shop --table {ORDERS} --ts ")


def test_links_work_from_a_folder_without_a_server(show: Show) -> None:
    page = show("index.html")
    feed = ("shop", "Blocked: shop")
    for name, title in [feed, (LINES, LINES), feed, ("P, 2026", "Published: shop"), ("Feeds", "Feeds")]:
        page.get_by_role("link", name=name).first.click()
        assert page.title().startswith(title)


@pytest.mark.parametrize("path", PATHS)
def test_paper_has_the_page_without_what_only_a_screen_uses(show: Show, path: str) -> None:
    page = show(path, color_scheme="dark")
    page.emulate_media(media="print")
    assert [e.text_content() for e in page.locator("nav, .filter, .copying, .skip").all() if e.is_visible()] == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")
