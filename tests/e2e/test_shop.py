"""The shop workload, five archives in four protocols made by TiCDC's own encoders: every table equals the truth at every hour, and
between them what tests/workloads/shop.py makes of the wire, which is the truth wherever the truth is told.

At random TSOs, drawn from a seed that is printed, and at those that are easily wrong: at, just before and just after every cut, every
statement and some of the table's own commits. Not Avro's: its deletes have no commit ts, between cuts they are known up to an interval.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.data_files import data_path
from tests.workloads import shop as workload
from tidelake.config.feed import load_feed
from tidelake.demo.verify import differences
from tidelake.errors import ConfigError
from tidelake.io.duckdb_door import write_jsonl
from tidelake.lake.opened import Lake
from tidelake.lake.tables import kept, shown_type
from tidelake.query.asof import frame_asof, life_at, table_asof, tables_at
from tidelake.query.render import Rendered, expressions, local
from tidelake.run import HourRun, run_hour
from tidelake.tso import parse_moment

FEEDS = {
    "open": 'topics = ["shop.open"]\npartitions = 3\n[source]\nlayout = "aiven-jsonl"',
    "craft": 'topics = ["shop.craft"]\npartitions = 3\n[source]\nlayout = "aiven-parquet"',
    "canal-json": 'topics = ["shop.canal"]\npartitions = 3\n[options]\nenable_tidb_extension = true\n[source]\nlayout = "confluent-json"',
    "canal-json-cc": 'topics = ["shop.canal-cc"]\npartitions = 3\n[options]\nenable_tidb_extension = true\ncontent_compatible = true\n'
    '[source]\nlayout = "aiven-csv"',
    "avro": 'topics = ["/shop_shopdb_.*/"]\npartitions = 2\n[options]\nenable_tidb_extension = true\n[source]\nlayout = "aiven-avro"',
}
SAMPLE = ("open",)
TABLES = (("customers", "clients"), ("orders",), ("order_items",), ("inventory",), ("coupons",), ("audit_log",))  # by their names
SEED = int(os.environ.get("TIDELAKE_ASOF_SEED", "20260105"))
MANY = int(os.environ.get("TIDELAKE_ASOF_MOMENTS", "50"))  # random TSOs of a table


def feed_folder(folder: Path, name: str, truth: dict[str, Any]) -> Path:
    """schemas/shop with the feed of one archive; its zero dates stay as text."""
    home = data_path("workloads/shop")
    made = folder / "schemas" / "shop"
    made.mkdir(parents=True)
    protocol = name.removesuffix("-cc")
    text = f'protocol = "{protocol}"\n{FEEDS[name]}\nuri = "{home}/archives/{name}"\n[lake]\nuri = "{folder}/lake"\n'
    text += '[columns."shopdb.customers".last_login]\nzero_date = "string"\n[columns."shopdb.coupons".expires]\nzero_date = "string"\n'
    if name == "avro":
        text += f'[watermark]\nfrom = "checkpoints"\nuri = "{home}/checkpoints.json"\n[avro]\nschemas = "{home}/avro_schemas.json"\n'
        statements = truth["hours"][-1]["ddl"]
        lines = (json.dumps({"commit_ts": d["commit_ts"], "database": "shopdb", "query": d["query"]}) for d in statements)
        (made / "ddl.jsonl").write_text("\n".join(lines))
    (made / "feed.toml").write_text(text)
    (made / "tables.sql").write_text((home / "tables.sql").read_text())
    return folder / "schemas"


@dataclass(frozen=True)
class Shop:
    """The lake of one archive. done: its hours that ran, in order."""

    name: str
    lake: Lake
    truth: dict[str, Any]
    done: dict[str, HourRun] = field(default_factory=dict)

    def run(self, hour: str) -> HourRun:
        """All stages of an hour, once."""
        if hour not in self.done:
            self.done[hour] = run_hour(self.lake, parse_moment(hour))
        return self.done[hour]


@pytest.fixture(scope="module")
def shop(request: pytest.FixtureRequest, spark_app: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A lake of the archive that the parameter names, before its first hour."""
    truth = workload.truth(request.param)
    schemas = feed_folder(tmp_path_factory.mktemp("shop"), request.param, truth)
    with Lake.of(load_feed(schemas, "shop")) as lake:
        yield Shop(request.param, lake, truth)


def as_printed(lake: Lake, rows: pa.RecordBatchReader, columns: Sequence[Rendered]) -> list[dict[str, Any]]:
    """What `asof --format jsonl` makes of these rows."""
    with tempfile.NamedTemporaryFile() as file:
        write_jsonl(local(rows, lake.feed.time_zone), expressions(columns), file.name)
        return [json.loads(line) for line in Path(file.name).read_text(encoding="utf-8").split("\n") if line]


def printed(lake: Lake, table: str, ts: int) -> list[dict[str, Any]]:
    """What `asof --format jsonl` prints."""
    with table_asof(lake, table, ts) as found:
        return as_printed(lake, found.rows, found.columns)


def printed_at(lake: Lake, asked: dict[int, str]) -> dict[int, list[dict[str, Any]]]:
    """The same of a table that bears these names at these TSOs; one Spark job for all at which it has the same columns."""
    by_columns: dict[tuple[Rendered, ...], dict[int, Any]] = defaultdict(dict)
    for ts, name in asked.items():
        _, life = life_at(lake, name, ts)
        columns = tuple(Rendered(name=c.name, type=shown_type(lake.feed, life, c)) for c in kept(lake.feed, life, life.columns_at(ts)))
        by_columns[columns][ts] = frame_asof(lake, name, ts, lake.spark).selectExpr(f"{ts}L AS _ts", "*")
    out: dict[int, list[dict[str, Any]]] = {ts: [] for ts in asked}
    for columns, (first, *others) in ((columns, frames.values()) for columns, frames in by_columns.items()):
        for other in others:
            first = first.unionAll(other)
        for row in as_printed(lake, first.toArrow().to_reader(), [Rendered(name="_ts", type=None), *columns]):
            out[row.pop("_ts")].append(row)
    return out


def archives(*left_out: str) -> list[object]:
    return [pytest.param(name, marks=[] if name in SAMPLE else pytest.mark.long) for name in FEEDS if name not in left_out]


@pytest.mark.parametrize("shop", archives(), indirect=True)
def test_every_table_of_the_shop_equals_the_truth_at_every_hour(shop: Shop) -> None:
    compared = 0
    for hour in shop.truth["hours"]:
        done = shop.run(hour["hour"])
        assert done.compacted is not None
        assert done.compacted.cut is not None
        assert done.compacted.cut.resolved_ts == hour["resolved_ts"]
        ts, names = tables_at(shop.lake, hour["resolved_ts"])
        assert names == sorted(hour["tables"]) if shop.name != "avro" else set(hour["tables"]) <= set(names)
        for table, wanted in hour["tables"].items():
            ignore = shop.truth.get("not_comparable", {}).get(table, [])
            unsettled = hour.get("unsettled_keys", {}).get("shop_" + table.replace(".", "_"), [])
            got = printed(shop.lake, table, ts)
            assert differences(got, wanted, ignore, [tuple(k) for k in unsettled]) == [], f"{table} at {hour['hour']}"
            compared += len(got)
    assert compared > 15_000


@pytest.mark.parametrize("shop", ["open"], indirect=True)
def test_every_table_of_the_shop_equals_the_wire_at_some_tsos(shop: Shop) -> None:
    asked, alive = compare_at(shop, few=True)
    assert (asked, asked - alive) in ((30, 0), (30, 1)), "coupons are not there at every cut"


@pytest.mark.long
@pytest.mark.parametrize("shop", archives("avro"), indirect=True)
def test_every_table_of_the_shop_equals_the_wire_at_many_tsos(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    asked, alive = compare_at(shop, few=False)
    with capsys.disabled():
        print(f"\nasof, {shop.name}: {asked} TSOs, a table at {alive}, again with TIDELAKE_ASOF_SEED={SEED}")  # noqa: T201 - the totals
    assert alive > len(TABLES) * MANY


def compare_at(shop: Shop, *, few: bool) -> tuple[int, int]:
    """Compare every table at its moments. (how many were asked for, how many of them had the table)."""
    cuts = [hour["resolved_ts"] for hour in shop.truth["hours"]]
    for hour in shop.truth["hours"]:
        shop.run(hour["hour"])
    draw, asked, alive = random.Random(SEED), 0, 0
    for names in TABLES:
        moments = few_moments(names, cuts, draw) if few else many_moments(names, cuts, draw)
        asked += len(moments)
        alive += compare(shop, names, moments)
    return asked, alive


def few_moments(names: tuple[str, ...], cuts: list[int], draw: random.Random) -> set[int]:
    """Two random TSOs, just before a cut, a commit of the table's own and just before it."""
    own = draw.choice([c.ts for c in workload.shop().changes if c.table in names and c.ts < cuts[-1]])
    return {*(draw.randint(*life(names, cuts[-1])) for _ in range(2)), draw.choice(cuts[:4]) - 1, own, own - 1}


def many_moments(names: tuple[str, ...], cuts: list[int], draw: random.Random) -> set[int]:
    """Random TSOs, and all that are easily wrong."""
    own = [c.ts for c in workload.shop().changes if c.table in names]
    near = {*cuts, *(ts for ts, _ in workload.shop().statements), *draw.sample(own, 10)}
    drawn = {draw.randint(*life(names, cuts[-1])) for _ in range(MANY)}
    return drawn | {ts + n for ts in near for n in (-1, 0, 1) if ts + n <= cuts[-1]}


def life(names: tuple[str, ...], last: int) -> tuple[int, int]:
    """The TSOs at which there is such a table, from just before the first change of all on."""
    of_coupons = [ts for ts, query in workload.shop().statements if "coupons" in query]
    return (of_coupons[0], of_coupons[-1] - 1) if names == ("coupons",) else (workload.shop().changes[0].ts - 1, last)


def compare(shop: Shop, names: tuple[str, ...], moments: set[int]) -> int:
    """One table at all of these, and that none bears its other names then; at how many there was the table."""
    kinds, wanted, asked = workload.types(), dict[int, dict[str, Any]](), dict[int, str]()
    for ts, tables in workload.shop().at(moments):
        for name in names:
            if name in tables:
                wanted[ts], asked[ts] = workload.wanted(name, tables[name], kinds[name]), f"shopdb.{name}"
            else:
                with pytest.raises(ConfigError, match=f"no table 'shopdb.{name}' at TSO"):
                    frame_asof(shop.lake, f"shopdb.{name}", ts, shop.lake.spark)
    ignore = [c for name in names for c in shop.truth.get("not_comparable", {}).get(f"shopdb.{name}", [])]
    for ts, got in printed_at(shop.lake, asked).items():
        why = f"{asked[ts]} at {ts}, seed {SEED}"
        assert len(got) == len(wanted[ts]["rows"]), why
        assert differences(got, wanted[ts], ignore) == [], why
    return len(asked)
