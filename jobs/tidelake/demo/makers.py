"""Column values of the bazaar: one small function per column, with unusual values as in real columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import TypeVar

from tidelake.demo.messages.model import Row, SourceColumn, SourceTable, Value

T = TypeVar("T")
BEYOND_INT64 = 1 << 63


class World:
    """State that values depend on: random numbers, the time (ms since the epoch), a serial number, and keys of existing rows."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random
        self._serial = 0
        self._now = ""
        self._now_ms = -1
        self.any_key: Callable[[str], Row | None] = lambda table: None

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return self._random() < share

    def below(self, n: int) -> int:
        """Return a random number in [0, n)."""
        return int(self._random() * n)

    def one_of(self, values: Sequence[T]) -> T:
        """Return one of the values at random."""
        return values[int(self._random() * len(values))]

    def serial(self) -> int:
        """Return a number that was never returned before."""
        self._serial += 1
        return self._serial

    def at(self, now_ms: int) -> None:
        """Set the time."""
        if now_ms != self._now_ms:
            self._now_ms = now_ms
            self._now = f"{datetime.fromtimestamp(now_ms // 1000, UTC):%Y-%m-%d %H:%M:%S}.{now_ms % 1000:03d}"

    @property
    def now(self) -> str:
        """Return the time as DATETIME(3) text."""
        return self._now


Maker = Callable[[World], Value]


def row(table: SourceTable, world: World) -> Row:
    """Return a new row with a key that no row has or had."""
    return tuple([maker(world) for maker in _makers(table)])


def mutation(table: SourceTable, old: Row, world: World) -> Row:
    """Return the row with one to three new values outside its keys and unique columns. New values can equal the old ones."""
    free = _free_columns(table)
    makers, new = _makers(table), list(old)
    for _ in range(1 + world.below(min(3, len(free)))):
        i = world.one_of(free)
        new[i] = makers[i](world)
    return tuple(new)


def renamed_key(table: SourceTable, old: Row, world: World) -> Row:
    """Return the row with a new value in one of the columns whose change splits the update."""
    i = world.one_of(table.split_by)
    return (*old[:i], _makers(table)[i](world), *old[i + 1 :])


_plans: dict[SourceTable, tuple[list[Maker], list[int]]] = {}


def _makers(table: SourceTable) -> list[Maker]:
    return _plan(table)[0]


def _free_columns(table: SourceTable) -> list[int]:
    return _plan(table)[1]


def _plan(table: SourceTable) -> tuple[list[Maker], list[int]]:
    found = _plans.get(table)
    if found is None:
        makers = [_maker(table.name, c) for c in table.columns]
        found = makers, [i for i in range(len(makers)) if i not in table.split_by]
        _plans[table] = found
    return found


def _maker(table: str, column: SourceColumn) -> Maker:
    """The maker of a column: by table and column, by column and type, or by column."""
    keys = (f"{table}.{column.name}", f"{column.name} {column.type}", column.name)
    return next(_MAKERS[k] for k in keys if k in _MAKERS)


def _seller_id(w: World) -> Value:
    number = 1000 + w.serial()
    return -number if w.chance(0.04) else number


def _listing_id(w: World) -> Value:
    number = 500_000 + w.serial()
    return BEYOND_INT64 + number if w.chance(0.05) else number


def _of(table: str, otherwise: int) -> Maker:
    def key(w: World) -> Value:
        found = w.any_key(table)
        return found[0] if found else otherwise

    return key


def _cents(top: int, digits: int = 2) -> Callable[[World], str]:
    def amount(w: World) -> str:
        whole, cents = divmod(w.below(top * 10**digits), 10**digits)
        return f"{whole}.{cents:0{digits}d}"

    return amount


def _balance(w: World) -> Value:
    amount = _BALANCE(w)
    return f"-{amount}" if amount != "0.00" and w.chance(0.1) else amount


_BALANCE = _cents(90_000)


def _choice(*values: Value, null: float = 0.0) -> Maker:
    def one(w: World) -> Value:
        return None if null and w.chance(null) else w.one_of(values)

    return one


def _handle(w: World) -> Value:
    return f"{w.one_of(_WORDS)}.{w.one_of(_WORDS)}{w.serial()}"


def _name(w: World) -> Value:
    return f"{w.one_of(_FIRST_NAMES)} {w.one_of(_LAST_NAMES)}"


def _last_seen(w: World) -> Value:
    if w.chance(0.3):
        return None
    if w.chance(0.1):
        return "0000-00-00 00:00:00"
    return f"2025-12-{1 + w.below(31):02d} {w.below(24):02d}:{w.below(60):02d}:{w.below(60):02d}"


def _title(w: World) -> Value:
    return f"{w.one_of(_WORDS)} {w.one_of(_THINGS)}"


def _attrs(w: World) -> Value:
    if w.chance(0.15):
        return None
    return w.one_of(_JSON) if w.chance(0.5) else f'{{"colour": "{w.one_of(_WORDS)}", "sizes": [{w.below(60)}, {w.below(60)}.5]}}'


def _micros(w: World) -> Value:
    return f"{w.now}{w.below(1000):03d}"


def _stock(w: World) -> Value:
    return 4_294_967_295 if w.chance(0.02) else w.below(500)


def _double(w: World) -> Value:
    return w.one_of(_DOUBLES) if w.chance(0.1) else round(w.below(60_000_000) / 997, 3)


def _bytes(top: int) -> Maker:
    def some(w: World) -> Value:
        return None if w.chance(0.2) else bytes([w.below(256) for _ in range(w.below(top))])

    return some


def _wide_quantity(w: World) -> Value:
    return w.below(5) + 1 if w.chance(0.8) else 65_536 + w.below(4_294_901_760)


def _maybe(share: float, maker: Maker) -> Maker:
    return lambda w: maker(w) if w.chance(share) else None


_WORDS = "amber brisk cobalt dusky ember fjord gilded hazel indigo jolly köstlich lunar мир noble ocre 青い".split()
_THINGS = ["lamp", "teapot 🫖", 'table 24"', "chair <antique>", "Bücherregal", "自転車", "radio & amplifier", "clock (it's old)"]
_FIRST_NAMES = ["Ada", "Bora", "Chiara", "Dmitri", "Étienne", "Fatou", "Günther", "Håkon", "Iñaki", "Jun'ichi", "Ольга", "李", "🦊"]
_LAST_NAMES = ["Abebe", "Bell", "Çelik", "D'Angelo", "Eriksson", "Fernández", "Иванова", "李娜", "Nguyễn", 'O"Neil', "Smith-Jones"]
_TEXTS: tuple[str, ...] = (
    "",
    "mint condition",
    "two lines\nof text",
    "tab\there, carriage\rreturn",
    'she said: "no"',
    "it's fine",
    "C:\\temp\\new",
    "<b>bold</b> & <i>fast</i>",
    "price: 5 € – 10 €",
    "👩‍🔧🛠️ repaired",
    "نص عربي",
    "line\u2028separator",
    "NULL",
    "\\N",
    " padded ",
    "x" * 300,
)
_JSON = (
    "{}",
    "[]",
    "null",
    '"a \\"quoted\\" string"',
    "[1, -2.5, null, true]",
    '{"html": "<a href=\\"x\\">&</a>"}',
    '{"größe": 42, "nested": {"a": [], "b": [{}]}}',
    "12345678901234567890",
)
_DOUBLES = (0.0, 0.1, 1 / 3, -1.5, 1e16, 1e21, 1e-7, 5e-324, 1.7976931348623157e308)
_text = _choice(*_TEXTS, null=0.25)

_MAKERS: dict[str, Maker] = {
    "id bigint(20)": _seller_id,
    "id bigint(20) unsigned": _listing_id,
    "handle": _handle,
    "name": _name,
    "verified": _choice(0, 1),
    "balance": _balance,
    "joined": lambda w: w.now,
    "last_seen": _last_seen,
    "fax": _maybe(0.3, lambda w: f"+49 30 {w.below(10_000_000)}"),
    "seller_id": _of("sellers", 1),
    "title": _title,
    "description": _text,
    "details": _text,
    "price": _cents(20_000),
    "grade": _choice(1, 2, 3, 4),
    "tags": _choice(*range(32), null=0.2),
    "attrs": _attrs,
    "stock": _stock,
    "listed": _micros,
    "shipping": _choice("0.00", "4.90", "7.49", "12.00"),
    "listing_id": _of("listings", 500_000),
    "bid_no": lambda w: w.serial(),
    "amount": _cents(25_000),
    "quantity": _choice(1, 1, 1, 2, 3, 65_535),
    "quantity int(10) unsigned": _wide_quantity,
    "options": _maybe(0.7, lambda w: w.below(4096)),
    "placed": _micros,
    "withdrawn": _maybe(0.1, lambda w: w.now),
    "tracking": lambda w: f"BZ-{w.below(1 << 20):05X}-{w.one_of(('DE', 'FR', 'ß', '日'))}-{w.serial()}",
    "carrier": _choice("DHL", "GLS", "hermès", "郵便"),
    "weight": _maybe(0.9, _double),
    "pickup": _choice("2026-01-06", "2026-02-28", "2028-02-29", "1999-12-31", "9999-12-31", null=0.2),
    "slot": _choice("08:00:00", "12:30:00", "-00:00:01", "838:59:59", "-838:59:59", null=0.3),
    "note": _text,
    "label": _maybe(0.8, lambda w: f"{w.one_of('ABCDEF')}{w.below(100):02d}"),
    "content": _attrs,
    "photo": _bytes(40),
    "lights": _maybe(0.8, lambda w: w.below(256)),
    "temperature": lambda w: w.below(600) / 10 - 20,
    "checked": _choice("00:00:00.000", "06:15:30.250", "-12:00:00.999", null=0.3),
    "visited": lambda w: w.now,
    "page": _choice("/", "/search?q=lamp", "/listing", "/checkout", "/übersicht"),
    "visitor": _maybe(0.8, lambda w: bytes([w.below(4)] * w.below(5))),
    "referrer": _choice("", "https://example.com/?a=1&b=2", "direct", null=0.4),
    "code": lambda w: f"FLASH-{w.serial()}",
    "flash_sales.listing_id": _maybe(0.7, lambda w: 500_000 + w.serial()),
    "percent": _cents(80),
    "until": _choice("2026-01-05", "2026-01-31", null=0.3),
}
