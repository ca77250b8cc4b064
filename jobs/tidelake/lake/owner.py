"""The mark that says whose a table or namespace is: the property `tidelake.feed`. What does not carry a feed's mark, no run of it drops."""

from __future__ import annotations

from tidelake.config.lake_paths import SYSTEM
from tidelake.errors import OwnershipError

OWNER = "tidelake.feed"
SYSTEM_OWNER = "*"  # of the namespace that all feeds share


def whose(owner: str | None) -> str:
    """For people."""
    return f"belongs to feed {owner!r}" if owner else "was not made by Tidelake"


def refuse_foreign(identifier: str, owner: str | None, feed: str) -> None:
    """Raises OwnershipError (NOT_OURS) for a table that another feed, or nobody, has marked."""
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
