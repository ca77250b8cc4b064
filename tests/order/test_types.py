"""Canonical text → lake → canonical text, for every type, by every reader; and docs/types.md says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.checkout import CHECKOUT
from tests.lake import lakes
from tests.lake.columns.spark_casts import cast, losses
from tests.order.type_cases import CASES, Case
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.io import duckdb_door as duck
from tidelake.lake.catalog import LakeColumn, LakeTable
from tidelake.lake.columns.cells import LOSSES, cell_type, values
from tidelake.query.render import Rendered, expressions, local
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session

DOC = CHECKOUT / "docs" / "types.md"
POLICIES = ("zero_date", "wide_decimal", "invalid_values")
COUNT = max(len(c.cells) for c in CASES) + 1  # the last row is NULL everywhere
Rows = Callable[[], pa.RecordBatchReader]


@pytest.fixture(scope="module")
def stored(small_hours: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """What each engine reads of one table that holds all cases, written by one job."""
    folder = tmp_path_factory.mktemp("types")
    catalog = lakes.catalog(folder)
    columns = [LakeColumn(name=f"c{k}", type=c.lake) for k, c in enumerate(CASES)]
    lost = [LakeColumn(name=f"lost{k}", type="string") for k in range(len(CASES))]
    catalog.claim_namespace("types", "shop")
    catalog.create("types.t", [LakeColumn(name="n", type="int"), *columns, *lost])
    with spark_session(lake_settings(lakes.feed(folder)), "types") as spark:
        rows = (f"({n}, {', '.join(_literal(c, n) for c in CASES)})" for n in range(COUNT))
        cells = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS t(n, {', '.join(f'x{k}' for k in range(len(CASES)))})")
        typed = cells.selectExpr("*", *(f"{cast(f'x{k}', c.mysql, c.rules)} AS c{k}" for k, c in enumerate(CASES)))
        lost_of = (f"{_lost(c, k)} AS lost{k}" for k, c in enumerate(CASES))
        typed.selectExpr("n", *(c.name for c in columns), *lost_of).coalesce(1).writeTo("lake.types.t").append()
        read = {"Spark": spark.table("lake.types.t").toArrow()}
    table = catalog.load("types.t")
    return read | {"pyiceberg": table.scan().read_all(), "DuckDB": _by_duckdb(table), "Arrow": _by_arrow()}


def _by_arrow() -> pa.Table:
    """What workers read of the cells."""
    columns: dict[str, Any] = {"n": pa.array(range(COUNT), pa.int32())}
    for k, c in enumerate(CASES):
        cells = pa.array([*c.cells, *[None] * (COUNT - len(c.cells))], pa.binary())
        columns[f"c{k}"], lost = values(cells, cell_type(c.mysql, c.rules))
        columns[f"lost{k}"] = [""] * COUNT if lost is None else [LOSSES[n - 1] if n else "" for n in lost]
    return pa.table(columns)


def _literal(c: Case, n: int) -> str:
    return f"X'{c.cells[n].hex()}'" if n < len(c.cells) else "CAST(NULL AS BINARY)"


def _lost(c: Case, k: int) -> str:
    kinds = (f"IF({sql}, '{kind}', NULL)" for kind, sql in losses(f"x{k}", f"c{k}", c.mysql, c.rules).items())
    return f"concat_ws(' ', {', '.join(['NULL', *kinds])})"


def _by_duckdb(table: LakeTable) -> pa.Table:
    files = [task.file.file_path.removeprefix("file://") for task in table.table.scan().plan_files()]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.read_parquet(files).to_arrow_table()


def printed(rows: pa.Table, chosen: Sequence[int], zone: str, path: Path) -> list[dict[str, Any]]:
    """Rows as `asof` prints them."""
    wanted = rows.sort_by("n").select([f"c{k}" for k in chosen])
    columns = [Rendered(name=f"c{k}", type=CASES[k].mysql) for k in chosen]
    duck.write_jsonl(local(wanted.to_reader(), zone), expressions(columns), path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def compared(c: Case, value: Any) -> Any:
    """Text; numbers and vectors by the number (docs/architecture.md 6)."""
    if value is None or c.lake == "string":
        return value
    if c.mysql.is_binary:
        return {"hex": value.hex()} if isinstance(value, bytes) else value
    if c.mysql.word in ("float", "double"):
        return np.float32(value) if c.mysql.word == "float" else float(value)
    return np.array(json.loads(value), np.float32).tobytes() if c.mysql.word == "vector" else value


@pytest.mark.parametrize("engine", ["Spark", "pyiceberg", "DuckDB", "Arrow"])
def test_every_value_comes_back_as_it_was_or_is_counted(stored: dict[str, pa.Table], engine: str, tmp_path: Path) -> None:
    rows = stored[engine]
    assert rows.num_rows == COUNT
    differ = []
    for zone in {c.zone for c in CASES}:
        chosen = [k for k, c in enumerate(CASES) if c.zone == zone]
        found = printed(rows, chosen, zone, tmp_path / "rows.jsonl")
        for k in chosen:
            wanted = [v for v, _ in CASES[k].wanted] + [None] * (COUNT - len(CASES[k].cells))
            got = [row[f"c{k}"] for row in found]
            if [compared(CASES[k], v) for v in got] != [compared(CASES[k], v) for v in wanted]:
                differ.append((CASES[k].type, got, wanted))
    assert differ == []


@pytest.mark.parametrize("engine", ["pyiceberg", "Arrow"])
def test_every_loss_is_counted_and_nothing_else_is(stored: dict[str, pa.Table], engine: str) -> None:
    rows = stored[engine].sort_by("n")
    for k, c in enumerate(CASES):
        wanted = [loss for _, loss in c.wanted] + [""] * (COUNT - len(c.cells))
        assert rows.column(f"lost{k}").to_pylist() == wanted, c.type
    assert {loss for c in CASES for _, loss in c.wanted} == {"", *LOSSES}


def test_the_table_of_the_document_is_what_was_tested() -> None:
    assert "\n".join(document()) in DOC.read_text(encoding="utf-8")


def test_the_document_names_every_policy_of_values() -> None:
    text = DOC.read_text(encoding="utf-8")
    for name in POLICIES:
        assert f"`{name}`" in text
    assert {*POLICIES, "mask"} == ColumnPolicy.model_fields.keys()  # docs/masking.md
    for name in ("zero_date", "invalid_values"):
        for word in get_args(Policy.model_fields[name].annotation):
            assert f"`{word}`" in text


def document() -> Iterator[str]:
    """The table of docs/types.md."""
    yield "| MySQL type | setting | lake type | comes back as it was | comes back otherwise |"
    yield "|---|---|---|---|---|"
    for c in CASES:
        others = "; ".join(f"{_shown(v)} → {_shown(back)}{f' ({loss})' if loss else ''}" for v, back, loss in c.other)
        yield f"| {_shown(c.type)} | {_setting(c)} | `{c.lake}` | {' '.join(_shown(v) for v in c.same)} | {others} |"


def _setting(c: Case) -> str:
    own = [f"`{name} = {json.dumps(v)}`" for name in POLICIES if (v := getattr(c.values, name)) != getattr(Policy(), name)]
    zone = [f'`time_zone = "{c.zone}"`'] if c.zone != "UTC" else []
    return ", ".join([*own, *zone, *(["sent as names"] if c.names_sent else [])])


def _shown(value: str | bytes | None) -> str:
    if value is None:
        return "NULL"
    text = f"0x{value.hex()}" if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"')
    text = text if len(text) <= 76 else f"{text[:40]}…{text[-25:]}"
    return f"`{text}`".replace("|", "\\|") if text else "``''``"
