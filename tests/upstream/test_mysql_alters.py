"""Random statements on filled tables of a real MySQL 8 (tests/tidb/altered.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidb.altered import Walk
from tests.tidb.copied import in_this_process
from tests.upstream.mysql_source import MySQLSource
from tidelake.config.feed import Feed
from tidelake.lake.opened import Lake


def test_random_alters_leave_what_mysql_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pymysql", reason="needs PyMySQL, of the extra `mysql`")
    monkeypatch.setattr(Lake, "workers", in_this_process)
    monkeypatch.setattr(Feed, "of_tidb", False)  # its rows would have offsets alone
    with MySQLSource() as server:
        Walk.of("TIDELAKE_MYSQL").check(server, tmp_path, capsys)
