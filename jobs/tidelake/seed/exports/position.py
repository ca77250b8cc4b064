"""The TSO of an export, from Dumpling's file `metadata` (pingcap/tidb, dumpling/export/metadata.go).

Started dump at: 2026-01-05 10:00:00
SHOW MASTER STATUS:
        Log: tidb-binlog
        Pos: 463368564662075392
        GTID:
Finished dump at: 2026-01-05 10:00:07
"""

from __future__ import annotations

import re

from tidelake.errors import ConfigError

METADATA = "metadata"
_STATUS = re.compile(r"^SHOW (?:MASTER|BINARY LOG) STATUS:.*\n\tLog: (.*)\n\tPos: (.*)$", re.MULTILINE)
_OF_TIDB = "tidb-binlog"
_MOST = (1 << 63) - 1


def export_ts(metadata: str | None, said: int | None, where: str) -> int:
    """Return the TSO of an export.

    Args:
        metadata: Text of the file `metadata`; None if there is none.
        said: Value of --ts.
        where: The file, for messages.

    Raises:
        ConfigError: NO_TSO, TSO_DIFFERS, EXPORT_UNFINISHED.
    """
    found = None if metadata is None else _position(metadata, where)
    if found is not None and said is not None and found != said:
        raise ConfigError(
            f"{where} states TSO {found} for the export, --ts is {said}",
            code="TSO_DIFFERS",
            remedy="leave --ts out, or give the export that was made at that TSO",
        )
    ts = said if found is None else found
    if ts is None:
        raise ConfigError(
            f"{where} does not contain the TSO of the export",
            code="NO_TSO",
            remedy="give it as --ts: the value of `--snapshot` for Dumpling, of `SET tidb_snapshot` for files written otherwise",
        )
    if not 0 < ts <= _MOST:
        raise ConfigError(f"{ts} is not a TSO", code="NO_TSO", remedy="one like 463368564662075392")
    return ts


def _position(metadata: str, where: str) -> int | None:
    """The TSO in the metadata; None for MySQL, whose positions are no TSO."""
    if "Finished dump at:" not in metadata:
        raise ConfigError(f"{where} does not record that the export finished", code="EXPORT_UNFINISHED", remedy="export again")
    found = {pos.strip() for log, pos in _STATUS.findall(metadata.replace("\r\n", "\n")) if log.strip() == _OF_TIDB}
    if len(found) > 1:
        raise ConfigError(
            f"{where} names several positions ({', '.join(sorted(found))}): the export is not at one TSO",
            code="TSO_DIFFERS",
            remedy="export with `--consistency snapshot --snapshot TSO`",
        )
    return next((int(pos) for pos in found if pos.isdecimal()), None)
