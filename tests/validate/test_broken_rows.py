"""Rows that break a rule which every table gets are read from the staged changelog, without Spark, and only where some were counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.lake import lakes
from tidelake.config.evidence import MOST_ROWS
from tidelake.config.feed import Feed
from tidelake.history.event import EVENT
from tidelake.history.incarnations import Catalog, Name
from tidelake.lake.catalog import LakeCatalog, LakeColumn, LakeTable
from tidelake.lake.cut import Advance, Cut, InvalidValue, Staged, TableCounts
from tidelake.lake.events import ensure_events
from tidelake.lake.tables import CHANGELOG_COLUMNS
from tidelake.validate.broken_rows import BrokenRows, broken_rows
from tidelake.validate.quality.evidence import PLACE, UnexpectedRows
from tidelake.validate.quality.judge import Measure
from tidelake.validate.stage import table_measures
from tidelake.validate.written import WrittenCounts

CHANGELOG = "d_changelog.t"
COLUMNS = (LakeColumn(name="id", type="bigint", doc="1: bigint"), LakeColumn(name="part", type="string", doc="2: varchar(9)"))
APPLIED, RESOLVED = 100, 200
BOTH = lakes.incarnation(id="bigint", part="varchar(9)")
BOTH = replace(BOTH, key=tuple(c.id for c in BOTH.columns))
Row = tuple[int | None, str | None, int, int]  # id, part, commit ts, offset


def changes(table: LakeTable, rows: Sequence[Row]) -> pa.Table:
    schema = table.table.schema().as_arrow()
    told = (dict(zip(("id", "part", "_commit_ts", "_offset"), r, strict=True)) for r in rows)
    same = {"_change_type": "INSERT", "_topic": "t", "_kafka_partition": 0, "_ordinal": 0}
    return pa.Table.from_pylist([dict.fromkeys(schema.names) | same | t for t in told], schema)


def staged(catalog: LakeCatalog, old: Sequence[Row], *new: Sequence[Row]) -> Staged:
    """A window whose changelog held old rows before and gets new ones on a branch, in several files."""
    made = lakes.table(catalog, CHANGELOG, columns=(*COLUMNS, *CHANGELOG_COLUMNS))
    base = catalog.append(CHANGELOG, changes(made, old))
    catalog.set_branch(catalog.load(CHANGELOG), "run_2_1", base)
    for rows in new:
        catalog.load(CHANGELOG).table.append(changes(made, rows), branch="run_2_1")
    to = catalog.load(CHANGELOG).branch("run_2_1")
    advance = Advance(identifier=CHANGELOG, uuid=made.uuid, base=base, to=to, branch="run_2_1", incarnation=BOTH.id)
    cut = Cut(feed="shop", seq=2, hour="2026-01-05T10", applied_ts=APPLIED, resolved_ts=RESOLVED, run="run_2_1", version="0")
    return Staged(
        cut=cut.model_copy(update={"catalog": Catalog({BOTH.id: BOTH})}), changelogs={BOTH.id: advance}, counts={BOTH.id: TableCounts()}
    )


def counted(null_keys: int = 0, first: int = APPLIED + 1, last: int = RESOLVED) -> dict[str, WrittenCounts]:
    return {BOTH.id: {"null_keys": null_keys, "first_ts": first, "last_ts": last}}


def places(found: UnexpectedRows | None) -> list[object]:
    return [r["_offset"] for r in found.partial_unexpected_index_list] if found else []


def test_rows_with_null_in_the_key_are_the_windows_own_and_each_is_shown_once(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    window = staged(catalog, [(None, "old", 50, 1)], [(1, "a", 110, 11), (None, "b", 111, 12)], [(2, None, 112, 13), (None, None, 113, 14)])
    found = broken_rows(catalog, window, counted(null_keys=3))[BOTH.id]
    assert found.outside is None
    assert found.null_keys is not None
    assert found.null_keys.model_dump() == {
        "unexpected_index_column_names": ["id", "part", *PLACE],
        "partial_unexpected_index_list": [
            {"id": i, "part": part} | dict(zip(PLACE, (ts, "t", 0, offset, 0), strict=True))
            for i, part, ts, offset in ((None, "b", 111, 12), (2, None, 112, 13), (None, None, 113, 14))
        ],
        "partial_unexpected_list": [{"id": None, "part": "b"}, {"id": 2, "part": None}, {"id": None, "part": None}],
    }


def test_rows_outside_the_window_are_those_at_its_start_or_after_its_end(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    new = [(n, "a", ts, ts) for n, ts in enumerate((APPLIED - 1, APPLIED, APPLIED + 1, RESOLVED, RESOLVED + 1))]
    found = broken_rows(catalog, staged(catalog, [], new), counted(first=APPLIED - 1, last=RESOLVED + 1))[BOTH.id]
    assert places(found.outside) == [APPLIED - 1, APPLIED, RESOLVED + 1]
    assert found.outside is not None
    assert found.outside.partial_unexpected_list == [APPLIED - 1, APPLIED, RESOLVED + 1]
    assert found.null_keys is None


def events(catalog: LakeCatalog, feed: Feed, *rows: dict[str, Any]) -> int:
    """The feed's events: these rows of topic t."""
    made = ensure_events(catalog, feed)
    same = {"hour": "2026-01-05T10", "kind": "row", "topic": "t", "partition": 0, "ordinal": 0, "database": "d", "after": [b"clear"]}
    told = [dict.fromkeys(EVENT.names) | same | r for r in rows]
    return catalog.append(made.identifier, pa.Table.from_pylist(told, made.table.schema().as_arrow()))


def test_rows_that_do_not_match_their_checksum_are_found_by_their_events(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    window = staged(catalog, [], [(1, "a", 110, 11), (2, "b", 111, 12), (3, "c", 112, 13), (4, "d", 113, 14)])
    at = events(
        catalog,
        lakes.feed(tmp_path),
        {"offset": 11, "commit_ts": 110, "table": "t", "checksum": "verified"},
        {"offset": 12, "commit_ts": 111, "table": "t", "checksum": "mismatch"},
        {"offset": 13, "commit_ts": 112, "table": "other", "checksum": "mismatch"},
        {"offset": 14, "commit_ts": RESOLVED + 1, "table": "t", "checksum": "mismatch"},
        {"offset": 14, "commit_ts": 113, "table": "t", "checksum": "mismatch", "ordinal": 1},  # another event of a message
        {"offset": 15, "commit_ts": 111, "table": "t", "checksum": "mismatch"},  # a repeat, which is no change
    )
    spelled = replace(BOTH, names=(Name(database="D", table="T", after_ts=-1),))  # messages may have small letters
    cut = window.cut.model_copy(update={"events_snapshot_id": at, "catalog": Catalog({BOTH.id: spelled})})
    marked = {BOTH.id: TableCounts(checksums={"verified": 1, "mismatch": 2})}
    window = window.model_copy(update={"counts": marked, "cut": cut})
    found = broken_rows(catalog, window, counted())[BOTH.id].damaged
    assert found is not None
    assert found.partial_unexpected_index_list == [{"id": 2, "part": "b"} | dict(zip(PLACE, (111, "t", 0, 12, 0), strict=True))]
    assert "clear" not in found.model_dump_json()


def test_no_more_rows_are_read_than_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, read = lakes.catalog(tmp_path), list[int]()
    added = LakeTable.added

    def measured(self: LakeTable, *given: Any) -> pa.Table:
        rows = added(self, *given)
        read.append(rows.num_rows)
        return rows

    monkeypatch.setattr(LakeTable, "added", measured)
    window = staged(catalog, [], *([(None, "a", 110, 1000 * k + n) for n in range(500)] for k in range(3)))
    found = broken_rows(catalog, window, counted(null_keys=1500))[BOTH.id]
    assert len(places(found.null_keys)) == MOST_ROWS
    assert read == [MOST_ROWS, 0]  # a filter for each column of the key


def test_nothing_is_read_of_a_window_that_breaks_no_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = lakes.catalog(tmp_path)
    window = staged(catalog, [], [(1, "a", 110, 11)])
    monkeypatch.setattr(LakeCatalog, "load", None)
    assert broken_rows(catalog, window, counted()) == {}


def measures(counts: TableCounts, null_keys: int = 0, broken: BrokenRows | None = None) -> dict[tuple[str, str | None], Measure]:
    cut = Cut(feed="shop", seq=2, hour="2026-01-05T10", applied_ts=APPLIED, resolved_ts=RESOLVED, run="run_2_1", version="0")
    found = table_measures(BOTH, counts, {"null_keys": null_keys}, Staged(cut=cut), broken)
    return {(m.rule, m.column): m for m in found}


def test_a_rule_has_the_rows_that_break_it() -> None:
    rows = [
        UnexpectedRows(unexpected_index_column_names=["id"], partial_unexpected_index_list=[{"id": n}], partial_unexpected_list=[n])
        for n in range(2)
    ]
    found = measures(TableCounts(), 1, BrokenRows(null_keys=rows[0], outside=rows[1]))
    assert {rule: m.result for (rule, _), m in found.items()} == {
        "commit ts inside the window": rows[1],
        "counts reconcile": None,
        "key not null": rows[0],
        "types parsed": None,
    }


@pytest.mark.parametrize(
    ("counts", "remedy"),
    [
        (TableCounts(), "correct the rows at the source, or the key of d.t in tables.sql if the source has another one"),
        (TableCounts(nulled_values={"v": 1}), "correct the rows at the source, or the key of d.t"),
        (TableCounts(nulled_values={"id": 1}), 'To keep them as text, set [columns."d.t".id] invalid_values = "string" in feed.toml'),
        (TableCounts(invalid_values={"id": 1}), 'To keep them as text, set [columns."d.t".id] invalid_values = "string" in feed.toml'),
        (TableCounts(nulled_zero_dates={"part": 1}), 'To keep them as text, set [columns."d.t".part] zero_date = "string" in feed.toml'),
    ],
)
def test_null_in_a_key_names_the_setting_that_made_it(counts: TableCounts, remedy: str) -> None:
    assert remedy in measures(counts, 1)["key not null", None].remedy


def test_values_that_do_not_fit_name_the_setting_that_lets_them_pass_and_a_key_cannot_become_null() -> None:
    value = InvalidValue(cell="x", key={"id": "x", "part": "a"}, topic="t", partition=0, offset=7, ordinal=0, commit_ts=110)
    counts = TableCounts(invalid_values={"id": 1, "price": 2}, invalid_value_examples={"id": [value]})
    found = measures(counts)
    assert 'pass as NULL, or as text, set [columns."d.t".price] invalid_values = "null" in feed.toml, or "string" (docs/types.md)' in (
        found["types parsed", "price"].remedy
    )
    assert (
        'pass as text, set [columns."d.t".id] invalid_values = "string" in feed.toml (docs/types.md)' in found["types parsed", "id"].remedy
    )
    assert places(found["types parsed", "id"].result) == [7]
    assert found["types parsed", "price"].result is None
