"""Messages of Open Protocol whose rows are in claim-check files, and such files."""

from __future__ import annotations

import base64
from typing import Any

from tests.protocols.json_messages import column, compact, open_key, open_message
from tests.protocols.simple_messages import Message

LOCATION = "s3://elsewhere/deep/d2f1.json"


def row(number: int = 1, value: str | None = "long", ts: int = 7, **key: Any) -> Message:
    """An update of an Open Protocol table; without a value the message of its handle."""
    cells = {"id": column(3, number, 11, key=True)} | ({} if value is None else {"v": column(15, value, 64)})
    return open_message((open_key(ts, **key), {"u": cells, "p": cells}))


def envelope(message: Message) -> bytes:
    return compact({n: base64.b64encode(b or b"").decode() for n, b in zip(("key", "value"), message, strict=True)})


STUB = row(value=None, ccl=LOCATION)
