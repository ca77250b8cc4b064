"""Before anything is staged: the names that a feed's tables need are the feed's, and no two tables need the same (docs/ownership.md)."""

from __future__ import annotations

import logging
import re
from collections.abc import Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import SYSTEM, events_table, is_reserved, late_table
from tidelake.errors import OwnershipError
from tidelake.history.incarnations import Catalog
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Intent, Move
from tidelake.lake.names import changelog_name, namespaces_of, snapshot_name
from tidelake.lake.owner import OWNER, SYSTEM_OWNER, whose
from tidelake.spark.spread import THREADS

log = logging.getLogger("tidelake.publish")

_APART = "rename one of them at the source, or give their databases feeds of their own with different [lake] namespace"


def take(catalog: LakeCatalog, feed: Feed, names: Catalog) -> None:
    """Claim every namespace that a window with these tables can touch. All are looked at before one is made.

    Raises what `refuse_taken` raises.
    """
    refuse_taken(catalog, feed, names)
    wanted = [(SYSTEM, SYSTEM_OWNER), *((n, feed.name) for n in _wanted(feed, names))]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda one: catalog.claim_namespace(*one), wanted))


def refuse_taken(catalog: LakeCatalog, feed: Feed, names: Catalog) -> None:
    """Look whether a window with these tables would be refused for its names; makes nothing.

    Raises ConfigError where a namespace belongs to another feed; OwnershipError: NOT_OURS where one of the feed's own tables is another's,
    NAME_COLLISION where two of these tables would have one name.
    """
    refuse_collisions(feed, names)
    if catalog.is_new:
        return
    refuse_foreign_namespaces(catalog, feed.name, _wanted(feed, names))
    for identifier in (events_table(feed.name), late_table(feed.name)):
        catalog.find_own(identifier, feed.name)


def refuse_foreign_namespaces(catalog: LakeCatalog, feed: str, namespaces: Iterable[str]) -> None:
    """Raises ConfigError where one of them, or the one that all feeds share, is there and belongs to somebody else."""
    wanted = [(SYSTEM, SYSTEM_OWNER), *((n, feed) for n in sorted(namespaces))]  # the same one is named each time
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda one: catalog.refuse_taken(*one), wanted))


def refuse_databases(catalog: LakeCatalog, feed: Feed, databases: Iterable[str]) -> None:
    """The same for all namespaces of these databases."""
    refuse_foreign_namespaces(catalog, feed.name, {n for d in databases for n in namespaces_of(feed, d)})


def taken_by_others(catalog: LakeCatalog, feed: Feed) -> list[str]:
    """Namespaces of other feeds that this feed's would be called like, for some database; with their owners, for people."""
    if catalog.is_new:
        return []
    like = re.compile(feed.namespace_of("\0").replace("\0", ".+"))
    others = {n: owner for n, owner in catalog.namespaces().items() if owner not in (feed.name, SYSTEM_OWNER)}
    return [f"{n} {whose(owner)}" for n, owner in sorted(others.items()) if like.fullmatch(n) and not is_reserved(n)]


def refuse_collisions(feed: Feed, names: Catalog) -> None:
    """Raises OwnershipError (NAME_COLLISION) where two tables or changelogs would have one name; case does not tell names apart."""
    taken: dict[str, str] = {}
    for i in names.alive():
        for kind, identifier in (("table", snapshot_name(feed, i)), ("changelog of table", changelog_name(feed, i))):
            said = f"{kind} {i.name}"
            if (other := taken.setdefault(identifier.lower(), said)) is not said:
                raise _collision(f"{other} and {said}", identifier)


def _wanted(feed: Feed, names: Catalog) -> list[str]:
    databases = {i.names[-1].database for i in names.alive()}
    return sorted({n for d in databases for n in namespaces_of(feed, d)})


def clear_way(catalog: LakeCatalog, intent: Intent, kept: Container[str]) -> None:
    """Before an intent is recorded: every name that its moves give is free by then. What the feed staged and never published goes.

    kept: uuids of the tables that published cuts need.
    Raises OwnershipError: NAME_COLLISION for a table of the feed's own, NOT_OURS for another's; ConfigError for another's namespace.
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
                raise _collision(f"table {m.source} and the one that has the name", name)
            refuse_occupied(there, m.source, feed)
            log.info(f"dropped {name}, which was staged and never published")
            catalog.drop(name, feed)


def _refuse_same_target(moves: Sequence[Move]) -> None:
    taken: dict[str, str] = {}
    for m in moves:
        if (other := taken.setdefault(m.target.lower(), m.source)) is not m.source:
            raise _collision(f"tables {other} and {m.source}", m.target)


def refuse_occupied(there: LakeTable, source: str, feed: str) -> None:
    """Raises OwnershipError (NOT_OURS) where a table of somebody else has the name that a table of the feed is to have."""
    if there.properties.get(OWNER) != feed:
        raise occupied(there, source, feed)


def occupied(there: LakeTable, source: str, feed: str) -> OwnershipError:
    """The error that a name is taken which table `source` of the feed is to have."""
    owner = there.properties.get(OWNER)
    if owner == feed:  # of intents that an earlier version recorded: it did not look before
        code, remedy = (
            "NAME_COLLISION",
            "both tables are this feed's, so this cannot be published: give it up with `tidelake abandon`",
        )
    else:
        code, remedy = "NOT_OURS", f"give the table {there.identifier} another name in the catalog, then run again"
    return OwnershipError(
        f"{there.identifier} is taken: that table {whose(owner)}, and {source} is to have its name",
        code=code,
        remedy=f"{remedy}; docs/ownership.md",
    )


def _collision(who: str, identifier: str) -> OwnershipError:
    return OwnershipError(
        f"{who} would both be {identifier} in the lake; nothing is staged or published",
        code="NAME_COLLISION",
        remedy=f"{_APART}; docs/ownership.md",
    )
