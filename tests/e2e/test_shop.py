"""The shop workload, five archives in four protocols made by TiCDC's own encoders: every table equals the truth at every hour."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.shared import shared
from tidelake.demo.verify import differences
from tidelake.duck import write_jsonl
from tidelake.feed import load_feed
from tidelake.lake.asof import table_asof, tables_at
from tidelake.lake.opened import Lake
from tidelake.lake.run import run_hour
from tidelake.render import expressions, local
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


def feed_folder(folder: Path, name: str, truth: dict[str, Any]) -> Path:
    """schemas/shop with the feed of one archive; its zero dates stay as text."""
    home = shared("workloads/shop")
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


def printed(lake: Lake, table: str, ts: int) -> list[dict[str, Any]]:
    """What `asof --format jsonl` prints."""
    with table_asof(lake, table, ts, lambda: lake.spark) as found, tempfile.NamedTemporaryFile() as file:
        write_jsonl(local(found.rows, lake.feed.time_zone), expressions(found.columns), file.name)
        return [json.loads(line) for line in Path(file.name).read_text(encoding="utf-8").split("\n") if line]


def archives() -> list[object]:
    return [pytest.param(name, marks=[] if name in SAMPLE else pytest.mark.long) for name in FEEDS]


@pytest.mark.usefixtures("spark_app")
@pytest.mark.parametrize("name", archives())
def test_every_table_of_the_shop_equals_the_truth_at_every_hour(name: str, tmp_path: Path) -> None:
    truth = json.loads(gzip.decompress(shared(f"workloads/shop/truth_{name}.json.gz").read_bytes()))
    schemas = feed_folder(tmp_path, name, truth)
    compared = 0
    with Lake.of(load_feed(schemas, "shop")) as lake:
        for hour in truth["hours"]:
            done = run_hour(lake, parse_moment(hour["hour"]))
            assert done.compacted is not None
            assert done.compacted.cut is not None
            assert done.compacted.cut.resolved_ts == hour["resolved_ts"]
            ts, names = tables_at(lake, hour["resolved_ts"])
            assert names == sorted(hour["tables"]) if name != "avro" else set(hour["tables"]) <= set(names)
            for table, wanted in hour["tables"].items():
                ignore = truth.get("not_comparable", {}).get(table, [])
                unsettled = hour.get("unsettled_keys", {}).get("shop_" + table.replace(".", "_"), [])
                got = printed(lake, table, ts)
                assert differences(got, wanted, ignore, [tuple(k) for k in unsettled]) == [], f"{table} at {hour['hour']}"
                compared += len(got)
    assert compared > 15_000
