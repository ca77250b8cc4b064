"""Find messages that may hold DDL statements, without decoding them. Landing counts them, and decode reads them before all others."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.options import SinkOptions

WITHOUT_DDL = frozenset({"avro", "csv"})  # protocols whose messages carry no statement
# What keys of statements contain (docs/reference/protocols.md 2.2). A member's name may be written with escapes.
_IN_KEYS = {"open": r'"t"\s*:\s*2|\\u'}
_STATEMENT = r"(alter|rename|create|drop|recover|flashback|replace)[\s/\\]"  # followed by the end of the word, also in JSON's escapes


def may_hold_statements(protocol: str, messages: pa.RecordBatch, options: SinkOptions) -> pa.RecordBatch:
    """Return the messages that contain a word that a statement begins with, because SQL is sent as text. All messages if they may be
    compressed. The keys alone are searched where they say whether the value is a statement, as in Open Protocol.

    Manifests keep how many were found: a version that finds more has to count them under another name.
    """
    if options.large_message_handle_compression != "none":
        return messages
    if protocol in _IN_KEYS:
        return messages.filter(pc.fill_null(pc.match_substring_regex(messages.column("key"), _IN_KEYS[protocol]), True))
    found = (pc.match_substring_regex(messages.column(c), _STATEMENT, ignore_case=True) for c in ("key", "value"))
    return messages.filter(pc.or_(*(pc.fill_null(f, False) for f in found)))
