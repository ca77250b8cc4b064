"""One hour of the bazaar on a local folder, without DDL and repeats, so that the plain pipeline can follow."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.checkout import CHECKOUT
from tidelake.demo.generate import Workload, generate
from tidelake.io.storage import open_store

KEYS = {"sellers": ["id"], "listings": ["id"], "bids": ["listing_id", "bid_no"], "parcels": ["tracking"], "boxes": ["id"]}
FEEDS = {"open": "bazaar-open", "canal-json": "bazaar-canal"}


@dataclass(frozen=True, slots=True)
class Hour:
    """folder: archive/, schemas/, and a lake per pipeline. events: row events of the hour."""

    folder: Path
    workload: Workload
    protocol: str

    @property
    def events(self) -> int:
        """Row events, as produced."""
        return self.workload.deliveries[self.protocol].row_events

    def variables(self, lake: str, uri: str | None = None) -> dict[str, str]:
        """What the feed names, for a lake of this name: in the folder, or at the URI with only its catalog in the folder."""
        return {
            "TIDELAKE_ARCHIVE": str(self.folder / "archive"),
            "TIDELAKE_LAKE": uri or str(self.folder / lake),
            "TIDELAKE_CATALOG": f"jdbc:sqlite:{self.folder / lake}.db",
        }


def make(folder: Path, rows: int, protocol: str = "open") -> Hour:
    """Generate the archive of one hour with about so many row events."""
    shutil.rmtree(folder, ignore_errors=True)
    workload = generate(open_store(str(folder / "archive")), [protocol], hours=1, rows_per_hour=rows, ddl=(), crashes=())
    shutil.copytree(CHECKOUT / "schemas", folder / "schemas")
    return Hour(folder, workload, protocol)
