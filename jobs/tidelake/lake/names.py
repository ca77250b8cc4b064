"""Names of a feed's tables in the catalog, and free names for new ones. The rules: docs/ownership.md."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import changelog_namespace, is_reserved, lake_name, name_hash, past_namespace
from tidelake.history.incarnations import Incarnation
from tidelake.lake.owner import OWNER

if TYPE_CHECKING:
    from tidelake.lake.catalog import LakeCatalog

INCARNATION = "tidelake.incarnation"  # property of a table: the incarnation that it holds
_NAMES: dict[str, Lock] = {}


def namespace_of(feed: Feed, database: str) -> str:
    """Return the namespace of a database's snapshot tables. A name that would lead into a namespace reserved by the lake gets a hash."""
    name = lake_name(database)
    plain, apart = feed.namespace_of(name), feed.namespace_of(_apart(name))
    return plain if is_reserved(apart) or not _is_kept(feed, name) else apart


def _is_kept(feed: Feed, name: str) -> bool:
    """Whether the name cannot be used as it is: it leads into a reserved namespace, or equals such a name with its hash."""
    base = name[: -len(_apart(""))]
    return is_reserved(feed.namespace_of(name)) or (bool(base) and name == _apart(base) and _is_kept(feed, base))


def _apart(name: str) -> str:
    return f"{name}_{name_hash(name)}"


def namespaces_of(feed: Feed, database: str) -> list[str]:
    """Return all namespaces that tables of a database may be in."""
    tables = namespace_of(feed, database)
    changelogs = changelog_namespace(tables)
    return [tables, changelogs, past_namespace(tables), past_namespace(changelogs)]


def snapshot_name(feed: Feed, i: Incarnation) -> str:
    """Return the identifier of the snapshot table that readers use."""
    return f"{namespace_of(feed, i.names[-1].database)}.{lake_name(i.names[-1].table)}"


def changelog_name(feed: Feed, i: Incarnation) -> str:
    """Return the identifier of the changelog."""
    return f"{changelog_namespace(namespace_of(feed, i.names[-1].database))}.{lake_name(i.names[-1].table)}"


def stands_as_before(feed: Feed, i: Incarnation, identifier: str) -> bool:
    """Return whether a table is where an earlier version put it, which gave namespaces no hash."""
    plain, table = feed.namespace_of(lake_name(i.names[-1].database)), lake_name(i.names[-1].table)
    return identifier in (f"{plain}.{table}", f"{changelog_namespace(plain)}.{table}")


def parking_name(identifier: str, uuid: str) -> str:
    """Return a name unique to the table, for a table that waits for its name or is kept for earlier cuts."""
    namespace, _, table = identifier.rpartition(".")
    return f"{past_namespace(namespace)}.{table}__{uuid[:8]}"


def retired(identifier: str, uuid: str) -> str:
    """Return the name of a table that only undone cuts need; no other table can get this name."""
    return identifier if identifier.endswith(f"__{uuid[:8]}") else parking_name(identifier, uuid)


def is_parking(identifier: str) -> bool:
    """Return whether an identifier is a parking name."""
    return identifier.partition(".")[0].endswith(past_namespace(""))


@contextmanager
def taking(wanted: str) -> Iterator[None]:
    """Lock a wanted name while a free name is found and taken. Tables are staged concurrently, and several incarnations of one window may
    want it.
    """
    with _NAMES.setdefault(wanted, Lock()):
        yield


def vacant(catalog: LakeCatalog, feed: str, wanted: str, i: Incarnation, kept: Container[str]) -> str:
    """Return a free name for a new table of this incarnation: the wanted name, else a parking name until publishing.

    Drops a table that an unpublished attempt of the feed left under the name. kept: uuids of the tables that published cuts need.
    Raises OwnershipError (NOT_OURS) if another owner has the wanted name: the table could never be published under it.
    """
    there = catalog.find_own(wanted, feed)
    if there is None:
        return wanted
    if there.uuid not in kept and there.properties.get(INCARNATION) == i.id:
        catalog.drop(wanted, feed)
        return wanted
    for number in count():
        spare = parking_name(wanted, hashlib.sha256(f"{i.id}{number or ''}".encode()).hexdigest())
        there = catalog.find(spare)
        if there is None:
            return spare
        if there.uuid not in kept and there.properties.get(OWNER) == feed:
            catalog.drop(spare, feed)
            return spare
    raise AssertionError("unreachable")
