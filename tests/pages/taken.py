"""What a page says, and where it links to."""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import unquote

from tests.validate.facts import Page
from tidelake.pages.layout import AirflowLinks
from tidelake.pages.page import page_at

AIRFLOW = AirflowLinks(home="/", dag="/dags/tidelake_{feed}")


def taken(html: str) -> Page:
    """The page taken apart, without its script."""
    before, _, rest = html.partition("<script>")
    return Page(before + rest.partition("</script>")[2])


def page(folder: Path, path: str, airflow: AirflowLinks | None = None) -> Page:
    """The page at a path, which must be there."""
    found = page_at(folder / "schemas", path, airflow=airflow)
    assert found.status == 200
    return taken(found.html)


def links(of: Page, path: str) -> set[str]:
    """The files that a page at a path links to, without anchors."""
    addresses = [(a["href"] or "") for a in of.elements("a")]
    return {posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(a))) for a in addresses if not a.startswith(("#", "/"))}
