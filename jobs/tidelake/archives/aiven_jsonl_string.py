r"""Aiven's S3 connector, `format.output.type=jsonl` with StringConverter (docs/reference/archives.md 2, 9).

    {"key":"k"|null,"value":"{\"id\":0}"|null,"offset":n,"timestamp":"2026-01-05T10:50:00.292Z"}

One record per line. The converter replaces bytes that are not UTF-8, so only protocols of text may be archived this way.
"""

from __future__ import annotations

from functools import partial

from tidelake.archives.readers.aiven_records import TEXT, lines_of
from tidelake.archives.readers.layout import OPTIONAL, TEXT_PROTOCOLS, Layout

LAYOUT = Layout(
    read=partial(lines_of, "aiven-jsonl-string", TEXT),
    extensions=frozenset({"jsonl", "json", "ndjson"}),
    optional=OPTIONAL - {"headers"},
    protocols=TEXT_PROTOCOLS,
    losses={
        "NOT_BINARY_SAFE": "bytes that are not UTF-8 were replaced",
        "LOSSY_LAYOUT": "headers are not read",
    },
)
