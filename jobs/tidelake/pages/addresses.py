"""Addresses of pages: files below the site's folder and, in Airflow, paths below the pages' prefix.

index.html                          all feeds
<feed>/index.html                   a feed, with its newest month
<feed>/2026-01.html                 a feed, with the hours of this month
<feed>/2026-01-05T10.html           the report of an hour
<feed>/tables/<db>.<table>.html     a table, by its file name (config/table_name.py)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from tidelake.config.lake_paths import name_hash
from tidelake.config.table_name import FILE_BYTES, file_stem, parse

INDEX = "index"
TABLES = "tables"
SUFFIX = ".html"
_KEPT = 200  # bytes of a name that is too long for a file
_FEED = re.compile(r"[a-z][a-z0-9_-]*")
_MONTH = re.compile(r"[12][0-9]{3}-(0[1-9]|1[0-2])")
_HOUR = re.compile(_MONTH.pattern + r"-[0-9]{2}T[0-9]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address of a page. Without feed it is the first page; without month, hour and table the feed's. table: the stem of its file name."""

    feed: str = ""
    month: str = ""
    hour: str = ""
    table: str = ""

    @property
    def path(self) -> str:
        """The path of the page's file, with `/`."""
        if not self.feed:
            return INDEX + SUFFIX
        name = f"{TABLES}/{self.table}" if self.table else self.hour or self.month or INDEX
        return f"{self.feed}/{name}{SUFFIX}"

    def link(self, to: Address) -> str:
        """Return the relative address of another page, as an attribute of HTML holds it."""
        return "../" * self.path.count("/") + quote(to.path) if to.feed != self.feed or not to.feed else self._beside(to)

    def _beside(self, to: Address) -> str:
        name = to.path.partition("/")[2]
        return quote(("../" if self.table else "") + name)


def parse_path(path: str) -> Address | None:
    """Return the page at a path, with or without `.html`; None for every other path. Nothing is looked up."""
    parts = path.removesuffix(SUFFIX).split("/")
    if parts in ([""], [INDEX]):
        return Address()
    if not _FEED.fullmatch(parts[0]):
        return None
    match parts[1:]:
        case [""] | ["index"]:
            return Address(feed=parts[0])
        case [name] if _MONTH.fullmatch(name):
            return Address(feed=parts[0], month=name)
        case [name] if _HOUR.fullmatch(name):
            return Address(feed=parts[0], hour=name)
        case ["tables", stem] if stem:
            return Address(feed=parts[0], table=stem)
    return None


def table_stem(name: str) -> str:
    """Return the stem of the file of a table's page. name: `db.table`. Names that are too long for a file end with a hash."""
    stem = file_stem(*parse(name))
    if len((stem + SUFFIX).encode()) <= FILE_BYTES:
        return stem
    return f"{stem.encode()[:_KEPT].decode(errors='ignore')}-{name_hash(name)}"
