"""What order staged for an hour, as validate and compact take it up."""

from __future__ import annotations

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import BRANCH, run_key
from tidelake.errors import OrderError
from tidelake.io.documents import find_document
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut, Staged
from tidelake.lake.cut_documents import next_seq
from tidelake.lake.cuts import newest_cut
from tidelake.lake.turns import is_published


def read_staged(
    catalog: LakeCatalog, store: Store, feed: Feed, hour: str, redo_from: str | None = None
) -> tuple[Cut | None, Staged | None]:
    """(the newest cut, what order staged for the hour); None where the hour is published. redo_from: what order staged anew from this hour
    on. Raises OrderError (NOT_ORDERED) and what `is_published` raises."""
    cut = newest_cut(catalog, store, feed.name)
    redo = cut is not None and redo_from is not None and redo_from <= cut.hour
    if not redo and is_published(feed, catalog, store, cut, hour):
        return cut, None
    staged = find_document(store, run_key(feed.name, next_seq(store, feed.name, cut.seq if cut else 0), "order"), Staged)
    if staged is None and redo and cut is not None and cut.follows is not None and cut.run.startswith(BRANCH):
        return cut, None  # that redo is published
    if staged is None or (staged.cut.follows is not None) != redo or (staged.cut.hour < hour if redo else staged.cut.hour != hour):
        remedy = f"run `tidelake order --feed {feed.name} --hour {hour}` first"
        raise OrderError(f"hour {hour} of feed {feed.name} is not ordered", code="NOT_ORDERED", remedy=remedy)
    return cut, staged
