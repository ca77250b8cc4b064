"""Before-image reconciliation: compare the old rows that changes carry with the rows of the lake (docs/architecture.md 8.4).

An update or delete that carries the old row, and an insert, say how their row was before: the row must be in the last cut's snapshot, or
result from the change before it. If it does not, a change was lost or repeated, or the snapshot is wrong.

The comparison needs no scan of its own. The fold groups snapshot and changes by key anyway. There every image counts with its hash: current
rows are added, old rows subtracted, and the sum must be the hash of the final row. Only if the sums of some key do not match are the
touched buckets read once more, to find the rows, columns and values.

Not compared: columns that are masked, columns that a statement of the window added or retyped, FLOAT, VECTOR and JSON (their text depends
on the printer), FLOATs that Craft damaged, keys with a change that does not carry what it replaces (upserts, rows with only their key),
the other columns of deletes that carry the key alone; tables that have no snapshot yet, that lost a partition in the window (no change
events for its rows) or that were recovered in it; feeds ordered by offsets, where a repeat looks like a change. Windows and redos compare;
asof, versions, rollback, seed and maintenance do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidelake.config.policy import SAMPLE
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeColumn
from tidelake.lake.cut import ImageCounts, TableCounts
from tidelake.lake.fold import BEFORE_CHANGES, Fold
from tidelake.lake.key_sample import picked
from tidelake.lake.tables import is_bucketable, key_columns, lake_column, mask_of
from tidelake.spark.sql_casts import literal, quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EXAMPLES = 5  # examples shown per table
_LENGTH = 80  # characters shown per value
_PRINTED = frozenset({"float", "json", "vector"})
_HASH = "shiftrightunsigned(xxhash64({}), 24)"  # 40 bits: the hashes of eight million changes of one key add up within 64 bits
_SUSPECT = 1 << 32  # more keys than a table has
_STANDS = "'INSERT', 'UPDATE_AFTER'"
_ASIDE = "struct(_change_seq, _topic, _kafka_partition, _offset)"
_META = ("_commit_ts", "_change_type", f"{_ASIDE} AS _from")


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The images of a table that are compared. columns: final names → lake types; key_only_deletes: deletes carry the key alone; sampled:
    SQL for the keys that are compared.
    """

    fold: Fold
    columns: dict[str, str]
    key_only_deletes: bool
    sampled: str

    @property
    def weight(self) -> str:
        """SQL of a row's weight, also if no column is compared. Column numbers distinguish (NULL, 'a') from ('a', NULL)."""
        return _HASH.format(", ".join(["0", *(f"{quote(c)}, {n}" for n, c in enumerate(self.columns, 1))]))

    def bucket(self, buckets: int) -> int:
        """Return the bucket to compare, a different one for every window."""
        at = self.fold.until_ts
        return (at ^ at >> 18) % buckets

    def in_bucket(self, condition: str, buckets: int) -> Images:
        """Return images of about as many keys, all in one bucket, so that other buckets need not be read. condition: SQL for the bucket's
        rows.
        """
        share = max(1, SAMPLE // buckets)
        return replace(self, sampled=f"({condition} AND {_spread(self.fold, share)})")

    def of_base(self) -> list[str]:
        """Return the columns that the fold carries with a row of the snapshot."""
        return [f"IF({self.sampled}, {self.weight}, 0L) AS _weight", "0 AS _silent", *(["1 AS _rows"] if self.key_only_deletes else [])]

    def of_change(self) -> list[str]:
        """Return the columns that the fold carries with a change."""
        signed = f"IF(_change_type IN ({_STANDS}), {self.weight}, -{self.weight})"
        silent = "CASE _change_type WHEN 'UPDATE_AFTER' THEN 1 WHEN 'UPDATE_BEFORE' THEN -1 ELSE 0 END AS _silent"
        rows = "CASE _change_type WHEN 'INSERT' THEN 1 WHEN 'DELETE' THEN -1 ELSE 0 END AS _rows"
        return [f"IF({self.sampled}, {signed}, 0L) AS _weight", silent, *([rows] if self.key_only_deletes else [])]

    def sums(self) -> list[Column]:
        """Return the aggregates over the rows of one key. They are few, because each costs about as much as a column."""
        from pyspark.sql import functions as F

        both = [F.sum("_weight").alias("_weights"), F.sum("_silent").alias("_silent")]
        return [*both, *([F.sum("_rows").alias("_rows"), F.expr("bool_or(_gone) AS _deleted")] if self.key_only_deletes else [])]

    @property
    def verdict(self) -> str:
        """SQL of the verdict on a key's newest row `_row` and its sums: 1 if the key was compared, plus _SUSPECT if it does not match."""
        mine = f"_row._commit_ts > {self.fold.applied_ts} AND _silent = 0 AND ({self.sampled})"
        wrong = "_weights != IF(_row._gone, 0L, _row._weight)"
        if self.key_only_deletes:
            wrong = f"IF(_deleted, _rows != IF(_row._gone, 0, 1), {wrong})"
        return f"IF({mine}, IF({wrong}, {_SUSPECT + 1}L, 1L), 0L)"


def observed() -> Column:
    """Return the aggregate over all keys. It is a single sum, because Spark interprets observed aggregates."""
    from pyspark.sql import functions as F

    return F.coalesce(F.sum("_verdict"), F.lit(0)).alias("verdicts")


def images_of(fold: Fold, base: Sequence[LakeColumn] | None, counts: TableCounts | None) -> Images | None:
    """Return the images to compare of a table with a key, None if nothing can be compared. base: columns of the snapshot that is folded
    onto; counts: counts of all changes.
    """
    if base is None or counts is None or counts.partial or counts.undated or not _tells(fold):
        return None
    wanted = fold.feed.policy.before_images
    sampled = "true" if wanted == "all" else _spread(fold, SAMPLE)
    return Images(fold=fold, columns=_comparable(fold, base, counts.untrusted), key_only_deletes=counts.key_only_deletes, sampled=sampled)


def _spread(fold: Fold, share: int) -> str:
    """Return SQL that selects one key in `share`."""
    if sampled := sampled_by(fold):
        return picked(sampled, fold.until_ts, share)
    return f"pmod(xxhash64({fold.until_ts}L, {', '.join(quote(k) for k in fold.key)}), {share}) = 0"


def sampled_by(fold: Fold) -> list[str]:
    """Return the key columns that select the compared keys: those that Iceberg can bucket."""
    return [c.name for c in key_columns(fold.feed, fold.incarnation, fold.columns) if is_bucketable(c)]


def images_without_key(fold: Fold, counts: TableCounts | None, missing: int) -> ImageCounts | None:
    """Return the counts of a table without key, in which every delete and update is looked up by all its cells. None where rows also left
    otherwise.
    """
    if counts is None or not _tells(fold) or fold.emptied_ts >= max(fold.applied_ts, 0):
        return None
    return ImageCounts(compared=counts.deletes + counts.updates, missing=missing)


def _tells(fold: Fold) -> bool:
    """Whether a missing old value indicates a loss."""
    return fold.feed.policy.before_images != "off" and not fold.feed.by_offsets and not fold.removals


def _comparable(fold: Fold, base: Sequence[LakeColumn], untrusted: Sequence[str]) -> dict[str, str]:
    """Return the columns with the same type in the snapshot, throughout the window and now: name → lake type."""
    i, have = fold.incarnation, {c.source_id: c.type for c in base}
    types = [{c.id: c.type for c in s.columns} for s in i.segments if s.until_ts is None or s.until_ts >= fold.applied_ts]
    now = {c.lake_name: (c, lake_column(fold.feed, i, c).type) for c in fold.columns}
    return {
        name: kind
        for name, (c, kind) in now.items()
        if all(known.get(c.id) == c.type for known in types)
        and have.get(c.id) == kind
        and c.since_ts < fold.applied_ts
        and c.type.word not in _PRINTED
        and c.name not in untrusted
        and mask_of(fold.feed, i, c) is None
    }


def verdicts(values: Mapping[str, Any]) -> tuple[int, int]:
    """Return (keys compared, keys that do not match) from the values of `observed`."""
    suspects, compared = divmod(int(values["verdicts"]), _SUSPECT)
    return compared, suspects


def reconciled(images: Images, compared: int, suspects: int, base: DataFrame | None, changes: DataFrame) -> ImageCounts:
    """Return the counts that the fold observed. If keys do not match, look at the rows of base and changes one by one."""
    if not suspects:
        return ImageCounts(compared=compared)
    found = _findings(images, base, changes)
    codes, columns = Counter[str](), Counter[str]()
    for row in found.groupBy("code", "columns").count().collect():
        codes[row["code"]] += row["count"]
        columns.update(dict.fromkeys(row["columns"], row["count"]))
    shown = found.orderBy("_commit_ts", "_from").limit(EXAMPLES).collect()
    return ImageCounts(compared=compared, **codes, columns=dict(columns), examples=[r["example"] for r in shown])


def _findings(images: Images, base: DataFrame | None, changes: DataFrame) -> DataFrame:
    """Return the changes that do not match what was before them: code, differing columns, example.

    Changes of one key at one commit ts count as one, because a split update may come beside its unsplit copy. An old row may therefore be
    another image of its commit ts, an insert may come with a delete, and a delete with an insert.
    """
    key = f"struct({', '.join(quote(k) for k in images.fold.key)}) AS _key"
    values = f"struct({', '.join(quote(c) for c in images.columns)}) AS _v"
    rows = changes.where(images.sampled).selectExpr(key, values, *_META, "_change_seq AS _at")
    if base is not None:
        none = (
            f"struct({BEFORE_CHANGES} AS _change_seq, CAST(NULL AS STRING) AS _topic, CAST(NULL AS INT) AS _kafka_partition, 0L AS _offset)"
        )
        there = ("_commit_ts", "'' AS _change_type", f"{none} AS _from", f"{BEFORE_CHANGES} AS _at")
        rows = rows.unionByName(base.where(images.sampled).selectExpr(key, values, *there))
    together = "OVER (PARTITION BY _key, _commit_ts)"
    earlier = "OVER (PARTITION BY _key ORDER BY _commit_ts RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    state = "struct(_v AS v, _change_type = 'DELETE' AS gone)"
    known = rows.selectExpr(
        "*",
        f"max_by({state}, IF(_change_type = 'UPDATE_BEFORE', NULL, _at)) {earlier} AS _was",
        f"collect_list(IF(_change_type IN ({_STANDS}), struct(_v, _from), NULL)) {together} AS _beside",
        f"bool_or(_change_type = 'INSERT') {together} AS _made",
        f"bool_or(_change_type IN ('DELETE', 'UPDATE_BEFORE')) {together} AS _freed",
    )
    differing = ", ".join(f"IF(_v.{q} <=> _was.v.{q}, NULL, {literal(c)})" for c in images.columns if (q := quote(c)))
    judged = known.selectExpr("*", f"{_code(images)} AS code").where("code IS NOT NULL")
    columns = f"IF(code = 'differs', array_compact(array({differing})), array()) AS columns"
    return judged.selectExpr("code", columns, f"{_example(images)} AS example", "_commit_ts", "_from")


def _code(images: Images) -> str:
    stands = "(_was IS NOT NULL AND NOT _was.gone)"
    other = "NOT exists(_beside, x -> x._v <=> _v AND x._from != _from) AND NOT (_v <=> _was.v)"
    told = " AND _change_type != 'DELETE'" if images.key_only_deletes else ""
    return f"""CASE WHEN _change_type = 'INSERT' THEN IF({stands} AND NOT _freed, 'duplicate_inserts', NULL)
        WHEN _change_type NOT IN ('DELETE', 'UPDATE_BEFORE') THEN NULL
        WHEN NOT {stands} THEN IF(_made, NULL, 'missing')
        WHEN {other}{told} THEN 'differs' END"""


def _example(images: Images) -> str:
    """Return SQL of a finding's message: `id=3 at t[0]@17: v was a, here b`."""
    kinds = images.columns
    key = ", ', ', ".join(f"concat({literal(f'{k}=')}, {_shown(f'_key.{quote(k)}', kinds.get(k, ''))})" for k in images.fold.key)
    place = "coalesce(concat(_from._topic, '[', _from._kafka_partition, ']@', _from._offset), 'an exchange of partitions')"
    both = ((literal(f"{c} was "), f"_v.{quote(c)}", f"_was.v.{quote(c)}", kind) for c, kind in kinds.items())
    each = (f"IF({v} <=> {w}, NULL, concat({c}, {_shown(v, kind)}, ', here ', {_shown(w, kind)}))" for c, v, w, kind in both)
    said = f"""CASE code WHEN 'duplicate_inserts' THEN 'insert of a row that already exists'
        WHEN 'missing' THEN concat(IF(_change_type = 'DELETE', 'delete', 'update'), ' of a row that does not exist in the lake')
        ELSE array_join(array_compact(array({", ".join(each)})), '; ') END"""
    return f"concat({key}, ' at ', {place}, ': ', {said})"


def _shown(value: str, kind: str) -> str:
    text = f"hex({value})" if kind == "binary" else f"CAST({value} AS STRING)"
    return f"coalesce(left({text}, {_LENGTH}), 'NULL')"


def described(c: ImageCounts) -> str:
    """Describe the counts of a table's old values, as a message."""
    columns = ", ".join(f"{name} {n:,}" for name, n in sorted(c.columns.items()))
    found = (
        (c.differs, f"{plural(c.differs, 'change')} whose before image differs from the row in the lake ({columns})"),
        (c.missing, f"{plural(c.missing, 'change')} of a row that does not exist in the lake"),
        (c.duplicate_inserts, f"{plural(c.duplicate_inserts, 'insert')} of a row that already exists"),
    )
    return f"{plural(c.compared, 'row')} compared" + "".join(f"; {text}" for n, text in found if n)
