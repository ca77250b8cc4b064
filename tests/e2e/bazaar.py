"""A small bazaar on a local folder: archives, feeds, truth, and the command line over it."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.checkout import CHECKOUT
from tidelake import cli
from tidelake.config.feed import load_feed
from tidelake.demo.generate import Workload, generate
from tidelake.demo.play import FEEDS, compare
from tidelake.demo.verify import differences
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.tso import format_hour

FEED = "bazaar-open"


@dataclass(frozen=True)
class Bazaar:
    """A workload in a folder of its own; `archive`, `lake` and `schemas` lie below."""

    folder: Path
    workload: Workload

    @property
    def variables(self) -> dict[str, str]:
        """What the feeds name."""
        return {
            "TIDELAKE_ARCHIVE": str(self.folder / "archive"),
            "TIDELAKE_LAKE": str(self.folder / "lake"),
            "TIDELAKE_CATALOG": f"jdbc:sqlite:{self.folder / 'catalog.db'}",
            "TIDELAKE_SCHEMAS": str(self.folder / "schemas"),
        }

    @property
    def hours(self) -> list[str]:
        """All hours; the last holds the tail."""
        return [format_hour(h) for h in self.workload.hours]

    def run(self, *arguments: str) -> int:
        """A command line in this process."""
        return cli.run(list(arguments))

    def run_hours(self, count: int | None = None, feed: str = FEED) -> int:
        """`tidelake run` over the first hours."""
        return self.run("run", "--feed", feed, "--hour", self.hours[0], "--hours", str(count or len(self.hours)))

    def differences(self, hour: str, feed: str = FEED) -> dict[str, list[str]]:
        """What differs from the truth at an hour's cut, per table."""
        moment = self.workload.hours[self.hours.index(hour)]
        with Lake.of(load_feed(self.folder / "schemas", feed, self.variables)) as lake:
            return compare(lake, self.workload, FEEDS[feed], moment)

    def sources(self, hour: str, feed: str = FEED) -> list[Path]:
        """The hour's archive objects, sorted."""
        date, _, number = hour.partition("T")
        folder = self.folder / "archive" / FEEDS[feed]
        return sorted(p for p in folder.rglob("*") if p.is_file() and f"dt={date}/hr={number}/" in p.as_posix())


def make(folder: Path, protocols: list[str], hours: int = 2, rows: int = 200, **how: Any) -> Bazaar:
    """Generate the archives and copy the feeds."""
    workload = generate(open_store(str(folder / "archive")), protocols, hours=hours, rows_per_hour=rows, ddl_span_hours=float(hours), **how)
    schemas_for(workload, folder)
    return Bazaar(folder, workload)


def schemas_for(workload: Workload, folder: Path) -> Path:
    """A copy of the demo feeds whose recorded DDL is the workload's."""
    made = Path(shutil.copytree(CHECKOUT / "schemas", folder / "schemas"))
    if "avro" in workload.deliveries:
        statements = ({"commit_ts": d.commit_ts, "database": "bazaar", "query": d.query} for d in workload.deliveries["avro"].ddl)
        (made / "bazaar-avro" / "ddl.jsonl").write_text("".join(json.dumps(s) + "\n" for s in statements))
    return made


def check(lake: Lake, workload: Workload, protocol: str, hour: datetime) -> None:
    """The tables of the hour's cut are the truth, all of them."""
    found = compare(lake, workload, protocol, hour)
    assert len(found) >= 6
    assert {table: said for table, said in found.items() if said} == {}


def copy(bazaar: Bazaar, folder: Path) -> Bazaar:
    """The same workload in another folder, to be spoilt."""
    shutil.copytree(bazaar.folder, folder)
    return Bazaar(folder, bazaar.workload)


def edit_jsonl(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the records of a .jsonl.gz object in place."""
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    records = [json.loads(line) for line in lines if line]
    change(records)
    path.write_bytes(gzip.compress("\n".join(json.dumps(r) for r in records).encode(), mtime=0))


__all__ = ["FEED", "Bazaar", "check", "copy", "differences", "edit_jsonl", "make"]
