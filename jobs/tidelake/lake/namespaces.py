"""Claim the names that a feed's tables need, before anything is staged: each name is the feed's own and used once (docs/ownership.md).

The first cut of a feed fixes the namespaces of its tables.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import SYSTEM, events_table, intent_key, is_reserved, late_table
from tidelake.errors import ConfigError, OwnershipError
from tidelake.history.incarnations import Catalog
from tidelake.io.documents import read_document
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Cut, Intent, Move
from tidelake.lake.cut_documents import find_abandoned, newest_intent
from tidelake.lake.cuts import is_published, newest_cut
from tidelake.lake.names import changelog_name, is_parking, namespaces_of, snapshot_name, stands_as_before
from tidelake.lake.owner import OWNER, SYSTEM_OWNER, whose
from tidelake.spark.spread import THREADS

log = logging.getLogger("tidelake.publish")

_GLUE_NAME = re.compile(r"[a-z0-9_]{1,255}")  # names that Iceberg's Java catalog takes; Glue folds capital letters
_APART = "rename one of them at the source, or give their databases feeds of their own with different [lake] namespace"


def take(catalog: LakeCatalog, feed: Feed, names: Catalog) -> None:
    """Claim every namespace that a window with these tables can touch. All are checked before the first is created.

    Raises what `refuse_taken` raises.
    """
    refuse_taken(catalog, feed, names)
    wanted = [(SYSTEM, SYSTEM_OWNER), *((n, feed.name) for n in _wanted(feed, names))]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda one: catalog.claim_namespace(*one), wanted))


def refuse_taken(catalog: LakeCatalog, feed: Feed, names: Catalog) -> None:
    """Raise an error if a window with these tables would be refused for its names. Creates nothing.

    Raises:
        ConfigError: A namespace belongs to another feed.
        OwnershipError: NOT_OURS where another owner has one of the feed's own tables; NAME_COLLISION where two tables need one name;
            GLUE_NAME for a name that Glue does not keep.
    """
    refuse_collisions(feed, names)
    if catalog.settings.iceberg["type"] == "glue":
        _refuse_for_glue(feed, names)
    if catalog.is_new:
        return
    refuse_foreign_namespaces(catalog, feed.name, _wanted(feed, names))
    for identifier in (events_table(feed.name), late_table(feed.name)):
        catalog.find_own(identifier, feed.name)


def refuse_foreign_namespaces(catalog: LakeCatalog, feed: str, namespaces: Iterable[str]) -> None:
    """Raise ConfigError if one of the namespaces, or the shared one, exists and has another owner."""
    wanted = [(SYSTEM, SYSTEM_OWNER), *((n, feed) for n in sorted(namespaces))]  # sorted, so that the error names the same one each time
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda one: catalog.refuse_taken(*one), wanted))


def refuse_databases(catalog: LakeCatalog, feed: Feed, databases: Iterable[str]) -> None:
    """Raise ConfigError if a namespace of these databases exists and has another owner."""
    refuse_foreign_namespaces(catalog, feed.name, {n for d in databases for n in namespaces_of(feed, d)})


def taken_by_others(catalog: LakeCatalog, feed: Feed) -> list[str]:
    """Return the namespaces of other feeds that match this feed's naming for some database, each with its owner, for messages."""
    if catalog.is_new:
        return []
    like = re.compile(feed.namespace_of("\0").replace("\0", ".+"))
    others = {n: owner for n, owner in catalog.namespaces().items() if owner not in (feed.name, SYSTEM_OWNER)}
    return [f"{n} {whose(owner)}" for n, owner in sorted(others.items()) if like.fullmatch(n) and not is_reserved(n)]


def refuse_collisions(feed: Feed, names: Catalog) -> None:
    """Raise OwnershipError (NAME_COLLISION) if two tables or changelogs need one name. Names are compared without case."""
    taken: dict[str, str] = {}
    for i in names.alive():
        for kind, identifier in (("table", snapshot_name(feed, i)), ("changelog of table", changelog_name(feed, i))):
            said = f"{kind} {i.name}"
            if (other := taken.setdefault(identifier.lower(), said)) is not said:
                raise _collision(f"{other} and {said}", identifier)


def _refuse_for_glue(feed: Feed, names: Catalog) -> None:
    for i in names.alive():
        for part in changelog_name(feed, i).split("."):  # a snapshot's name is a part of it, and shorter
            if not _GLUE_NAME.fullmatch(part):
                raise OwnershipError(
                    f"table {i.name} would be {snapshot_name(feed, i)} in the lake; {part!r} is no name of AWS Glue, "
                    "which keeps lower-case letters, digits and _ only; nothing is staged or published",
                    code="GLUE_NAME",
                    remedy="set [lake] namespace to another form, leave the table out of the changefeed, or use a REST catalog; "
                    "docs/how-to/catalogs.md",
                )


def _wanted(feed: Feed, names: Catalog) -> list[str]:
    databases = {i.names[-1].database for i in names.alive()}
    return sorted({n for d in databases for n in namespaces_of(feed, d)})


def clear_way(catalog: LakeCatalog, intent: Intent, kept: Container[str]) -> None:
    """Free every name that an intent's moves need, before the intent is recorded. Drops tables that the feed staged and never published.

    Args:
        catalog: The feed's catalog.
        intent: The intent to record.
        kept: uuids of the tables that published cuts need.

    Raises:
        OwnershipError: NAME_COLLISION for a table of the feed's own, NOT_OURS for another owner's.
        ConfigError: A namespace has another owner.
    """
    feed, moves = intent.cut.feed, intent.moves
    _refuse_same_target(moves)
    leaving = {m.uuid for m in moves}
    needed = {t.uuid for t in (*intent.cut.snapshots.values(), *intent.cut.changelogs.values())}
    for namespace in sorted({name.rpartition(".")[0] for m in moves for name in (m.parking, m.target)}):
        catalog.claim_namespace(namespace, feed)
    for m in moves:
        for name in dict.fromkeys((m.parking, m.target)):
            there = catalog.find(name)
            if there is None or there.uuid in leaving:
                continue
            if there.uuid in needed or there.uuid in kept:
                raise _collision(f"table {m.source} and the table with that name", name)
            refuse_occupied(there, m.source, feed)
            log.info(f"dropped {name}, which was staged and never published")
            catalog.drop(name, feed)


def _refuse_same_target(moves: Sequence[Move]) -> None:
    taken: dict[str, str] = {}
    for m in moves:
        if (other := taken.setdefault(m.target.lower(), m.source)) is not m.source:
            raise _collision(f"tables {other} and {m.source}", m.target)


def refuse_occupied(there: LakeTable, source: str, feed: str) -> None:
    """Raise OwnershipError (NOT_OURS) if another owner's table has the name that a table of the feed needs."""
    if there.properties.get(OWNER) != feed:
        raise occupied(there, source, feed)


def occupied(there: LakeTable, source: str, feed: str) -> OwnershipError:
    """Return the error for a taken name that table `source` of the feed needs."""
    owner = there.properties.get(OWNER)
    if owner == feed:  # in intents that an earlier version recorded without this check
        code, remedy = (
            "NAME_COLLISION",
            "both tables belong to this feed, so the cut cannot be published: abandon it with `tidelake abandon`",
        )
    else:
        code, remedy = "NOT_OURS", f"give the table {there.identifier} another name in the catalog, then run again"
    return OwnershipError(
        f"{source} needs the name {there.identifier}, and the table of that name {whose(owner)}",
        code=code,
        remedy=f"{remedy}; docs/ownership.md",
    )


def _collision(who: str, identifier: str) -> OwnershipError:
    return OwnershipError(
        f"{who} would both be {identifier} in the lake; nothing is staged or published",
        code="NAME_COLLISION",
        remedy=f"{_APART}; docs/ownership.md",
    )


def refuse_other_namespace(feed: Feed, store: Store, catalog: LakeCatalog) -> None:
    """Raise ConfigError (NAMESPACE_CHANGED) if the newest cut, or the one being published, has its tables in other namespaces."""
    seq = newest_intent(store, feed.name)
    if not seq:
        return
    if not is_published(catalog, feed.name, seq) and find_abandoned(store, feed.name, seq) is None:
        intent = read_document(store, intent_key(feed.name, seq), Intent)
        _refuse_moved(
            feed,
            intent.cut,
            f"is being published (publish/{feed.name}/{seq:08d}.json)",
            f"; or abandon it: `tidelake abandon --feed {feed.name}`",
        )
        return
    cut = newest_cut(catalog, store, feed.name)
    if cut is not None:
        _refuse_moved(feed, cut, "is published", "; for other names start with another feed name, or another lake and catalog")


def _refuse_moved(feed: Feed, cut: Cut, state: str, other_way: str) -> None:
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
