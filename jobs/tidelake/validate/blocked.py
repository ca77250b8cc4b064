"""What blocked an hour when it ran last: blocked/<feed>/hour=<hour>.json. A report shows it as well, but is written at other times, too."""

from __future__ import annotations

from pydantic import ConfigDict

from tidelake.config.lake_paths import blocked, blocked_key
from tidelake.errors import TidelakeError
from tidelake.io.documents import Document, read_document
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake


class Blocked(Document):
    """The error of a blocked run. newest_cut: number of the feed's newest cut at that time, 0 for none."""

    model_config = ConfigDict(extra="forbid")

    hour: str
    code: str
    message: str
    remedy: str
    newest_cut: int


def keep_blocked(lake: Lake, hour: str, error: TidelakeError) -> None:
    """Write down what blocks an hour."""
    cut, place = newest_cut(lake.catalog, lake.store, lake.feed.name), f"{error.at}: " if error.at else ""
    said = Blocked(hour=hour, code=error.code, message=f"{place}{error.message}", remedy=error.remedy, newest_cut=cut.seq if cut else 0)
    lake.store.write(blocked_key(lake.feed.name, hour), said.model_dump_json(indent=1).encode())


def first_blocked(lake: Lake, cut: Cut | None) -> Blocked | None:
    """Return what blocks the first hour after the newest cut, None if no hour is blocked. cut: the newest cut.

    Later hours wait for that hour, because hours go in order. What was written before the newest cut says nothing of now.
    """
    for key in sorted(o.key for o in lake.store.objects(blocked(lake.feed.name))):
        if cut is None or key > blocked_key(lake.feed.name, cut.hour):
            found = read_document(lake.store, key, Blocked)
            if found.newest_cut == (cut.seq if cut else 0):
                return found
    return None
