"""The loop that one would write first: download an object, decompress, parse, write its messages as Parquet, upload; the next one.

It gives the same rows in the same columns, with the same codec. It knows no order, no repeats, no manifest, no hash, no limit to memory.
"""

from __future__ import annotations

import gzip
import io
import os
from base64 import b64decode
from collections.abc import Callable

import boto3
import fastavro
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from tidelake.history.event import HEADERS, MESSAGE

_MEMBERS = [
    ("key", pa.string()),
    ("value", pa.string()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("ms", "UTC")),
    ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))),
]


def land(form: str, bucket: str, archive: str, lake: str) -> int:
    """Land all objects below the prefix `archive` below the prefix `lake`; how many messages there were."""
    client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"])
    messages = 0
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=archive):
        for item in page.get("Contents", []):
            body = client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
            topic, partition, number = item["Key"].rpartition("/")[2].partition(".")[0].split("+")
            table = _messages(READERS[form](body), topic, int(partition))
            out = io.BytesIO()
            pq.write_table(table, out, compression="zstd")
            client.put_object(Bucket=bucket, Key=f"{lake}{topic}/{partition}/{number}.parquet", Body=out.getvalue())
            messages += len(table)
    return messages


def _messages(found: dict[str, pa.Array], topic: str, partition: int) -> pa.Table:
    n = len(found["offset"])
    place = {"topic": pa.repeat(topic, n), "partition": pa.repeat(pa.scalar(partition, pa.int32()), n)}
    return pa.table(place | found).select(MESSAGE.names).cast(MESSAGE)


def _jsonl(body: bytes) -> dict[str, pa.Array]:
    parsing = pj.ParseOptions(explicit_schema=pa.schema(_MEMBERS))
    rows = pj.read_json(io.BytesIO(gzip.decompress(body)), parse_options=parsing)
    found = {name: rows.column(name) for name in ("offset", "headers")}  # header values: these messages have none
    found["timestamp_ms"] = rows.column("timestamp").cast(pa.int64())
    return found | {name: _decoded(rows.column(name)) for name in ("key", "value")}


def _decoded(texts: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if text is None else b64decode(text) for text in texts.to_pylist()], pa.binary())


def _avro(body: bytes) -> dict[str, pa.Array]:
    records = list(fastavro.reader(io.BytesIO(body)))
    found = {name: pa.array([record[name] for record in records]) for name in ("offset", "key", "value")}
    headers = pa.array([list(record["headers"].items()) for record in records], pa.map_(pa.string(), pa.binary()))
    return found | {"timestamp_ms": pa.array([record["timestamp"] for record in records]), "headers": headers.cast(HEADERS)}


def _parquet(body: bytes) -> dict[str, pa.Array]:
    rows = pq.read_table(io.BytesIO(body))
    found = {name: rows.column(name) for name in ("offset", "key", "value")}
    return found | {"timestamp_ms": rows.column("timestamp"), "headers": pa.nulls(len(rows), HEADERS)}


READERS: dict[str, Callable[[bytes], dict[str, pa.Array]]] = {"parquet": _parquet, "jsonl.gz": _jsonl, "avro": _avro}
