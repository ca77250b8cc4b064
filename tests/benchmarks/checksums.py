"""What row checksums cost: CPU time per row of decoding the messages of tests/data/bench as they are, and with their checksums added.

    python -m tests.benchmarks.checksums [--repeat 5]

Exits with 1 if a row does not add up, or if a message with a checksum is left to the general reader.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tests.benchmarks.messages import avro_schemas, records
from tests.protocols.avro_messages import CHECKSUM
from tests.protocols.both_paths import Message, batch
from tests.protocols.checksum_oracle import row_sum
from tests.protocols.craft_messages import varint
from tests.protocols.simple_messages import bootstrap, column, index, table_schema, text
from tidelake.history.event import RowSchema
from tidelake.protocols import Context, decode, decoder
from tidelake.wire.kernels.varint import Region

BATCH, RUNS = 10_000, 3
Sums = tuple[int, int]  # of the images after and before
COLUMNS = {
    **{"id": "bigint", "name": "varchar", "body": "text", "qty": "int"},
    **{"price": "decimal", "created": "datetime", "score": "double", "ref": "bigint unsigned"},
}
SCHEMA_VERSION = 470615200617725953
_HANDLED = b"\0\0"  # neither in a claim-check file nor by its handle only


def avro(message: Message, sums: Sums) -> Message:
    """With schema 3: schema 2 and the fields of the checksum."""
    key, value = message
    if value is None:
        return message
    return key, b"\0\0\0\0\3" + value[5:] + text(str(sums[0])) + b"\0" + varint(2)


def simple_json(message: Message, sums: Sums) -> Message:
    """Before the images, where TiCDC puts it."""
    key, value = message
    checksum = b'"checksum":{"version":2,"corrupted":false,"current":%d,"previous":%d},' % sums
    head, side, rest = next(p for side in (b',"data":{', b',"old":{') if (p := (value or b"").partition(side))[1])
    return key, head + b"," + checksum + side[1:] + rest


def simple_avro(message: Message, sums: Sums) -> Message:
    """In place of the branch that says that there is none."""
    key, value = message
    region = Region(value or b"", 4, len(value or b""), "the message")
    for _ in range(2):
        region.take(region.varint("a name's length"), "a name")
    for what in ("tableID", "op", "commitTs", "buildTs", "schemaVersion"):
        region.varint(what)
    at = region.at + len(_HANDLED)
    return key, region.data[:at] + b"\2" + varint(2) + b"\0" + varint(sums[0]) + varint(sums[1]) + region.data[at + 1 :]


ADDED: dict[str, Callable[[Message, Sums], Message]] = {"avro": avro, "simple-json": simple_json, "simple-avro": simple_avro}


def context(protocol: str) -> Context:
    """With the schemas of the bench, and Avro's with checksums; Simple's as BOOTSTRAP says it, which the bench lacks."""
    schemas = avro_schemas()
    extended = json.loads(schemas["2"])
    schemas["3"] = json.dumps(extended | {"fields": extended["fields"] + CHECKSUM})
    made = Context(avro_schema=lambda number: schemas[str(number)])
    if protocol != "avro":
        columns = [column(name, word) for name, word in COLUMNS.items()]
        schema = table_schema(columns, [index("id", primary=True)], "test", "bench", SCHEMA_VERSION)
        decoder(protocol).read(*bootstrap(protocol, schema), made)
    return made


def checked(protocol: str, plain: Sequence[Message]) -> list[Message]:
    """The messages with the checksums of their rows; those without rows stay."""
    rows = decode(protocol, batch(plain), context(protocol)).to_pylist()
    row_schemas = {r["row_schema"]: RowSchema.from_json(r["columns"]) for r in rows if r["kind"] == "row_schema"}

    def total(row: dict[str, Any], side: str, row_schema: str) -> int:
        return row_sum(row_schemas[row[row_schema]], row[side], "UTC", names_sent=protocol == "avro") if row[side] is not None else 0

    sums = {r["offset"]: (total(r, "after", "row_schema"), total(r, "before", "before_schema")) for r in rows if r["kind"] == "row"}
    return [ADDED[protocol](m, sums[i]) if i in sums else m for i, m in enumerate(plain)]


def cost(protocol: str, batches: Sequence[pa.RecordBatch]) -> tuple[float, Counter[str | None]]:
    """CPU ns per row, the best of some runs, and how many rows got which verdict."""
    best, verdicts = float("inf"), Counter[str | None]()
    for _ in range(RUNS):
        memory, verdicts = context(protocol), Counter()
        started = time.process_time()
        events = [decode(protocol, b, memory) for b in batches]
        best = min(best, time.process_time() - started)
        for e in events:
            verdicts.update(
                {v["values"]: v["counts"] for v in e.filter(pa.compute.equal(e["kind"], "row"))["checksum"].value_counts().to_pylist()}
            )
    return best / sum(verdicts.values()) * 1e9, verdicts


def main() -> int:
    """0 if all is well."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.checksums", description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5, help="times 20,000 rows (default 5)")
    flags = parser.parse_args()
    bad = 0
    for protocol in ADDED:
        plain = list(records(f"{protocol}_1", protocol))
        figures = []
        for some in (plain, checked(protocol, plain)):
            batches = [batch((some * flags.repeat)[i : i + BATCH]) for i in range(0, len(some) * flags.repeat, BATCH)]
            left = len(decoder(protocol).scan(batches[0], np.arange(batches[0].num_rows, dtype=np.int32), context(protocol)).left)
            figures.append((*cost(protocol, batches), left))
        (without, _, left), (with_, verdicts, more_left) = figures
        bad += more_left > left or verdicts["mismatch"] + verdicts["unverifiable"] > 0 or not verdicts["verified"]
        sys.stdout.write(f"{protocol:12} {without:6.0f} ns/row without, {with_:6.0f} with ({with_ / without:.2f}×); {dict(verdicts)}\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
