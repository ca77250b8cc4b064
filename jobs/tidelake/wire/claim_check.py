"""Claim-check files (docs/reference/protocols.md 1.5).

{"key": base64 or null, "value": base64 or null} of a complete Kafka record, or its bare value.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from tidelake.config.options import SinkOptions
from tidelake.errors import DecodeError
from tidelake.wire.json.json_text import kind, load

_OPENING = (b'{"key":', b'{"value":')  # no protocol's message begins so


def opened(key: bytes | None, value: bytes | None, options: SinkOptions) -> tuple[bytes | None, bytes | None]:
    """Key and value of the message; where the value is the content of a claim-check file, those inside. Raises DecodeError."""
    if options.large_message_handle_option != "claim-check" or key or value is None:
        return key, value
    return record_of(value, key)


def record_of(content: bytes, key: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Key and value of the Kafka record in a file; a bare value has the key of the message that names the file. Raises DecodeError."""
    if not content.startswith(_OPENING):
        return key, content
    file = load(content, "the claim-check file")
    if file.keys() != {"key", "value"}:
        raise DecodeError(f"the claim-check file has the members {sorted(file)[:9]}, expected key and value", code="BAD_STRUCTURE")
    return _payload(file, "key"), _payload(file, "value")


def _payload(file: dict[str, Any], name: str) -> bytes | None:
    text = file[name]
    if text is None:
        return None
    if not isinstance(text, str):
        raise DecodeError(f"{name} of the claim-check file is a JSON {kind(text)}, expected base64 text", code="BAD_VALUE")
    try:
        return base64.b64decode(text.encode(), validate=True)
    except binascii.Error as e:
        raise DecodeError(f"{name} of the claim-check file is not base64: {e}", code="BAD_VALUE") from e
