"""Aiven's S3 connector, `format.output.type=jsonl` with JsonConverter (docs/reference/archives.md 2, 9).

    {"key":"k"|null,"value":{"data":[…],"id":0}|null,"offset":n,"timestamp":"2026-01-05T10:50:00.292Z"}

One record per line. The value is a JSON object as the converter rewrote it: members in another order, numbers in another form, and only the
first document of a message with several documents. Keys are text.
"""

from __future__ import annotations

from functools import partial

from tidelake.archives.readers.aiven_records import JSON, lines_of
from tidelake.archives.readers.layout import JSON_PROTOCOLS, OPTIONAL, Layout

LAYOUT = Layout(
    read=partial(lines_of, "aiven-jsonl-nested", JSON),
    extensions=frozenset({"jsonl", "json", "ndjson"}),
    optional=OPTIONAL - {"headers"},
    protocols=JSON_PROTOCOLS,
    losses={
        "REORDERED_JSON": "members in another order, numbers in another form, and of several documents in a message the first one only",
        "LOSSY_LAYOUT": "headers are not read",
    },
)
