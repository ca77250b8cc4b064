"""Pictures of what people see of a run in Airflow, and an answer given as people give it: by the form, in Debian's Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.airflow.running import DAG, FEED
from tests.pages import browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

SETTLE_MS = 2500  # Airflow's interface draws after its last request


class Pictures:
    """A browser on a running Airflow, where everybody is an administrator. Pictures are PNG files of a folder."""

    def __init__(self, page: Page, url: str, folder: Path) -> None:
        self._page, self._url, self._folder = page, url, folder

    def take_all(self, prefix: str, hour: str, run: str) -> None:
        """Take pictures of Airflow's pages of a run, of the forms, and of the quality pages."""
        of_run = f"/dags/{DAG}/runs/{run}"
        quality = {"feeds": "index", "feed": f"{FEED}/index", "hour": f"{FEED}/{hour}", "table": f"{FEED}/tables/bazaar.bids"}
        paths = {
            "grid": f"/dags/{DAG}",
            "actions": "/required_actions",
            "decide-log": f"{of_run}/tasks/decide",
            "complete-log": f"{of_run}/tasks/complete",
            "details": f"{of_run}/tasks/order/details",
            "assets": "/assets",
            **{f"quality-{name}": f"/tidelake/quality/{path}.html" for name, path in quality.items()},
        }
        for name, path in paths.items():
            self.take(f"{prefix}-{name}", path)
        self.take(f"{prefix}-menu", "/", "Browse")
        self.take(f"{prefix}-trigger", f"/dags/{DAG}", "Trigger")
        self.take(f"{prefix}-connection", "/connections", "Add Connection", "Tidelake")

    def take(self, name: str, path: str, click: str = "", choose: str = "") -> None:
        """Open a path of Airflow, click what has a text, choose from the list that opens, and take a picture of the whole page."""
        self._page.goto(f"{self._url}{path}")
        self._page.wait_for_timeout(SETTLE_MS)
        if click:
            self._page.get_by_text(click, exact=True).first.click()
            self._page.wait_for_timeout(SETTLE_MS)
        if choose:
            self._page.get_by_role("combobox").last.fill(choose)
            self._page.keyboard.press("Enter")
            self._page.wait_for_timeout(SETTLE_MS)
        self._page.screenshot(path=self._folder / f"{name}.png", full_page=True)

    def answer(self, run: str, chosen: str, reason: str) -> None:
        """Answer the open question of a run by its form, with a picture before and after."""
        self.take("question", f"/dags/{DAG}/runs/{run}/tasks/decide/required_actions")
        self._page.locator("#element_reason").fill(reason)
        self._page.get_by_role("button", name=chosen).click()
        self._page.wait_for_timeout(SETTLE_MS)
        self._page.screenshot(path=self._folder / "answer.png", full_page=True)


@contextmanager
def pictures(url: str, folder: Path) -> Iterator[Pictures]:
    """Open a browser on an Airflow."""
    folder.mkdir(parents=True, exist_ok=True)
    with browser.opened() as opened:
        yield Pictures(opened.new_page(viewport={"width": 1280, "height": 900}), url, folder)
