"""Messages broken inside and right outside: the damage lies behind lengths that add up, compression that holds, framing that fits."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

from tests.fuzz import mutate
from tests.fuzz.corpus import PACKED, Group
from tests.fuzz.own_binary import CANAL_ROW, CRAFT
from tests.protocols import canal_messages as canal
from tests.protocols import craft_messages as craft
from tests.protocols.both_paths import Message
from tests.protocols.craft_messages import Ddl, Row
from tests.protocols.json_messages import frames, open_raw
from tidelake.errors import DecodeError
from tidelake.wire.compression import decompress

_CLAIM_FILE = (b'{"key":', b'{"value":')
_ROOM = 1 << 20


def broken_inside(group: Group, message: Message, other: Message, chance: Random) -> Message:
    """The message with a part of it damaged and everything around that part put right."""
    if (message[1] or b"").startswith(_CLAIM_FILE):
        return _claim_file(message, chance)
    method = group.options.get("large_message_handle_compression", "none")
    if group.protocol in _OF_PROTOCOL:
        return _OF_PROTOCOL[group.protocol](message, other, chance, method)
    if group.protocol in PACKED and method != "none" and message[1]:
        return message[0], _repacked(message[1], other[1] or b"", chance, method)
    return mutate.broken(message, other, chance)


def _claim_file(message: Message, chance: Random) -> Message:
    """A claim-check file whose record is damaged."""
    try:
        file: dict[str, Any] = json.loads(message[1] or b"")
        side = chance.choice([name for name in file if file[name]])
        record = base64.b64decode(file[side])
    except (ValueError, IndexError):
        return mutate.broken(message, message, chance)
    file[side] = base64.b64encode(mutate.damaged(record, record, chance)).decode()
    return message[0], json.dumps(file, separators=(",", ":")).encode()


def _repacked(value: bytes, other: bytes, chance: Random, method: Any) -> bytes:
    """Compressed bytes whose plain ones are damaged; where they are no compressed bytes, or by chance, damaged as they stand."""
    try:
        plain = decompress(value, method, _ROOM, "a value")
    except DecodeError:
        return mutate.damaged(value, other, chance)
    if plain is value or chance.random() < 0.3:
        return mutate.damaged(value, other, chance)
    return bytes(pa.Codec(method).compress(mutate.damaged(plain, plain, chance), asbytes=True))


def _open(message: Message, other: Message, chance: Random, method: str) -> Message:
    """One event's key or value damaged inside its frame, or the length of a frame overwritten."""
    events, others = (list(zip(frames(m[0] or b"", 8), frames(m[1] or b"", 0), strict=False)) for m in (message, other))
    if not events or not others:
        return mutate.broken(message, other, chance)
    i = chance.randrange(len(events))
    if chance.random() < 0.2:
        return _frame_overwritten(message, 8 + sum(8 + len(k) for k, _ in events[:i]), sum(8 + len(v) for _, v in events[:i]), chance)
    key, value = events[i]
    if method != "none" and value and chance.random() < 0.7:
        value = _repacked(value, chance.choice(others)[1], chance, method)
    else:
        found = mutate.broken((key, value), chance.choice(others), chance)
        key, value = found[0] or b"", found[1] or b""
    return open_raw(*events[:i], (key, value), *events[i + 1 :])


def _frame_overwritten(message: Message, key_at: int, value_at: int, chance: Random) -> Message:
    sides = [bytearray(side or b"") for side in message]
    side, at = chance.choice(((0, key_at), (1, value_at)))
    sides[side][at : at + 8] = (chance.choice(mutate.NUMBERS) % (1 << 64)).to_bytes(8, "big")
    return bytes(sides[0]), bytes(sides[1])


def _craft(message: Message, other: Message, chance: Random, method: str) -> Message:
    """A message whose headers, bodies or dictionary are damaged and whose sizes still add up."""
    events, terms = chance.choice(CRAFT), craft.Terms()
    header, bodies, tables = craft.headers(events, terms), list[bytes](), list[list[int]]()
    for e in events:
        parts = craft.groups(e, terms) if isinstance(e, Row) else [b"\3\1q" if isinstance(e, Ddl) else b""]
        if chance.random() < 0.5:
            i = chance.randrange(len(parts))
            parts[i] = mutate.damaged(parts[i], parts[0], chance)
        bodies.append(b"".join(parts))
        if isinstance(e, Row):
            tables.append([len(p) for p in parts])
    words = terms.encode()
    if chance.random() < 0.3:
        header = mutate.damaged(header, words, chance)
    if chance.random() < 0.3:
        words = mutate.damaged(words, header, chance)
    if chance.random() < 0.1:
        chance.choice([*tables, [0]]).append(chance.choice(mutate.NUMBERS[:-3]))
    return None, craft.assemble(header, bodies, words, tables)


def _canal(message: Message, other: Message, chance: Random, method: str) -> Message:
    """A packet with one damaged part, whose lengths still add up."""
    row, some = list(CANAL_ROW), canal.column_fields(CANAL_ROW[0])
    fields = [field for c in row for field in canal.column_fields(c)]
    columns = [b"".join(canal.column_fields(c)) for c in row]
    i, level = chance.randrange(len(row)), chance.randrange(5)
    if level == 0:
        columns[i] = mutate.damaged(columns[i], fields[chance.randrange(len(fields))], chance)
    elif level == 1:
        mixed = canal.column_fields(row[i])
        chance.shuffle(mixed)
        columns[i] = b"".join(mixed + chance.choices(some, k=chance.randrange(2)))
    data = b"".join(canal.text(chance.choice((2, 2, 2, 2, 2, 1)), c) for c in columns)
    if level == 2:
        data = mutate.damaged(data, columns[i], chance)
    store = canal.change(chance.choice((1, 1, 1, 2, 2, 3)), *[data] * chance.randrange(1, 3))
    if level == 3:
        store = mutate.damaged(store, data, chance)
    head = canal.header() if level != 4 else mutate.damaged(canal.header(), store, chance)
    return None, canal.packet(canal.insert(*CANAL_ROW), canal.entry(head, store), canal.insert(*CANAL_ROW))


def _avro(message: Message, other: Message, chance: Random, method: str) -> Message:
    """A record damaged behind its schema id."""
    i = int(not message[0] or bool(message[1] and chance.random() < 0.8))
    sides, payload = [*message], message[i] or b""
    start = 18 if payload[:1] == b"\3" else 5
    sides[i] = payload[:start] + mutate.damaged(payload[start:], (other[i] or b"")[start:], chance)
    return sides[0], sides[1]


_OF_PROTOCOL: dict[str, Callable[[Message, Message, Random, str], Message]] = {
    "open": _open,
    "craft": _craft,
    "canal": _canal,
    "avro": _avro,
}
