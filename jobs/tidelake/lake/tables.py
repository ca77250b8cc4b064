"""Physical tables of incarnations: their columns, their creation, and changes of their columns (docs/architecture.md 8.3).

Iceberg's schema belongs to the table and not to a branch. Staging therefore makes only changes that readers of main may see early (added
and widened columns). Renames and drops wait for publishing. A change that Iceberg refuses gets a new table that replaces the old one at
publishing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import EVENT, NEW_KEY, PARTITION_EXCHANGE
from tidelake.config.policy import ValueRules
from tidelake.config.table_name import written
from tidelake.errors import ConfigError
from tidelake.history.ddl.column_types import MysqlType, lake_type
from tidelake.history.incarnations import Column, Incarnation
from tidelake.lake.catalog import LakeCatalog, LakeColumn, LakeTable
from tidelake.lake.cut import Reshape
from tidelake.lake.names import INCARNATION
from tidelake.lake.owner import OWNER
from tidelake.lake.to_iceberg import iceberg_type
from tidelake.wire.masks import HASHED, documented, mark, mask_key, read_documented

COMMIT_TS = LakeColumn(name="_commit_ts", type="bigint", doc="TSO of the last change of the row")
CHANGELOG_COLUMNS = (
    LakeColumn(name="_change_type", type="string", doc="INSERT, UPDATE_BEFORE, UPDATE_AFTER or DELETE"),
    LakeColumn(name="_change_seq", type="decimal(38,0)", doc="sorted by it, the table's changes are in order"),
    LakeColumn(name="_commit_ts", type="bigint", doc="TSO"),
    LakeColumn(name="_commit_at", type="timestamp", doc="time of the TSO"),
    LakeColumn(name="_origin", type="string", doc=f"{EVENT}, {PARTITION_EXCHANGE} or {NEW_KEY}"),
    LakeColumn(name="_topic", type="string", doc="Kafka coordinates of the event; NULL if the change has another origin"),
    LakeColumn(name="_kafka_partition", type="int", doc="not `_partition`, which Iceberg reserves"),
    LakeColumn(name="_offset", type="bigint"),
    LakeColumn(name="_ordinal", type="int", doc="position of the event in its message"),
)
PARTIAL = LakeColumn(name="_partial", type="boolean", doc="only the key of the row was sent, its other columns are unknown")
KEY = "tidelake.key"  # property of a snapshot table: ids of the columns that it is bucketed and sorted by
_BUCKETABLE = re.compile(r"int|bigint|decimal\(.*\)|date|timestamp|timestamp_ntz|string|binary")
_WIDER = {("int", "bigint"), ("float", "double")}


def snapshot_columns(feed: Feed, i: Incarnation, columns: Sequence[Column]) -> list[LakeColumn]:
    """Return a snapshot table's columns: the source's columns, then `_commit_ts`."""
    return [*(lake_column(feed, i, c) for c in kept(feed, i, columns)), COMMIT_TS]


def lake_column(feed: Feed, i: Incarnation, c: Column) -> LakeColumn:
    """Return a source column as a lake column."""
    doc = documented(f"{c.id}: {shown_type(feed, i, c).sql}", mask_of(feed, i, c))
    return LakeColumn(name=c.lake_name, type=lake_type(c.type, value_rules(feed, i, c)), doc=doc)


def shown_type(feed: Feed, i: Incarnation, c: Column) -> MysqlType:
    """Return the type of the values that a column has in the lake."""
    return HASHED if value_rules(feed, i, c).mask == "hash" else c.type


def mask_of(feed: Feed, i: Incarnation, c: Column) -> str | None:
    """Return the mark of a column's mask, in the form that schemas use; None without a mask."""
    mask = value_rules(feed, i, c).mask
    return None if mask is None else mark(mask, mask_key(feed))


def kept(feed: Feed, i: Incarnation, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns that the lake's tables have, without dropped ones."""
    return tuple(c for c in columns if value_rules(feed, i, c).mask != "drop")


def value_rules(feed: Feed, i: Incarnation, c: Column) -> ValueRules:
    """Return the rules of a column, which it keeps through renames. A table created LIKE a masked table has its masks."""
    names = [c.name, *c.former]
    rules = feed.rules_of([written(n.database, n.table) for n in i.names], names)
    return replace(rules, mask=feed.rules_of(i.like, names).mask) if i.like and rules.mask is None else rules


def bucket_column(key: Sequence[LakeColumn]) -> str | None:
    """Return the key column that rows are bucketed by: the first whose type Iceberg can bucket, None without one."""
    return next((c.name for c in key if is_bucketable(c)), None)


def is_bucketable(c: LakeColumn) -> bool:
    """Return whether Iceberg can bucket the column's type."""
    return _BUCKETABLE.fullmatch(c.type) is not None


def key_columns(feed: Feed, i: Incarnation, columns: Sequence[Column]) -> list[LakeColumn]:
    """Return the key's columns in key order."""
    by_id = {c.id: c for c in columns}
    return [lake_column(feed, i, by_id[k]) for k in i.key if k in by_id]


def create_snapshot(catalog: LakeCatalog, feed: Feed, i: Incarnation, identifier: str, buckets: int) -> LakeTable:
    """Create an empty snapshot table with this identifier."""
    columns, key = snapshot_columns(feed, i, i.columns), key_columns(feed, i, i.columns)
    bucket = bucket_column(key)
    partition = [(bucket, f"bucket[{buckets}]")] if bucket else []
    return _create(catalog, feed, i, identifier, columns, partition, [c.name for c in key], {KEY: _key_text(i)})


def create_changelog(
    catalog: LakeCatalog, feed: Feed, i: Incarnation, identifier: str, columns: Sequence[Column], buckets: int
) -> LakeTable:
    """Create an empty changelog with this identifier."""
    bucket = bucket_column(key_columns(feed, i, columns))
    partition = [(bucket, f"bucket[{buckets}]")] if bucket else []  # with the bucket first, the fold needs no shuffle
    every = [*_apart(lake_column(feed, i, c) for c in kept(feed, i, columns)), *_meta_columns(feed)]
    return _create(catalog, feed, i, identifier, every, [*partition, ("_commit_at", "day")], ["_commit_ts"])


def _create(
    catalog: LakeCatalog,
    feed: Feed,
    i: Incarnation,
    identifier: str,
    columns: Sequence[LakeColumn],
    partition: Sequence[tuple[str, str]],
    sort: Sequence[str],
    more: Mapping[str, str] | None = None,
) -> LakeTable:
    properties = {
        OWNER: feed.name,
        INCARNATION: i.id,
        "write.distribution-mode": "none",  # frames arrive distributed by bucket
        "write.spark.fanout.enabled": "false",
        "write.parquet.dict-size-bytes": str(64 << 10),  # as for the events table: cells hardly repeat
        "write.parquet.row-group-size-bytes": str(8 << 20),  # of what Spark writes: tasks that share a bucket read ranges of its keys
    } | dict(more or {})
    catalog.claim_namespace(identifier.rpartition(".")[0], feed.name)
    return catalog.create(identifier, columns, partition=partition, sort=sort, properties=properties)


def _key_text(i: Incarnation) -> str:
    return ",".join(map(str, i.key))


def reshape(catalog: LakeCatalog, feed: Feed, i: Incarnation, table: LakeTable) -> tuple[LakeTable, Reshape | None] | None:
    """Change a snapshot table's columns toward those at the window's end, as far as allowed before publishing.

    Returns the table and the rest of the change for publishing; None if the table must be rebuilt.
    """
    _refuse_new_masks(feed, i, table, i.columns)
    if table.properties.get(KEY, _key_text(i)) != _key_text(i):
        return None
    wanted = {c.id: lake_column(feed, i, c) for c in kept(feed, i, i.columns)}
    have = {c.source_id: c for c in table.columns() if c.source_id is not None}
    taken = {c.name.lower() for c in table.columns()}
    renamed = {k: c.name for k, c in wanted.items() if k in have and have[k].name != c.name}
    added = [k for k in wanted if k not in have]
    new_names = [*renamed.values(), *(wanted[k].name for k in added)]
    retyped = [k for k, c in wanted.items() if k in have and have[k].type != c.type]
    if any(name.lower() in taken for name in new_names) or not all(wider(have[k].type, wanted[k].type) for k in retyped):
        return None
    if added or retyped or any(have[k].doc != c.doc for k, c in wanted.items() if k in have):
        table = catalog.evolve(table.identifier, lambda u: _grow(u, wanted, have))
    dropped = [k for k in have if k not in wanted]
    return table, Reshape(renamed=renamed, dropped=dropped) if renamed or dropped else None


def finish(catalog: LakeCatalog, identifier: str, change: Reshape) -> None:
    """Give columns their final names and drop removed ones. Steps that are done already are skipped."""

    def names(update: Any) -> None:
        have = {c.source_id: c.name for c in catalog.load(identifier).columns() if c.source_id is not None}
        for k in change.dropped:
            if k in have:
                update.delete_column(have[k])
        for k, name in change.renamed.items():
            if k in have and have[k] != name:
                update.rename_column(have[k], name)

    catalog.evolve(identifier, names)


def grow_changelog(catalog: LakeCatalog, feed: Feed, i: Incarnation, table: LakeTable, columns: Sequence[Column]) -> LakeTable:
    """Add every column that existed in the window to a changelog. Columns are never dropped or reused: a column whose name another takes,
    or whose type changes to one that Iceberg refuses, becomes `<name>__<id>`.
    """
    _refuse_new_masks(feed, i, table, columns)
    have = set(table.columns())
    for c in _apart(lake_column(feed, i, c) for c in kept(feed, i, columns)):
        table = table if c in have else _changelog_column(catalog, table, c)
    missing = [c for c in _meta_columns(feed) if c.name not in {h.name for h in table.columns()}]
    return catalog.evolve(table.identifier, lambda u: _add_last(u, missing)) if missing else table


def _apart(columns: Iterable[LakeColumn]) -> list[LakeColumn]:
    """Rename columns that shared one name at different times: the first keeps it. Final columns come first."""
    every, out = list(columns), dict[str, LakeColumn]()
    for c in every:
        name = _spare_name((x.name for x in (*every, *out.values())), c) if c.name.lower() in out else c.name
        out[name.lower()] = replace(c, name=name)
    return list(out.values())


def _refuse_new_masks(feed: Feed, i: Incarnation, table: LakeTable, columns: Sequence[Column]) -> None:
    """Raise ConfigError (MASK_CHANGED) if published rows have another mask than the feed sets: one table would hold both."""
    have = {c.source_id: read_documented(c.doc or "")[1] for c in table.columns() if c.source_id is not None and not c.retired}
    for c in columns:
        wanted = mask_of(feed, i, c)
        if c.id in have and have[c.id] != wanted:
            raise ConfigError(
                f'{feed.folder / "feed.toml"}: columns."{i.name}".{c.name}.mask: {table.identifier} is published with '
                f"{have[c.id] or 'the column in clear'}, the feed sets {wanted or 'no mask'}",
                code="MASK_CHANGED",
                remedy="restore it, or run the feed's hours again into another lake; docs/masking.md",
            )


def _meta_columns(feed: Feed) -> list[LakeColumn]:
    """Return a changelog's own columns, with the mark of partial rows for a feed that accepts them."""
    return [*CHANGELOG_COLUMNS, *([PARTIAL] if feed.policy.handle_only == "accept" else [])]


def holders(columns: Iterable[LakeColumn]) -> dict[int, list[LakeColumn]]:
    """Return a changelog's columns by the id of the source column that they hold; the one with its present type comes first."""
    out = dict[int, list[LakeColumn]]()
    for c in sorted(columns, key=lambda c: c.retired):
        if c.source_id is not None:
            out.setdefault(c.source_id, []).append(c)
    return out


def _changelog_column(catalog: LakeCatalog, table: LakeTable, c: LakeColumn) -> LakeTable:
    have = next((h for h in table.columns() if h.source_id == c.source_id and not h.retired), None)
    if have is not None and have.type != c.type and not wider(have.type, c.type):
        table = catalog.evolve(table.identifier, _retire(table, have))
        have = None
    holder = next((h for h in table.columns() if h.name.lower() == c.name.lower()), None)
    if holder is not None and holder != have:
        spare = _spare_name((h.name for h in table.columns()), holder)
        table = catalog.evolve(table.identifier, lambda u: u.rename_column(holder.name, spare))
    if have is None:
        return catalog.evolve(table.identifier, lambda u: _add_first(u, c))
    if have.name != c.name:
        table = catalog.evolve(table.identifier, lambda u: u.rename_column(have.name, c.name))
    if have.type != c.type or have.doc != c.doc:
        table = catalog.evolve(table.identifier, lambda u: u.update_column(c.name, field_type=iceberg_type(c.type), doc=c.doc))
    return table


def _retire(table: LakeTable, have: LakeColumn) -> Callable[[Any], None]:
    spare, doc = _spare_name((h.name for h in table.columns()), have), (have.doc or "").replace(":", "~:", 1)

    def change(update: Any) -> None:
        update.update_column(have.name, doc=doc)
        update.rename_column(have.name, spare)

    return change


def _spare_name(taken: Iterable[str], c: LakeColumn) -> str:
    names, number = {name.lower() for name in taken}, 2
    spare = base = f"{c.name}__{c.source_id}"
    while spare.lower() in names:
        spare, number = f"{base}_{number}", number + 1
    return spare


def _add_first(update: Any, c: LakeColumn) -> None:
    update.add_column((c.name,), iceberg_type(c.type), doc=c.doc)
    update.move_before(c.name, CHANGELOG_COLUMNS[0].name)


def _add_last(update: Any, columns: Sequence[LakeColumn]) -> None:
    for c in columns:
        update.add_column(c.name, iceberg_type(c.type), doc=c.doc)


def _grow(update: Any, wanted: dict[int, LakeColumn], have: dict[int, LakeColumn]) -> None:
    before: str | None = None
    for k, c in wanted.items():
        if k not in have:
            update.add_column((c.name,), iceberg_type(c.type), doc=c.doc)
            update.move_after(c.name, before) if before else update.move_first(c.name)
        elif have[k].type != c.type or have[k].doc != c.doc:
            update.update_column(have[k].name, field_type=iceberg_type(c.type), doc=c.doc)
        before = have[k].name if k in have else c.name


def wider(old: str, new: str) -> bool:
    """Return whether Iceberg changes the type in place."""
    if (old, new) in _WIDER:
        return True
    pair = [re.fullmatch(r"decimal\((\d+),(\d+)\)", t) for t in (old, new)]
    return bool(pair[0] and pair[1] and pair[0][2] == pair[1][2] and int(pair[0][1]) <= int(pair[1][1]))
