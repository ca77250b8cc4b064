"""Checks expectations against the columns of tables.sql, without data and without Spark.

It checks that the column exists and that its type can have such values.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from tidelake.config.feed import Feed
from tidelake.config.table_name import written
from tidelake.errors import ConfigError
from tidelake.history.contract import Expectation, RecordedDdl, TableContract, read_expectations, read_recorded_ddl, read_tables
from tidelake.history.ddl.changes import AddColumn, RenameColumn
from tidelake.history.ddl.column_types import lake_type
from tidelake.history.ddl.statement import parse
from tidelake.validate.quality.basis import refuse

_OWN = re.compile(r"_[a-z_]+")  # the changelog's own columns: _commit_ts, …
_NUMBERS = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal.*")
_WHOLE = re.compile(r"tinyint|smallint|int|bigint|decimal\(\d+,0\)")
_OF_TEXT = re.compile(r"expect_column_values_to_(match_strftime_format|be_json_parseable|match_json_schema|be_dateutil_parseable)")
_OF_WHAT_PRINTS = re.compile(r"expect_column_value(s_to_(not_)?match_(regex|like_pattern)|_lengths_)\w*")
_OF_MOMENTS = ("date", "timestamp", "timestamp_ntz")
_MAY_BE_ABSENT = "expect_column_to_exist"
_STATISTICS = re.compile(r"expect_column_(mean|stdev)_to_be_between")

ColumnTypes = Mapping[str, str]  # name in lower case → lake type


def columns_of(tables: Sequence[TableContract], ddl: Sequence[RecordedDdl], feed: Feed) -> Mapping[str, ColumnTypes]:
    """Return the columns that tables.sql brings to the lake, by `db.table` in lower case.

    Columns that recorded statements add are included, with an empty type: their types are not known.
    """
    known: dict[str, dict[str, str]] = {}
    for t in tables:
        name = written(t.database, t.table)
        visible = ((c, feed.rules_of([name], [c.name])) for c in t.definition.visible)
        known[name.lower()] = {c.name.lower(): lake_type(c.type, rules) for c, rules in visible if rules.mask != "drop"}
    for statement in ddl:
        brought = list(_brought(statement))
        for columns in known.values():
            columns |= {name: "" for name in brought if name not in columns}
    return known


def _brought(statement: RecordedDdl) -> Iterator[str]:
    """Names of columns that a statement adds, in any table."""
    for change in parse(statement.query, statement.database):
        if isinstance(change, AddColumn):
            yield change.column.name.lower()
        elif isinstance(change, RenameColumn):
            yield change.to.lower()


def check_rules(feed: Feed) -> None:
    """Check that all expectations of a feed can be judged, and against its tables.sql. Raises ConfigError or ContractError for the first
    mistake.
    """
    rules = read_expectations(feed.folder)
    known = columns_of(read_tables(feed.folder), read_recorded_ddl(feed.folder), feed) if rules else {}
    for rule in rules:
        refuse(rule)
        check_columns(rule, known)


def check_columns(e: Expectation, known: Mapping[str, ColumnTypes]) -> None:
    """Check an expectation against the columns of its table. An unknown table passes: it may be created later.

    Raises:
        ConfigError: The table has no such column, or its type cannot have the expected values.
    """
    columns = known.get(e.table.lower())
    if columns is None or e.type == _MAY_BE_ABSENT:
        return
    for name in _columns_named(e):
        if name.lower() not in columns and not _OWN.fullmatch(name) and not e.later:
            near = difflib.get_close_matches(name.lower(), columns, n=3)
            meant = f"did you mean {' or '.join(near)}? " if near else f"its columns: {', '.join(columns)}; "
            raise ConfigError(
                f"{e.origin}: column: {e.table} has no column {name!r} in the lake, by tables.sql and feed.toml",
                remedy=f"{meant}If a statement adds it later, write `later = true` into this [[expect]]",
            )
    column = e.arguments.get("column")
    if isinstance(column, str) and (of_type := columns.get(column.lower())) and (problem := _mismatch(e, of_type)):
        raise ConfigError(f"{e.origin}: {problem}; {column} is {of_type} in the lake", remedy="correct the rule, or the column")


def _columns_named(e: Expectation) -> Iterator[str]:
    for argument in ("column", "column_A", "column_B"):
        if isinstance(name := e.arguments.get(argument), str):
            yield name
    several = e.arguments.get("column_list")
    if e.type.startswith(("expect_compound_columns", "expect_select_column", "expect_multicolumn")) and isinstance(several, list):
        yield from (name for name in several if isinstance(name, str))


def _mismatch(e: Expectation, of_type: str) -> str:
    """Say what the type can never be; empty if the expectation fits it."""
    if _OF_TEXT.fullmatch(e.type) and of_type != "string":
        return f"{e.type} is for text"
    if _OF_WHAT_PRINTS.fullmatch(e.type) and of_type.startswith("array"):
        return f"{e.type} is not for lists"
    if _STATISTICS.fullmatch(e.type) and not _NUMBERS.fullmatch(of_type):
        return f"{e.type} is for numbers"
    limits = {name: e.arguments[name] for name in ("min_value", "max_value") if name in e.arguments and "between" in e.type}
    if limits and e.type in ("expect_column_values_to_be_between", "expect_column_max_to_be_between", "expect_column_min_to_be_between"):
        wrong = [f"{name} {value!r}" for name, value in limits.items() if not _comparable(value, of_type)]
        if wrong:
            return f"{' and '.join(wrong)} cannot be compared with its values"
    values = e.arguments.get("value_set")
    if isinstance(values, list) and (never := [v for v in values if not _possible(v, of_type)]):
        return f"value_set: no value is ever {', '.join(map(repr, never[:3]))}"
    return ""


def _comparable(value: Any, of_type: str) -> bool:
    if _NUMBERS.fullmatch(of_type):
        return _number(value) is not None
    if of_type in _OF_MOMENTS:
        return isinstance(value, str | date | datetime)
    return of_type != "string" or isinstance(value, str)


def _possible(value: Any, of_type: str) -> bool:
    if _NUMBERS.fullmatch(of_type):
        number = _number(value)
        return value is None or (number is not None and (not _WHOLE.fullmatch(of_type) or number == number.to_integral_value()))
    if of_type in _OF_MOMENTS:
        return isinstance(value, str | date | datetime)
    return True


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None
