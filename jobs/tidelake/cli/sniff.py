"""`tidelake sniff`: guess the protocol of unknown messages, with the evidence."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tidelake.cli.common import Debug, Json, out, print_json, say
from tidelake.cli.sniffing.archive import UNDECIDED, sniff_archive
from tidelake.cli.sniffing.guesses import guess_document, misread_documents
from tidelake.errors import ConfigError
from tidelake.io.texts import plural

if TYPE_CHECKING:
    from tidelake.protocols import Context
    from tidelake.sniff import Misread, SniffVerdict
    from tidelake.sniff.containers import Found

LIMIT = 4_000
MAX_OBJECTS = 20_000
_STDIN_BYTES = 256 << 20
_LINES = "messages.jsonl"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Messages")(sniff)


def sniff(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URI",
            help="Archive (folder or s3://bucket/prefix) or file: lines for `inspect`, an archive object, one message; - for stdin.",
        ),
    ],
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1_000_000, help="Maximum number of messages to read.")] = LIMIT,
    avro_schemas: Annotated[
        str | None,
        typer.Option(
            "--avro-schemas", metavar="FILE.json", help="JSON file {schema id: schema text}, folder of <id>.avsc, or registry URL."
        ),
    ] = None,
    lines: Annotated[
        Path | None,
        typer.Option("--lines", metavar="OUT.jsonl", help="Also write the messages to this file, as lines that `inspect` reads."),
    ] = None,
    max_objects: Annotated[
        int,
        typer.Option("--max-objects", metavar="N", min=100, max=1_000_000, help="Archives: approximate maximum number of objects to list."),
    ] = MAX_OBJECTS,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write",
            metavar="DIR|FEED.toml",
            help="Archives: write DIR/<feed>/feed.toml for every feed found, or one FEED.toml. Existing files are not overwritten.",
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", metavar="P", help="Protocol to assume if none is certain or likely.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find out what an archive or a file of messages holds, and print a feed.toml to start from.

    For a folder or s3:// prefix: layouts, topics, hours, offsets, protocols, and which guarantees hold.
    For a file: protocol, framing, compression and sink options, with the evidence.
    A guess is certain if every message decodes with it.
    Exit codes: 0 certain or likely, 2 wrong use, 3 undecided or not from TiCDC or Canal.
    """
    from tidelake.protocols import decoder
    from tidelake.sniff import judge

    if protocol is not None:
        decoder(protocol)
    context = _context(avro_schemas)
    if file.startswith("s3://") or Path(file).is_dir():
        if lines is not None:
            raise ConfigError("--lines is for one file", remedy="give one object of the archive, as a local copy")
        sniff_archive(file, context, avro_schemas, limit=limit, most=max_objects, write=write, said=protocol, as_json=as_json)
        return
    if write is not None:
        raise ConfigError("--write is for archives", remedy="give the archive's folder or s3://bucket/prefix")
    with _opened(Path(file), limit) as found:
        batches = list(found.batches())
        if lines is not None:
            _write(lines, batches)
        verdict = judge(batches, context, protocol)
    command = _command(verdict, found, Path(file), lines, avro_schemas)
    if as_json:
        print_json(_document(verdict, found, Path(file), command, avro_schemas))
    else:
        _print(verdict, found, Path(file), command, avro_schemas)
    if not verdict.decided:
        raise typer.Exit(UNDECIDED)


def _context(avro_schemas: str | None) -> Context:
    from tidelake.io.avro_schemas import schema_source
    from tidelake.protocols import Context

    return Context(avro_schema=schema_source(avro_schemas, Path.cwd()) if avro_schemas else None)


@contextmanager
def _opened(file: Path, limit: int) -> Iterator[Found]:
    """Yield the recognised file. Stdin is copied to a file, because archive objects are read more than once."""
    from tidelake.sniff.containers import recognised

    if str(file) != "-":
        try:
            yield recognised(file, limit)
        except OSError as e:
            raise ConfigError(f"{file}: {e.strerror or e}") from e
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "stdin"
        with copy.open("wb") as target:
            shutil.copyfileobj(_Capped(sys.stdin.buffer), target)
        yield recognised(copy, limit)


class _Capped:
    """The first _STDIN_BYTES of a stream."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._left = stream, _STDIN_BYTES

    def read(self, size: int = _STDIN_BYTES, /) -> bytes:
        data: bytes = self._stream.read(min(size, self._left))
        self._left -= len(data)
        return data


def _write(target: Path, batches: Iterable[Any]) -> None:
    try:
        with target.open("w", encoding="utf-8") as stream:
            for batch in batches:
                for m in batch.select(["topic", "partition", "offset", "key", "value"]).to_pylist():
                    sides = {side: None if m[side] is None else m[side].hex() for side in ("key", "value")}
                    stream.write(json.dumps(m | sides) + "\n")
    except OSError as e:
        raise ConfigError(f"{target}: {e.strerror or e}") from e


def _command(verdict: SniffVerdict, found: Found, file: Path, lines: Path | None, avro_schemas: str | None) -> str:
    """Return the `inspect` command that shows the events, or "". Inspect reads uncompressed lines only."""
    from tidelake.sniff.advice import inspect_command
    from tidelake.sniff.containers import INSPECT

    if not verdict.guesses:
        return ""
    if found.container == INSPECT and not found.compressed:
        return inspect_command(verdict.guesses[0], str(file), avro_schemas)
    target = str(lines or _LINES)
    first = "" if lines is not None else f"tidelake sniff {shlex.quote(str(file))} --lines {target} && "
    return first + inspect_command(verdict.guesses[0], target, avro_schemas)


def _document(verdict: SniffVerdict, found: Found, file: Path, command: str, avro_schemas: str | None) -> dict[str, Any]:
    from tidelake.sniff.advice import feed_lines

    guesses = [guess_document(guess) for guess in verdict.guesses]
    return {
        "file": str(file),
        "container": found.container,
        "messages": verdict.messages,
        "cut": found.cut or None,
        "problem": found.problem or None,
        "decided": verdict.decided,
        "guesses": guesses,
        "unrecognised": misread_documents(verdict.unrecognised),
        "unrecognised_count": verdict.unrecognised_count,
        "feed_toml": feed_lines(verdict.guesses[0], found.layout, avro_schemas) if guesses else [],
        "command": command or None,
    }


def _print(verdict: SniffVerdict, found: Found, file: Path, command: str, avro_schemas: str | None) -> None:
    from tidelake.sniff.advice import feed_lines

    say(f"{file}: {found.container}, {plural(verdict.messages, 'message')}{f'; {found.cut}' if found.cut else ''}")
    if found.problem:
        say(f"the rest cannot be read: {found.problem}")
    if not verdict.guesses:
        say("no protocol of TiCDC or Canal")
        _several("messages", verdict.unrecognised, verdict.unrecognised_count)
        return
    out.print(_table(verdict))
    best = verdict.guesses[0]
    say("evidence")
    for e in best.evidence:
        say(f"  {e.text} ({plural(e.messages, 'message')}, first {e.first})" if e.messages > 1 else f"  {e.text} ({e.first})")
    if best.waiting:
        ids = ", ".join(map(str, best.schema_ids[:20])) + (", …" if len(best.schema_ids) > 20 else "")
        say(f"  {plural(best.waiting, 'message')} without their Avro schemas, {ids}: give --avro-schemas")
    _several("not decoded", best.mismatches, best.misread_count)
    say("feed.toml")
    for line in feed_lines(best, found.layout, avro_schemas):
        say(f"  {line}" if line else "")
    say("to see the events")
    say(f"  {command}")


def _table(verdict: SniffVerdict) -> Table:
    table = Table("protocol", "guess", "decoded", "framing", "compression", "options that differ from the defaults")
    for g in verdict.guesses:
        options = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in g.options.items())
        table.add_row(g.protocol, g.confidence, f"{g.decoded} of {verdict.messages}", g.framing, g.compression, options)
    return table


def _several(title: str, mismatches: Iterable[Misread], count: int) -> None:
    shown = list(mismatches)
    if not shown:
        return
    say(title)
    for mismatch in shown:
        say(f"  {mismatch.at}: {mismatch.says}")
    if count > len(shown):
        say(f"  and {count - len(shown)} more")
