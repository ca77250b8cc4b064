"""The quality report of an hour: facts gathered from the lake, as JSON for programs and HTML for people."""

from __future__ import annotations

from collections.abc import Sequence

from tidelake import __version__
from tidelake.config.lake_paths import events_table, quality_key, report_key, run_key
from tidelake.decode.record import read_record
from tidelake.errors import TidelakeError
from tidelake.io.documents import find_document
from tidelake.lake.cut import Staged, by_name
from tidelake.lake.cut_documents import next_seq
from tidelake.lake.cut_hours import changed_hours
from tidelake.lake.cuts import newest_cut
from tidelake.lake.decisions import Rejected, acceptances, by_decision, rejected
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Manifest, newest
from tidelake.order.schema_mismatches import mismatch_groups
from tidelake.validate.cut_facts import CutFacts, lag_seconds, table_facts
from tidelake.validate.quality.facts import DdlFacts, DecisionFacts, FindingFacts, HourFacts, RejectedFacts
from tidelake.validate.quality.report import render
from tidelake.validate.quality.verdict import Verdict

_EXAMPLES = 5
_DECISIONS = 20  # number of accepted messages of a code whose decisions are read


def write_report(lake: Lake, hour: str, error: TidelakeError | None = None) -> str:
    """Write both files of an hour's report and return the page's URI. error: why the run stopped."""
    return _write(lake, CutFacts(lake), hour, error)


def write_changed_reports(lake: Lake) -> list[str]:
    """Write the reports again that the newest publication, a redo or a rollback, makes untrue. Return the pages' URIs, by hour.

    These are the report of the cut itself, and the reports of hours that it replaced, undid or brought back, if they were written before.
    """
    published, cut = CutFacts(lake), newest_cut(lake.catalog, lake.store, lake.feed.name)
    own = cut.hour if cut else None
    changed = changed_hours(lake.catalog, lake.feed.name)
    wanted = [h for h in changed if h == own or lake.store.head(report_key(lake.feed.name, h)) is not None]
    return [_write(lake, published, hour) for hour in wanted]


def hour_facts(lake: Lake, hour: str, error: TidelakeError | None = None) -> HourFacts:
    """Return all facts of an hour, for any stage that it reached."""
    return _gathered(lake, CutFacts(lake), hour, error)


def _write(lake: Lake, published: CutFacts, hour: str, error: TidelakeError | None = None) -> str:
    current = _gathered(lake, published, hour, error)
    page = render(current, published.before(hour))
    lake.store.write(quality_key(lake.feed.name, hour), current.model_dump_json(indent=1).encode())
    lake.store.write(report_key(lake.feed.name, hour), page.encode())
    return lake.store.uri_of(report_key(lake.feed.name, hour))


def _gathered(lake: Lake, published: CutFacts, hour: str, error: TidelakeError | None) -> HourFacts:
    of_cut = published.of(hour)
    manifest = newest(lake.store, lake.feed.name, hour)
    facts = of_cut.model_copy() if of_cut else _unpublished(lake, hour)
    facts.findings = [*facts.findings, *_findings(manifest)]
    facts.rejected = _rejected(lake, hour)
    if of_cut is None and manifest is not None:
        facts.messages = sum(o.count for o in manifest.objects)
        facts.message_bytes = sum(o.bytes for o in manifest.objects)
    if error is not None:
        facts.status = "blocked" if error.exit_code == 3 else "failed"
        facts.error = str(error)
    return facts


def _unpublished(lake: Lake, hour: str) -> HourFacts:
    """Facts of an hour that is staged, decoded or landed."""
    facts = HourFacts(feed=lake.feed.name, hour=hour, status="landed", version=__version__)
    record = read_record(lake.store, lake.feed.name, hour)
    if record is not None:
        facts.status, facts.events = "decoded", dict(record.counts)
        facts.refused = str(record.refused) if record.refused else ""
    staged, verdict = _staged(lake, hour)
    if staged is None:
        return facts
    cut = staged.cut
    facts.status = "validated" if verdict else "ordered"
    facts.applied_ts, facts.resolved_ts, facts.run, facts.version = cut.applied_ts, cut.resolved_ts, cut.run, cut.version
    facts.lag_seconds = lag_seconds(hour, cut.resolved_ts)
    facts.events, facts.late_events, facts.waiting_events = staged.kinds, staged.late_events, staged.waiting_events
    facts.late = {name: c.model_dump(exclude_defaults=True) for name, c in staged.late.items()}
    facts.tables = {name: table_facts(c.model_dump()) for name, c in by_name(staged.counts, cut.catalog).items()}
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
    found = acceptances(lake.store, lake.feed.name, [r.at for r in accepted[:_DECISIONS]])
    return [DecisionFacts(by=a.by, reason=a.reason, decided_at_ms=a.decided_at_ms) for a in found]
