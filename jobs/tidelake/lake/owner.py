"""The ownership mark of a table or namespace: the property `tidelake.feed`. A run drops only what carries its feed's mark."""

from __future__ import annotations

from tidelake.config.lake_paths import SYSTEM
from tidelake.errors import OwnershipError

OWNER = "tidelake.feed"
SYSTEM_OWNER = "*"  # owner of the namespace that all feeds share


def whose(owner: str | None) -> str:
    """Describe an owner, for messages."""
    return f"belongs to feed {owner!r}" if owner else "was not created by Tidelake"


def refuse_foreign(identifier: str, owner: str | None, feed: str) -> None:
    """Raise OwnershipError (NOT_OURS) for a table that carries another feed's mark or none."""
    if owner == feed:
        return
    if identifier.startswith(f"{SYSTEM}."):
        remedy = "names of feeds that differ in - and _ alone share their tables: give one of the feeds another name"
    else:
        remedy = "give that table another name in the catalog, then run again"
    raise OwnershipError(
        f"table {identifier} {whose(owner)}; feed {feed!r} needs its name, and neither changes nor drops it",
        remedy=f"{remedy}; docs/ownership.md",
    )
