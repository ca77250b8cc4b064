"""The numbers of Alibaba Canal's batches, from its flat messages: `id` begins again at 1 whenever Canal starts
(docs/reference/protocols.md 5.6, docs/offsets.md, Repeats).

The server writes the members of a message in the order of their names, so `id` stands in front of `isDdl`. TiCDC writes others between.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.history.source_names import batch_names

PROTOCOL = "canal-json"
_NUMBER = r'"id":(?P<id>[0-9]{1,18}),"isDdl":(?:true|false),'  # a column's text cannot contain it: its quotes are escaped


def numbered(events: pa.RecordBatch, messages: pa.RecordBatch) -> pa.RecordBatch:
    """Give the row events of Canal's flat messages the names of their batches.

    Args:
        events: Events of the messages, in their order, without names.
        messages: Messages of one topic and partition, offsets ascending.
    """
    found = pc.extract_regex(messages.column("value"), _NUMBER)
    if found.null_count == len(found):
        return events
    numbers = pc.struct_field(found, "id").cast(pa.string()).cast(pa.int64())
    offsets = pc.fill_null(events.column("offset"), -1).to_numpy(zero_copy_only=False)
    message = np.searchsorted(messages.column("offset").to_numpy(), offsets)
    is_row = pc.equal(events.column("kind"), "row")
    names = batch_names(numbers.take(pa.array(message, mask=~np.asarray(is_row))))
    index = events.schema.get_field_index("source")
    return events.set_column(index, events.schema.field(index), names)
