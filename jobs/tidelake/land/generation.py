"""Compare a new generation of an hour with the one before: the source objects of both, by their bytes."""

from __future__ import annotations

from collections.abc import Mapping

from tidelake.config.finding_kinds import KINDS
from tidelake.io.texts import plural
from tidelake.land.findings import finding, named
from tidelake.land.store.manifest import Finding, Manifest
from tidelake.land.store.ranges import count, minus, show


def since(before: Manifest, now: Mapping[str, str], layout: str, brings: str = "") -> tuple[Finding, ...]:
    """Return the findings that only the landing of a generation can make.

    now: sha256 of its source objects, by key; layout: the layout that it was read with; brings: the text of `new_offsets`, if messages were
    read.
    """
    old = {source.key: source.sha256 or "" for source in before.sources}
    came, went = len(now.keys() - old.keys()), len(old.keys() - now.keys())
    changed = sorted(key for key in old.keys() & now.keys() if old[key] != now[key])
    found = {
        "CHANGED_AFTER_LANDING": f"other bytes in {named(changed)}{brings}" if changed else "",
        "LATE_FILE": f"{plural(came, 'object')} appeared, {went:,} disappeared{brings}" if came or went else "",
        "LAYOUT_CHANGED": f"read as {layout}, not {before.layout}" if layout != before.layout else "",
    }
    start = f"since generation {before.generation}: "
    return tuple(finding(code, KINDS[code].severity, start + detail) for code, detail in found.items() if detail)


def new_offsets(before: Manifest, now: Manifest) -> str:
    """Describe the offsets that a generation adds to the one before, as a text to append to a message."""
    said: list[str] = []
    for topic, partitions in now.partitions.items():
        for number, partition in partitions.items():
            held = before.partitions.get(topic, {}).get(number)
            if brought := minus(partition.ranges, held.ranges if held else ()):
                said.append(f"{topic}[{number}] {show(brought)} ({plural(count(brought), 'message')})")
    return f"; new: {named(said)}" if said else "; no new offsets"
