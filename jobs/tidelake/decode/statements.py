"""Collect the statements since a cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidelake.config.feed import Feed
from tidelake.decode.sink_schemas import sink_statements
from tidelake.history.contract import read_recorded_ddl
from tidelake.history.window import Statement
from tidelake.lake.cut import Cut


def since(feed: Feed, cut: Cut | None, rows: Iterable[Mapping[str, Any]], until_ts: int) -> list[Statement]:
    """Return the statements in [the cut's resolved ts, until_ts] that are not in its ledger. A DDL may follow the resolved ts that equals
    it.

    rows: `commit_ts`, `database` and `ddl` of statements in messages; others come from ddl.jsonl and from the schema files of a sink.
    """
    applied = cut.resolved_ts if cut else 0
    sent = [Statement(commit_ts=r["commit_ts"], database=r["database"] or "", query=r["ddl"]) for r in rows]
    sent += [Statement(commit_ts=d.commit_ts, database=d.database, query=d.query, recorded=True) for d in read_recorded_ddl(feed.folder)]
    sent += sink_statements(feed, applied, until_ts)
    known = {(e.commit_ts, e.query) for e in cut.ledger} if cut else set()
    first = max(applied, cut.seeded_ts + 1 if cut else 0)  # an export includes the effect of a statement at its TSO
    inside = (s for s in sent if first <= s.commit_ts <= until_ts and s.identity not in known)
    return list({s.identity: s for s in inside}.values())
