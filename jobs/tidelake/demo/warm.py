"""Compiles the kernels once: `python -m tidelake.demo.warm` decodes a few of the demo's messages in every protocol, folds
three rows and masks one.

Compiled code is kept beside its sources, or in the user's cache if that folder is read-only; later processes load it.
"""

from __future__ import annotations

import base64
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pyarrow as pa

from tidelake.config.options import SinkOptions
from tidelake.demo.history import History
from tidelake.demo.messages.encode_avro import AvroEncoder
from tidelake.demo.replicator import Replicator
from tidelake.demo.sinks import SINKS
from tidelake.history.event import MESSAGE, RowSchema, SchemaColumn
from tidelake.protocols import Context, decode, protocol_names
from tidelake.wire.checksum.checksums import ChecksumRules, Image, verdict
from tidelake.wire.hashes import Hashes
from tidelake.wire.kernels.key_numbers import NONE, meet, newest
from tidelake.wire.key_numbers import KeyNumbers
from tidelake.wire.masks import masked_cells
from tidelake.wire.row_hashes import row_hashes

ROW_EVENTS = 400
# A packet of Canal, which the demo does not write: d.t's row (id 1, v a) becomes (id 1, v b).
_PACKET = (
    "EAEYByq/ARK8AQpACAESEG15c3FsLWJpbi4wMDAwMDEYBCABKgVVVEYtODCA+KX5wTI4AkIBZEoBdFgCYg4KCXJvd3NDb3VudBIBMRACGnYQAlAAYnAKGxAEGgJpZCAB"
    "KAEwAEIBMVIKYmlnaW50KDIwKQoZEAQaAXYoATAAQgFhUgt2YXJjaGFyKDIwKRIbEAQaAmlkIAEoATAAQgExUgpiaWdpbnQoMjApEhkQBBoBdigBMABCAWJSC3ZhcmNo"
    "YXIoMjAp"
)


def warm(protocol: str) -> int:
    """Compile one protocol's decoder and return the number of events it decoded.

    Of protocols that the demo does not write, Canal gets one packet and the others no messages.
    """
    if protocol == "avro":
        image = Image(row_schema=RowSchema((SchemaColumn("id", "int"),)), cells=[b"7"], number=0, whole=True)
        verdict([image], corrupted=False, zone="UTC", rules=ChecksumRules(names_sent=True, mended=False), refuse=False)
    if protocol not in SINKS:
        packets = [{"topic": "t", "partition": 0, "offset": 0, "value": base64.b64decode(_PACKET)}] if protocol == "canal" else []
        return int(decode(protocol, pa.RecordBatch.from_pylist(packets, schema=MESSAGE), Context()).num_rows)
    replicator = Replicator(History(hours=1, rows_per_hour=ROW_EVENTS), SINKS[protocol])
    rows = [{name: getattr(m, name, None) for name in MESSAGE.names} for m in replicator.messages()]
    schemas = replicator.encoder.schemas if isinstance(replicator.encoder, AvroEncoder) else {}
    context = Context(options=SinkOptions(enable_tidb_extension=True), avro_schema=lambda number: schemas[int(number)])
    events = decode(protocol, pa.RecordBatch.from_pylist(rows, schema=MESSAGE), context)
    return int(events.num_rows)


def warm_fold() -> int:
    """Compile the fold's kernels and return the number of different rows that it counted."""
    columns = [pa.array([1, 2, 2]), pa.array(["a", None, None]), pa.array([1, None, None], pa.int32())]
    columns.append(pa.array([[b"a"], None, None], pa.list_(pa.binary())))
    keys, rows = KeyNumbers(), np.arange(3)
    numbers = keys.added(row_hashes(columns, (0, 0)))
    newest(numbers, np.zeros((3, 2), np.int64), rows, np.zeros((3, 2), np.int64), np.full(3, NONE))
    meet(numbers, np.ones(3, np.int64), np.zeros(3, np.bool_))
    return keys.count


def warm_masks() -> int:
    """Compile the hashes of masked cells and return the number of hashed ones."""
    images = pa.array([[b"a"]], pa.list_(pa.binary()))
    return len(masked_cells([(images, {"hash": [(np.arange(1), 0)]})], Hashes(b"key"))[0].values)


def main() -> int:
    """Compile the decoders of all protocols, two at a time, the fold and the masks."""
    names = protocol_names()
    with ProcessPoolExecutor(2) as pool:
        for kernels in (warm_fold, warm_masks):
            pool.submit(kernels).result()
        for name, events in zip(names, pool.map(warm, names), strict=True):
            sys.stderr.write(f"{name}: compiled, {events:,} events\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
