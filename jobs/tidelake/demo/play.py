"""The demo: an embedded S3 server, four feeds of one marketplace, three hours; every table is compared with the truth."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from tidelake.config.feed import feed_names, load_feed
from tidelake.config.lake_paths import report_key
from tidelake.demo.embedded_s3 import EmbeddedS3
from tidelake.demo.generate import Workload, generate
from tidelake.demo.verify import differences
from tidelake.errors import ConfigError
from tidelake.io import storage
from tidelake.io.duckdb_door import write_jsonl
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.query.asof import table_asof
from tidelake.query.render import expressions, local
from tidelake.run import run_hour
from tidelake.tso import format_hour

_MARK = ".tidelake-demo"  # file in folders that a demo created
FEEDS = {"bazaar-open": "open", "bazaar-craft": "craft", "bazaar-avro": "avro", "bazaar-canal": "canal-json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedResult:
    """Result for one feed. equal: number of tables that equal the truth at the last cut."""

    feed: str
    protocol: str
    messages: int
    events: int
    cuts: int
    tables: int
    rows: int
    equal: int
    differences: list[str]
    seconds: float
    report: Path


def environment(folder: Path) -> dict[str, str]:
    """Return the variables that the demo feeds use."""
    return {
        "TIDELAKE_ARCHIVE": "s3://lake/archive",
        "TIDELAKE_LAKE": "s3://lake/lake",
        "TIDELAKE_CATALOG": f"jdbc:sqlite:{(folder / 'catalog.db').resolve()}",
    }


def demo_schemas(asked: Path) -> Path:
    """Return the folder with the demo feeds: the requested one, else the copy inside the package. Raises ConfigError."""
    inside = Path(__file__).parent / "schemas"
    for folder in (asked, inside):
        if set(FEEDS) <= set(feed_names(folder)):
            return folder
    raise ConfigError(f"the demo feeds are not in {asked}", remedy="run it in a checkout of Tidelake, or give --schemas DIR")


def refuse_foreign_folder(folder: Path) -> None:
    """Raise ConfigError for a folder that is not empty and was not created by a demo."""
    ours = (folder / _MARK).exists() or folder.absolute().parent.name == ".tidelake"
    if not ours and (folder.is_file() or (folder.is_dir() and any(folder.iterdir()))):
        raise ConfigError(f"--dir: {folder} is not empty and was not made by a demo; the demo would remove it", remedy="give a new folder")


@contextmanager
def demo_lake(folder: Path, *, fresh: bool) -> Iterator[dict[str, str]]:
    """Start the embedded S3 server, set the demo's variables in the environment, and yield all of them. SIGTERM ends it as Ctrl-C does.

    fresh: remove what an earlier demo left in the folder. Raises ConfigError for a folder with something else in it.
    """
    if fresh:
        refuse_foreign_folder(folder)
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()
    with _sigterm_interrupts(), EmbeddedS3(folder / "s3") as server:
        variables = server.environment | environment(folder)
        os.environ.update(variables)
        storage.reset()
        yield variables


def interrupt(*_: object) -> NoReturn:
    """Handle a signal as Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def write_variables(folder: Path, variables: Mapping[str, str]) -> Path:
    """Write env.sh, which exports the variables to a shell; only its owner may read it. Returns its path."""
    script = folder / "env.sh"
    script.touch(mode=0o600)
    script.write_text("".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()))
    return script


def make_archives(hours: int, rows_per_hour: int) -> Workload:
    """Generate the archives of the four protocols, with the true contents."""
    return generate(open_store(os.environ["TIDELAKE_ARCHIVE"]), list(FEEDS.values()), hours=hours, rows_per_hour=rows_per_hour)


def play(folder: Path, schemas: Path, feed: str, workload: Workload) -> FeedResult:
    """Run all hours of a feed and compare its tables with the truth."""
    with Lake.of(load_feed(schemas, feed)) as lake:
        runs = [run_hour(lake, hour) for hour in workload.hours]
        cuts = [r.compacted.cut for r in runs if r.compacted and r.compacted.cut]
        found = compare(lake, workload, FEEDS[feed], workload.hours[-1])
        reports = [_copy_report(lake, folder, format_hour(hour)) for hour in workload.hours]
    last = cuts[-1]
    return FeedResult(
        feed=feed,
        protocol=FEEDS[feed],
        messages=sum(r.landed.messages for r in runs),
        events=sum(r.decoded.record.counts.get("row", 0) for r in runs),
        cuts=len(cuts),
        tables=len(last.snapshots),
        rows=sum(t.rows for t in last.snapshots.values()),
        equal=sum(not d for d in found.values()),
        differences=[f"{table}: {d}" for table, several in found.items() for d in several],
        seconds=sum(sum(r.seconds.values()) for r in runs),
        report=reports[-2] if len(reports) > 1 else reports[-1],
    )


def compare(lake: Lake, workload: Workload, protocol: str, hour: datetime) -> dict[str, list[str]]:
    """Return the differences from the truth at the hour's cut, by table."""
    delivery = workload.deliveries[protocol]
    ts, out = delivery.resolved(hour), dict[str, list[str]]()
    unsettled = {} if delivery.marks else delivery.unsettled(hour)
    for name, truth in workload.truth(protocol, hour).items():
        with table_asof(lake, name, ts) as found, tempfile.NamedTemporaryFile() as file:
            write_jsonl(local(found.rows, lake.feed.time_zone), expressions(found.columns), file.name)
            rows = [json.loads(line) for line in Path(file.name).read_text(encoding="utf-8").split("\n") if line]
        out[name] = differences(rows, truth, unsettled=[tuple(k) for k in unsettled.get(name, [])])
    return out


def _copy_report(lake: Lake, folder: Path, hour: str) -> Path:
    path = folder / "reports" / f"{lake.feed.name}-{hour}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lake.store.read(report_key(lake.feed.name, hour)))
    return path
