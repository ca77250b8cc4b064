"""Windows in short: statements, first sights, and the catalog that they make."""

from __future__ import annotations

from tidelake.config.policy import Policy
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.history.incarnations import ALWAYS, Catalog, Incarnation
from tidelake.history.window import ObservedTable, Statement, compile_window

ID = SchemaColumn(name="id", type="bigint", key=True)


def row_schema(*names: str) -> RowSchema:
    return RowSchema((ID, *(SchemaColumn(name=n, type="varchar") for n in names)))


def said(ts: int, query: str, database: str = "shop") -> Statement:
    return Statement(commit_ts=ts, database=database, query=query)


def seen(first: int, last: int, sent: RowSchema, table: str = "orders", database: str = "shop") -> ObservedTable:
    return ObservedTable(database=database, table=table, row_schema=sent, first_ts=first, last_ts=last, rows=9)


def compiled(
    statements: list[Statement], observed: list[ObservedTable], catalog: Catalog | None = None, **policy: object
) -> tuple[Catalog, list[str]]:
    """The catalog, and the ledger as `ts effect`."""
    after, ledger, _ = compile_window(catalog or Catalog(), statements, observed, Policy.model_validate(policy))
    return after, [f"{e.commit_ts} {e.effect}" for e in ledger]


def known(query: str = "CREATE TABLE orders (id BIGINT PRIMARY KEY, a VARCHAR(5))", ts: int = ALWAYS) -> Catalog:
    return compiled([said(ts, query)], [])[0]


def only(catalog: Catalog) -> Incarnation:
    (found,) = catalog.incarnations.values()
    return found
