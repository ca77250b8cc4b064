"""What a new generation of an hour brings that the one before did not have: the source objects of both compared, by their bytes."""

from __future__ import annotations

from collections.abc import Mapping

from tidelake.config.finding_kinds import KINDS
from tidelake.land.findings import finding, named
from tidelake.land.store.manifest import Finding, Manifest
from tidelake.land.store.ranges import count, minus, show


def since(before: Manifest, now: Mapping[str, str], layout: str, brings: str = "") -> tuple[Finding, ...]:
    """The findings that only the landing of a generation can make.

    now: its source objects' sha256 by key; layout: it was read with; brings: what `new_offsets` says, where its messages were read.
    """
    old = {source.key: source.sha256 or "" for source in before.sources}
    came, went = len(now.keys() - old.keys()), len(old.keys() - now.keys())
    changed = sorted(key for key in old.keys() & now.keys() if old[key] != now[key])
    found = {
        "CHANGED_AFTER_LANDING": f"other bytes in {named(changed)}{brings}" if changed else "",
        "LATE_FILE": f"{came} objects came, {went} went{brings}" if came or went else "",
        "LAYOUT_CHANGED": f"read as {layout}, not {before.layout}" if layout != before.layout else "",
    }
    start = f"since generation {before.generation}: "
    return tuple(finding(code, KINDS[code].severity, start + detail) for code, detail in found.items() if detail)


def new_offsets(before: Manifest, now: Manifest) -> str:
    """The offsets that a generation holds and the one before does not, for people: to be put behind what came."""
    said: list[str] = []
    for topic, partitions in now.partitions.items():
        for number, partition in partitions.items():
            held = before.partitions.get(topic, {}).get(number)
            if brought := minus(partition.ranges, held.ranges if held else ()):
                said.append(f"{topic}[{number}] {show(brought)} ({count(brought)} messages)")
    return f"; new: {named(said)}" if said else "; no new offsets"
