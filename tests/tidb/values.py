"""SQL types and literals of their values, drawn at random: what the columns of the tests hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random

from tidelake.history.ddl.column_types import MysqlType

NUMBERS = ["TINYINT", "TINYINT UNSIGNED", "SMALLINT", "MEDIUMINT UNSIGNED", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED"]
NUMBERS += ["INT(6) UNSIGNED ZEROFILL", "BOOL"]
EXACT = ["DECIMAL(5,2)", "DECIMAL(12,4)", "DECIMAL(10)", "DECIMAL(20,0) UNSIGNED", "DECIMAL(38,10)", "DECIMAL(65,30)"]
FLOATS = ["FLOAT", "DOUBLE", "FLOAT UNSIGNED", "DOUBLE(10,3)"]
MOMENTS = ["DATE", "DATETIME", "DATETIME(3)", "DATETIME(6)", "TIMESTAMP", "TIMESTAMP(6)", "TIME", "TIME(3)", "YEAR"]
TEXTS = ["CHAR(1)", "CHAR(12)", "VARCHAR(5)", "VARCHAR(40)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"]
FOREIGN = [f"VARCHAR(40) CHARACTER SET {c}" for c in ("latin1", "gbk", "ascii", "utf8mb4 COLLATE utf8mb4_bin")]
BYTES = ["BINARY(4)", "BINARY(12)", "VARBINARY(16)", "TINYBLOB", "BLOB", "LONGBLOB"]
BITS = ["BIT(1)", "BIT(10)", "BIT(63)", "BIT(64)"]
ENUMS = ["ENUM('x','y','z')", "ENUM('z','y','x','w')", "ENUM('x','it''s, ok','')", "SET('a','b','c')", "SET('c','b','a','d')"]
OTHERS = ["JSON", "VECTOR", "VECTOR(3)"]
FAMILIES = (NUMBERS, EXACT, FLOATS, MOMENTS, TEXTS, FOREIGN, BYTES, BITS, ENUMS, OTHERS)
Families = Sequence[Sequence[str]]
FLAVOURS = ("words", "integers", "decimals", "floats", "moments", "json", "members")
_RANGES = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_WORDS = ("", "a", "it's", "Ünï", "中文", "🦀 crab", "tab\tline\nend", "back\\slash", "a|~", "  spaces  ", "A", "x" * 30)
_DOCUMENTS: tuple[object, ...] = (
    {"b": 1, "a": [1, 2.5, None]},
    [],
    {},
    "text",
    1,
    None,
    True,
    {"k": 'é"\\'},
    12345678901234567890,
    {"n": 1.0},
    -0.5,
)


def any_type(random: Random, families: Families = FAMILIES) -> str:
    """A type: its family first, so that each is as likely."""
    return random.choice(random.choice(families))


def near_type(random: Random, old: MysqlType, families: Families = FAMILIES) -> str:
    """A type of the same family mostly, into which values are likelier to fit."""
    family = next((f for f in families if old.word.upper() in " ".join(f)), TEXTS)
    return random.choice(random.choice([family, family, family, TEXTS, NUMBERS, EXACT]))


def string(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def literal(random: Random, mysql: MysqlType, flavour: str, *, zero_dates: bool = False) -> str:
    """A value of the type, as SQL. flavour: what texts look like; zero_dates: moments may be zero."""
    word = mysql.word
    if word in _RANGES:
        return str(_whole(random, _RANGES[word], mysql.unsigned))
    if word in _SIMPLE:
        return _SIMPLE[word](random)
    if word == "decimal":
        return _decimal(random, mysql)
    if word in ("float", "double"):
        return _float(random, mysql)
    if word == "bit":
        return str(random.choice([0, 1, 2 ** (mysql.length or 1) - 1, random.getrandbits(mysql.length or 1)]))
    if mysql.elements is not None:
        return _members(random, mysql)
    if word in ("date", "datetime", "timestamp", "time"):
        return string(_moment(random, word, mysql.length or 0, zero_dates))
    if mysql.is_binary:
        return f"X'{random.randbytes(random.randint(0, min(mysql.length or 12, 12))).hex()}'"
    return string(_text(random, mysql, flavour))


def _whole(random: Random, bits: int, unsigned: bool) -> int:
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    near = max(low, random.choice((0, 1, 7, 42, 99, -1, -7)))
    return random.choice((near, near, near, low, high, random.randint(low, high)))


def _decimal(random: Random, mysql: MysqlType) -> str:
    scale = mysql.scale or 0
    digits = (mysql.length or 10) - scale
    whole = random.choice(["0", "1", "42", "9" * digits, str(random.randrange(10 ** min(digits, 9)))])
    fraction = random.choice(["", "0", "5", "05", "49", "995", "9" * scale])[:scale]
    sign = "" if mysql.unsigned else random.choice(["", "", "-"])
    return f"{sign}{whole[: max(digits, 1)]}" + (f".{fraction}" if fraction else "")


def _float(random: Random, mysql: MysqlType) -> str:
    small = random.choice(["0", "0.1", "1.5", "2.5", "42", "1234.5", "0.001", "99999.994"])
    large = ["3e38", "16777217", "1e-30"] + (["1e308", "5e-324", "9007199254740993"] if mysql.word == "double" else [])
    sign = "" if mysql.unsigned else random.choice(["", "", "-"])
    return sign + (random.choice([small, small, *large]) if mysql.length is None else small)


def _members(random: Random, mysql: MysqlType) -> str:
    elements = mysql.elements or ()
    if mysql.word == "enum":
        return string(random.choice(elements))
    return string(",".join(e for e in elements if random.random() < 0.5))


def _moment(random: Random, word: str, digits: int, zero_dates: bool) -> str:
    if word == "time":
        clock = random.choice(["00:00:00", "10:20:30", "-838:59:59", "838:59:59", "-00:00:01", "23:59:59"])
        return clock if abs(len(clock)) > 9 else clock + _fraction(random, digits)
    if zero_dates and random.random() < 0.3:
        return "0000-00-00" if word == "date" else "0000-00-00 00:00:00"
    days = ["2026-01-05", "2024-02-29", "1999-12-31"] + ([] if word == "timestamp" else ["1000-01-01", "9999-12-31", "0001-01-01"])
    day = random.choice(days)
    return day if word == "date" else f"{day} {random.choice(['00:00:00', '10:20:30', '23:59:59'])}{_fraction(random, digits)}"


def _fraction(random: Random, digits: int) -> str:
    return f".{random.choice(['000000', '500000', '000001', '499999', '250000'])[:digits]}" if digits else ""


def _text(random: Random, mysql: MysqlType, flavour: str) -> str:
    if flavour == "members":
        return random.choice(["x", "y", "z", "X", "a", "b", "a,b"])
    made = {
        "integers": lambda: str(_whole(random, random.choice([8, 16, 32, 64]), False)),
        "decimals": lambda: _decimal(random, MysqlType("decimal", length=10, scale=4)),
        "floats": lambda: _float(random, MysqlType("double")),
        "moments": lambda: _moment(random, random.choice(["date", "datetime", "time"]), random.choice([0, 3, 6]), False),
        "json": lambda: _document(random),
    }
    text = made[flavour]() if flavour in made else random.choice(_WORDS)
    return text[: mysql.length] if mysql.word in ("char", "varchar") else text


def _document(random: Random) -> str:
    return json.dumps(random.choice(_DOCUMENTS), ensure_ascii=False)


_SIMPLE: dict[str, Callable[[Random], str]] = {
    "year": lambda random: str(random.choice([0, 1901, 2026, 2155])),
    "json": lambda random: string(_document(random)),
    "vector": lambda random: string(random.choice(["[1,-2.5,0]", "[0.1,3e10,-0]", "[1,2,3]", "[-1e-10,16777216,0.3]"])),
}
