"""Hours of unusual shape: tables with many columns, with many row schemas, and windows with many statements, each in two sizes.

Time must follow the size: exit code 1 if four times as much takes over eight times as long. Old images of Canal and Maxwell have only the
columns that changed, so each set of changed columns is a row schema.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from tests.benchmarks.figures import Figure, missed
from tests.benchmarks.line import STAGES
from tests.benchmarks.scale_archive import LAST_MS, hour_at, ms_of, write
from tidelake.cli import ALLOCATIONS
from tidelake.config.feed import load_feed
from tidelake.config.policy import Policy
from tidelake.history.incarnations import Catalog
from tidelake.history.window import Statement, compile_window
from tidelake.lake.opened import Lake
from tidelake.run import run_hour
from tidelake.tso import from_ms

TIMES = 4  # the larger size in smaller ones
MUST = 2 * TIMES  # quadratic time takes 16
CHANGED = 3  # columns of an old image
_FEED = """protocol = "canal-json"
topics = ["shop"]
partitions = 1
[source]
uri = "{folder}/archive"
layout = "canonical"
closed_by = "quiet"
quiet_minutes = 0
[options]
enable_tidb_extension = true
[watermark]
from = "messages"
[lake]
uri = "{folder}/lake"
catalog = "jdbc:sqlite:{folder}/lake.db"
"""


def rows_seconds(columns: int, rows: int) -> dict[str, float]:
    """Seconds of each stage for an hour that updates so many rows of a table with so many columns, three of them in the old image."""
    names = [f"c{n}" for n in range(columns)]
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as place:
        folder, schemas = Path(place), Path(place) / "schemas" / "shape"
        schemas.mkdir(parents=True)
        (schemas / "feed.toml").write_text(_FEED.format(folder=folder))
        (schemas / "tables.sql").write_text(f"CREATE TABLE shop.t (id BIGINT PRIMARY KEY, {', '.join(f'{n} INT' for n in names)});\n")
        for hour in (0, 1):
            write(folder / "archive", hour, 0, iter([_messages(names, rows, hour)]))
        with Lake.of(load_feed(folder / "schemas", "shape")) as lake:
            run_hour(lake, hour_at(0))
            return {name: _seconds(partial(stage, lake, hour_at(1))) for name, stage in STAGES.items()}


def statements_seconds(tables: int) -> dict[str, float]:
    """Seconds in which a window's statements create so many tables, add a column to each, rename and drop it."""
    queries = ("CREATE TABLE t{} (id BIGINT PRIMARY KEY, a INT)", "ALTER TABLE t{} ADD b INT", "RENAME TABLE t{} TO u{}", "DROP TABLE u{}")
    texts = (query.replace("{}", str(n)) for query in queries for n in range(tables))
    window = [Statement(commit_ts=ts, database="shop", query=text) for ts, text in enumerate(texts, 1)]
    return {"order": _seconds(lambda: compile_window(Catalog(), window, [], Policy()))}


def _messages(names: list[str], rows: int, hour: int) -> tuple[pa.Array, pa.Array]:
    values, ts = list(_images(names, rows, hour)), from_ms(ms_of(hour))
    types = {"mysqlType": {"id": "bigint"} | dict.fromkeys(names, "int"), "sqlType": {"id": -5} | dict.fromkeys(names, 4)}
    head = {"id": 0, "database": "shop", "table": "t", "pkNames": ["id"], "isDdl": False, "es": ms_of(hour), "ts": ms_of(hour), "sql": ""}
    kind = {"type": "UPDATE" if hour else "INSERT"}
    texts = [
        json.dumps(head | kind | types | v | {"_tidb": {"commitTs": ts + (n << 8)}}, separators=(",", ":")) for n, v in enumerate(values, 1)
    ]
    mark = {"database": "", "table": "", "type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": from_ms(ms_of(hour) + LAST_MS)}}
    texts.append(json.dumps(head | mark, separators=(",", ":")))
    return pa.nulls(len(texts), pa.binary()), pa.array([t.encode() for t in texts], pa.binary())


def _images(names: list[str], rows: int, hour: int) -> Iterator[dict[str, Any]]:
    drawn = random.Random(hour)
    for row in range(rows):
        old = {name: str((7 * row + n) % 1000) for n, name in enumerate(names)}
        changed = drawn.sample(names, CHANGED) if hour else []
        cells = {"id": str(row)} | old | dict.fromkeys(changed, "1001")
        yield {"data": [cells], "old": [{name: old[name] for name in changed}] if hour else None}


def _seconds(work: Any) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


def main() -> int:
    """0 if every figure keeps to its must."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.shapes", description=__doc__)
    parser.add_argument("--columns", type=int, default=1600, help="of the wide table (default %(default)s)")
    parser.add_argument("--schemas", type=int, default=8000, help="row schemas of a table, about (default %(default)s)")
    parser.add_argument("--statements", type=int, default=3000, help="tables, with four statements each (default %(default)s)")
    flags = parser.parse_args()
    gc.set_threshold(ALLOCATIONS)  # as the commands do
    console, figures = Console(width=130), dict[str, Figure]()
    grid = Table("", "of", *(f"{stage}, s" for stage in STAGES), box=None, pad_edge=False)
    rows_seconds(60, 10)  # compiles, imports
    for name, size, measured in (
        ("columns", flags.columns, lambda n: rows_seconds(n, 100)),
        ("row schemas", flags.schemas, lambda n: rows_seconds(60, n)),
        ("tables with statements", flags.statements, statements_seconds),
    ):
        small, large = measured(size // TIMES), measured(size)
        for count, found in ((size // TIMES, small), (size, large)):
            grid.add_row(name, f"{count:,}", *(f"{found[s]:.2f}" if s in found else "" for s in STAGES))
        figures[f"{TIMES} x {name}"] = Figure(value=sum(large.values()) / sum(small.values()), unit="x the time", must=MUST, ratio=True)
    console.print(grid)
    for name, f in figures.items():
        console.print(f"{name}: {f.value:.1f} {f.unit} (must: at most {f.must:g})")
    return 1 if missed(figures) else 0


if __name__ == "__main__":
    sys.exit(main())
