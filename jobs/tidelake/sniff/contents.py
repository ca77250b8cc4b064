"""Content of the sampled messages, once their protocol is known: events by kind, tables, partitions with a resolved ts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.options import SinkOptions
from tidelake.config.table_name import written
from tidelake.errors import ContractError
from tidelake.history.ddl.changes import CreateTable
from tidelake.history.ddl.statement import parse
from tidelake.protocols import Context, decode
from tidelake.sniff.verdict import Guess


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageContents:
    """Numbers of events.

    Attributes:
        rows: Rows by `db.table`.
        topics: Topics of each table's rows.
        created: Tables whose CREATE TABLE comes before their rows.
        without_ts: Rows without commit ts.
        statements: DDL statements.
        resolved: Resolved ts by (topic, partition).
        rejected: Messages that do not decode.
    """

    rows: dict[str, int]
    topics: dict[str, frozenset[str]]
    created: frozenset[str]
    without_ts: int
    statements: int
    resolved: dict[tuple[str, int], int]
    rejected: int

    @property
    def databases(self) -> frozenset[str]:
        """Databases of the rows, in lower case, because names in the lake ignore case."""
        return frozenset(table.partition(".")[0].lower() for table in self.rows)


@dataclass(slots=True)
class _Counts:
    rows: Counter[str] = field(default_factory=Counter)
    topics: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    first: dict[str, int] = field(default_factory=dict)  # first commit ts of a table's rows
    born: dict[str, int] = field(default_factory=dict)  # commit ts of its CREATE TABLE
    resolved: Counter[tuple[str, int]] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)

    @property
    def created(self) -> frozenset[str]:
        return frozenset(table for table in self.rows if table in self.born and self.born[table] <= self.first.get(table, self.born[table]))


def contents(batches: Sequence[pa.RecordBatch], guess: Guess | None, context: Context) -> MessageContents:
    """Decode the messages with the guessed protocol and count the events. Without a guess all counts are 0."""
    counts = _Counts()
    if guess is not None:
        options = SinkOptions.model_validate(dict(guess.options))
        known = Context(options=options, avro_schema=context.avro_schema)
        for batch in batches:
            _count(decode(guess.protocol, batch, known), counts)
    return MessageContents(
        rows=dict(sorted(counts.rows.items())),
        topics={table: frozenset(names) for table, names in counts.topics.items()},
        created=counts.created,
        without_ts=counts.others["without ts"],
        statements=counts.others["ddl"],
        resolved=dict(sorted(counts.resolved.items())),
        rejected=counts.others["rejected"],
    )


def _count(events: pa.RecordBatch, counts: _Counts) -> None:
    table = pa.table({name: events.column(name) for name in ("kind", "database", "table", "topic", "partition", "commit_ts", "ddl")})
    for kind in ("ddl", "rejected"):
        counts.others[kind] += pc.sum(pc.equal(table["kind"], kind)).as_py() or 0
    of_rows = table.filter(pc.equal(table["kind"], "row"))
    counts.others["without ts"] += of_rows["commit_ts"].null_count
    for group in of_rows.group_by(["database", "table", "topic"]).aggregate([([], "count_all"), ("commit_ts", "min")]).to_pylist():
        name = written(group["database"], group["table"])
        counts.rows[name] += group["count_all"]
        counts.topics[name].add(group["topic"])
        if group["commit_ts_min"] is not None:
            counts.first[name] = min(group["commit_ts_min"], counts.first.get(name, group["commit_ts_min"]))
    for row in table.filter(pc.equal(table["kind"], "ddl")).to_pylist():
        for name in _created(row["ddl"] or "", row["database"] or ""):
            counts.born[name] = min(row["commit_ts"] or 0, counts.born.get(name, row["commit_ts"] or 0))
    marks = table.filter(pc.equal(table["kind"], "resolved"))
    for group in marks.group_by(["topic", "partition"]).aggregate([([], "count_all")]).to_pylist():
        counts.resolved[group["topic"], group["partition"]] += group["count_all"]


def _created(query: str, database: str) -> Iterator[str]:
    """The tables that a statement creates."""
    try:
        changes = parse(query, database)
    except ContractError:  # a statement that cannot be parsed; running the feed reports it
        return
    yield from (written(c.database, c.table) for c in changes if isinstance(c, CreateTable))
