"""`tidelake sniff` for a folder or prefix: its archives, their guarantees, and a feed.toml to start from."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tidelake.cli.common import errors, out, print_json, say
from tidelake.cli.sniffing.guesses import guess_document
from tidelake.cli.sniffing.write import write_feeds
from tidelake.io.texts import plural
from tidelake.tso import format_hour, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidelake.protocols import Context
    from tidelake.sniff.archive import Archive, Section
    from tidelake.sniff.proof import Proof
    from tidelake.sniff.sink import SinkFolder
    from tidelake.sniff.starter import Starter
    from tidelake.sniff.topics import Offsets, Topic

UNDECIDED = 3
_MOST_TOPICS, _MOST_EVIDENCE, _MOST_UNKNOWN, _MOST_KEYS = 30, 6, 3, 100
_MARKS = {"kept": "yes", "lost": "no", "unsure": "?"}


def sniff_archive(
    uri: str,
    context: Context,
    avro_schemas: str | None,
    *,
    limit: int,
    most: int,
    write: Path | None,
    said: str | None = None,
    as_json: bool,
) -> None:
    """Look at an archive and print what it holds.

    Args:
        uri: Folder or s3:// prefix.
        context: Options and schemas for the decoders.
        avro_schemas: Value of --avro-schemas.
        limit: Maximum number of messages to read.
        most: Approximate maximum number of objects to list.
        write: Value of --write.
        said: Protocol to assume if none is certain or likely.
        as_json: Print JSON.

    Raises:
        typer.Exit: 3: nothing was recognised.
        ConfigError: --write is not possible.
    """
    from tidelake.sniff.archive import look

    with _progress() as progress:
        archive = look(uri, context, most=most, messages=limit, said=said, progress=progress)
        starters = _starters(archive, avro_schemas)
    if as_json:
        print_json(_document(archive, starters))
    else:
        _print(archive, starters)
    if write is not None:
        write_feeds(write, [start for start, _ in starters.values()])
    if not any(section.recognised for section in archive.sections) and not any(sink.verdict.decided for sink in archive.sinks):
        raise typer.Exit(UNDECIDED)


def _starters(archive: Archive, avro_schemas: str | None) -> dict[int, tuple[Starter, Proof]]:
    """Return a feed.toml to start from for each section that can be landed, by the section's number."""
    from tidelake.sniff.promises import blockers
    from tidelake.sniff.proof import proved
    from tidelake.sniff.starter import starter

    found: dict[int, tuple[Starter, Proof]] = {}
    sections = {number: section for number, section in enumerate(archive.sections) if not blockers(section)}
    feeds = Counter(database for section in sections.values() for database in section.contents.databases)
    for number, section in sections.items():
        taken, shared = {other.name for other, _ in found.values()}, any(feeds[d] > 1 for d in section.contents.databases)
        start = starter(section, archive, avro_schemas, taken, shared=shared)
        found[number] = (start, proved(section, start))
    return found


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a function that updates a progress bar on a terminal, None elsewhere."""
    if not errors.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[amount]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task("listing", total=None, amount="")

        def update(what: str, done: int, total: int) -> None:
            amount = f"{done / (1 << 20):,.0f} of {total / (1 << 20):,.0f} MB" if total else f"{done:,}"
            bar.update(task, description=what, completed=done, total=total or None, amount=amount)

        yield update


def _print(archive: Archive, starters: dict[int, tuple[Starter, Proof]]) -> None:
    listed = plural(archive.listed, "object") if archive.whole else f"a sample of {plural(archive.listed, 'object')}, as there are more"
    left = f", {plural(archive.left_out, 'folder')} not listed" if archive.left_out else ""
    say(f"{archive.uri}: {listed}{left}")
    feeds = len(starters)
    say(f"{plural(feeds, 'feed')} can be landed" if feeds else "no feed can be landed")
    for number, section in enumerate(archive.sections):
        say("")
        _section(number, section, *starters.get(number, (None, None)))
    for sink in archive.sinks:
        say("")
        _sink(sink)
    if archive.unknown:
        more = f" and {len(archive.unknown) - _MOST_UNKNOWN} more" if len(archive.unknown) > _MOST_UNKNOWN else ""
        say("")
        say(f"not recognised by name: {', '.join(archive.unknown[:_MOST_UNKNOWN])}{more}")
    if archive.ignored:
        say(f"skipped: {plural(archive.ignored, 'object')}, empty or without data (_SUCCESS, .crc, …)")
    if feeds:
        say("")
        _next(archive, starters)


def _section(number: int, section: Section, start: Starter | None, proof: Proof | None) -> None:
    from tidelake.sniff.promises import blockers, promises

    best = section.verdict.guesses[0] if section.verdict.guesses else None
    protocol = f"{best.protocol} ({best.confidence})" if best else "no protocol of TiCDC or Canal"
    say(f"{number + 1}. {section.layout or section.form} · {protocol}")
    say(f"   in {section.base}")
    say(f"   as {section.template}")
    out.print(_topics(section))
    _evidence(section)
    kept = promises(section)
    if kept:
        say("   guaranteed?")
    for promise in kept:
        say(f"     {_MARKS[promise.state]:<4}{promise.what}: {promise.says}")
        if promise.mend:
            say(f"           to fix it: {promise.mend}")
    stops = blockers(section)
    if stops:
        say("   cannot be landed")
    for stop in stops:
        say(f"     {stop.says}")
        say(f"       → {stop.mend}")
    if start is not None and proof is not None:
        _tried(proof)
        say(f"   missing beside schemas/{start.name}/feed.toml")
        for thing in start.missing:
            say(f"     {thing}")
        say("   feed.toml")
        for line in start.text.splitlines():
            say(f"     {line}" if line else "")


def _tried(proof: Proof) -> None:
    others = (
        f", and {plural(len(proof.unknown), 'file')} whose names do not match the layout, such as {proof.unknown[0]}"
        if proof.unknown
        else ""
    )
    where, of = ("", "") if proof.hour is None else (f" in hour {format_hour(proof.hour)}", " of that hour")
    say(f"   tried: with the feed.toml below `land` finds {plural(proof.objects, 'object')}{where}{others}")
    if proof.absent:
        say(f"     but not {plural(len(proof.absent), 'object')}{of}, such as {proof.absent[0]}: adjust template, or rename them")


def _topics(section: Section) -> Table:
    table = Table("topic", "objects", "MB", "partitions", "hours", "without", "read", "records", "offsets", box=None, padding=(0, 2, 0, 1))
    for topic in section.topics[:_MOST_TOPICS]:
        hours = list(topic.hours)
        span = "–" if not hours else format_hour(hours[0]) + (f" … {format_hour(hours[-1])}" if len(hours) > 1 else "")
        missing = "?" if topic.missing is None else str(len(topic.missing))
        counts = (f"{topic.objects:,}", f"{topic.bytes / (1 << 20):,.1f}", _numbers(topic.partitions), span, missing if hours else "–")
        table.add_row(topic.name, *counts, f"{topic.read:,}", f"{topic.records:,}", _offsets(topic.offsets))
    if len(section.topics) > _MOST_TOPICS:
        table.add_row(f"and {len(section.topics) - _MOST_TOPICS} more")
    return table


def _numbers(partitions: tuple[int, ...]) -> str:
    """Format partitions, `0–2` for a run without gaps."""
    if len(partitions) > 1 and partitions[-1] - partitions[0] + 1 == len(partitions):
        return f"{partitions[0]}–{partitions[-1]}"
    return ", ".join(map(str, partitions[:8])) + (", …" if len(partitions) > 8 else "")


def _offsets(found: Offsets | None) -> str:
    if found is None:
        return "–"
    kind = "by name" if found.from_names else "in records"
    again = f", {found.again} twice" if found.again else ""
    legal = f", {found.legal} hold no message" if found.legal else ""
    return f"{kind}, {f'{found.gaps} missing' if found.gaps else 'no gap'}{legal}{again}"


def _evidence(section: Section) -> None:
    say("   evidence")
    if section.layout:
        read, records = sum(t.read for t in section.topics), sum(t.records for t in section.topics)
        codec = f", {' and '.join(section.codecs)}" if section.codecs else ""
        say(f"     {section.layout}: its reader took {plural(records, 'record')} of {plural(read, 'object')}{codec}, as in")
        say(f"       {section.examples[0]}")
    for topic in section.topics:
        for key, problem in topic.damaged[:2]:
            say(f"     {key}: {problem}")
    best = section.verdict.guesses[0] if section.verdict.guesses else None
    if best is None:
        for mismatch in section.verdict.unrecognised[:2]:
            say(f"     {mismatch.at}: {mismatch.says}")
        return
    say(f"     {best.protocol}: {best.decoded:,} of {plural(section.verdict.messages, 'message')} decode; {best.framing}")
    for e in best.evidence[:_MOST_EVIDENCE]:
        say(f"     {e.text} ({plural(e.messages, 'message')}, first {e.first})" if e.messages > 1 else f"     {e.text} ({e.first})")
    for mismatch in best.mismatches[:2]:
        say(f"     not decoded: {mismatch.at}: {mismatch.says}")
    held = section.contents
    tables = ", ".join(list(held.rows)[:6]) + (", …" if len(held.rows) > 6 else "")
    marks = f"resolved ts in {plural(len(held.resolved), 'partition')}" if held.resolved else "no resolved ts"
    if held.rows or held.resolved or held.statements:
        rows = f"{plural(sum(held.rows.values()), 'row')} of {plural(len(held.rows), 'table')}{f' ({tables})' if tables else ''}"
        say(f"     they hold {rows}, {plural(held.statements, 'statement')}, {marks}")


def _sink(sink: SinkFolder) -> None:
    best = sink.verdict.guesses[0] if sink.verdict.guesses else None
    say(f"TiCDC's storage sink · {f'{best.protocol} ({best.confidence})' if best else sink.form} · {sink.base}")
    shown = ", ".join(sink.tables[:6]) + (", …" if len(sink.tables) > 6 else "")
    say(f"   {plural(sink.files, 'file')} of {plural(len(sink.tables), 'table')} ({shown}), {plural(sink.schemas, 'schema file')}")
    say(f"   as {sink.examples[0]}")
    say(
        f"   checkpoint {show(sink.checkpoint_ts)}: all changes up to it are in the files"
        if sink.checkpoint_ts
        else "   no checkpoint: no metadata file"
    )
    if sink.problems is None:
        say("   only a sample was listed: missing files were not looked for")
    for problem in (sink.problems or ())[:5]:
        say(f"   {problem}")
    say('   to land it: layout = "storage-sink" and [watermark] from = "metadata"; docs/layouts.md has a feed.toml to start from')


def _next(archive: Archive, starters: dict[int, tuple[Starter, Proof]]) -> None:
    start, _ = next(iter(starters.values()))
    section = archive.sections[next(iter(starters))]
    hour = min((format_hour(h) for t in section.topics for h in t.hours), default="…")
    say("next")
    say(f"  tidelake sniff {shlex.quote(archive.uri)} --write schemas/")
    say(f"  export {' '.join(f'{name}={_word(value)}' for name, value in start.environment.items())}")
    say("  tidelake check")
    say(f"  tidelake land --feed {start.name} --hour {hour}")


def _word(value: str) -> str:
    """Quote a value for a shell. A placeholder to fill in stays as it is."""
    return value if "…" in value else shlex.quote(value)


def _document(archive: Archive, starters: dict[int, tuple[Starter, Proof]]) -> dict[str, Any]:
    return {
        "uri": archive.uri,
        "listed": archive.listed,
        "whole": archive.whole,
        "left_out_folders": archive.left_out,
        "sections": [_section_document(s, *starters.get(i, (None, None))) for i, s in enumerate(archive.sections)],
        "storage_sinks": [_sink_document(sink) for sink in archive.sinks],
        "unknown": list(archive.unknown[:_MOST_KEYS]),
        "unknown_count": len(archive.unknown),
        "passed_over": archive.ignored,
    }


def _section_document(section: Section, start: Starter | None, proof: Proof | None) -> dict[str, Any]:
    from tidelake.sniff.promises import blockers, promises

    held = section.contents
    return {
        "base": section.base,
        "template": section.template,
        "form": section.form,
        "layout": section.layout,
        "why_no_layout": section.why or None,
        "decided": section.verdict.decided,
        "messages": section.verdict.messages,
        "guesses": [guess_document(guess) for guess in section.verdict.guesses],
        "examples": list(section.examples),
        "codecs": list(section.codecs),
        "tags": section.tags,
        "tombstone_objects": section.tombstones,
        "topics": [_topic_document(topic) for topic in section.topics],
        "contents": {
            "rows": held.rows,
            "rows_without_commit_ts": held.without_ts,
            "statements": held.statements,
            "resolved": [{"topic": topic, "partition": p, "messages": n} for (topic, p), n in held.resolved.items()],
        },
        "promises": [asdict(promise) for promise in promises(section)],
        "blockers": [asdict(blocker) for blocker in blockers(section)],
        "feed": None if start is None or proof is None else _feed_document(start, proof),
    }


def _feed_document(start: Starter, proof: Proof) -> dict[str, Any]:
    tried = {"hour": proof.hour and format_hour(proof.hour), "objects": proof.objects, "not_found": proof.absent, "unknown": proof.unknown}
    return {"name": start.name, "toml": start.text, "environment": start.environment, "missing": start.missing, "tried": tried}


def _topic_document(topic: Topic) -> dict[str, Any]:
    plain = asdict(topic) | {"hours": {format_hour(hour): count for hour, count in topic.hours.items()}}
    return plain | {"missing": None if topic.missing is None else [format_hour(hour) for hour in topic.missing]}


def _sink_document(sink: SinkFolder) -> dict[str, Any]:
    plain = {name: getattr(sink, name) for name in ("base", "form", "tables", "files", "schemas", "checkpoint_ts", "problems", "examples")}
    return plain | {"guesses": [guess_document(guess) for guess in sink.verdict.guesses]}
