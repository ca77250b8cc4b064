"""Hours of a changefeed through all stages, from an archive that the demo's encoders write: `verify` finds nothing at any cut."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.cli.calls import call
from tests.tidb import archived, filled
from tests.tidb.later import Later
from tests.tidb.present import DATABASE
from tests.tidb.recorded import RecordedHistory, Recorder
from tests.tidb.server import TiDB
from tests.tidb.test_defaults import SEED
from tidelake.land import hour as landed_hour

TABLES, STEPS, DDL_EVERY = 5, 100, 12


@pytest.fixture(scope="module")
def told(tidb: TiDB) -> tuple[RecordedHistory, str]:
    """Transactions and statements on tables that are empty before, and the tables' definitions."""
    tidb.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}")
    recorder, sql = Recorder(tidb, Random(SEED)), f"USE {DATABASE};\n"
    for n in range(TABLES):
        table = filled.create(tidb, recorder.random, f"t{n}")
        tidb.execute(f"DELETE FROM {table.sql}")
        recorder.begin(table)
        sql += f"{table.create};\n"
    for step in range(STEPS):
        if step % DDL_EVERY == DDL_EVERY - 1:
            recorder.alter()
        else:
            recorder.transact()
    return recorder.history(), sql


@pytest.mark.parametrize("protocol", ["open", "canal-json-cc"])
def test_every_cut_equals_the_server(
    protocol: str, told: tuple[RecordedHistory, str], tidb: TiDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, sql = told
    monkeypatch.setattr(landed_hour, "datetime", Later)
    hours = archived.archive(tmp_path, protocol, history, SEED)
    schemas = archived.feed_folder(tmp_path, protocol, "lake")
    (schemas / "shop" / "tables.sql").write_text(sql)
    for hour in hours:
        ran = call("run", "--feed", "shop", "--schemas", schemas, "--hour", hour)
        assert ran.code == 0, ran.err
        said = call("verify", "--feed", "shop", "--schemas", schemas, "--connect", tidb.url)
        assert said.code == 0, said.out + said.err
