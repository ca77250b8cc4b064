"""What other engines read of Tidelake's tables, value by value: docs/how-to/query.md has the table of what was checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.catalogs import engines
from tests.catalogs.rest_server import CREDENTIAL, RestCatalog
from tests.catalogs.trino_server import Trino
from tests.catalogs.typed_tables import SMALL, TYPES, Expected, Row, write_tables
from tests.lake import lakes
from tidelake.demo.embedded_s3 import EmbeddedS3
from tidelake.io import storage
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.spark.lake_settings import LakeSettings, lake_settings
from tidelake.spark.session import spark_session

pytestmark = pytest.mark.long
TEXTS = {name for name, kind in {**TYPES, **SMALL, "word": "string"}.items() if kind == "string"}
Read = Callable[[Expected], list[Row]]


class Typed:
    """The typed tables on a REST catalog, and what must be read of them."""

    def __init__(self, server: RestCatalog, s3: EmbeddedS3, settings: LakeSettings, tables: list[Expected]) -> None:
        self.server, self.s3, self.settings, self.tables = server, s3, settings, tables
        self.catalog = LakeCatalog(settings)

    def check(self, read: Read, *, null_lists: bool = True) -> None:
        """Every table at every snapshot holds these rows, in any order; the values are equal and of Python's same types.

        null_lists: the engine's lists may be NULL; else it has an empty one instead.
        """
        assert len(self.tables) == 4
        for expected in self.tables:
            found, rows = read(expected), expected.rows
            if not null_lists:
                rows = [r | {"vec": r["vec"] or []} if "vec" in r else r for r in rows]
            assert _sorted(found) == _sorted(rows), f"{expected.identifier} at {expected.snapshot_id}"


@pytest.fixture(scope="module")
def typed(s3_server: EmbeddedS3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typed]:
    """The tables."""
    folder, uri = tmp_path_factory.mktemp("typed"), f"s3://{s3_server.bucket}/typed"
    with pytest.MonkeyPatch.context() as patch, RestCatalog(f"{uri}/warehouse", s3_server.environment) as server:
        for name, value in s3_server.environment.items():
            patch.setenv(name, value)
        storage.reset()
        feed = lakes.feed(folder, lake={"uri": uri, "catalog": server.uri, "rest": {"credential": CREDENTIAL}})
        settings = lake_settings(feed)
        tables = write_tables(LakeCatalog(settings), open_store(uri), uri, folder)
        yield Typed(server, s3_server, settings, tables)
    storage.reset()


def test_pyiceberg_reads_them(typed: Typed) -> None:
    typed.check(lambda t: typed.catalog.load(t.identifier).scan(snapshot_id=t.snapshot_id).read_all().to_pylist())


@pytest.mark.usefixtures("spark_app")
def test_spark_reads_them(typed: Typed) -> None:
    with spark_session(typed.settings, "readers") as spark:

        def read(t: Expected) -> list[Row]:
            at = f" VERSION AS OF {t.snapshot_id}" if t.snapshot_id else ""
            return spark.sql(f"SELECT * FROM lake.{t.identifier}{at}").toArrow().to_pylist()

        typed.check(read)


def test_trino_reads_them(typed: Typed, tmp_path: Path) -> None:
    with Trino(tmp_path / "trino", typed.server, typed.s3.environment) as trino:
        typed.check(
            lambda t: trino.rows(f"SELECT * FROM lake.{t.identifier}{f' FOR VERSION AS OF {t.snapshot_id}' if t.snapshot_id else ''}")
        )


@pytest.mark.parametrize("engine", ["duckdb", "polars", "daft", "chdb"])
def test_an_engine_reads_them_without_the_catalog(typed: Typed, engine: str, tmp_path: Path) -> None:
    s3 = typed.s3.environment
    login = {
        "endpoint": s3["AWS_ENDPOINT_URL_S3"],
        "region": s3["AWS_REGION"],
        "key": s3["AWS_ACCESS_KEY_ID"],
        "secret": s3["AWS_SECRET_ACCESS_KEY"],
    }

    def read(t: Expected) -> list[Row]:
        table = typed.catalog.load(t.identifier)
        asked = {"metadata": table.metadata, "location": table.table.location(), "snapshot_id": t.snapshot_id}
        return _as_in_the_lake(engines.read(engine, asked, login, tmp_path), t).to_pylist()

    typed.check(read, null_lists=engine != "chdb")


def _as_in_the_lake(found: pa.Table, expected: Expected) -> pa.Table:
    """The same values in Python's types of the lake's columns: engines have wider Arrow types."""
    plain = {pa.large_string(): pa.string(), pa.string_view(): pa.string(), pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary()}
    fields = [f.with_type(plain.get(f.type, f.type)) for f in found.schema]
    fields = [f.with_type(pa.string()) if f.name in TEXTS else f for f in fields]
    fields = [f.with_type(pa.timestamp("us")) if f.name == "at" else f for f in fields]  # ClickHouse shows it in the session's zone
    return found.cast(pa.schema(fields)).select(list(expected.rows[0]))


def _sorted(rows: Iterable[Row]) -> list[list[tuple[str, str, Any]]]:
    """Rows by id; each value with its type's name, decimals with their digits."""
    return [sorted((n, *_shown(v)) for n, v in row.items()) for row in sorted(rows, key=lambda r: int(r["id"]))]


def _shown(value: Any) -> tuple[str, Any]:
    if isinstance(value, Decimal):
        return "Decimal", value.normalize()
    if isinstance(value, list | tuple):
        return "list", [_shown(v) for v in value]
    return type(value).__name__, value.isoformat() if hasattr(value, "isoformat") else value
