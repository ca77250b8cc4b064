"""Rows in claim-check files: the message's own events, which carry the handle only, give way to those of its file.

A message and its file must speak of the same rows: same database, table, commit ts and handle, both deletes or neither
(docs/reference/protocols.md 1.5). A file is never asked for another file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema
from tidelake.wire.claim_check import record_of

if TYPE_CHECKING:
    from tidelake.protocols import Context

DecodeOne = Callable[[bytes | None, bytes | None, "Context"], list[Event]]
ClaimCells = dict[str, bytes | None]


def completed(events: list[Event], key: bytes | None, read: DecodeOne, context: Context) -> list[Event]:
    """The message's events, complete: those of its claim-check file where it names one and files are at hand.

    The result has no `claim_check`, which marks rows that are missing; the message itself, landed, still names the file.
    key: of the message. Raises DecodeError: what `context.claim_file` and `read` raise, BAD_STRUCTURE for a file of something else.
    """
    locations = {e.claim_check for e in events} - {None}
    if not locations or context.claim_file is None:
        return events
    location = min(filter(None, locations))
    if len(locations) > 1 or any(e.claim_check is None for e in events):
        raise DecodeError(f"{len(events)} events with {len(locations)} claim-check files, expected one of all", code="BAD_STRUCTURE")
    content, name = context.claim_file(location, context.max_bytes), location.rpartition("/")[2]
    try:
        inside = read(*record_of(content, key), context)
    except DecodeError as e:
        raise DecodeError(f"the claim-check file {name}: {e.message}", code=e.code) from e
    _check(name, events, inside)
    return inside


def _check(name: str, stubs: Sequence[Event], inside: Sequence[Event]) -> None:
    """Raises DecodeError (BAD_STRUCTURE) if the file does not hold what the message announces."""
    if len(inside) != len(stubs):
        raise DecodeError(f"the claim-check file {name} holds {len(inside)} events, the message {len(stubs)}", code="BAD_STRUCTURE")
    for stub, row in zip(stubs, inside, strict=True):
        if row.kind != "row" or row.handle_only or row.claim_check is not None:
            what = row.kind if row.kind != "row" else "row without its columns"
            raise DecodeError(f"the claim-check file {name} holds a {what}, expected a complete row", code="BAD_STRUCTURE")
        if not _same(stub, row):
            raise DecodeError(
                f"the claim-check file {name} holds {_said(row, stub)}, the message announces {_said(stub, stub)}", code="BAD_STRUCTURE"
            )


def _same(stub: Event, row: Event) -> bool:
    if _place(stub) != _place(row):
        return False
    former = _former(stub)
    return _image(stub).items() <= _image(row).items() and (former | _former(row)) == (_former(row) | former)


def _place(e: Event) -> tuple[str | None, str | None, int | None, bool]:
    return e.database, e.table, e.commit_ts, e.op == "delete"


def _image(e: Event) -> ClaimCells:
    """The row as it is after the event, or was before a delete."""
    return _cells(e.before_schema, e.before) if e.op == "delete" else _cells(e.row_schema, e.after)


def _former(e: Event) -> ClaimCells:
    """The row before an update, as far as it is sent: an unchanged handle may be left out (docs/reference/protocols.md 5.4)."""
    return _cells(e.before_schema, e.before) if e.op != "delete" else {}


def _cells(row_schema: RowSchema | None, cells: Sequence[bytes | None] | None) -> ClaimCells:
    return {} if row_schema is None or cells is None else {c.name: cell for c, cell in zip(row_schema.columns, cells, strict=True)}


def _said(e: Event, stub: Event) -> str:
    """A row in one phrase, with the columns that the stub has."""
    image = _image(e)
    cells = ", ".join(f"{name} {_text(image.get(name))}" for name in list(_image(stub))[:9])
    return f"{e.op} of {e.database}.{e.table} at {e.commit_ts} ({cells})"


def _text(cell: bytes | None) -> str:
    return "NULL" if cell is None else repr(cell[:40].decode(errors="replace"))
