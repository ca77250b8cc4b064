"""Files of an export, recognised by name (pingcap/tidb, dumpling/export/prepare.go), and the tables they belong to.

`<db>.<table>.<n>.csv|sql[.gz|.zst]` rows · `<db>.<table>-schema.sql` CREATE TABLE · `<db>-schema-create.sql` · `metadata`
`<db>.<table>.parquet`, `<db>.<table>.<anything>.parquet`, `<db>.<table>/<anything>.parquet` rows

In names Dumpling writes `%2E` for a dot, and likewise other characters that file names cannot have.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from tidelake.config.table_name import same, written
from tidelake.errors import ConfigError, ContractError
from tidelake.history.ddl.changes import CreateTable, TableDef
from tidelake.history.ddl.statement import parse
from tidelake.history.ddl.tokens import statements
from tidelake.io.storage import ObjectInfo, Store
from tidelake.seed.exports.position import METADATA

_NAME = r"(?P<database>[^./]+)\.(?P<table>[^./]+?)"
_CODEC = r"(?:\.(?:gz|gzip|zst|zstd))?"
_ROWS = re.compile(rf"{_NAME}\.\d+\.(?P<kind>csv|sql){_CODEC}")
_PARQUET = re.compile(rf"{_NAME}(?:\.[^/]*|/[^/]*)?\.parquet")
_SCHEMA = re.compile(rf"{_NAME}-schema\.sql{_CODEC}")
_VIEW = re.compile(rf"{_NAME}-schema-(?:view|sequence|triggers|post)\.sql{_CODEC}")
_OTHER = re.compile(rf"(?:.*-schema-create\.sql|.*-placement-policy-create\.sql){_CODEC}|{METADATA}|(?:.*/)?(?:_SUCCESS|\.[^/]*)")

ExportName = tuple[str, str]  # database, table


class ExportFile(BaseModel):
    """A file with rows. kind: csv, sql or parquet; size: bytes."""

    model_config = ConfigDict(frozen=True)

    key: str
    size: int
    etag: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTable:
    """A table of an export. schema: key of the file with its CREATE TABLE; None if there is none."""

    database: str
    table: str
    schema: str | None
    files: tuple[ExportFile, ...]

    @property
    def name(self) -> str:
        """`db.table`."""
        return written(self.database, self.table)

    @property
    def bytes(self) -> int:
        """Stored size of all its files."""
        return sum(f.size for f in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Files of an export. tables: sorted by name; others: views, sequences and the like, without rows; metadata: text of that file."""

    tables: tuple[ExportTable, ...]
    others: tuple[str, ...]
    metadata: str | None


def list_export(store: Store) -> Export:
    """List an export. Raises ConfigError: NOT_AN_EXPORT; UNKNOWN_FILE: this version does not read the file."""
    objects = list(store.objects())
    views = {_name(m) for o in objects if (m := _VIEW.fullmatch(o.key))}
    schemas = {_name(m): o.key for o in objects if (m := _SCHEMA.fullmatch(o.key)) and _name(m) not in views}
    rows: dict[ExportName, list[ExportFile]] = {}
    for o in objects:
        match = _ROWS.fullmatch(o.key) or _PARQUET.fullmatch(o.key)
        if match is not None:
            kind = match.groupdict().get("kind") or "parquet"
            rows.setdefault(_name(match), []).append(ExportFile(key=o.key, size=o.size, etag=o.etag, kind=kind))
    known = set(schemas.values()) | {f.key for files in rows.values() for f in files}
    _refuse_others(store, (o for o in objects if o.key not in known))
    tables = [_table(name, schemas.get(name), rows.get(name, [])) for name in sorted(schemas.keys() | rows.keys())]
    if not tables:
        raise ConfigError(
            f"{store.uri}: no table of an export",
            code="NOT_AN_EXPORT",
            remedy="files are called <db>.<table>.000000000.csv (or .sql), <db>.<table>-schema.sql, <db>.<table>.parquet: docs/seed.md",
        )
    found = store.read_if_present(METADATA)
    metadata = None if found is None else found.decode(errors="replace")
    return Export(tables=tuple(tables), others=tuple(sorted(f"{d}.{t}" for d, t in views)), metadata=metadata)


def chosen(export: Export, wanted: Sequence[str], store: Store) -> tuple[ExportTable, ...]:
    """Return the named tables, or all if no name is given. Raises ConfigError (UNKNOWN_TABLE)."""
    names = {t.name.lower() for t in export.tables}
    wanted = [same(w) for w in wanted]
    missing = [w for w in wanted if w.lower() not in names]
    if missing:
        known = ", ".join(t.name for t in export.tables)
        raise ConfigError(f"{store.uri} has no table {missing[0]!r}", code="UNKNOWN_TABLE", remedy=f"its tables: {known}")
    return tuple(t for t in export.tables if not wanted or t.name.lower() in {w.lower() for w in wanted})


def definition(store: Store, table: ExportTable) -> TableDef | None:
    """Return the definition in the export's CREATE TABLE; None if there is none. Raises ContractError with the file."""
    if table.schema is None:
        return None
    where = store.uri_of(table.schema)
    try:
        text = _text(store.read(table.schema), table.schema).decode()
        made = [c for s in statements(text) for c in parse(s, table.database) if isinstance(c, CreateTable)]
    except ContractError as e:
        raise ContractError(f"{where}: {e.message}", remedy=e.remedy) from e
    except (UnicodeDecodeError, OSError) as e:
        raise ContractError(f"{where}: not readable as UTF-8 text: {e}") from e
    if len(made) != 1 or made[0].definition is None or made[0].table.lower() != table.table.lower():
        raise ContractError(f"{where}: expected one CREATE TABLE of {table.name} with its columns")
    return made[0].definition


def _text(content: bytes, key: str) -> bytes:
    if key.endswith((".gz", ".gzip")):
        return gzip.decompress(content)
    if key.endswith((".zst", ".zstd")):
        with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
            out: bytes = stream.read()
            return out
    return content


def _name(match: re.Match[str]) -> ExportName:
    return unquote(match["database"]), unquote(match["table"])


def _table(name: ExportName, schema: str | None, files: Iterable[ExportFile]) -> ExportTable:
    found = sorted(files, key=lambda f: f.key)
    kinds = sorted({f.kind for f in found})
    if len(kinds) > 1:
        raise ConfigError(f"{'.'.join(name)}: rows in files of several kinds ({', '.join(kinds)})", code="NOT_AN_EXPORT")
    return ExportTable(database=name[0], table=name[1], schema=schema, files=tuple(found))


def _refuse_others(store: Store, objects: Iterator[ObjectInfo]) -> None:
    """Raise ConfigError for an unknown file, because it may have rows."""
    found = next((o.key for o in objects if not (_OTHER.fullmatch(o.key) or _SCHEMA.fullmatch(o.key) or _VIEW.fullmatch(o.key))), None)
    if found is not None:
        raise ConfigError(
            f"{store.uri_of(found)}: not a file of an export that this version reads",
            code="UNKNOWN_FILE",
            remedy="remove it if it holds no rows; files may be compressed with gzip or zstd, not with snappy",
        )
