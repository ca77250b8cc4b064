"""What a new generation of an hour brings that the one before did not have: the source objects of both compared, by their bytes."""

from __future__ import annotations

from tidelake.findings import KINDS
from tidelake.land.findings import finding, named
from tidelake.land.manifest import Finding, Manifest


def since(before: Manifest, now: Manifest) -> tuple[Finding, ...]:
    """The findings that only the landing of a generation can make."""
    old, new = ({source.key: source.sha256 for source in manifest.sources} for manifest in (before, now))
    came, went = len(new.keys() - old.keys()), len(old.keys() - new.keys())
    changed = sorted(key for key in old.keys() & new.keys() if old[key] != new[key])
    found = {
        "CHANGED_AFTER_LANDING": f"other bytes in {named(changed)}" if changed else "",
        "LATE_FILE": f"{came} objects came, {went} went" if came or went else "",
        "LAYOUT_CHANGED": f"read as {now.layout}, not {before.layout}" if now.layout != before.layout else "",
    }
    start = f"since generation {before.generation}: "
    return tuple(finding(code, KINDS[code].severity, start + detail) for code, detail in found.items() if detail)
