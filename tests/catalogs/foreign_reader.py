"""Read a table with one engine and write its rows as an Arrow file: `python foreign_reader.py '{"engine": …}'`, in the engines' own venv.

Imports nothing of this repository.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa


def duckdb(asked: dict[str, Any]) -> pa.Table:
    import duckdb as engine

    for name in ("avro", "httpfs", "iceberg"):
        package = Path(str(find_spec(f"duckdb_extension_{name}").origin)).parent
        engine.sql(f"LOAD '{next(package.rglob(f'{name}.duckdb_extension'))}'")
    s3 = asked["s3"]
    endpoint = s3["endpoint"].removeprefix("http://")
    engine.sql(
        f"CREATE SECRET (TYPE s3, KEY_ID '{s3['key']}', SECRET '{s3['secret']}', REGION '{s3['region']}', "
        f"ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)"
    )
    at = f", snapshot_from_id => {asked['snapshot_id']}" if asked["snapshot_id"] else ""
    engine.sql("SET TimeZone = 'UTC'")
    return engine.sql(f"SELECT * FROM iceberg_scan('{asked['metadata']}'{at})").to_arrow_table()


def polars(asked: dict[str, Any]) -> pa.Table:
    import polars as engine

    # Without reader_override="native", which refuses position delete files of several data files: then pyiceberg reads the rows.
    return engine.scan_iceberg(_table(asked), snapshot_id=asked["snapshot_id"]).collect().to_arrow()


def daft(asked: dict[str, Any]) -> pa.Table:
    import daft as engine
    from daft.io import IOConfig, S3Config

    s3 = asked["s3"]
    at = IOConfig(
        s3=S3Config(endpoint_url=s3["endpoint"], key_id=s3["key"], access_key=s3["secret"], region_name=s3["region"], use_ssl=False)
    )
    return engine.read_iceberg(_table(asked), snapshot_id=asked["snapshot_id"], io_config=at).to_arrow()


def chdb(asked: dict[str, Any]) -> pa.Table:
    import chdb as engine

    s3 = asked["s3"]
    place = asked["location"].replace("s3://", s3["endpoint"] + "/")
    at = " SETTINGS output_format_arrow_string_as_string = 0"  # its String holds bytes and text alike
    at += f", iceberg_snapshot_id = {asked['snapshot_id']}" if asked["snapshot_id"] else ""
    found = engine.query(f"SELECT * FROM icebergS3('{place}', '{s3['key']}', '{s3['secret']}'){at}", "ArrowTable")
    return found if isinstance(found, pa.Table) else pa.ipc.open_file(pa.py_buffer(found)).read_all()


def _table(asked: dict[str, Any]) -> Any:
    from pyiceberg.table import StaticTable

    s3 = asked["s3"]
    names = {"s3.endpoint": s3["endpoint"], "s3.access-key-id": s3["key"], "s3.secret-access-key": s3["secret"], "s3.region": s3["region"]}
    return StaticTable.from_metadata(asked["metadata"], names)


if __name__ == "__main__":
    question = json.loads(sys.argv[1])
    read = {"duckdb": duckdb, "polars": polars, "daft": daft, "chdb": chdb}[question["engine"]](question)
    with pa.OSFile(question["output"], "wb") as sink, pa.ipc.new_file(sink, read.schema) as writer:
        writer.write_table(read)
