"""Parse lines of JSON records with Arrow's reader; a plain reader locates the first damaged line."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from tidelake.archives.readers.base64_text import is_base64
from tidelake.archives.readers.lines import Block


def parse(data: bytes, members: pa.Schema) -> pa.Table:
    """Return these members of all lines' records; other members are ignored. Raises ArrowInvalid."""
    return pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(explicit_schema=members, unexpected_field_behavior="ignore"),
    )


def unlike(block: Block, needed: tuple[str, ...]) -> bool:
    """Return whether the first lines are records without these members. Lines that are not JSON do not count."""
    records = [record for line in block.sample() if (record := record_of(line)) is not None]
    return bool(records) and not any(isinstance(record, dict) and record.keys() >= set(needed) for record in records)


def record_of(line: bytes) -> Any:
    """Return the line's JSON value, None if it is not JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def first_damage(block: Block, offset: tuple[str, ...], texts: tuple[str, ...], otherwise: str) -> tuple[str, str]:
    """Return the place of a block's first damaged line, and its problem. offset: path of the offset; texts: members in base64."""
    for number, line in enumerate(block.split(), block.first):
        if problem := _problem(record_of(line), offset, texts):
            return f"line {number}", problem
    return f"lines {block.first} to {block.first + block.lines - 1}", otherwise


def _problem(record: Any, offset: tuple[str, ...], texts: tuple[str, ...]) -> str:
    if not isinstance(record, dict):
        return "not a JSON object"
    found: Any = record
    for name in offset:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, int) or not 0 <= found < 1 << 63:
        return f"offset is {found!r}"
    for name in texts:
        text = record.get(name)
        if text is not None and not (isinstance(text, str) and is_base64(text.encode())):
            return f"{name} is not base64"
    return ""
