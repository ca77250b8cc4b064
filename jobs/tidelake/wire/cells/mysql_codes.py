"""TiDB's column type codes and flags (docs/reference/protocols.md 1.1, 1.2), as Open Protocol and Craft send them, in MySQL's words."""

from __future__ import annotations

BINARY = 0x01
HANDLE_KEY = 0x02
NULLABLE = 0x40
UNSIGNED = 0x80

_WORDS = {
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    14: "date",  # NEWDATE
    16: "bit",
    225: "vector",
    245: "json",
    246: "decimal",
    247: "enum",
    248: "set",
    255: "geometry",
}
_TEXT_OR_BYTES = {
    15: ("varchar", "varbinary"),
    249: ("tinytext", "tinyblob"),
    250: ("mediumtext", "mediumblob"),
    251: ("longtext", "longblob"),
    252: ("text", "blob"),
    253: ("varchar", "varbinary"),
    254: ("char", "binary"),
}
_SIGNABLE = frozenset({1, 2, 3, 4, 5, 8, 9, 246})  # TiDB sets the flag on YEAR and BIT too, where it means nothing


def word(code: int, flag: int) -> str | None:
    """`bigint unsigned`; None for a code without a meaning of its own (0 unspecified, 6 NULL, unknown ones)."""
    if code in _TEXT_OR_BYTES:
        return _TEXT_OR_BYTES[code][flag & BINARY]
    name = _WORDS.get(code)
    return f"{name} unsigned" if name and code in _SIGNABLE and flag & UNSIGNED else name
