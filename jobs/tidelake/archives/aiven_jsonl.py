"""Aiven's S3 connector, `format.output.type=jsonl` with ByteArrayConverter (docs/reference/archives.md 2, 9).

    {"key":"<base64>"|null,"value":"<base64>"|null,"offset":n,"timestamp":"2026-01-05T10:50:00.292Z","headers":[{"key":"k","value":"<base64>"}]}

One record per line, members in any order, 0 or 3 fraction digits. `offset` and `value` are required; key, timestamp, headers are optional.
"""

from __future__ import annotations

from functools import partial

from tidelake.archives.readers.aiven_records import BASE64, lines_of
from tidelake.archives.readers.layout import OPTIONAL, Layout

LAYOUT = Layout(read=partial(lines_of, "aiven-jsonl", BASE64), extensions=frozenset({"jsonl", "json", "ndjson"}), optional=OPTIONAL)
