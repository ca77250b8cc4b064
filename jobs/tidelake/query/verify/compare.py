"""Compares a table with its source: checksums of ranges, then of parts of the ranges that differ, then rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from tidelake.io.texts import plural
from tidelake.query.verify import questions
from tidelake.query.verify.here import SIZES, Here, KeyPart, texts_within
from tidelake.query.verify.questions import Bound, ComparePlan, KeyRange
from tidelake.query.verify.upstream import UpstreamDatabase

NARROWED = 100  # number of differing parts that are narrowed down at each level
LISTED = 10_000  # number of rows that are fetched
MISSING_HERE, MISSING_UPSTREAM, CHANGED = "missing here", "missing upstream", "different"
_T = TypeVar("_T")
OnCompared = Callable[[int, int], None]  # (ranges compared, ranges in all)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """A row that differs.

    Attributes:
        kind: Kind of difference.
        key: Column → text; all columns if the table has no key.
        columns: Column → (here, upstream) for the columns that differ.
    """

    kind: str
    key: dict[str, str | None]
    columns: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class ComparedTable:
    """Result for a table.

    Attributes:
        rows_here: Rows in the lake.
        rows_upstream: Rows in the source.
        ranges: Ranges compared.
        different: Ranges that differ.
        unanswered: Questions without an answer yet.
        rows: Rows that differ.
        unlisted: Parts that were not narrowed down, as text.
    """

    rows_here: int = 0
    rows_upstream: int = 0
    ranges: int = 0
    different: int = 0
    unanswered: int = 0
    rows: list[RowDifference] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether nothing differs, or only texts with the same meaning."""
        return self.different == 0 or not (self.rows or self.unlisted or self.unanswered)


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A part whose sums differ. upstream: its number of rows in the source."""

    part: KeyPart
    upstream: int


ScanRange = Callable[[Callable[[pa.RecordBatchReader], list[tuple[str, ...]]]], list[tuple[str, ...]]]


def compare(
    plan: ComparePlan,
    here: Here,
    upstream: UpstreamDatabase,
    scan: ScanRange,
    sizes: Sequence[int] = SIZES,
    advance: OnCompared | None = None,
) -> ComparedTable:
    """Compare a table with its source.

    Args:
        plan: How to compare.
        here: The lake's sums.
        upstream: The source.
        scan: Reads the lake's table again, for the rows of parts that differ.
        sizes: Rows of a part at each level.
        advance: Called with (ranges compared, ranges in all).
    """
    found = ComparedTable(rows_here=here.rows)
    doubts = _ranges(plan, here, upstream, sizes[0], found, advance)
    for size in sizes[1:]:
        doubts = _narrowed(plan, here, upstream, size, _some(doubts, found), found)
    _rows(plan, upstream, scan, _some(doubts, found), found)
    return found


def _ranges(
    plan: ComparePlan, here: Here, upstream: UpstreamDatabase, size: int, found: ComparedTable, advance: OnCompared | None
) -> list[_Doubt]:
    parts = here.parts(size)
    found.ranges = len(parts)
    doubts: list[_Doubt] = []
    done = 0
    for group in _batches(plan, parts):
        counted = _counted(plan, upstream, group, found)
        found.rows_upstream += sum(n for _, n, _ in counted)
        doubts += _doubts(counted)
        done += len(group)
        if advance is not None:
            advance(done, len(parts))
    found.different = len(doubts)
    return doubts


def _narrowed(
    plan: ComparePlan, here: Here, upstream: UpstreamDatabase, size: int, doubts: Iterable[_Doubt], found: ComparedTable
) -> list[_Doubt]:
    out: list[_Doubt] = []
    finer: list[list[KeyPart]] = []
    for doubt in doubts:
        parts = here.parts(size, doubt.part.range)
        if len(parts) == 1:
            out.append(doubt)
        else:
            finer.append(parts)
    for group in _batches(plan, finer):
        out += _doubts(_counted(plan, upstream, [part for parts in group for part in parts], found))
    return sorted(out, key=lambda d: d.part.place)


def _batches(plan: ComparePlan, items: Sequence[_T]) -> list[Sequence[_T]]:
    """Split the items into questions. Ranges of a hash have no index and each question reads the whole table, so they get one question."""
    return [items] if plan.scans and items else [[item] for item in items]


def _counted(
    plan: ComparePlan, upstream: UpstreamDatabase, parts: Sequence[KeyPart], found: ComparedTable
) -> list[tuple[KeyPart, int, int]]:
    """Return (part, rows, sum) upstream for parts in order, possibly with gaps between them; empty if not answered."""
    ends: list[tuple[KeyPart | None, Bound | None]] = []  # parts of the question; None is a gap
    for part in parts:
        if ends and part.range.low != ends[-1][1]:
            ends.append((None, part.range.low))
        ends.append((part, part.range.high))
    inside = KeyRange(low=parts[0].range.low, high=parts[-1].range.high)
    answer = upstream.ask(questions.sums(plan, inside, [high for _, high in ends[:-1] if high is not None]))
    if answer is None:
        found.unanswered += 1
        return []
    there = {int(number): (int(n), int(total)) for number, n, total in answer}
    return [(part, *there.get(i, (0, 0))) for i, (part, _) in enumerate(ends) if part is not None]


def _doubts(counted: Iterable[tuple[KeyPart, int, int]]) -> list[_Doubt]:
    return [_Doubt(part, n) for part, n, total in counted if (n, total) != (part.rows, part.total)]


def _some(doubts: Sequence[_Doubt], found: ComparedTable) -> Sequence[_Doubt]:
    if len(doubts) > NARROWED:
        found.unlisted.append(f"{plural(len(doubts) - NARROWED, 'more part')} of the table that differ")
    return doubts[:NARROWED]


def _rows(plan: ComparePlan, upstream: UpstreamDatabase, scan: ScanRange, doubts: Iterable[_Doubt], found: ComparedTable) -> None:
    short = []
    for doubt in doubts:
        if max(doubt.upstream, doubt.part.rows) > LISTED:
            found.unlisted.append(f"{_words(plan, doubt.part.range)}: {plural(doubt.part.rows, 'row')} here, {doubt.upstream:,} upstream")
        else:
            short.append(doubt.part.range)
    ranges: list[KeyRange] = []
    there: list[tuple[str, ...]] = []
    for group in _batches(plan, short):
        answer = upstream.ask(questions.rows(plan, group))
        if answer is None:
            found.unanswered += 1
        else:
            ranges += group
            there += answer
    if ranges:
        here = scan(lambda rows: texts_within(plan, rows, ranges))
        found.rows += _keyed(plan, here, there) if plan.key else _multiset(plan, here, there)


def _keyed(plan: ComparePlan, here: Sequence[tuple[str, ...]], there: Sequence[tuple[str, ...]]) -> list[RowDifference]:
    places = [i for i, t in enumerate(plan.texts) if t.name in plan.key]
    a, b = ({tuple(row[i] for i in places): row for row in rows} for rows in (here, there))
    if (len(a), len(b)) != (len(here), len(there)):
        return _multiset(plan, here, there)  # duplicate keys, which a dict would hide
    out: list[RowDifference] = []
    for key in sorted(a.keys() | b.keys()):
        shown = {plan.texts[i].name: plan.texts[i].shown(text) for i, text in zip(places, key, strict=True)}
        if key not in a or key not in b:
            out.append(RowDifference(kind=MISSING_UPSTREAM if key in a else MISSING_HERE, key=shown))
            continue
        cells = zip(plan.texts, a[key], b[key], strict=True)
        columns = {t.name: (t.shown(x), t.shown(y)) for t, x, y in cells if not t.same(x, y)}
        if columns:
            out.append(RowDifference(kind=CHANGED, key=shown, columns=columns))
    return out


def _multiset(plan: ComparePlan, here: Sequence[tuple[str, ...]], there: Sequence[tuple[str, ...]]) -> list[RowDifference]:
    a, b = Counter(here), Counter(there)
    sides = ((MISSING_UPSTREAM, a - b), (MISSING_HERE, b - a))
    return [
        RowDifference(kind=kind, key={t.name: t.shown(x) for t, x in zip(plan.texts, row, strict=True)})
        for kind, rows in sides
        for row in sorted(rows.elements())
    ]


def _words(plan: ComparePlan, r: KeyRange) -> str:
    """Describe a range for people."""
    of = "hash of the row" if plan.scans else ", ".join(plan.key[: len(plan.places)])
    after = f"after {', '.join(map(str, r.low))}" if r.low else ""
    until = f"up to {', '.join(map(str, r.high))}" if r.high else ""
    return " ".join(x for x in (of, after, until) if x)
