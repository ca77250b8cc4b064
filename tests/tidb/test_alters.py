"""Random statements on filled tables of a real TiDB (altered.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidb.altered import Walk
from tests.tidb.copied import in_this_process
from tests.tidb.server import TiDB
from tidelake.lake.opened import Lake


def test_random_alters_leave_what_tidb_has(
    tidb: TiDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Lake, "workers", in_this_process)
    Walk.of("TIDELAKE_TIDB").check(tidb, tmp_path, capsys)
