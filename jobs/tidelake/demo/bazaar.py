"""The database "bazaar", a marketplace: its tables before the first message, and its DDL statements.

schemas/bazaar-*/tables.sql defines the same tables for MySQL (a test compares them).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from tidelake.demo.messages.model import MULTIPLE_KEY, PRIMARY_KEY, UNIQUE_KEY, Ddl, SourceColumn, SourceTable
from tidelake.tso import from_ms
from tidelake.wire.cells.mysql_codes import HANDLE_KEY, NULLABLE

DATABASE = "bazaar"
MINUTE_MS = 60_000
CREATE_TABLE = 3
TRUNCATE_TABLE = 11
ALL_DDL = tuple("add_column create_table modify_column rename_column truncate_table rename_table drop_column drop_table".split())


def table(
    name: str,
    columns: str,
    *,
    primary: Iterable[str] = (),
    unique: Iterable[str] = (),
    index: Iterable[str] = (),
    physical_ids: tuple[int, ...],
) -> SourceTable:
    """Return a table of the bazaar, built from its column lines.

    Args:
        name: Name of the table.
        columns: Column definitions, one per line.
        primary: Columns of the primary key.
        unique: Columns with a single-column unique index. Without a primary key the first NOT NULL one identifies rows.
        index: Columns with a single-column index.
        physical_ids: Its id, or the ids of its partitions.
    """
    primary, unique = tuple(primary), tuple(unique)
    flags = {name: HANDLE_KEY | PRIMARY_KEY | (MULTIPLE_KEY if len(primary) > 1 else 0) for name in primary}
    flags |= dict.fromkeys(unique, UNIQUE_KEY) | dict.fromkeys(index, MULTIPLE_KEY)
    parsed = [SourceColumn.parse(line.strip().rstrip(",")) for line in columns.strip().splitlines()]
    if not primary:
        handle = next((c.name for c in parsed if c.name in unique and not c.flag & NULLABLE), None)
        flags |= {handle: UNIQUE_KEY | HANDLE_KEY} if handle else {}
    built = tuple(replace(c, flag=c.flag | flags.get(c.name, 0)) for c in parsed)
    return SourceTable(DATABASE, name, built, physical_ids, clustered=bool(primary))


def tables() -> list[SourceTable]:
    """Return the tables before the first message; all are empty."""
    return [
        table("sellers", _SELLERS, primary=["id"], unique=["handle"], physical_ids=(102,)),
        table("listings", _LISTINGS, primary=["id"], index=["seller_id"], physical_ids=(104,)),
        table("bids", _BIDS, primary=["listing_id", "bid_no"], physical_ids=(106,)),
        table("parcels", _PARCELS, unique=["tracking"], physical_ids=(108,)),
        table("boxes", _BOXES, primary=["id"], physical_ids=(111, 112, 113, 114)),
        table("visits", _VISITS, physical_ids=(116,)),
    ]


_SELLERS = """
    id BIGINT NOT NULL,
    handle VARCHAR(64) NOT NULL,
    name VARCHAR(120) NOT NULL,
    verified TINYINT(1) NOT NULL DEFAULT 0,
    balance DECIMAL(14,2) NOT NULL DEFAULT 0,
    joined DATETIME(3) NOT NULL,
    last_seen DATETIME NULL,
    fax VARCHAR(32) NULL
"""
_LISTINGS = """
    id BIGINT UNSIGNED NOT NULL,
    seller_id BIGINT NOT NULL,
    title VARCHAR(200) NOT NULL,
    description TEXT NULL,
    price DECIMAL(12,2) NOT NULL,
    grade ENUM('new','like new','for parts, as is','seller''s pick') NOT NULL DEFAULT 'new',
    tags SET('sale','vintage','handmade','bulky','réserve') NULL,
    attrs JSON NULL,
    stock INT UNSIGNED NOT NULL DEFAULT 1,
    listed TIMESTAMP(6) NOT NULL
"""
_BIDS = """
    listing_id BIGINT UNSIGNED NOT NULL,
    bid_no INT NOT NULL,
    amount DECIMAL(12,2) NOT NULL,
    quantity SMALLINT UNSIGNED NOT NULL,
    options BIT(12) NULL,
    placed TIMESTAMP(6) NOT NULL,
    withdrawn DATETIME(3) NULL
"""
_PARCELS = """
    tracking VARCHAR(32) NOT NULL,
    carrier CHAR(8) NOT NULL,
    weight DOUBLE NULL,
    pickup DATE NULL,
    slot TIME NULL,
    note TEXT NULL
"""
_BOXES = """
    id BIGINT NOT NULL,
    label VARCHAR(32) NULL,
    content JSON NULL,
    photo BLOB NULL,
    lights BIT(8) NULL,
    temperature DOUBLE NOT NULL,
    checked TIME(3) NULL
"""
_VISITS = """
    visited DATETIME(3) NOT NULL,
    page VARCHAR(64) NOT NULL,
    visitor VARBINARY(16) NULL,
    referrer TEXT NULL
"""
_FLASH_SALES = """
    code VARCHAR(32) NOT NULL,
    listing_id BIGINT UNSIGNED NULL,
    percent DECIMAL(5,2) NOT NULL,
    until DATE NULL
"""


_SHIPPING_SQL = "`shipping` DECIMAL(6,2) NOT NULL DEFAULT 4.90"
_CREATE_FLASH_SALES = (
    "CREATE TABLE `{table}` (`code` VARCHAR(32) NOT NULL,`listing_id` BIGINT UNSIGNED NULL,`percent` DECIMAL(5,2) NOT NULL,"
    "`until` DATE NULL,PRIMARY KEY(`code`) /*T![clustered_index] CLUSTERED */,UNIQUE `uk_listing`(`listing_id`))"
)


@dataclass(frozen=True)
class WorkStep:
    """One DDL statement of the plan.

    Attributes:
        minute: Minute after the start, in a plan over three hours.
        on: The table's name at creation.
        query: The statement; `{table}` is the table's name at that time.
        effect: The table's definition → its next one, None if it is dropped.
    """

    name: str
    minute: float
    on: str
    query: str
    code: int
    effect: Callable[[SourceTable], SourceTable | None]


def ddl_plan() -> list[WorkStep]:
    """Return all statements in order of time."""
    return [
        WorkStep("add_column", 30, "listings", f"ALTER TABLE `{{table}}` ADD COLUMN {_SHIPPING_SQL}", 5, _add_shipping),
        WorkStep("create_table", 45, "flash_sales", _CREATE_FLASH_SALES, 3, lambda t: t),
        WorkStep("modify_column", 62, "bids", "ALTER TABLE `{table}` MODIFY COLUMN `quantity` INT UNSIGNED NOT NULL", 12, _widen_quantity),
        WorkStep(
            "rename_column", 75, "listings", "ALTER TABLE `{table}` RENAME COLUMN `description` TO `details`", 12, _rename_description
        ),
        WorkStep("truncate_table", 90, "flash_sales", "TRUNCATE TABLE `{table}`", 11, _truncated),
        WorkStep("rename_table", 126, "sellers", "RENAME TABLE `{table}` TO `merchants`", 14, lambda t: replace(t, name="merchants")),
        WorkStep("drop_column", 140, "sellers", "ALTER TABLE `{table}` DROP COLUMN `fax`", 6, _drop_fax),
        WorkStep("drop_table", 155, "flash_sales", f"DROP TABLE `{DATABASE}`.`{{table}}`", 4, lambda t: None),
    ]


@dataclass(frozen=True)
class DdlStep:
    """A planned statement at its time: the message's content, the table's name at creation and its definition after it (None: dropped)."""

    ddl: Ddl
    on: str
    after: SourceTable | None


def statements(start_ms: int, hours: float, names: Collection[str] = ALL_DDL, span_hours: float = 3.0) -> list[DdlStep]:
    """Return the statements of a history. Statements on tables that do not exist (their CREATE was not requested) are left out.

    Args:
        start_ms: Start of the history (ms since the epoch).
        hours: Length of the history.
        names: Statements that are requested.
        span_hours: Time over which the plan is stretched.
    """
    alive: dict[str, SourceTable] = {t.name: t for t in tables()}
    born = table("flash_sales", _FLASH_SALES, primary=["code"], unique=["listing_id"], physical_ids=(118,))
    out: list[DdlStep] = []
    for number, step in enumerate(ddl_plan()):
        at_ms = start_ms + round(step.minute * MINUTE_MS * span_hours / 3)
        old = born if step.code == CREATE_TABLE else alive.get(step.on)
        if step.name not in names or old is None or at_ms >= start_ms + hours * 60 * MINUTE_MS:
            continue
        new = step.effect(old)
        query = step.query.format(table=old.name)
        ddl = Ddl(from_ms(at_ms, 1 + number % 3), DATABASE, (new or old).name, query, step.code)
        out.append(DdlStep(ddl, step.on, new))
        if new:
            alive[step.on] = new
        else:
            del alive[step.on]
    return out


def _add_shipping(t: SourceTable) -> SourceTable:
    return t.with_columns([*t.columns, SourceColumn.parse(_SHIPPING_SQL.replace("`", ""))])


def _widen_quantity(t: SourceTable) -> SourceTable:
    wide = SourceColumn.parse("quantity INT UNSIGNED NOT NULL")
    return t.with_columns([wide if c.name == wide.name else c for c in t.columns])


def _rename_description(t: SourceTable) -> SourceTable:
    return t.with_columns([replace(c, name="details") if c.name == "description" else c for c in t.columns])


def _drop_fax(t: SourceTable) -> SourceTable:
    return t.with_columns([c for c in t.columns if c.name != "fax"])


def _truncated(t: SourceTable) -> SourceTable:
    return replace(t, physical_ids=tuple(i + 100 for i in t.physical_ids))
