"""What a feed's tables are called in the catalog, and where a new one can be made. The rules: docs/ownership.md."""

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

INCARNATION = "tidelake.incarnation"  # property of a table: whose life it holds
_NAMES: dict[str, Lock] = {}


def namespace_of(feed: Feed, database: str) -> str:
    """Where a database's snapshot tables are. A name that would lead into a namespace which the lake keeps for itself gets a hash."""
    name = lake_name(database)
    plain, apart = feed.namespace_of(name), feed.namespace_of(_apart(name))
    return plain if is_reserved(apart) or not _is_kept(feed, name) else apart


def _is_kept(feed: Feed, name: str) -> bool:
    """Whether the name cannot be taken as it is: it leads into a reserved namespace, or is what another such name becomes."""
    base = name[: -len(_apart(""))]
    return is_reserved(feed.namespace_of(name)) or (bool(base) and name == _apart(base) and _is_kept(feed, base))


def _apart(name: str) -> str:
    return f"{name}_{name_hash(name)}"


def namespaces_of(feed: Feed, database: str) -> list[str]:
    """All namespaces that tables of a database may come to be in."""
    tables = namespace_of(feed, database)
    changelogs = changelog_namespace(tables)
    return [tables, changelogs, past_namespace(tables), past_namespace(changelogs)]


def snapshot_name(feed: Feed, i: Incarnation) -> str:
    """The identifier that readers know."""
    return f"{namespace_of(feed, i.names[-1].database)}.{lake_name(i.names[-1].table)}"


def changelog_name(feed: Feed, i: Incarnation) -> str:
    """The changelog's identifier."""
    return f"{changelog_namespace(namespace_of(feed, i.names[-1].database))}.{lake_name(i.names[-1].table)}"


def stands_as_before(feed: Feed, i: Incarnation, identifier: str) -> bool:
    """Whether a table is where a version put it that gave databases no other name than their own."""
    plain, table = feed.namespace_of(lake_name(i.names[-1].database)), lake_name(i.names[-1].table)
    return identifier in (f"{plain}.{table}", f"{changelog_namespace(plain)}.{table}")


def parking_name(identifier: str, uuid: str) -> str:
    """A name of a table's own: where it waits for its place, or is kept for earlier cuts."""
    namespace, _, table = identifier.rpartition(".")
    return f"{past_namespace(namespace)}.{table}__{uuid[:8]}"


def retired(identifier: str, uuid: str) -> str:
    """Where a table goes that only undone cuts know: a name that no other table can be given."""
    return identifier if identifier.endswith(f"__{uuid[:8]}") else parking_name(identifier, uuid)


def is_parking(identifier: str) -> bool:
    """Whether a name is of that kind already."""
    return identifier.partition(".")[0].endswith(past_namespace(""))


@contextmanager
def taking(wanted: str) -> Iterator[None]:
    """While a vacant place for a name is sought and taken: tables are staged side by side, and several lives of one window may want it."""
    with _NAMES.setdefault(wanted, Lock()):
        yield


def vacant(catalog: LakeCatalog, feed: str, wanted: str, i: Incarnation, kept: Container[str]) -> str:
    """Where a new table of this incarnation can be made: under the wanted name, else under one of its own until publishing.

    What an attempt of the feed's that was not published left there goes. kept: uuids of the tables that published cuts need.
    Raises OwnershipError (NOT_OURS) where the wanted name is another's: the table could never be published under it.
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
