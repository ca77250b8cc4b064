"""`python -m tidelake.query.lineage SCHEMAS FEED STAGE HOUR [redo]`: print what a stage read and wrote (docs/openlineage.md).

The output is {"inputs": [dataset], "outputs": [dataset]}; a dataset has the members of Dataset. It reads the documents of the lake and
the metadata of its tables. A stage that did nothing, because its hour was published before, has neither. A redo from an
hour on may publish up to a later hour.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tidelake.config.feed import load_feed
from tidelake.config.lake_paths import events_table, run_key
from tidelake.errors import TidelakeError
from tidelake.io.documents import find_document, members
from tidelake.io.printable import printable_lines
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Staged
from tidelake.lake.cut_documents import next_seq
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import newest
from tidelake.query.cut_changes import changed_tables

Facts = dict[str, list["Dataset"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset of OpenLineage.

    Attributes:
        namespace, name: By OpenLineage's naming: of files, bucket and path; of a topic, broker and topic; of an Iceberg table, bucket and
            path of its location.
        table: (catalog, `namespace.table`), of an Iceberg table.
        version: Its snapshot.
        columns: Name, type and description of each.
        rows, size, files: What the stage wrote.
        checks: Checks of validate: members of validate.quality.verdict.Check.
        source: The dataset from which each column of the same name is taken.
    """

    namespace: str
    name: str
    table: tuple[str, str] | None = None
    version: str | None = None
    columns: tuple[tuple[str, str, str], ...] = ()
    rows: int | None = None
    size: int | None = None
    files: int | None = None
    checks: tuple[Mapping[str, Any], ...] = ()
    source: Dataset | None = None


def main(arguments: Sequence[str]) -> int:
    """Print the facts and return an exit code of the command line. Errors go to stderr."""
    schemas, feed, stage, hour, *redo = arguments
    try:
        with Lake.of(load_feed(Path(schemas), feed)) as lake:
            found = facts(lake, stage, hour, redo=bool(redo))
    except TidelakeError as e:
        sys.stderr.write(f"error: {printable_lines(str(e))}\n")
        return e.exit_code
    sys.stdout.write(json.dumps({side: [asdict(d) for d in datasets] for side, datasets in found.items()}))
    return 0


def facts(lake: Lake, stage: str, hour: str, *, redo: bool) -> Facts:
    """Return what a stage read and wrote for an hour, as `inputs` and `outputs`. redo: of this hour and those after it."""
    return _STAGES[stage](_Run(lake, hour, redo))


class _Run(NamedTuple):
    """A stage's run for an hour. redo: it began with the hour and ended with it or a later one."""

    lake: Lake
    hour: str
    redo: bool

    def ends_with(self, hour: str) -> bool:
        return hour >= self.hour if self.redo else hour == self.hour


def _land(run: _Run) -> Facts:
    """From the archive, or live topics, to the landed objects of the hour."""
    lake = run.lake
    manifest = newest(lake.store, lake.feed.name, run.hour)
    if manifest is None:
        return _nothing()
    outputs = [
        replace(d, rows=sum(o.count for o in own), size=sum(o.size for o in own), files=len(own))
        for topic, d in _landed(lake).items()
        if (own := [o for o in manifest.objects if o.topic == topic])
    ]
    return {"inputs": _sources(lake), "outputs": outputs}


def _decode(run: _Run) -> Facts:
    """From the landed objects to the events table."""
    return {"inputs": list(_landed(run.lake).values()), "outputs": _events(run.lake)}


def _order(run: _Run) -> Facts:
    """From the events table to the staged changelogs."""
    staged = _staged(run)
    if staged is None:
        return _nothing()
    return {"inputs": _events(run.lake), "outputs": [d for _, d in _changelogs(run.lake, staged, wrote=True)]}


def _validate(run: _Run) -> Facts:
    """Checks of the staged changelogs. Those that concern the whole window are of the events table."""
    lake, staged = run.lake, _staged(run)
    key = run_key(lake.feed.name, staged.cut.seq, "validate") if staged else ""
    data = lake.store.read_if_present(key) if key else None
    if staged is None or data is None:
        return _nothing()
    checks: list[dict[str, Any]] = members(lake.store, key, data)["checks"]

    def of(table: str) -> tuple[dict[str, Any], ...]:
        return tuple(c for c in checks if c["table"] == table)

    changelogs = [replace(d, checks=of(name)) for name, d in _changelogs(lake, staged)]
    return {"inputs": [*(replace(d, checks=of("")) for d in _events(lake)), *changelogs], "outputs": []}


def _compact(run: _Run) -> Facts:
    """From the changelogs to the snapshot tables that the newest cut changed."""
    lake = run.lake
    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    if cut is None or not run.ends_with(cut.hour):
        return _nothing()
    found = _nothing()
    changed = changed_tables(lake, cut)
    for i in cut.catalog.alive():
        if i.name not in changed:
            continue
        at, log = cut.snapshots[i.id], cut.changelogs.get(i.id)
        source = _table(lake, log.identifier, log.snapshot_id) if log else None
        found["inputs"] += [source] if source else []
        found["outputs"].append(replace(_table(lake, at.identifier, at.snapshot_id, wrote=True), source=source))
    return found


_STAGES: Mapping[str, Callable[[_Run], Facts]] = {
    "land": _land,
    "decode": _decode,
    "order": _order,
    "validate": _validate,
    "compact": _compact,
}


def _nothing() -> Facts:
    return {"inputs": [], "outputs": []}


def _sources(lake: Lake) -> list[Dataset]:
    source = lake.feed.source
    if source.kind == "kafka":
        broker = source.uri.partition(",")[0].strip()
        return [Dataset(namespace=f"kafka://{broker}", name=topic) for topic in lake.feed.topics]
    namespace, name = _place(str(source.uri))
    return [Dataset(namespace=namespace, name=name)]


def _landed(lake: Lake) -> dict[str, Dataset]:
    """The landed objects of each topic."""
    found = {}
    for topic in lake.feed.topics:
        namespace, name = _place(lake.store.uri_of(f"landed/{lake.feed.name}/{topic}"))
        found[topic] = Dataset(namespace=namespace, name=name)
    return found


def _events(lake: Lake) -> list[Dataset]:
    table = lake.catalog.find_own(events_table(lake.feed.name), lake.feed.name)
    return [] if table is None else [_of(lake, table, table.main, wrote=False)]


def _staged(run: _Run) -> Staged | None:
    """Return what order staged up to the hour and is not published yet."""
    lake = run.lake
    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    seq = next_seq(lake.store, lake.feed.name, cut.seq if cut else 0)
    staged = find_document(lake.store, run_key(lake.feed.name, seq, "order"), Staged)
    return staged if staged is not None and run.ends_with(staged.cut.hour) else None


def _changelogs(lake: Lake, staged: Staged, *, wrote: bool = False) -> Iterator[tuple[str, Dataset]]:
    """Yield each changed table's name and its staged changelog."""
    for incarnation, advance in staged.changelogs.items():
        name = staged.cut.catalog.incarnations[incarnation].name
        yield name, _table(lake, advance.identifier, advance.to, wrote=wrote)


def _table(lake: Lake, identifier: str, snapshot_id: int, *, wrote: bool = False) -> Dataset:
    return _of(lake, lake.catalog.load(identifier), snapshot_id, wrote=wrote)


def _of(lake: Lake, table: LakeTable, snapshot_id: int, *, wrote: bool) -> Dataset:
    """Return an Iceberg table at a snapshot. wrote: the stage wrote the snapshot."""
    namespace, name = _place(table.table.location())
    place = lake.settings.place
    said = table.summary(snapshot_id) if wrote else {}
    rows, size, files = (int(said[k]) if k in said else None for k in ("added-records", "added-files-size", "added-data-files"))
    return Dataset(
        namespace=namespace,
        name=name,
        table=(place if place.startswith("http") else lake.settings.warehouse, table.identifier),
        version=str(snapshot_id),
        columns=tuple((c.name, c.type, c.doc or "") for c in table.columns(snapshot_id)),
        rows=rows,
        size=size,
        files=files,
    )


def _place(uri: str) -> tuple[str, str]:
    """Return (namespace, name) of a URI or a local path."""
    scheme, found, rest = uri.rstrip("/").partition("://")
    if not found or scheme == "file":
        return "file", rest if found else uri.rstrip("/")
    bucket, _, path = rest.partition("/")
    return f"{scheme}://{bucket}", path or "/"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
