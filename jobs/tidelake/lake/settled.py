"""Check what a feed's first cut fixes: the namespaces of its tables."""

from __future__ import annotations

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import intent_key
from tidelake.errors import ConfigError
from tidelake.io.documents import read_document
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut, Intent
from tidelake.lake.cut_documents import find_abandoned, newest_intent
from tidelake.lake.cuts import is_published, newest_cut
from tidelake.lake.names import is_parking, snapshot_name, stands_as_before


def refuse_other_namespace(feed: Feed, store: Store, catalog: LakeCatalog) -> None:
    """Raise ConfigError (NAMESPACE_CHANGED) if the newest cut, or the one being published, has its tables in other namespaces."""
    seq = newest_intent(store, feed.name)
    if not seq:
        return
    if not is_published(catalog, feed.name, seq) and find_abandoned(store, feed.name, seq) is None:
        intent = read_document(store, intent_key(feed.name, seq), Intent)
        _refuse(
            feed,
            intent.cut,
            f"is being published (publish/{feed.name}/{seq:08d}.json)",
            f"; or abandon it: `tidelake abandon --feed {feed.name}`",
        )
        return
    cut = newest_cut(catalog, store, feed.name)
    if cut is not None:
        _refuse(feed, cut, "is published", "; for other names start with another feed name, or another lake and catalog")


def _refuse(feed: Feed, cut: Cut, state: str, other_way: str) -> None:
    for i in cut.catalog.alive():
        t = cut.snapshots.get(i.id)
        if t is None or is_parking(t.identifier) or stands_as_before(feed, i, t.identifier):
            continue
        have, wanted = t.identifier.rpartition(".")[0], snapshot_name(feed, i).rpartition(".")[0]
        if have != wanted:
            raise ConfigError(
                f"{feed.folder / 'feed.toml'}: lake.namespace: cut {cut.seq} {state} with {i.name} in namespace {have!r}; "
                f"{feed.lake.namespace!r} would make it {wanted!r}",
                code="NAMESPACE_CHANGED",
                remedy=f"restore lake.namespace{other_way}",
            )
