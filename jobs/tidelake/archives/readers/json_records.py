"""Lines of JSON records: Arrow's reader for all of them, a plain one to say what is wrong with one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from tidelake.archives.readers.base64_text import is_base64
from tidelake.archives.readers.lines import Block


def parse(data: bytes, members: pa.Schema) -> pa.Table:
    """The members of all lines' records; others are passed over. Raises ArrowInvalid."""
    return pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(explicit_schema=members, unexpected_field_behavior="ignore"),
    )


def unlike(block: Block, needed: tuple[str, ...]) -> bool:
    """Whether the first lines show other records than those with these members. Lines that are no JSON show nothing."""
    records = [record for line in block.sample() if (record := record_of(line)) is not None]
    return bool(records) and not any(isinstance(record, dict) and record.keys() >= set(needed) for record in records)


def record_of(line: bytes) -> Any:
    """The line's JSON value, None where it is not JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def first_damage(block: Block, offset: tuple[str, ...], texts: tuple[str, ...], otherwise: str) -> tuple[str, str]:
    """Where the first damaged line of a block is, and what is wrong with it. offset: its path; texts: members of base64."""
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
