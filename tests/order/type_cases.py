"""Every MySQL and TiDB type with its hard values, and what becomes of each: the rows of docs/types.md."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tidelake.config.policy import PLAIN, ValueRules
from tidelake.history.ddl.column_types import MysqlType, lake_type
from tidelake.lake.columns.cells import CastRules

NULL = ValueRules(invalid_values="null")
TEXT = ValueRules(invalid_values="string")
WIDE = ValueRules(wide_decimal="decimal(38,10)", invalid_values="null")
WORDS = ("comma, and", "it's", 'say "hi"', "", "back\\slash", "中👩‍🔧")
ENUM = MysqlType("enum", elements=WORDS).sql
SET64 = MysqlType("set", elements=tuple(f"m{i}" for i in range(64))).sql


@dataclass(frozen=True, kw_only=True)
class Case:
    """A column. same: values that come back as they are. other: value → (what comes back, the loss that is counted)."""

    type: str
    same: tuple[str | bytes, ...] = ()
    other: tuple[tuple[str | bytes, str | None, str], ...] = ()
    zone: str = "UTC"
    values: ValueRules = PLAIN
    names_sent: bool = False

    @cached_property
    def mysql(self) -> MysqlType:
        return MysqlType.parse(self.type)

    @property
    def rules(self) -> CastRules:
        return CastRules(time_zone=self.zone, names_sent=self.names_sent, values=self.values)

    @property
    def lake(self) -> str:
        return lake_type(self.mysql, self.values)

    @property
    def cells(self) -> list[bytes]:
        return [v if isinstance(v, bytes) else v.encode() for v in (*self.same, *(o[0] for o in self.other))]

    @property
    def wanted(self) -> list[tuple[str | bytes | None, str]]:
        """What comes back, and the losses."""
        return [(v, "") for v in self.same] + [(back, loss) for _, back, loss in self.other]


def invalid_values(*values: str) -> tuple[tuple[str, None, str], ...]:
    """Values that would block publishing."""
    return tuple((v, None, "invalid_values") for v in values)


def nulled_values(*values: str) -> tuple[tuple[str, None, str], ...]:
    """Values that the policy makes NULL."""
    return tuple((v, None, "nulled_values") for v in values)


def nulled_zero_dates(*values: str) -> tuple[tuple[str, None, str], ...]:
    """Zero dates that the policy makes NULL."""
    return tuple((v, None, "nulled_zero_dates") for v in values)


CASES = (
    Case(type="tinyint", same=("-128", "0", "127")),
    Case(type="tinyint unsigned", same=("0", "255")),
    Case(type="smallint", same=("-32768", "32767")),
    Case(type="smallint unsigned", same=("65535",)),
    Case(type="mediumint", same=("-8388608", "8388607")),
    Case(type="mediumint unsigned", same=("16777215",)),
    Case(type="int", same=("-2147483648", "2147483647"), other=invalid_values("2147483648", "1.5", "1e2", "x", "")),
    Case(type="int unsigned", same=("0", "4294967295")),
    Case(type="bigint", same=("-9223372036854775808", "9223372036854775807"), other=invalid_values("9223372036854775808")),
    Case(type="bigint unsigned", same=("0", "9223372036854775808", "18446744073709551615"), other=invalid_values("1.5")),
    Case(type="year", same=("0", "1901", "2155"), other=(("0000", "0", ""),)),
    Case(type="bit(1)", same=("0", "1")),
    Case(type="bit(63)", same=("9223372036854775807",)),
    Case(type="bit(64)", same=("0", "18446744073709551615")),
    Case(
        type="decimal(10,4)",
        same=("0.0000", "-999999.9999"),
        other=(("1.5", "1.5000", ""), *invalid_values("1.00005", "1000000", "1e-5", "1e2")),
    ),
    Case(type="decimal(38,0)", same=("9" * 38, "-" + "9" * 38)),
    Case(type="decimal(38,38)", same=("0." + "9" * 38, "-0." + "0" * 37 + "1")),
    Case(
        type="decimal(65,30)",
        same=("9" * 35 + "." + "9" * 30, "-0." + "0" * 29 + "1"),
        other=(("0.0", "0." + "0" * 30, ""), ("-7", "-7." + "0" * 30, "")),
    ),
    Case(
        type="decimal(65,30)",
        values=WIDE,
        same=("9" * 28 + "." + "1" * 10 + "0" * 20, "-12." + "5" * 10 + "0" * 20),
        other=nulled_values("0." + "0" * 10 + "1" + "0" * 19, "9" * 29 + "." + "0" * 30),
    ),
    Case(
        type="float",
        same=("3.4028235e38", "-1.1754944e-38", "1e-45", "0.1", "0", "123456.79"),
        other=invalid_values("1e39", "NaN", "-Infinity"),
    ),
    Case(
        type="double",
        same=("1.7976931348623157e308", "-2.2250738585072014e-308", "5e-324", "0.1", "9007199254740993e0"),
        other=invalid_values("1e309", "Infinity"),
    ),
    Case(
        type="date",
        same=("0000-01-01", "0001-01-01", "1000-01-01", "1582-10-10", "2024-02-29", "9999-12-31"),
        other=(*nulled_zero_dates("0000-00-00", "2024-00-10", "2024-10-00"), *invalid_values("2023-02-29", "2024-01-01 10:00:00", "2024")),
    ),
    Case(type="date", values=ValueRules(zero_date="string"), same=("0000-00-00", "2024-00-10", "9999-12-31")),
    Case(
        type="date",
        values=ValueRules(zero_date="reject", invalid_values="null"),
        other=(*invalid_values("0000-00-00"), *nulled_values("2023-02-29")),
    ),
    Case(
        type="datetime(6)",
        zone="America/New_York",  # which must not matter
        same=("0000-01-01 00:00:00.000000", "1000-01-01 00:00:00.000001", "2026-03-08 02:30:00.000000", "9999-12-31 23:59:59.999999"),
        other=(
            *nulled_zero_dates("0000-00-00 00:00:00.000000"),
            *invalid_values("2024-01-01 00:00:00.1234567", "2024-01-01 00:00:00+08:00"),
        ),
    ),
    Case(type="datetime", same=("1000-01-01 00:00:00", "9999-12-31 23:59:59"), other=(("2024-01-01", "2024-01-01 00:00:00", ""),)),
    Case(type="datetime(0)", same=("1000-01-01 00:00:00", "0000-01-01 00:00:00")),
    Case(type="timestamp(3)", same=("1970-01-01 00:00:01.000", "2038-01-19 03:14:07.999")),
    Case(type="timestamp(0)", zone="+08:00", same=("1970-01-01 08:00:01", "2026-03-08 02:30:00")),
    Case(
        type="timestamp(0)",
        zone="America/New_York",
        same=("2026-03-08 01:59:59", "2026-03-08 03:00:00", "2026-11-01 00:59:59", "2026-11-01 02:00:00", "1974-01-06 03:00:00"),
        other=(
            ("2026-11-01 01:30:00", "2026-11-01 01:30:00", "ambiguous"),
            *nulled_zero_dates("0000-00-00 00:00:00"),
            *invalid_values("2026-03-08 02:30:00", "1974-01-06 02:30:00"),
        ),
    ),
    Case(
        type="timestamp(6)",
        zone="Australia/Lord_Howe",  # where clocks are put back by half an hour
        same=("2026-04-05 01:29:59.999999", "2026-10-04 01:59:59.999999", "2026-10-04 02:30:00.000000"),
        other=(("2026-04-05 01:45:00.000000", "2026-04-05 01:45:00.000000", "ambiguous"), *invalid_values("2026-10-04 02:15:00.000000")),
    ),
    Case(type="timestamp(0)", values=TEXT, same=("0000-00-00 00:00:00", "2024-01-01 00:00:00+08:00", "2026-03-08 02:30:00")),
    Case(type="time(6)", same=("-838:59:59.000000", "838:59:58.999999", "-00:00:00.000001", "24:00:00.500000")),
    Case(type="char(9)", same=("", "中👩‍🔧", 'it\'s "¼" \\ \n\t\x00'), other=((b"a\xffb", "a�b", "repaired"),)),
    Case(type="longtext", same=("NULL", "\\N", "{}", "null")),
    Case(type="binary(3)", same=(b"", b"\xff\xfe\x00", b"a\x00\x00")),
    Case(type="longblob", same=(bytes(range(256)),)),
    Case(type="json", same=('{"n": 123456789012345678901234567890.10, "b":[1.0,1e400], "a":"\\u00e9"}', "null", "1.00")),
    Case(
        type=ENUM,
        other=(
            *((str(i + 1), w, "ambiguous" * (w == "")) for i, w in enumerate(WORDS)),
            ("0", "", "ambiguous"),
            *invalid_values("7", "-1", "it's"),
        ),
    ),
    Case(type=ENUM, names_sent=True, same=WORDS),
    Case(type="enum", same=("0", "65535")),
    Case(type=ENUM, values=TEXT, other=(("2", "it's", ""), ("7", "7", ""))),
    Case(type="set('a','it''s','\"')", other=(("0", "", ""), ("5", 'a,"', ""), ("7", "a,it's,\"", ""), *invalid_values("8", "-1"))),
    Case(type=SET64, other=(("9223372036854775808", "m63", ""), ("18446744073709551615", ",".join(f"m{i}" for i in range(64)), ""))),
    Case(type="set", same=("18446744073709551615",)),
    Case(
        type="vector(3)",
        same=("[]", "[1,-2.5,0]", "[3.4028235e38,1e-45,0.1]"),
        other=invalid_values("[1e39]", "[1,null]", '["a"]', "[NaN]", "{}", "[1"),
    ),
    Case(type="int", values=NULL, same=("1",), other=nulled_values("x", "9999999999")),
    Case(type="int", values=TEXT, same=("1", "x", "9999999999")),
)
