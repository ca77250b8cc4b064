"""Check the tags that Confluent's connector writes with s3.object.tagging: startOffset, endOffset, recordCount (docs/reference/archives.md
1).

If there are as many records as offsets, each record's offset is the number in the name plus its place.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidelake.archives import SourceObject
from tidelake.errors import Coordinates, OrderError
from tidelake.io.texts import plural

_NAMES = ("startOffset", "endOffset", "recordCount")


def check_tags(tags: Mapping[str, str], source: SourceObject, count: int) -> None:
    """Raise OrderError (OFFSETS_UNPROVEN) unless the tags prove consecutive offsets from the object's number on. count: records in the
    object.
    """
    found = [tags.get(name, "") for name in _NAMES]
    if not all(text.isdecimal() for text in found):
        raise _unproven(source, "it has no tags startOffset, endOffset and recordCount")
    first, last, records = map(int, found)
    if records != count or first != source.number:
        held = f"it holds {plural(count, 'record')} from offset {source.number} on"
        raise _unproven(source, f"{held}, its tags state {records} from {first} on")
    if last - first + 1 != records:
        stated = f"its tags state {plural(records, 'record')} between the offsets {first} and {last}"
        raise _unproven(source, f"{stated}: some are in other objects")


def _unproven(source: SourceObject, problem: str) -> OrderError:
    return OrderError(
        f"{source.key}: {problem}; nothing of the hour is recorded as landed",
        code="OFFSETS_UNPROVEN",
        at=Coordinates(source.topic, source.partition, source.number),
        remedy="configure the connector neither to drop records nor to sort them by time, or set tags = false: offsets are then unproven",
    )
