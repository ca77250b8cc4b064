"""Differences between the types of published tables and those in the feed's folder, each with the `redo` that applies it."""

from __future__ import annotations

from collections.abc import Iterator

from tidelake.config.feed import Feed
from tidelake.config.table_name import written
from tidelake.errors import UNDEFINED_TABLE
from tidelake.history.contract import TableContract, read_tables
from tidelake.history.definitions import unsaid_types
from tidelake.history.incarnations import ALWAYS, Catalog, Incarnation
from tidelake.io.storage import Store
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import lineage, statements
from tidelake.order.schema_mismatches import mismatch_groups

_NAMED = 3  # columns of a table that a message names


def origin(i: Incarnation) -> str:
    """Return where a table's columns come from: messages, tables.sql or a statement."""
    if i.guessed:
        return "messages"
    return "tables.sql" if i.from_ts == ALWAYS else "a statement"


def differences(catalog: LakeCatalog, store: Store, feed: Feed, cut: Cut | None) -> list[str]:
    """Return a sentence for each disagreement of the published tables with tables.sql, with the redo that applies it.

    Older cuts are read only if there is a disagreement.
    """
    if cut is None:
        return []
    defined = read_tables(feed.folder)
    wrong = {i.id: said for i, said in _redefined(catalog, feed, cut.catalog, defined)}
    seqs = sorted(lineage(catalog, feed.name)) if wrong else []
    cuts = (read_cut(store, feed.name, seq) for seq in seqs)
    since: dict[str, str] = {}
    for older in cuts:
        since |= {i: older.hour for i in wrong if i not in since and i in older.catalog.incarnations}
        if len(since) == len(wrong):
            break
    out = [f"{said}: {_redo(feed, since[i], cut)}" for i, said in wrong.items() if i in since]
    return out + list(_left_out(catalog, store, feed, cut, defined))


def _redefined(catalog: LakeCatalog, feed: Feed, known: Catalog, defined: list[TableContract]) -> Iterator[tuple[Incarnation, str]]:
    """Yield tables that were defined by messages, and tables whose columns were different when tables.sql was read."""
    named = {(t.database.lower(), t.table.lower()): t for t in defined}
    altered: set[str] | None = None
    for i in known.alive():
        first = i.names[0]
        t = named.get((first.database.lower(), first.table.lower()))
        if t is None:
            if missing := unsaid_types(i.columns) if i.guessed else []:
                yield i, f"{i.name} is published with the types of its messages ({', '.join(missing[:_NAMED])}); define it in tables.sql"
            continue
        if not i.guessed and i.from_ts != ALWAYS:
            continue
        columns = _other_types(i, t)
        if columns and not i.guessed:  # a later statement may have made them so
            altered = {e["incarnation"] for e in statements(catalog, feed.name) if e["effect"] == "applied"} if altered is None else altered
            columns = [] if i.id in altered else columns
        if columns:
            yield i, "; ".join(columns[:_NAMED]) + (f"; and {plural(len(columns) - _NAMED, 'column')} more" if columns[_NAMED:] else "")
        elif i.guessed:
            yield i, f"{i.name}: published with the types of its messages, tables.sql defines it"


def _other_types(i: Incarnation, t: TableContract) -> list[str]:
    published = {name.lower(): c for c in i.columns for name in (*c.former, c.name)}
    wanted = {c.name.lower(): c for c in t.definition.visible}
    other = [
        f"{i.name}.{c.name}: published as {was.type.sql}, tables.sql defines {c.type.sql}"
        for name, c in wanted.items()
        if (was := published.get(name)) is not None and was.type != c.type
    ]
    return other + [f"{i.name}.{c.name}: not published, tables.sql has it" for name, c in wanted.items() if name not in published]


def _left_out(catalog: LakeCatalog, store: Store, feed: Feed, cut: Cut, defined: list[TableContract]) -> Iterator[str]:
    """Yield sentences about rows that published cuts lack because nothing defined their table."""
    now = {written(t.database, t.table).lower() for t in defined} | {i.name.lower() for i in cut.catalog.alive() if not i.guessed}
    aside: dict[str, list[tuple[str, int]]] = {}
    for g in mismatch_groups(catalog, store, feed.name):
        if g.code == UNDEFINED_TABLE and g.hour <= cut.hour and g.table is not None:
            aside.setdefault(g.table, []).append((g.hour, g.rows))
    for table, groups in sorted(aside.items()):
        said = f"{table}: {plural(sum(n for _, n in groups), 'row')} are set aside, because the table was not defined"
        if table.lower() in now:
            yield f"{said}; it is defined now: {_redo(feed, min(hour for hour, _ in groups), cut)}"
        else:
            yield f"{said}; define it in tables.sql, then {_redo(feed, min(hour for hour, _ in groups), cut)}"


def _redo(feed: Feed, since: str, cut: Cut) -> str:
    return f"`tidelake redo --feed {feed.name} --from {since} --to {cut.hour}`"
