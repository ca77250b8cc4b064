"""Identity of a lake: which catalog a lake belongs to, and which lake a feed belongs to. Recorded in both, checked when the lake is opened.

The uuid of the table of published cuts identifies the catalog; it changes only with the catalog. The lake records it in lake.json, written
once by put-if-absent. The table's properties record the lake of each feed. A lake of an earlier version has neither record: the first run
that writes adds them, if the catalog holds what the lake has published.
"""

from __future__ import annotations

import uuid

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import IDENTITY, certificates, published_table, seq_of
from tidelake.errors import ConfigError
from tidelake.io.documents import Document, find_document, read_document
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut_documents import newest_intent
from tidelake.lake.cuts import ensure_published, is_published, published
from tidelake.spark.lake_settings import LakeSettings

_ONE_CATALOG = "a lake keeps its catalog: restore lake.catalog in feed.toml (or its variable); to use another catalog, start a new lake"
_ONE_LAKE = "a feed keeps its lake: restore lake.uri in feed.toml (or its variable); to use another lake, give the feed another name"


class Identity(Document):
    """Content of lake.json. uri: location of the lake; catalog: uuid of its catalog's table of published cuts; place: location of that
    catalog.
    """

    id: str
    uri: str
    catalog: str
    place: str


def check_identity(feed: Feed, store: Store, settings: LakeSettings, catalog: LakeCatalog) -> None:
    """Raise ConfigError (WRONG_CATALOG, WRONG_LAKE; exit code 2) if lake and catalog do not belong together. Writes nothing."""
    known = find_document(store, IDENTITY, Identity)
    table = _published_table(catalog)
    if known is not None:
        if known.uri != store.uri:
            raise ConfigError(
                f"the lake at {store.uri} is a copy of {known.uri}, where its tables are", code="WRONG_LAKE", remedy=_ONE_LAKE
            )
        if table is None or table.uuid != known.catalog:
            raise _wrong_catalog(store.uri, known.place, settings, table)
    elif table is None or _lake_of(table, feed) is None:
        _check_before(feed, store, settings, catalog, table)
    if table is not None:
        _refuse_other_lake(feed, store, catalog, table, known)


def establish(feed: Feed, store: Store, settings: LakeSettings, catalog: LakeCatalog) -> None:
    """Write the missing records of lake and catalog about each other. Repeatable; the first run decides.

    Raises ConfigError (WRONG_CATALOG) if another run has assigned the lake to another catalog.
    """
    ensure_published(catalog)
    table = catalog.load(published_table())
    lake = _lake_of(table, feed)
    mine = lake if lake is not None and table.properties.get(f"tidelake.uri.{lake}") == store.uri else str(uuid.uuid4())
    identity = Identity(id=mine, uri=store.uri, catalog=table.uuid, place=settings.place)
    if store.head(IDENTITY) is None:
        store.put_if_absent(IDENTITY, identity.model_dump_json(indent=1).encode())
    known = read_document(store, IDENTITY, Identity)
    if known.catalog != table.uuid:
        raise _wrong_catalog(store.uri, known.place, settings, table)
    if _lake_of(table, feed) != known.id:
        catalog.set_properties(published_table(), {f"tidelake.lake.{feed.name}": known.id, f"tidelake.uri.{known.id}": known.uri})


def refuse_missing(store: Store) -> None:
    """Raise ConfigError (NO_LAKE) if no lake exists here. For commands that only read."""
    if store.head(IDENTITY) is None and not {"landed", "manifests", "leases", "cuts", "publish"} & set(store.folders()):
        raise ConfigError(
            f"there is no lake at {store.uri}",
            code="NO_LAKE",
            remedy="check lake.uri in feed.toml and the variables it names; the first `tidelake run` creates the lake",
        )


def _check_before(feed: Feed, store: Store, settings: LakeSettings, catalog: LakeCatalog, table: LakeTable | None) -> None:
    """Check that catalog and lake hold the same cuts, for a lake without identity."""
    proven = max((seq_of(o.key) for o in store.objects(certificates(feed.name))), default=0)
    if proven and (table is None or not is_published(catalog, feed.name, proven)):
        held = f"the catalog that holds cut {proven} of feed {feed.name}"
        raise _wrong_catalog(store.uri, held, settings, table)


def _refuse_other_lake(feed: Feed, store: Store, catalog: LakeCatalog, table: LakeTable, known: Identity | None) -> None:
    lake = _lake_of(table, feed)
    if known is not None and lake == known.id:
        return
    if lake is None and newest_intent(store, feed.name):
        return
    where = table.properties.get(f"tidelake.uri.{lake}", "another lake")
    if where != store.uri and published(catalog, feed.name):  # if only lake.json is lost, the next run writes it again
        raise ConfigError(
            f"feed {feed.name} is published in {where}, feed.toml names {store.uri}, which has none of its cuts",
            code="WRONG_LAKE",
            remedy=_ONE_LAKE,
        )


def _published_table(catalog: LakeCatalog) -> LakeTable | None:
    """Return the catalog's table of published cuts. Does not create the file of a new catalog."""
    return None if catalog.is_new else catalog.find(published_table())


def _lake_of(table: LakeTable, feed: Feed) -> str | None:
    return table.properties.get(f"tidelake.lake.{feed.name}")


def _wrong_catalog(uri: str, whose: str, settings: LakeSettings, table: LakeTable | None) -> ConfigError:
    found = "which is empty" if table is None else "which is another one"
    return ConfigError(
        f"the lake {uri} belongs to {whose}, feed.toml names {settings.place}, {found}", code="WRONG_CATALOG", remedy=_ONE_CATALOG
    )
