"""The folder of a site: writes files that changed, removes those that the site no longer has, and records what they were made from."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ValidationError

from tidelake import __version__
from tidelake.errors import ConfigError
from tidelake.io.documents import Document
from tidelake.io.storage import open_store
from tidelake.pages.addresses import SUFFIX
from tidelake.pages.hour_states import HourHead

RECORD = "tidelake-site.json"


class FeedRecord(BaseModel):
    """What the pages of a feed were made from.

    hours: hour → hash of what its page was made from; heads: hour → ETag of its document, and its head; tables: names of tables with a
    page.
    """

    hours: dict[str, str] = {}
    heads: dict[str, tuple[str, HourHead]] = {}
    tables: list[str] = []


class SiteRecord(Document, BaseModel):
    """Marks a folder as a site. maker: version of Tidelake, and hash of its templates."""

    maker: str
    feeds: dict[str, FeedRecord] = {}


class SiteFolder:
    """A folder with a site, or an empty one.

    Attributes:
        written: Number of files that were written.
        unchanged: Number of files that were right.
        removed: Number of files that were removed.
        damaged: Errors of documents that cannot be read; a page says so in each one's place.

    Raises:
        ConfigError: NOT_A_SITE: the folder holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._store = path, open_store(str(path.absolute()))
        self.written, self.unchanged, self.removed, self.damaged = 0, 0, 0, list[str]()
        self.record = self._open()

    def _open(self) -> SiteRecord:
        if ":/" in str(self.path):
            raise ConfigError(
                f"{self.path} is not a local folder", code="NOT_A_SITE", remedy="write the site into a folder, then copy it there"
            )
        if self.path.exists() and not self.path.is_dir():
            raise _not_a_site(self.path, "is not a folder")
        found = self._store.read_if_present(RECORD) if self.path.is_dir() else None
        if found is None and self.path.is_dir() and any(self.path.iterdir()):
            raise _not_a_site(self.path, f"is not empty, and has no {RECORD}")
        try:
            record = SiteRecord.model_validate_json(found) if found else SiteRecord(maker="")
        except ValidationError:
            record = SiteRecord(maker="")  # all pages are made again
        if record.maker != maker():
            record = SiteRecord(maker=maker(), feeds=dict.fromkeys(record.feeds, FeedRecord()))
        self._store.write(RECORD, record.model_dump_json().encode())  # an interrupted run leaves a site
        return record

    def has(self, path: str) -> bool:
        """Return whether the site has this file."""
        return (self.path / path).is_file()

    def write(self, path: str, page: str) -> None:
        """Write a page unless the file has it."""
        data = page.encode()
        if self._store.read_if_present(path) == data:
            self.unchanged += 1
        else:
            self._store.write(path, data)
            self.written += 1

    def keep_only(self, feed: str, paths: Iterable[str]) -> None:
        """Remove the pages of a feed that are not among these."""
        kept = set(paths)
        gone = [o.key for o in self._store.objects(f"{feed}/") if o.key.endswith(SUFFIX) and o.key not in kept]
        for path in gone:
            self._store.delete(path)
        self.removed += len(gone)

    def save(self) -> None:
        """Write the record of the site."""
        self._store.write(RECORD, self.record.model_dump_json().encode())


def maker() -> str:
    """Return what makes the pages: a version of Tidelake and its templates."""
    parts = [p for package in ("tidelake.validate.quality", "tidelake.pages") for p in files(package).joinpath("page").iterdir()]
    texts = sorted((p.name, p.read_bytes()) for p in parts)
    return f"{__version__}-{sha256(repr(texts).encode()).hexdigest()[:16]}"


def _not_a_site(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path} {why}: nothing was written", code="NOT_A_SITE", remedy="give --site a new or empty folder, or one that it wrote before"
    )
