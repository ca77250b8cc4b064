"""The validate stage: checks the staged changelogs; a critical failure keeps compact from publishing.

The rules of every table are counted for all tables together, and unusual.py compares the numbers with earlier days. own_rules.py judges
the rules of expectations/.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidelake.config.lake_paths import run_key
from tidelake.errors import OrderError
from tidelake.history.definitions import unsaid_types
from tidelake.history.incarnations import Incarnation
from tidelake.io.documents import find_document
from tidelake.io.texts import plural
from tidelake.lake.cut import Staged, TableCounts
from tidelake.lake.opened import Lake
from tidelake.lake.staged import Target, read_staged
from tidelake.tso import show
from tidelake.validate.broken_rows import BrokenRows, broken_rows, invalid_rows, outside_window
from tidelake.validate.invalid_setting import setting
from tidelake.validate.own_rules import judged_by_counts, judged_by_rows, own_rules
from tidelake.validate.quality.evidence import UnexpectedRows
from tidelake.validate.quality.judge import Measure, judge_measures
from tidelake.validate.quality.verdict import Verdict
from tidelake.validate.unusual import unusual_measures
from tidelake.validate.written import AT_HAND, KINDS, WrittenCounts, written


def validate_window(lake: Lake, target: Target) -> Verdict | None:
    """Check what order staged and store the verdict; return None if the target is published. Verdict.refuse decides whether it blocks.

    Raises:
        OrderError: What `read_staged` raises.
    """
    started, feed, catalog = time.time(), lake.feed, lake.catalog
    _, staged = read_staged(lake, target)
    if staged is None:
        return None
    lake.brief = sum(c.changes for c in staged.counts.values()) <= AT_HAND
    tables = staged.cut.catalog.incarnations
    found = written(lambda: lake.spark, catalog, staged)
    broken = broken_rows(catalog, staged, found)
    measures = [m for i, c in staged.counts.items() for m in table_measures(tables[i], c, found.get(i, {}), staged, broken.get(i))]
    own = own_rules(feed, staged)
    counted, refused = judged_by_counts(own, found, staged)
    checks = judge_measures([*_whole(staged), *measures, *unusual_measures(feed, lake.store, staged), *counted])
    checks += [*refused, *judged_by_rows(lake, own, found, staged)]
    verdict = Verdict(
        feed=feed.name,
        hour=staged.cut.hour,
        seq=staged.cut.seq,
        run=staged.cut.run,
        checks=checks,
        seconds={"validate": round(time.time() - started, 3)},
    )
    lake.store.write(run_key(feed.name, staged.cut.seq, "validate"), verdict.model_dump_json(indent=1).encode())
    return verdict


def passed(lake: Lake, target: Target, staged: Staged) -> Verdict:
    """Return the verdict on what is staged for a target.

    Raises:
        OrderError: NOT_VALIDATED.
        QualityError: A critical rule failed.
    """
    verdict = find_document(lake.store, run_key(lake.feed.name, staged.cut.seq, "validate"), Verdict)
    if verdict is None or verdict.run != staged.cut.run:
        remedy = f"run `tidelake validate --feed {lake.feed.name} {target.options}` first"
        raise OrderError(f"the window of hour {staged.cut.hour} is not validated", code="NOT_VALIDATED", remedy=remedy)
    verdict.refuse()
    return verdict


def _whole(staged: Staged) -> list[Measure]:
    """Rules of the whole window."""
    placed = sum(c.events - c.undated for c in staged.counts.values())
    return [
        Measure(
            table="",
            rule="every row event of the window belongs to a table",
            severity="critical",
            value=staged.window_events - placed,
            minimum=0,
            maximum=0,
            expected=f"{plural(staged.window_events, 'row event')} in tables",
            observed=f"{placed}",
        )
    ]


def table_measures(i: Incarnation, c: TableCounts, again: WrittenCounts, staged: Staged, broken: BrokenRows | None = None) -> list[Measure]:
    """Return the rules that every table gets.

    Args:
        i: The table.
        c: What order counted.
        again: Numbers of rows by change type, `null_keys`, `first_ts`, `last_ts`.
        staged: The staged window.
        broken: Rows that break these rules, if any do.
    """
    cut, broken, outside = staged.cut, broken or BrokenRows(), outside_window(again, staged)
    changes = sum(again.get(k, 0) for k in KINDS)
    wanted = c.inserts + c.deletes + c.upserts + 2 * c.updates - c.updates_without_before_image + c.exchanged_in + c.exchanged_out
    expected = f"{plural(wanted, 'change')} of {plural(c.events - c.duplicates, 'event')}"
    inside = _zero(i, "commit ts inside the window", len(outside), f"in ({show(cut.applied_ts)}, {show(cut.resolved_ts)}]", _shown(outside))
    rules = [
        replace(inside, result=broken.outside),
        _zero(i, "counts reconcile", abs(changes - wanted), expected, f"{changes:,} written"),
    ]
    if i.guessed:
        missing = unsaid_types(i.columns)
        found = "taken from messages" + (f", except for {plural(len(missing), 'column')}: {'; '.join(missing)}" if missing else "")
        wanted_types = "defined by tables.sql, a statement or messages"
        rules.append(_zero(i, "types are known", len(missing), wanted_types, found, severity="warning"))
    if i.key:
        null_keys = again.get("null_keys", 0)
        rule = _zero(i, "key not null", null_keys, "no NULL in the key", plural(null_keys, "row"))
        rules.append(replace(rule, result=broken.null_keys, remedy=_null_key_remedy(i, c)))
    rules += [_invalid_values(i, c, name, n) for name, n in c.invalid_values.items()]
    if not c.invalid_values:
        rules.append(_zero(i, "types parsed", 0, "every value fits its type", "all do"))
    rules += [
        _zero(i, "types parsed", n, "every value fits its type", f"{plural(n, 'value')} now NULL", column=name, severity="warning")
        for name, n in c.nulled_values.items()
    ]
    rules += [
        _zero(i, "text is UTF-8", n, "valid UTF-8", f"{plural(n, 'text')} repaired with U+FFFD", column=name, severity="warning")
        for name, n in c.repaired.items()
    ]
    return rules + ([_checksums(i, c.checksums, broken.damaged)] if c.checksums else [])


def _invalid_values(i: Incarnation, c: TableCounts, column: str, n: int) -> Measure:
    measure = _zero(
        i, "types parsed", n, "every value fits its type", f"{plural(n, 'value')} that {'does' if n == 1 else 'do'} not", column
    )
    if column in _key_names(i):
        passing = f"as text, set {setting(i.name, column, 'string')} in feed.toml"
    else:
        passing = f'as NULL, or as text, set {setting(i.name, column, "null")} in feed.toml, or "string"'
    remedy = f"the rows are in the archive at these coordinates. To let such values pass {passing} (docs/types.md)"
    return replace(measure, result=invalid_rows(c, column), remedy=remedy)


def _null_key_remedy(i: Incarnation, c: TableCounts) -> str:
    """A key that is NULL because it does not fit its type can be text; any other came as NULL."""
    kept = [setting(i.name, k, "string") for k in _key_names(i) if k in c.invalid_values or k in c.nulled_values]
    kept += [setting(i.name, k, "string", "zero_date") for k in _key_names(i) if k in c.nulled_zero_dates]
    if kept:
        return f"values that do not fit their type are NULL. To keep them as text, set {' and '.join(kept)} in feed.toml (docs/types.md)"
    return f"correct the rows at the source, or the key of {i.name} in tables.sql if the source has another one"


def _key_names(i: Incarnation) -> list[str]:
    return [k.name for k in i.columns if k.id in i.key]


def _checksums(i: Incarnation, found: Mapping[str, int], damaged: UnexpectedRows | None) -> Measure:
    """The rule for rows that have a checksum."""
    differ, unclear = found.get("mismatch", 0), found.get("unverifiable", 0)
    said = (
        f"{found.get('verified', 0)} do" + (f", {differ} do not" if differ else "") + (f", {unclear} cannot be checked" if unclear else "")
    )
    rule = _zero(i, "rows match their checksums", differ, "every row does", said, severity="warning")
    return replace(rule, result=damaged, remedy='to quarantine such messages, set checksum = "quarantine" under [policy] in feed.toml')


def _zero(
    i: Incarnation, rule: str, value: int, expected: str, observed: str, column: str | None = None, severity: str = "critical"
) -> Measure:
    return Measure(
        table=i.name,
        rule=rule,
        column=column,
        severity="warning" if severity == "warning" else "critical",
        value=value,
        minimum=0,
        maximum=0,
        expected=expected,
        observed=observed,
    )


def _shown(moments: Sequence[int]) -> str:
    return ", ".join(show(ts) for ts in moments) or "all are"
