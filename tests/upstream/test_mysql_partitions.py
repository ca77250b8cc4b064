"""Partitions of a real MySQL: the rows of a truncated one leave the lake, and where it cannot be known which they are, the feed stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.tidb.copied import in_this_process
from tests.tidb.present import DATABASE
from tests.tidb.truncated import HASHES, MOVES, truncated
from tests.upstream.mysql_source import MySQLSource
from tidelake.lake.columns.key_partitions import key_partitions
from tidelake.lake.opened import Lake


@pytest.fixture(scope="module")
def mysql() -> Iterator[MySQLSource]:
    """A real server."""
    pytest.importorskip("pymysql", reason="needs PyMySQL, of the extra `mysql`")
    with MySQLSource() as server:
        yield server


@pytest.fixture(autouse=True)
def _empty(mysql: MySQLSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lake, "workers", in_this_process)
    mysql.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}")


@pytest.mark.parametrize("moves", MOVES)
def test_the_rows_of_a_truncated_partition_of_hash_leave_the_lake(moves: list[str], mysql: MySQLSource, tmp_path: Path) -> None:
    truncated(mysql, tmp_path, HASHES, moves)


def test_partitions_by_key_are_not_those_of_tidb(mysql: MySQLSource) -> None:
    """Why a statement that empties one of them stops a feed whose source may be MySQL (history/partitions.py: check_source)."""
    mysql.execute("CREATE TABLE t (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 2")
    mysql.execute(f"INSERT INTO t VALUES {', '.join(f'({n})' for n in range(100))}")
    there = {int(n): part for part in (0, 1) for (n,) in mysql.execute(f"SELECT id FROM t PARTITION (p{part})")}
    by_tidb = key_partitions([pa.array(range(100), pa.int32())], 2).tolist()
    assert 10 < sum(there[n] != by_tidb[n] for n in range(100)) < 90
