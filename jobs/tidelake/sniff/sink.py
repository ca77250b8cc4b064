"""Folder of TiCDC's storage sink, which the changefeed writes without Kafka (docs/reference/archives.md 6)."""

from __future__ import annotations

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives.readers.layout import SourceObject, message_batch
from tidelake.archives.storage_sink import DataFile, list_sink, read_lines
from tidelake.config.source import DateSeparator
from tidelake.config.table_name import written
from tidelake.errors import TidelakeError
from tidelake.io.storage import ObjectInfo, Store, open_store
from tidelake.protocols import Context
from tidelake.sniff.roots import root_of, uri_of
from tidelake.sniff.verdict import SniffVerdict, judge

_DATA = re.compile(
    r"(?:(?P<base>.+)/)?(?P<database>[^/]+)/(?P<table>[^/]+)/(?P<version>\d{9,20})(?:/\d+)?(?:/(?P<date>\d{4}(?:-\d{2}){0,2}))?"
    r"/CDC(?:_[^/_]+_)?\d{6,20}\.(?P<form>json|csv)"
)
_BESIDE = re.compile(r"(?:.+/)?(?:meta/CDC(?:_[^/_]+)?\.index|meta/schema_\d+_\d+\.json|metadata)")
_SEPARATORS: dict[int, DateSeparator] = {0: "none", 4: "year", 7: "month", 10: "day"}  # by length of the date
_READ, _LINES, _LARGEST = 20, 200, 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFolder:
    """Folder of a storage sink.

    Attributes:
        form: json or csv.
        tables: Tables as `db.table`.
        checkpoint_ts: TSO; None without metadata.
        problems: Why files may be missing; None if the listing is incomplete.
    """

    base: str
    form: str
    tables: tuple[str, ...]
    files: int
    schemas: int
    checkpoint_ts: int | None
    problems: tuple[str, ...] | None
    verdict: SniffVerdict
    examples: tuple[str, ...]


def is_sink_file(key: str) -> bool:
    """Whether a key is one of the storage sink."""
    return bool(_DATA.fullmatch(key) or _BESIDE.fullmatch(key))


def sinks_of(store: Store, files: Sequence[ObjectInfo], *, whole: bool, context: Context) -> tuple[SinkFolder, ...]:
    """Return the sinks that these files belong to; files without data are ignored. Raises StorageError."""
    root = root_of(store)
    by_base: dict[tuple[str, str], list[tuple[ObjectInfo, re.Match[str]]]] = defaultdict(list)
    for info in files:
        if found := _DATA.fullmatch(root + info.key):
            by_base[found["base"] or "", found["form"]].append((info, found))
    return tuple(_sink(store, base, form, data, files, whole, context) for (base, form), data in sorted(by_base.items()))


def _sink(
    store: Store,
    base: str,
    form: str,
    data: Sequence[tuple[ObjectInfo, re.Match[str]]],
    files: Sequence[ObjectInfo],
    whole: bool,
    context: Context,
) -> SinkFolder:
    root, above = root_of(store), f"{base}/" if base else ""
    inside = [info for info in files if (root + info.key).startswith(above)]
    problems: tuple[str, ...] | None = None
    checkpoint = None
    if above.startswith(root):
        checkpoint = _checkpoint(store, above.removeprefix(root) + "metadata")
        if whole:
            problems = list_sink(open_store(uri_of(store, base)), _SEPARATORS[len(data[0][1]["date"] or "")]).problems
    batches = list(_messages(store, [info for info, _ in data][:_READ], form))
    return SinkFolder(
        base=uri_of(store, base),
        form=form,
        tables=tuple(sorted({written(found["database"], found["table"]) for _, found in data})),
        files=len(data),
        schemas=sum("/meta/schema_" in info.key for info in inside),
        checkpoint_ts=checkpoint,
        problems=problems,
        verdict=judge(batches, context),
        examples=tuple(info.key for info, _ in data[:3]),
    )


def _checkpoint(store: Store, key: str) -> int | None:
    try:
        text = store.read_if_present(key)
        return None if text is None else int(json.loads(text)["checkpoint-ts"])
    except (ValueError, KeyError, TypeError):
        return None


def _messages(store: Store, files: Sequence[ObjectInfo], form: str) -> Iterator[pa.RecordBatch]:
    """Values of the files: each line of JSON; for CSV the first lines of the file as one value, to find the separators."""
    with tempfile.TemporaryDirectory(prefix="tidelake-sniff-") as folder:
        for info in files:
            if info.size > _LARGEST:
                continue
            path = Path(folder) / "file"
            try:
                store.download(info.key, path)
                if form == "csv":
                    rows = pa.array([path.read_bytes()], pa.binary())
                else:
                    rows = next(
                        iter(read_lines(path, DataFile("", "", 0, 0, "", "", 0, info.key, info.size, ""))), pa.array([], pa.binary())
                    )
            except TidelakeError:
                continue
            rows = rows.filter(pc.greater(pc.binary_length(rows), 0)).slice(0, _LINES)
            yield message_batch(SourceObject(info.key, 0, info.key, 0, 0, ""), pa.array(range(len(rows)), pa.int64()), rows)
