"""A real browser for tests of pages: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MISSING = "needs a browser: apt-get install chromium, or TIDELAKE_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """The browser's path, None without one."""
    return os.environ.get("TIDELAKE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def chromium() -> str:
    """The browser's path. Skips the test without one."""
    found = find_chromium()
    if found is None:
        pytest.skip(MISSING)
    return found


@contextmanager
def opened() -> Iterator[Browser]:
    """The browser, started."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])  # a container's root has no sandbox
        yield browser
        browser.close()


def violations(page: Any) -> list[tuple[str, str, list[str]]]:
    """What axe-core finds on a page: rule, impact, elements."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response
    assert len(found["passes"]) > 15, "axe ran"
    return [(v["id"], v["impact"], [node["html"] for node in v["nodes"]]) for v in found["violations"]]
