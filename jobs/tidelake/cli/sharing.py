"""Namespaces and tables that two feeds of one catalog would share. `tidelake check` reports them without reading data."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from tidelake.config.feed import load_feed
from tidelake.config.lake_paths import events_table
from tidelake.config.source import VARIABLE
from tidelake.errors import TidelakeError

if TYPE_CHECKING:
    from tidelake.config.feed import Feed

_REMEDY = 'set [lake] namespace = "{feed}_{database}" in one of them; docs/ownership.md'


@dataclass(frozen=True, slots=True)
class Shared:
    """What one feed shares with others.

    Attributes:
        errors: Conflicts that stop the feed.
        notes: Possible conflicts.
    """

    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def shared(schemas: Path, names: list[str]) -> dict[str, Shared]:
    """Return for each feed what it shares with others. Feeds with wrong files are skipped: `check` reports those itself.

    Args:
        schemas: Folder that holds the feeds.
        names: Names of the feeds.
    """
    feeds = [known for name in names if (known := _known(schemas, name)) is not None]
    found = {name: Shared() for name in names}
    for (a, of_a), (b, of_b) in combinations(feeds, 2):
        if _catalog(a) == _catalog(b):
            _compare(found[a.name], a, of_a, b, of_b)
            _compare(found[b.name], b, of_b, a, of_a)
    return found


def _known(schemas: Path, name: str) -> tuple[Feed, list[str]] | None:
    """Return the feed and the databases that its tables.sql names; None if a file is wrong."""
    from tidelake.history.contract import read_tables

    try:
        feed, tables = load_feed(schemas, name, expand=False), read_tables(schemas / name)
    except TidelakeError:
        return None
    plain = feed.lake.model_copy(
        update={"namespace": VARIABLE.sub(r"\1", feed.lake.namespace)}
    )  # two feeds with the same variable compare as equal
    return feed.model_copy(update={"lake": plain}), sorted({t.database for t in tables})


def _catalog(feed: Feed) -> str:
    """The catalog as written in feed.toml, without expanding variables; by default the lake's own."""
    return feed.lake.catalog or feed.lake.uri.rstrip("/")


def _compare(out: Shared, mine: Feed, of_mine: list[str], theirs: Feed, of_theirs: list[str]) -> None:
    """Add the conflicts of feed `mine` with feed `theirs`. of_mine, of_theirs: the databases that are known of each."""
    from tidelake.lake.names import namespaces_of

    where, template = f"{mine.folder / 'feed.toml'}: lake.namespace", mine.namespace_of("{database}")
    if events_table(mine.name) == events_table(theirs.name):
        out.errors.append(
            f"CONFIG: feeds {mine.name!r} and {theirs.name!r} would share table {events_table(mine.name)} of one catalog; "
            "give one of them a name that differs in more than - and _"
        )
    taken = {n.lower() for d in of_theirs for n in namespaces_of(theirs, d)}
    if both := [n for d in of_mine for n in namespaces_of(mine, d) if n.lower() in taken]:
        out.errors.append(f"CONFIG: {where}: feed {theirs.name!r} also needs {', '.join(both)} of the same catalog; {_REMEDY}")
    elif template == theirs.namespace_of("{database}") and not (of_mine and of_theirs):
        out.notes.append(
            f"{where}: feed {theirs.name!r} also has {template}; only one of them can publish a database that both carry: {_REMEDY}"
        )
