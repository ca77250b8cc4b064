"""Messages that may hold statements, found without decoding: all that the decoders find are among them."""

from __future__ import annotations

import pytest

from tests.fuzz import corpus
from tests.protocols.both_paths import batch
from tidelake.config.options import SinkOptions
from tidelake.protocols import decode, protocol_names
from tidelake.wire.statements import may_hold_statements


@pytest.mark.parametrize("protocol", protocol_names())
def test_no_statement_is_overlooked_in_messages_of_any_protocol(protocol: str) -> None:
    for group in corpus.groups(protocol):
        messages = batch(group.messages)
        events = decode(protocol, messages, group.context()).to_pylist()
        said = [e for e in events if e["kind"] == "ddl" and e["ddl"] != "q"]  # which is no SQL
        statements = {e["offset"] for e in said if not e["ddl"].startswith("TRUNCATE")}  # which changes no columns
        found = set(may_hold_statements(protocol, messages, SinkOptions(**group.options)).column("offset").to_pylist())
        assert statements <= found, [group.messages[i] for i in statements - found]
