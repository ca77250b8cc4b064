"""`tidelake quarantine list | show | replay | accept`: messages that could not be decoded, rows that fit no table."""

from __future__ import annotations

import base64
import getpass
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Json, SchemasFolder, opened, out, print_json
from tidelake.errors import MISMATCH_CODES, QUARANTINE_CODES, ConfigError
from tidelake.io.texts import plural
from tidelake.tso import format_hour, parse_hour

if TYPE_CHECKING:
    from tidelake.lake.decisions import Rejected
    from tidelake.lake.opened import Lake

_PLACE = re.compile(r"(?P<topic>.+)\[(?P<partition>\d+)\]@(?P<offset>\d+)")
MessagePlace = Annotated[str, typer.Argument(metavar="TOPIC[PARTITION]@OFFSET", help="Message, in the form that `list` prints.")]
SomeHour = Annotated[str | None, typer.Option("--hour", metavar="H", help="Only this hour (UTC). Default: all hours.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(
        no_args_is_help=True,
        help="List, show, re-drive or accept messages that could not be decoded and rows that fit no table.",
        rich_markup_mode="rich",
    )
    group.command("list")(list_)
    group.command()(show)
    group.command()(replay)
    group.command()(accept)
    app.add_typer(group, name="quarantine", rich_help_panel="Feeds")


def list_(
    feed: FeedName, hour: SomeHour = None, schemas: SchemasFolder = DEFAULT_SCHEMAS, as_json: Json = False, debug: Debug = False
) -> None:
    """List the quarantined messages: where, why, and what was decided.

    Rows that fit no table are grouped by hour and schema: the first row stands for its group.
    """
    with opened(schemas, feed, quiet=True) as lake:
        rows = _plain(lake, _rejected(lake, hour))
    if as_json:
        print_json(rows)
        return
    if not rows:
        out.print("the quarantine is empty")
        return
    grid = Table("message", "hour", "code", "why", "decision", box=None, padding=(0, 2))
    for r in rows:
        grid.add_row(r["message"], r["hour"], r["code"], r["error"], r["decision"])
    out.print(grid)


def show(
    message: MessagePlace, feed: FeedName, schemas: SchemasFolder = DEFAULT_SCHEMAS, as_json: Json = False, debug: Debug = False
) -> None:
    """Show one quarantined message with its raw bytes."""
    from tidelake.order.schema_mismatches import raw_message

    with opened(schemas, feed, quiet=True) as lake:
        found = _one(lake, message)
        (plain,) = _plain(lake, [found])
        if found.code in MISMATCH_CODES:
            key, value = raw_message(lake.store, feed, found.hour, found.at)
            found = replace(found, raw_key=key, raw_value=value)
    plain |= {
        "meaning": QUARANTINE_CODES.get(found.code, ""),
        "key_base64": _base64(found.raw_key),
        "value_base64": _base64(found.raw_value),
    }
    if as_json:
        print_json(plain)
        return
    for name in ("message", "hour", "timestamp_ms", "code", "meaning", "error", "decision"):
        out.print(f"{name:>13}  {plain[name]}", soft_wrap=True)
    for name, raw in (("key", found.raw_key), ("value", found.raw_value)):
        out.print(f"{name:>13}  {_dump(raw)}", soft_wrap=True)


def replay(
    feed: FeedName, hour: SomeHour = None, schemas: SchemasFolder = DEFAULT_SCHEMAS, as_json: Json = False, debug: Debug = False
) -> None:
    """Decode again the hours that have undecided messages, for example after new schemas, options or a newer version.

    Exit code 3: some messages still cannot be decoded.
    """
    from tidelake.run import decode

    with opened(schemas, feed, quiet=as_json) as lake:
        before = _undecided(lake, _undecodable(lake, hour))
        for one in sorted({r.hour for r in before}):
            decode(lake, parse_hour(one), redo=True)
        refused = {str(r.at) for r in _undecodable(lake, hour)}
        mismatches = _undecided(lake, _mismatches(lake, hour))
        published = _published_hour(lake)
    recovered = [r for r in before if str(r.at) not in refused]
    left = len(before) - len(recovered)
    late = sorted({r.hour for r in recovered if published and r.hour <= published})
    if as_json:
        print_json({"tried": len(before), "recovered": len(recovered), "left": left, "published_hours": late})
    else:
        out.print(f"re-drove {plural(len(before), 'message')}: {len(recovered)} decoded, {left} left")
        if late:
            out.print(
                f"  hours {', '.join(late)} are already published: their cut stays incomplete; after the next cut "
                "`tidelake late` lists the missing rows",
            )
        if mismatches:
            out.print(
                f"  {plural(len(mismatches), 'group')} of rows that fit no table: add the missing statement to ddl.jsonl, or the table to "
                "tables.sql; the rows are checked again when their window is ordered",
            )
    if left:
        raise typer.Exit(3)


def accept(
    feed: FeedName,
    message: Annotated[
        str | None, typer.Argument(metavar="[TOPIC[PARTITION]@OFFSET]", help="Message, in the form that `list` prints.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Accept every undecided message.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Reason for accepting the loss, shown in certificate and report.")] = "",
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Person who decides. Default: the user who runs the command.")
    ] = None,
    hour: SomeHour = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Accept the loss of messages. Their window can then be published without them; its cut is marked incomplete."""
    from tidelake.lake.decisions import accept as record

    if every == (message is not None):
        raise ConfigError("no message given", remedy=f"give a message that `tidelake quarantine list --feed {feed}` prints, or --all")
    with opened(schemas, feed, quiet=True) as lake:
        chosen = _undecided(lake, _rejected(lake, hour)) if every else [_one(lake, message or "")]
        done = [str(r.at) for r in chosen if record(lake.store, feed, r, by or getpass.getuser(), reason)]
    if as_json:
        print_json({"accepted": done})
    else:
        out.print(f"accepted the loss of {plural(len(done), 'message')}")


def _rejected(lake: Lake, hour: str | None, *, raw: bool = False) -> list[Rejected]:
    return [*_undecodable(lake, hour, raw=raw), *_mismatches(lake, hour)]


def _mismatches(lake: Lake, hour: str | None) -> list[Rejected]:
    from tidelake.order.schema_mismatches import mismatch_groups

    return mismatch_groups(lake.catalog, lake.store, lake.feed.name, [hour] if hour else None)


def _undecodable(lake: Lake, hour: str | None, *, raw: bool = False) -> list[Rejected]:
    from tidelake.config.lake_paths import events_table
    from tidelake.decode.record import read_record
    from tidelake.lake.decisions import rejected
    from tidelake.land.store.manifest import generations

    if hour is not None and read_record(lake.store, lake.feed.name, format_hour(parse_hour(hour))) is None:
        raise ConfigError(  # an empty list would look as if nothing was quarantined
            f"hour {hour} of feed {lake.feed.name} is not decoded: its messages are unknown",
            code="NOT_DECODED",
            remedy=f"run `tidelake run --feed {lake.feed.name} --hour {hour}`",
        )
    events = lake.catalog.find_own(events_table(lake.feed.name), lake.feed.name)
    hours = [hour] if hour else list(generations(lake.store, lake.feed.name))
    return rejected(events, hours, raw=raw) if events is not None else []


def _one(lake: Lake, message: str) -> Rejected:
    place = _PLACE.fullmatch(message)
    if not place:
        raise ConfigError(f"not a message: {message!r}", remedy="write it like shop.open[2]@1017")
    found = next((r for r in _rejected(lake, None, raw=True) if str(r.at) == message), None)
    if found is None:
        raise ConfigError(
            f"{message} is not in the quarantine", remedy=f"`tidelake quarantine list --feed {lake.feed.name}` lists its messages"
        )
    return found


def _undecided(lake: Lake, found: list[Rejected]) -> list[Rejected]:
    from tidelake.lake.decisions import by_decision

    return by_decision(lake.store, lake.feed.name, found)[0]


def _published_hour(lake: Lake) -> str | None:
    from tidelake.lake.cuts import newest_cut

    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    return cut.hour if cut else None


def _plain(lake: Lake, found: list[Rejected]) -> list[dict[str, Any]]:
    left = {r.at for r in _undecided(lake, found)}
    return [
        {
            "message": str(r.at),
            "hour": r.hour,
            "timestamp_ms": r.timestamp_ms,
            "code": r.code,
            "rows": r.rows,
            "error": r.error,
            "decision": "undecided" if r.at in left else "accepted",
        }
        for r in found
    ]


def _base64(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()


def _dump(raw: bytes | None, limit: int = 200) -> str:
    if raw is None:
        return "null"
    more = f"… ({len(raw):,} bytes; --json has all)" if len(raw) > limit else f" ({len(raw)} bytes)"
    return f"{raw[:limit]!r}{more}"
