"""`tidelake inspect`: decode messages without Spark and without a lake."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from pydantic import ValidationError

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, SchemasFolder
from tidelake.config.feed import load_feed
from tidelake.config.options import SinkOptions
from tidelake.errors import ConfigError
from tidelake.history.event import MESSAGE, RowSchema
from tidelake.io.printable import printable_json
from tidelake.protocols import Context, decode, decoder, protocol_names
from tidelake.protocols.claim_files import claim_files
from tidelake.protocols.table_schemas import table_schemas as read_schemas
from tidelake.tso import unwrap

BATCH = 2_000
_AS_THEY_ARE = ("topic", "partition", "offset", "ordinal", "kind", "op")
_LAST = ("handle_only", "claim_check", "ddl", "ddl_type", "error_code", "error")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Messages")(inspect)


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="File with one message per line; - for stdin.")],
    protocol: Annotated[str | None, typer.Option("--protocol", metavar="P", help=f"One of: {', '.join(protocol_names())}.")] = None,
    avro_schemas: Annotated[
        str | None,
        typer.Option(
            "--avro-schemas",
            metavar="FILE.json",
            help="JSON file {schema id: schema text}, a folder of <id>.avsc, a registry URL, or glue://<region>.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="key=value", help="Sink option of the changefeed. Can be repeated.")
    ] = None,
    feed: Annotated[
        str | None, typer.Option("--feed", metavar="F", help="Take protocol, sink options and Avro schemas from this feed.")
    ] = None,
    table_schemas: Annotated[
        Path | None,
        typer.Option("--table-schemas", metavar="PATH", help="A schema_*.json file of TiCDC's storage sink, or a folder of them."),
    ] = None,
    claim_check: Annotated[
        str | None,
        typer.Option("--claim-check", metavar="URI", help="Claim-check files: s3:// URI or folder. Without it their rows are stubs."),
    ] = None,
    checksums: Annotated[
        bool,
        typer.Option("--checksums", help="Add each row's checksum result: verified, mismatch, unverifiable, or null if none was sent."),
    ] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    debug: Debug = False,
) -> None:
    """Decode messages and print one JSON line per event, in message order.

    Each line of the file is {"topic"?, "partition"?, "offset"?, "key": hex or null, "value": hex or null}.
    """
    protocol, context = (
        _chosen(protocol, avro_schemas, set_ or []) if feed is None else _of_feed(schemas, feed, protocol, avro_schemas, set_, claim_check)
    )
    if claim_check is not None:
        context = replace(context, claim_file=claim_files(claim_check))
    if table_schemas is not None:
        context = replace(context, columns=read_schemas(table_schemas))
    decoder(protocol)  # raises for an unknown protocol even if there are no messages
    with sys.stdin.buffer if str(file) == "-" else _opened(file) as stream:
        for messages in _batches(stream):
            events = decode(protocol, messages, context).to_pylist()
            row_schemas = {e["row_schema"]: RowSchema.from_json(e["columns"]) for e in events if e["kind"] == "row_schema"}
            printed = (
                _line(e, row_schemas) | ({"checksum": e["checksum"]} if checksums else {}) for e in events if e["kind"] != "row_schema"
            )
            sys.stdout.writelines(f"{printable_json(line)}\n" for line in printed)


def _chosen(protocol: str | None, avro_schemas: str | None, settings: list[str]) -> tuple[str, Context]:
    from tidelake.io.avro_schemas import schema_source

    if protocol is None:
        raise ConfigError("no protocol", remedy=f"give --protocol, one of {', '.join(protocol_names())}, or --feed")
    source = schema_source(avro_schemas, Path.cwd()) if avro_schemas else None
    return protocol, Context(options=sink_options(settings), avro_schema=source)


def _of_feed(schemas: Path, name: str, *others: object) -> tuple[str, Context]:
    from tidelake.decode.known import columns_of, known_tables
    from tidelake.io.avro_schemas import schema_source

    if any(others):
        raise ConfigError(
            "--feed already sets the protocol, the sink options and the location of files",
            remedy="leave --protocol, --avro-schemas, --claim-check and --set out",
        )
    feed = load_feed(schemas, name, expand=False)
    if "${" in (feed.avro.schemas if feed.avro else "") + (feed.source.claim_check or ""):
        feed = load_feed(schemas, name)
    source = schema_source(feed.avro.schemas, feed.folder) if feed.avro else None
    files = claim_files(feed.source.claim_check) if feed.source.claim_check else None
    known = columns_of(known_tables(feed))
    return feed.protocol, Context(options=feed.options, avro_schema=source, columns=known, time_zone=feed.time_zone, claim_file=files)


def sink_options(settings: list[str]) -> SinkOptions:
    """Parse `key=value` texts into sink options.

    Raises:
        ConfigError: Not key=value, or an unknown option; the message lists the known ones.
    """
    chosen: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: not key=value")
        chosen[key] = value
    try:
        return SinkOptions.model_validate(chosen)
    except ValidationError as e:
        first = e.errors()[0]
        key = str(first["loc"][0])
        allowed = ", ".join(SinkOptions.model_fields)
        why = f"unknown option; options: {allowed}" if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigError(f"--set {key}={chosen.get(key)}: {why}") from e


def _opened(file: Path) -> Any:
    try:
        return file.open("rb")
    except OSError as e:
        raise ConfigError(f"{file}: {e.strerror}") from e


def _batches(stream: Any) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(stream):
        if line.strip():
            rows.append(_message(line, number))
        if len(rows) == BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=MESSAGE)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=MESSAGE)


def _message(line: bytes, number: int) -> dict[str, Any]:
    try:
        m = json.loads(line)
        key, value = (None if m.get(side) is None else bytes.fromhex(m[side]) for side in ("key", "value"))
        place = {"topic": m.get("topic") or "", "partition": _number(m, "partition", 0, 32), "offset": _number(m, "offset", number, 64)}
        if not isinstance(place["topic"], str):
            raise TypeError(f"topic: found {place['topic']!r}")
        return place | {"timestamp_ms": _number(m, "ts_ms", 0, 64), "key": key, "value": value, "headers": None}
    except (ValueError, TypeError, AttributeError, RecursionError) as e:
        raise ConfigError(f"line {number + 1}: {e}", remedy='a line is {"key": hex or null, "value": hex or null, "offset"?: n, …}') from e


def _number(message: dict[str, Any], name: str, default: int, bits: int) -> int:
    found = message.get(name)
    number = default if found is None else found
    if type(number) is not int or not 0 <= number < 1 << bits - 1:
        raise ValueError(f"{name}: found {found!r}")
    return number


def _line(e: dict[str, Any], row_schemas: dict[int, RowSchema]) -> dict[str, Any]:
    ts = e["commit_ts"]
    plain = {name: e[name] for name in _AS_THEY_ARE} | {"commit_ts": None if ts is None else unwrap(ts)}
    plain |= {name: e[name] for name in ("database", "table", "physical_table_id")}
    plain |= {
        "columns": _columns(row_schemas.get(e["row_schema"]), e["after"]),
        "old_columns": _columns(row_schemas.get(e["before_schema"]), e["before"]),
    }
    plain |= {name: e[name] for name in _LAST}
    return plain


def _columns(row_schema: RowSchema | None, cells: list[bytes | None] | None) -> list[dict[str, Any]] | None:
    if row_schema is None or cells is None:
        return None
    return [{"name": c.name, "type": c.type, "value": _value(c.type, cell)} for c, cell in zip(row_schema.columns, cells, strict=True)]


def _value(kind: str | None, cell: bytes | None) -> Any:
    """Return a cell as canonical text; as hex if the column is binary or the text is not UTF-8."""
    if cell is None:
        return None
    if kind is None or not ("binary" in kind or "blob" in kind):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return {"hex": cell.hex()}
    return {"hex": cell.hex()}
