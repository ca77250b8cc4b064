"""What other engines read of Tidelake's tables, value by value: docs/how-to/query.md has the table of what was checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.catalogs import engines
from tests.catalogs.postgresql_server import PostgreSQL
from tests.catalogs.rest_server import CREDENTIAL, RestCatalog
from tests.catalogs.trino_server import Trino, by_postgresql, by_rest
from tests.catalogs.typed_tables import SMALL, TYPES, Expected, Row, write_tables
from tests.lake import lakes
from tidelake.demo.embedded_s3 import EmbeddedS3
from tidelake.io import storage
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog, LakeColumn
from tidelake.spark.lake_settings import LakeSettings, lake_settings
from tidelake.spark.session import spark_session

pytestmark = pytest.mark.long
TEXTS = {name for name, kind in {**TYPES, **SMALL, "word": "string"}.items() if kind == "string"}
Read = Callable[[Expected], list[Row]]


class Typed:
    """The typed tables in a lake's catalog, and what must be read of them."""

    def __init__(self, s3: EmbeddedS3, settings: LakeSettings, tables: list[Expected]) -> None:
        self.s3, self.settings, self.tables = s3, settings, tables
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


@contextmanager
def typed_tables(name: str, s3: EmbeddedS3, folder: Path, lake: dict[str, Any]) -> Iterator[Typed]:
    """The tables in a lake of that name on S3. lake: its catalog."""
    uri = f"s3://{s3.bucket}/{name}"
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in s3.environment.items():
            patch.setenv(variable, value)
        storage.reset()
        settings = lake_settings(lakes.feed(folder, lake={"uri": uri} | lake))
        yield Typed(s3, settings, write_tables(LakeCatalog(settings), open_store(uri), uri, folder))
    storage.reset()


@pytest.fixture(scope="module")
def server(s3_server: EmbeddedS3) -> Iterator[RestCatalog]:
    """The catalog that most read."""
    with RestCatalog(f"s3://{s3_server.bucket}/typed/warehouse", s3_server.environment) as server:
        yield server


@pytest.fixture(scope="module")
def typed(s3_server: EmbeddedS3, server: RestCatalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typed]:
    """The tables on a REST catalog."""
    lake = {"catalog": server.uri, "rest": {"credential": CREDENTIAL}}
    with typed_tables("typed", s3_server, tmp_path_factory.mktemp("typed"), lake) as typed:
        yield typed


@pytest.fixture(scope="module")
def trino(typed: Typed, server: RestCatalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """A server that reads the tables by the REST catalog."""
    with Trino(tmp_path_factory.mktemp("trino"), by_rest(server), typed.s3.environment) as trino:
        yield trino


def test_pyiceberg_reads_them(typed: Typed) -> None:
    typed.check(lambda t: typed.catalog.load(t.identifier).scan(snapshot_id=t.snapshot_id).read_all().to_pylist())


@pytest.mark.usefixtures("spark_app")
def test_spark_reads_them(typed: Typed) -> None:
    with spark_session(typed.settings, "readers") as spark:

        def read(t: Expected) -> list[Row]:
            at = f" VERSION AS OF {t.snapshot_id}" if t.snapshot_id else ""
            return spark.sql(f"SELECT * FROM lake.{t.identifier}{at}").toArrow().to_pylist()

        typed.check(read)


def test_trino_reads_them(typed: Typed, trino: Trino) -> None:
    typed.check(partial(_of_trino, trino))


def test_trino_reads_them_by_a_catalog_in_postgresql(s3_server: EmbeddedS3, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(PostgreSQL())
        typed = stack.enter_context(typed_tables("typed-jdbc", s3_server, tmp_path, {"catalog": server.catalog}))
        catalog = by_postgresql(server, typed.settings.warehouse)
        trino = stack.enter_context(Trino(tmp_path / "trino", catalog, s3_server.environment))
        typed.check(partial(_of_trino, trino))
        _write_named(typed.catalog)
        with pytest.raises(RuntimeError, match="'two words' does not exist"):  # docs/how-to/query.md says so
            trino.rows('SELECT * FROM lake."Two Words"."Orders-ü"')


def _of_trino(trino: Trino, t: Expected) -> list[Row]:
    return trino.rows(f"SELECT * FROM lake.{t.identifier}{f' FOR VERSION AS OF {t.snapshot_id}' if t.snapshot_id else ''}")


def test_trino_finds_tables_and_columns_of_any_name(typed: Typed, trino: Trino) -> None:
    row = _write_named(typed.catalog)
    assert trino.rows('SELECT * FROM lake."Two Words"."Orders-ü"') == [{n.lower(): i for n, i in row.items()}]
    assert trino.rows('SELECT "größe" AS n FROM lake."two words"."orders-ü" WHERE "q""uote" = 3 AND ID = 0') == [{"n": 4}]


def _write_named(catalog: LakeCatalog) -> dict[str, int]:
    """Make a table whose names are no words of SQL; its row."""
    row = {name: i for i, name in enumerate(["Id", "order", "a b", 'q"uote', "größe"])}
    catalog.claim_namespace("Two Words", "shop")
    columns = [LakeColumn(name=n, type="bigint", doc=f"{i + 1}: bigint") for n, i in row.items()]
    made = catalog.create("Two Words.Orders-ü", columns, properties={"tidelake.feed": "shop"})
    catalog.append("Two Words.Orders-ü", pa.Table.from_pylist([row], schema=made.table.schema().as_arrow()))
    return row


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
