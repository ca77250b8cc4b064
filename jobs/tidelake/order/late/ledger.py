"""The ledger's table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelake.config.lake_paths import SYSTEM, late_table
from tidelake.lake.catalog import LakeCatalog, LakeColumn, LakeTable
from tidelake.lake.data_files import WrittenFile, replace_files
from tidelake.lake.owner import OWNER, SYSTEM_OWNER

_COLUMNS = (
    LakeColumn(name="seq", type="int", doc="of the cut at which it was found"),
    LakeColumn(name="verdict", type="string", doc="conflict, or late (no such change is published)"),
    LakeColumn(name="hour", type="string", doc="of the archive"),
    LakeColumn(name="topic", type="string", doc="Kafka coordinates of the event"),
    LakeColumn(name="partition", type="int"),
    LakeColumn(name="offset", type="bigint"),
    LakeColumn(name="ordinal", type="int", doc="position of the event in its message"),
    LakeColumn(name="commit_ts", type="bigint", doc="TSO"),
    LakeColumn(name="database", type="string"),
    LakeColumn(name="table", type="string"),
    LakeColumn(name="op", type="string"),
)


def ledger(catalog: LakeCatalog, feed: str) -> LakeTable:
    """Return the feed's ledger; create it at first use. Raises OwnershipError (NOT_OURS)."""
    identifier = late_table(feed)
    found = catalog.find_own(identifier, feed)
    if found is not None:
        return found
    catalog.claim_namespace(SYSTEM, SYSTEM_OWNER)
    properties = {OWNER: feed, "write.distribution-mode": "none"}
    return catalog.create(identifier, list(_COLUMNS), partition=(("seq", "identity"),), properties=properties)


def late_rows(catalog: LakeCatalog, feed: str) -> list[dict[str, Any]]:
    """Return the ledger in the order of cuts and coordinates. It includes the rows of a window that was blocked and is not published."""
    found = catalog.find_own(late_table(feed), feed)
    rows = found.scan().read_all().to_pylist() if found is not None else []
    return sorted(rows, key=lambda r: (r["seq"], r["topic"], r["partition"], r["offset"], r["ordinal"]))


def enter(catalog: LakeCatalog, feed: str, seq: int, files: Sequence[WrittenFile]) -> None:
    """Make these files the rows of a cut; they replace what an earlier attempt at this cut wrote."""
    replace_files(catalog, late_table(feed), {"seq": seq}, files, {})


def forget(catalog: LakeCatalog, feed: str, seq: int) -> None:
    """Remove the ledger rows that an earlier attempt at this cut wrote."""
    table = catalog.find_own(late_table(feed), feed)
    if table is not None and any(table.files({"seq": seq}, (), table.main)):
        catalog.remove(table.identifier, {"seq": seq})
