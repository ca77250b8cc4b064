"""sniff: what are these messages? A guess with its evidence, and how to go on from there."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tidelake.cli.common import Debug, Json, out, print_json
from tidelake.errors import ConfigError
from tidelake.quality.texts import plural

if TYPE_CHECKING:
    from tidelake.protocols import Context
    from tidelake.sniff import Guess, Misfit, Verdict
    from tidelake.sniff.containers import Found

UNDECIDED = 3
LIMIT = 4_000
_STDIN_BYTES = 256 << 20
_LINES = "messages.jsonl"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Messages")(sniff)


def sniff(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Lines for `inspect`, an archive object, or one message value; - for stdin.")
    ],
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1_000_000, help="Look at no more than N messages.")] = LIMIT,
    avro_schemas: Annotated[
        str | None,
        typer.Option("--avro-schemas", metavar="FILE.json", help="{schema id: schema text}, a folder of <id>.avsc, or a registry URL."),
    ] = None,
    lines: Annotated[
        Path | None, typer.Option("--lines", metavar="OUT.jsonl", help="Also write the messages as lines that `inspect` reads.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Guess protocol, framing, compression and sink options of unknown messages, with the evidence.

    A guess is certain if every message decodes with it. Exit codes: 0 certain or likely, 3 undecided or no
    protocol of TiCDC or Canal, 2 wrong use.
    """
    from tidelake.sniff import judge

    context = _context(avro_schemas)
    with _opened(file, limit) as found:
        batches = list(found.batches())
        if lines is not None:
            _write(lines, batches)
        verdict = judge(batches, context)
    command = _command(verdict, found, file, lines, avro_schemas)
    if as_json:
        print_json(_document(verdict, found, file, command, avro_schemas))
    else:
        _print(verdict, found, file, command, avro_schemas)
    if not verdict.decided:
        raise typer.Exit(UNDECIDED)


def _context(avro_schemas: str | None) -> Context:
    from tidelake.avro_schemas import schema_source
    from tidelake.protocols import Context

    return Context(avro_schema=schema_source(avro_schemas, Path.cwd()) if avro_schemas else None)


@contextmanager
def _opened(file: Path, limit: int) -> Iterator[Found]:
    """The recognised file; stdin is copied, because archive objects are read more than once."""
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


def _command(verdict: Verdict, found: Found, file: Path, lines: Path | None, avro_schemas: str | None) -> str:
    """How to see the events. Inspect reads lines only, uncompressed."""
    from tidelake.sniff.advice import inspect_command
    from tidelake.sniff.containers import INSPECT

    if not verdict.guesses:
        return ""
    if found.container == INSPECT and not found.compressed:
        return inspect_command(verdict.guesses[0], str(file), avro_schemas)
    target = str(lines or _LINES)
    first = "" if lines is not None else f"tidelake sniff {shlex.quote(str(file))} --lines {target} && "
    return first + inspect_command(verdict.guesses[0], target, avro_schemas)


def _document(verdict: Verdict, found: Found, file: Path, command: str, avro_schemas: str | None) -> dict[str, Any]:
    from tidelake.sniff.advice import feed_lines

    guesses = [_guess(guess) for guess in verdict.guesses]
    return {
        "file": str(file),
        "container": found.container,
        "messages": verdict.messages,
        "cut": found.cut or None,
        "problem": found.problem or None,
        "decided": verdict.decided,
        "guesses": guesses,
        "strangers": _misfits(verdict.strangers),
        "stranger_count": verdict.stranger_count,
        "feed_toml": feed_lines(verdict.guesses[0], found.layout, avro_schemas) if guesses else [],
        "command": command or None,
    }


def _guess(guess: Guess) -> dict[str, Any]:
    plain = {name: getattr(guess, name) for name in ("protocol", "confidence", "framing", "compression")}
    plain |= {"options": dict(guess.options), "decoded": guess.decoded, "waiting_for_schema": guess.waiting, "seen": guess.seen}
    plain["schema_ids"] = list(guess.schema_ids)
    plain["evidence"] = [{"text": e.text, "messages": e.messages, "first": asdict(e.first)} for e in guess.evidence]
    return plain | {"misfits": _misfits(guess.misfits), "misfit_count": guess.misfit_count}


def _misfits(misfits: Iterable[Misfit]) -> list[dict[str, Any]]:
    return [{"at": asdict(misfit.at), "says": misfit.says} for misfit in misfits]


def _print(verdict: Verdict, found: Found, file: Path, command: str, avro_schemas: str | None) -> None:
    from tidelake.sniff.advice import feed_lines

    _say(f"{file}: {found.container}, {plural(verdict.messages, 'message')}{f'; {found.cut}' if found.cut else ''}")
    if found.problem:
        _say(f"the rest cannot be read: {found.problem}")
    if not verdict.guesses:
        _say("no protocol of TiCDC or Canal")
        _several("messages", verdict.strangers, verdict.stranger_count)
        return
    out.print(_table(verdict))
    best = verdict.guesses[0]
    _say("evidence")
    for e in best.evidence:
        _say(f"  {e.text} ({plural(e.messages, 'message')}, first {e.first})" if e.messages > 1 else f"  {e.text} ({e.first})")
    if best.waiting:
        ids = ", ".join(map(str, best.schema_ids[:20])) + (", …" if len(best.schema_ids) > 20 else "")
        _say(f"  {plural(best.waiting, 'message')} without their Avro schemas, {ids}: give --avro-schemas")
    _several("not decoded", best.misfits, best.misfit_count)
    _say("feed.toml")
    for line in feed_lines(best, found.layout, avro_schemas):
        _say(f"  {line}" if line else "")
    _say("to see the events")
    _say(f"  {command}")


def _table(verdict: Verdict) -> Table:
    table = Table("protocol", "guess", "decoded", "framing", "compression", "options that differ from the defaults")
    for g in verdict.guesses:
        options = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in g.options.items())
        table.add_row(g.protocol, g.confidence, f"{g.decoded} of {verdict.messages}", g.framing, g.compression, options)
    return table


def _several(title: str, misfits: Iterable[Misfit], count: int) -> None:
    told = list(misfits)
    if not told:
        return
    _say(title)
    for misfit in told:
        _say(f"  {misfit.at}: {misfit.says}")
    if count > len(told):
        _say(f"  and {count - len(told)} more")


def _say(line: str) -> None:
    out.print("".join(c if c.isprintable() else repr(c)[1:-1] for c in line), highlight=False, markup=False, soft_wrap=True)
