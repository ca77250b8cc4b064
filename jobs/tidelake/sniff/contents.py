"""What the messages that were looked at hold, once their protocol is known: events by kind, tables, partitions with a resolved ts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.options import SinkOptions
from tidelake.protocols import Context, decode
from tidelake.sniff.verdict import Guess


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Counts of events. rows: by `db.table`; without_ts: rows without commit ts; resolved: by (topic, partition)."""

    rows: dict[str, int]
    without_ts: int
    statements: int
    resolved: dict[tuple[str, int], int]
    rejected: int


def contents(batches: Sequence[pa.RecordBatch], guess: Guess | None, context: Context) -> Contents:
    """Decode the messages as the guess says. Nothing is counted where there is no guess."""
    rows, resolved, counts = Counter[str](), Counter[tuple[str, int]](), Counter[str]()
    if guess is not None:
        options = SinkOptions.model_validate(dict(guess.options))
        known = Context(options=options, avro_schema=context.avro_schema)
        for batch in batches:
            _count(decode(guess.protocol, batch, known), rows, resolved, counts)
    return Contents(
        rows=dict(sorted(rows.items())),
        without_ts=counts["without ts"],
        statements=counts["ddl"],
        resolved=dict(sorted(resolved.items())),
        rejected=counts["rejected"],
    )


def _count(events: pa.RecordBatch, rows: Counter[str], resolved: Counter[tuple[str, int]], counts: Counter[str]) -> None:
    table = pa.table({name: events.column(name) for name in ("kind", "database", "table", "topic", "partition", "commit_ts")})
    for kind in ("ddl", "rejected"):
        counts[kind] += pc.sum(pc.equal(table["kind"], kind)).as_py() or 0
    of_rows = table.filter(pc.equal(table["kind"], "row"))
    counts["without ts"] += of_rows["commit_ts"].null_count
    for group in of_rows.group_by(["database", "table"]).aggregate([([], "count_all")]).to_pylist():
        rows[f"{group['database']}.{group['table']}"] += group["count_all"]
    marks = table.filter(pc.equal(table["kind"], "resolved"))
    for group in marks.group_by(["topic", "partition"]).aggregate([([], "count_all")]).to_pylist():
        resolved[group["topic"], group["partition"]] += group["count_all"]
