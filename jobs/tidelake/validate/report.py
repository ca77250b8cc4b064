"""The quality report of an hour: facts gathered from the lake, as JSON for programs and HTML for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tidelake.config.lake_paths import certificates, events_table, quality_key, report_key, run_key
from tidelake.decode.record import read_record
from tidelake.errors import TidelakeError
from tidelake.history.incarnations import Catalog
from tidelake.io.documents import find_document, members
from tidelake.lake.cut import Staged
from tidelake.lake.cut_documents import find_certificate, next_seq
from tidelake.lake.cuts import lineage, newest_cut
from tidelake.lake.decisions import Rejected, acceptances, by_decision, rejected
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Manifest, newest
from tidelake.order.schema_mismatches import mismatch_groups
from tidelake.tso import parse_hour, physical_ms
from tidelake.validate.quality.facts import DdlFacts, DecisionFacts, FindingFacts, HourFacts, RejectedFacts, TableFacts
from tidelake.validate.quality.report import render
from tidelake.validate.quality.verdict import Verdict

HISTORY = 48  # number of cuts in the plots
_EXAMPLES = 5
_DECISIONS = 20  # number of accepted messages of a code whose decisions are read


def write_report(lake: Lake, hour: str, error: TidelakeError | None = None) -> str:
    """Write both files of an hour's report and return the page's URI. error: why the run stopped."""
    current = hour_facts(lake, hour, error)
    page = render(current, history(lake, hour))
    lake.store.write(quality_key(lake.feed.name, hour), current.model_dump_json(indent=1).encode())
    lake.store.write(report_key(lake.feed.name, hour), page.encode())
    return lake.store.uri_of(report_key(lake.feed.name, hour))


def history(lake: Lake, hour: str) -> list[HourFacts]:
    """Return the facts of hours published before, oldest first. Cuts that a rollback undid are left out."""
    feed = lake.feed.name
    seqs = sorted(lineage(lake.catalog, feed))[-HISTORY - 1 :]
    found = (find_certificate(lake.store, feed, seq) for seq in seqs)
    facts = {f.hour: f for f in (_of_certificate(c) for c in found if c is not None)}.values()
    return [f for f in facts if f.hour < hour]


def hour_facts(lake: Lake, hour: str, error: TidelakeError | None = None) -> HourFacts:
    """Return all facts of an hour, for any stage that it reached."""
    certificate = _certificate(lake, hour)
    manifest = newest(lake.store, lake.feed.name, hour)
    facts = _of_certificate(certificate) if certificate else _unpublished(lake, hour)
    facts.findings += _findings(manifest)
    facts.rejected = _rejected(lake, hour)
    if not certificate and manifest is not None:
        facts.messages = sum(o.count for o in manifest.objects)
        facts.message_bytes = sum(o.bytes for o in manifest.objects)
    if error is not None:
        facts.status = "blocked" if error.exit_code == 3 else "failed"
        facts.error = str(error)
    return facts


def _certificate(lake: Lake, hour: str) -> dict[str, Any] | None:
    """The certificate of the cut that ends with the hour; None if it is not published, or was published as part of a later cut."""
    for key in reversed([o.key for o in lake.store.objects(certificates(lake.feed.name))]):
        found = members(lake.store, key, lake.store.read(key))
        if found["hour"] == hour:
            return found
        if found["hour"] < hour:
            break
    return None


def _of_certificate(c: dict[str, Any]) -> HourFacts:
    return HourFacts(
        feed=c["feed"],
        hour=c["hour"],
        status="published",
        cut=c["cut"],
        incomplete=c["incomplete"],
        incomplete_because=[f"{r['code']}: {r['detail']} (cut {r['cut']}, hour {r['hour']})" for r in c.get("incomplete_because", [])],
        applied_ts=c["applied_ts"],
        resolved_ts=c["resolved_ts"],
        lag_seconds=_lag(c["hour"], c["resolved_ts"]) if "seed" not in c else None,
        messages=c["messages"],
        message_bytes=c["message_bytes"],
        events=c["events"],
        late_events=c["late_events"],
        late=c.get("late", {}),
        waiting_events=c["waiting_events"],
        tables={name: TableFacts.model_validate(_known(rows)) for name, rows in c["rows"].items()},
        ddl=[DdlFacts.model_validate(d) for d in c["ddl"]],
        rejected=[RejectedFacts(code=code, messages=n) for code, n in c["rejected"].items()],
        findings=[FindingFacts.model_validate(f) for f in c.get("findings", [])],
        checks=c["expectations"]["checks"],
        seconds=c["seconds"],
        version=c["version"],
        run=c["run"],
    )


def _unpublished(lake: Lake, hour: str) -> HourFacts:
    """Facts of an hour that is staged, decoded or landed."""
    facts = HourFacts(feed=lake.feed.name, hour=hour, status="landed")
    record = read_record(lake.store, lake.feed.name, hour)
    if record is not None:
        facts.status, facts.events = "decoded", dict(record.counts)
        facts.refused = str(record.refused) if record.refused else ""
    staged, verdict = _staged(lake, hour)
    if staged is None:
        return facts
    cut, names = staged.cut, _names(staged.cut.catalog)
    facts.status = "validated" if verdict else "ordered"
    facts.applied_ts, facts.resolved_ts, facts.run, facts.version = cut.applied_ts, cut.resolved_ts, cut.run, cut.version
    facts.lag_seconds = _lag(hour, cut.resolved_ts)
    facts.events, facts.late_events, facts.waiting_events = staged.kinds, staged.late_events, staged.waiting_events
    facts.late = {name: c.model_dump(exclude_defaults=True) for name, c in staged.late.items()}
    facts.tables = {names[i]: TableFacts.model_validate(_known(c.model_dump())) for i, c in staged.counts.items()}
    facts.ddl = [DdlFacts(commit_ts=e.commit_ts, query=e.query, effect=e.effect, why=e.why) for e in cut.ledger]
    facts.checks, facts.seconds = (verdict.checks if verdict else []), staged.seconds | (verdict.seconds if verdict else {})
    return facts


def _staged(lake: Lake, hour: str) -> tuple[Staged | None, Verdict | None]:
    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    seq = next_seq(lake.store, lake.feed.name, cut.seq if cut else 0)
    staged = find_document(lake.store, run_key(lake.feed.name, seq, "order"), Staged)
    if staged is None or staged.cut.hour != hour:
        return None, None
    verdict = find_document(lake.store, run_key(lake.feed.name, seq, "validate"), Verdict)
    return staged, verdict if verdict and verdict.run == staged.cut.run else None


def _names(catalog: Catalog) -> dict[str, str]:
    return {i.id: i.name for i in catalog.incarnations.values()}


def _known(rows: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in rows.items() if k in TableFacts.model_fields}


def _lag(hour: str, resolved_ts: int) -> float:
    end = parse_hour(hour) + timedelta(hours=1)
    return round(end.timestamp() - physical_ms(resolved_ts) / 1000, 3)


def _findings(manifest: Manifest | None) -> list[FindingFacts]:
    found = manifest.findings if manifest else ()
    return [
        FindingFacts(
            code=f.code,
            severity=f.severity,
            where=f"{f.topic}[{f.partition}]" if f.partition is not None else f.topic or "",
            detail=f.detail,
            remedy=f.remedy,
        )
        for f in found
    ]


def _rejected(lake: Lake, hour: str) -> list[RejectedFacts]:
    events = lake.catalog.find_own(events_table(lake.feed.name), lake.feed.name)
    messages: Sequence[Rejected] = rejected(events, [hour]) if events is not None else ()
    messages = [*messages, *mismatch_groups(lake.catalog, lake.store, lake.feed.name, [hour])]
    accepted = {m.at for m in by_decision(lake.store, lake.feed.name, messages)[1]}
    by_code: dict[str, list[Rejected]] = {}
    for m in messages:
        by_code.setdefault(m.code, []).append(m)
    return [
        RejectedFacts(
            code=code,
            messages=sum(m.rows for m in several),
            accepted=sum(m.rows for m in several if m.at in accepted),
            decisions=_decisions(lake, [m for m in several if m.at in accepted]),
            examples=[f"{m.at}: {m.error}" for m in several[:_EXAMPLES]],
        )
        for code, several in sorted(by_code.items())
    ]


def _decisions(lake: Lake, accepted: Sequence[Rejected]) -> list[DecisionFacts]:
    found = acceptances(lake.store, lake.feed.name, accepted[:_DECISIONS])
    return [DecisionFacts(by=a.by, reason=a.reason, decided_at_ms=a.decided_at_ms) for a in found]
