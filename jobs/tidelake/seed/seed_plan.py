"""Plan of a seed: tables, files and TSO of a full export, checked against the feed (docs/seed.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel

from tidelake.config.feed import Feed
from tidelake.config.table_name import written
from tidelake.errors import ConfigError, ContractError
from tidelake.history.contract import read_tables
from tidelake.history.ddl.changes import TableDef
from tidelake.history.incarnations import Catalog, create
from tidelake.io.storage import open_store
from tidelake.io.texts import plural
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import newest_cut
from tidelake.lake.names import snapshot_name
from tidelake.lake.namespaces import refuse_taken
from tidelake.lake.opened import Lake
from tidelake.seed.export_jobs import ExportAt, Refusal, refusals
from tidelake.seed.exports.dialect import PLAIN, Dialect
from tidelake.seed.exports.export_files import ExportTable, chosen, definition, list_export
from tidelake.seed.exports.position import METADATA, export_ts
from tidelake.tso import at, format_hour, show

_BUCKET_BYTES = 128 << 20
_GROWS = {".gz": 4, ".gzip": 4, ".zst": 4, ".zstd": 4, ".parquet": 3}  # approximate ratio of text size to file size


class SeedTable(BaseModel):
    """One table. table: its name in the lake; kind: of its files, empty if there are none; bytes: stored size of the files."""

    name: str
    table: str
    kind: str
    files: int
    bytes: int
    columns: int
    key: list[str]
    buckets: int


class SeedPlan(BaseModel):
    """Plan of a seed.

    Attributes:
        hour: Hour that the seed's cut counts as covering, so that later hours can be run.
        left_out: Tables of the export that were not requested.
        others: Its views, sequences and the like.
    """

    feed: str
    source: str
    ts: int
    hour: str
    files: int
    bytes: int
    tables: list[SeedTable]
    left_out: list[str]
    others: list[str]

    def lines(self) -> list[str]:
        """Return the plan as lines for people."""
        what = f"{plural(len(self.tables), 'table')}, {plural(self.files, 'file')}, {self.bytes:,} bytes"
        out = [f"{self.feed}: {what} of {self.source} at {show(self.ts)}"]
        for t in self.tables:
            files = f"{plural(t.files, t.kind + ' file')}, {t.bytes:,} bytes" if t.files else "no rows"
            key = f"key {', '.join(t.key)}" if t.key else "no key"
            out.append(f"  {t.name}: {files}, {plural(t.columns, 'column')}, {key} → {t.table}, {plural(t.buckets, 'bucket')}")
        out += [f"  {name}: left out, not among --tables" for name in self.left_out]
        return out + [f"  {name}: holds no rows of its own" for name in self.others]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan with what is needed to carry it out. names: all tables, created at the TSO; of_export: export tables by incarnation."""

    plan: SeedPlan
    export: ExportAt
    names: Catalog
    of_export: dict[str, ExportTable]


def prepare(
    lake: Lake, source: str, ts: int | None, tables: Sequence[str], dialect: Dialect = PLAIN, resumed: Cut | None = None
) -> Prepared:
    """Return the plan of a seed, or refuse it. Reads listings, metadata and CREATE TABLE statements, and of a table with a stored generated
    column its first file; writes nothing.

    Args:
        lake: The feed's lake.
        source: URI of the export.
        ts: Value of --ts.
        tables: Tables to load; empty means all.
        dialect: Format of its text files.
        resumed: The seed's cut, if it was just recovered.

    Raises:
        ConfigError: NO_COMMIT_TS, CUT_EXISTS, NOT_AN_EXPORT, UNKNOWN_FILE, UNKNOWN_TABLE, NO_TSO, TSO_DIFFERS, EXPORT_UNFINISHED.
        ContractError: TABLES_REFUSED: several tables cannot be loaded; for one alone its own code: NO_DEFINITION, OTHER_DEFINITION,
            OTHER_COLUMNS, UNKNOWN_TYPE, or CONFIG for a mask that a column cannot have.
        TidelakeError: What `namespaces.refuse_taken` raises.
    """
    if lake.feed.by_offsets:
        raise ConfigError(
            f"feed {lake.feed.name} is ordered by offsets: it is unknown which of its changes an export already contains",
            code="NO_COMMIT_TS",
            remedy="a seed needs messages with a commit ts: with TiCDC, set enable-tidb-extension; docs/seed.md",
        )
    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    if cut is not None and cut != resumed:
        raise ConfigError(
            f"feed {lake.feed.name} has published cut {cut.seq} at {show(cut.resolved_ts)}; a seed can only be the first",
            code="CUT_EXISTS",
            remedy="give the feed another lake, or another name, to start from this export",
        )
    store = open_store(source)
    export = list_export(store)
    wanted = chosen(export, tables, store)
    stands_at = export_ts(export.metadata, ts, store.uri_of(METADATA))
    at_ts = ExportAt(source=store.uri, ts=stands_at, dialect=dialect)
    defined, refused = _definitions(lake.feed, source, wanted, whole=not tables)
    names, of_export = Catalog(), dict[str, ExportTable]()
    for t in (t for t in wanted if t.name in defined):
        names = create(names, t.database, t.table, defined[t.name], stands_at)
        of_export[list(names.incarnations)[-1]] = t
    made = {t.name: (names.incarnations[i], t) for i, t in of_export.items()}
    _refuse([*refused, *refusals(lake.feed, at_ts, made, defined)])
    refuse_taken(lake.catalog, lake.feed, names)
    found = [_table(lake.feed, names, i, t) for i, t in of_export.items()]
    plan = SeedPlan(
        feed=lake.feed.name,
        source=store.uri,
        ts=stands_at,
        hour=format_hour(at(stands_at) - timedelta(hours=2)),  # brokers' clocks can be behind TiDB's by less than an hour
        files=sum(t.files for t in found),
        bytes=sum(t.bytes for t in found),
        tables=found,
        left_out=[t.name for t in export.tables if t not in wanted],
        others=list(export.others),
    )
    return Prepared(plan=plan, export=at_ts, names=names, of_export=of_export)


def _definitions(feed: Feed, source: str, wanted: Sequence[ExportTable], *, whole: bool) -> tuple[dict[str, TableDef], list[Refusal]]:
    """Definitions by `db.table`, and why tables have none: it is the export's or that of tables.sql. If both have one, they must agree."""
    said = {written(t.database, t.table).lower(): t.definition for t in read_tables(feed.folder)}
    out, refused = dict[str, TableDef](), list[Refusal]()
    missing = said.keys() - {t.name.lower() for t in wanted}
    if whole and missing:
        raise ConfigError(
            f"{feed.folder / 'tables.sql'} defines {min(missing)}, which {source} has not",
            code="UNKNOWN_TABLE",
            remedy="export it too, or remove it from tables.sql if it did not exist yet",
        )
    for t in wanted:
        try:
            out[t.name] = _definition(feed, source, t, said.get(t.name.lower()))
        except ContractError as e:
            refused.append(e)
    return out, refused


def _definition(feed: Feed, source: str, t: ExportTable, other: TableDef | None) -> TableDef:
    """A table's definition. other: that of tables.sql. Raises ContractError."""
    store = open_store(source)
    own = definition(store, t)
    if own is not None and other is not None and _meaning(own) != _meaning(other):
        raise ContractError(
            f"{feed.folder / 'tables.sql'} defines {t.name} otherwise than {store.uri_of(t.schema or '')}",
            code="OTHER_DEFINITION",
            remedy="tables.sql defines the tables at the start of the feed, which is the TSO of the export: "
            "use the export's statement, or none",
        )
    found = own or other
    if found is None:
        raise ContractError(
            f"{source} has rows of {t.name}, but neither it nor tables.sql defines its columns",
            code="NO_DEFINITION",
            remedy=f"put {t.name}-schema.sql with its CREATE TABLE beside them, or the statement into {feed.folder / 'tables.sql'}",
        )
    return found


def _refuse(refused: Sequence[Refusal]) -> None:
    """Raise the only error itself, several as one that has all of them."""
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise ContractError(
            f"{len(refused)} tables cannot be loaded: " + " ".join(f"({n}) {e}" for n, e in enumerate(refused, 1)),
            code="TABLES_REFUSED",
            remedy="or load the other tables alone, with --tables (docs/seed.md)",
        )


def _meaning(d: TableDef) -> tuple[object, ...]:
    key = tuple(c.lower() for c in d.handle.columns) if d.handle else ()
    return [(c.name.lower(), c.type) for c in d.visible], key


def _table(feed: Feed, names: Catalog, incarnation: str, t: ExportTable) -> SeedTable:
    i = names.incarnations[incarnation]
    by_id = {c.id: c.name for c in i.columns}
    return SeedTable(
        name=t.name,
        table=snapshot_name(feed, i),
        kind=t.files[0].kind if t.files else "",
        files=len(t.files),
        bytes=t.bytes,
        columns=len(i.columns),
        key=[by_id[k] for k in i.key],
        buckets=_buckets(feed, t),
    )


def _buckets(feed: Feed, t: ExportTable) -> int:
    """Number of buckets: the setting in feed.toml, else one per 128 MiB of text, as a power of two. Rows are not counted yet."""
    own = feed.tables.get(t.name)
    if own and own.buckets:
        return own.buckets
    text = sum(f.size * next((n for end, n in _GROWS.items() if f.key.endswith(end)), 1) for f in t.files)
    return min(256, 1 << (text // _BUCKET_BYTES).bit_length())


def dialect_of(dialect: Dialect, plan: SeedPlan) -> dict[str, object]:
    """Return the part of a dialect that the export's files use, for the certificate."""
    kinds = {t.kind for t in plan.tables}
    if "csv" in kinds:
        return dialect.model_dump()
    return {"escape": dialect.escape} if "sql" in kinds else {}
