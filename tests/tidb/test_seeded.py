"""Dumpling's exports as the first cut, the hours of a changefeed after it, and `verify` against the server at every cut."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.calls import call
from tests.tidb import archived, filled
from tests.tidb.copied import in_this_process
from tests.tidb.later import Later
from tests.tidb.present import DATABASE, present
from tests.tidb.recorded import RecordedHistory, Recorder
from tests.tidb.server import TiDB
from tidelake.lake.opened import Lake
from tidelake.land import hour as landed_hour

SEED = int(os.environ.get("TIDELAKE_TIDB_SEED", "20261125"))
TABLES, STEPS, DDL_EVERY = 8, 120, 12
EXPORTS = (("csv", 0.0), ("sql", 0.3), ("parquet", 0.6))  # kind, and after which share of the steps
_STORED = re.compile(r"^ *`((?:[^`]|``)+)` .* STORED", re.MULTILINE)
PROTOCOLS = {"csv": "open", "sql": "canal-json-cc", "parquet": "craft"}


@dataclass(frozen=True)
class Told:
    """What happened in the server, and the exports of it by kind."""

    server: TiDB
    history: RecordedHistory
    exports: dict[str, Path]


@pytest.fixture(scope="module")
def told(tidb: TiDB, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A history of some minutes, exported several times meanwhile."""
    random, folder = Random(SEED), tmp_path_factory.mktemp("told")
    tidb.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}")
    recorder, exports = Recorder(tidb, random), dict[str, Path]()
    for n in range(TABLES):
        recorder.begin(filled.create(tidb, random, f"t{n}"))
    for step in range(STEPS):
        for kind, share in EXPORTS:
            if step == int(share * STEPS):
                exports[kind] = export(tidb, folder / kind, kind)
        if step % DDL_EVERY == DDL_EVERY - 1:
            recorder.alter()
        else:
            recorder.transact()
    return Told(tidb, recorder.history(), exports)


def export(server: TiDB, folder: Path, kind: str) -> Path:
    """An export now. Dumpling 8.4 writes no Parquet: that is made from the server's rows, with Dumpling's other files."""
    ts = server.ts()
    if kind != "parquet":
        return server.dump(folder, DATABASE, ts, kind)
    server.dump(folder, DATABASE, ts, "csv")
    for file in folder.glob(f"{DATABASE}.*.csv"):
        file.unlink()
    for (name,) in server.execute(f"SHOW TABLES FROM {DATABASE}"):
        table = present(server, name)
        names = [f.name for f in table.fields if not f.generated]
        listed = ", ".join(f"`{n.replace('`', '``')}`" for n in names)
        rows = server.execute(f"SELECT {listed} FROM {table.sql}")
        values = [[v if v is None or isinstance(v, bytes) else v.encode() for v in column] for column in zip(*rows, strict=True)]
        pq.write_table(pa.table([pa.array(v, pa.binary()) for v in values], names), folder / f"{DATABASE}.{name}.000000000.parquet")
    return folder


@pytest.mark.parametrize("kind", [kind for kind, _ in EXPORTS])
def test_an_export_and_the_hours_after_it_equal_the_server_at_every_cut(
    kind: str, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = PROTOCOLS[kind]
    hours = archived.archive(tmp_path, protocol, told.history, SEED)
    schemas = archived.feed_folder(tmp_path, protocol, "lake")
    flags = ["--feed", "shop", "--schemas", str(schemas)]
    stored = refused_stored(told.exports[kind], flags)
    if kind == "csv":
        with_stored(told.server, told.exports[kind], stored)
    else:
        with (schemas / "shop" / "feed.toml").open("a") as settings:
            for table, column in pairs(stored):
                settings.write(f'[columns."{table}".{json.dumps(column)}]\nmask = "drop"\n')
    done = subprocess.run(
        [sys.executable, "-m", "tidelake", "seed", *flags, "--from", str(told.exports[kind])], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr(Lake, "workers", in_this_process)
    monkeypatch.setattr(landed_hour, "datetime", Later)
    verified(told, flags)
    run = list[str]()
    for hour in hours:
        ran = call("run", *flags, "--hour", hour)
        if ran.code == 3 and "BEFORE_SEED" in ran.err and not run:  # the export was made after its last commit
            continue
        assert ran.code == 0, ran.err
        run.append(hour)
        verified(told, flags)
    assert len(run) >= 2 if kind == "csv" else run, "the first export is before all commits"


def refused_stored(export: Path, flags: list[str]) -> dict[str, list[str]]:
    """The stored generated columns by table, which Dumpling leaves out: the seed is refused, and names the tables."""
    found = {p.name.removesuffix("-schema.sql"): _STORED.findall(p.read_text()) for p in export.glob(f"{DATABASE}.*-schema.sql")}
    stored = {table: [c.replace("``", "`") for c in columns] for table, columns in found.items() if columns}
    assert stored
    refused = call("seed", *flags, "--from", export, "--dry-run")
    assert refused.code == 2
    assert sorted(re.findall(r"OTHER_COLUMNS: (\S+): ", refused.err)) == sorted(stored)
    return stored


def with_stored(server: TiDB, export: Path, stored: dict[str, list[str]]) -> None:
    """The files of these tables, written again with their stored columns, as docs/seed.md says."""
    ts = int(re.findall(r"Pos: (\d+)", (export / "metadata").read_text())[0])
    for table, columns in stored.items():
        files = sorted(export.glob(f"{table}.*.csv"))
        header = next(csv.reader([files[0].read_text().partition("\n")[0]], escapechar="\\"))
        listed = ", ".join(f"`{c.replace('`', '``')}`" for c in [*header, *columns])
        for file in files:
            file.unlink()
        database, name = table.split(".")
        made = server.dump_query(export.with_name(table), f"SELECT {listed} FROM `{database}`.`{name}`", table, ts)
        for file in made.glob(f"{table}.*.csv"):
            file.rename(export / file.name)


def pairs(stored: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Table and column of each."""
    return [(table, column) for table, columns in stored.items() for column in columns]


def verified(told: Told, flags: list[str]) -> None:
    """Every table of the newest cut equals the server's."""
    said = call("verify", *flags, "--connect", told.server.url)
    assert said.code == 0, said.out + said.err
