"""Read and validate the lake's JSON documents. The error for an unreadable document names it and its remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from tidelake.errors import DamageError, StorageError
from tidelake.io.object_store import Store

FORMAT = 1  # newest form of documents that is read and written
_FORMAT = re.compile(rb'\s*\{\s*"format"\s*:\s*([0-9]{1,9})\b')  # written first

_M = TypeVar("_M", bound=BaseModel)
_T = TypeVar("_T")

_LAND = "remove it, then run `tidelake land --feed {feed} --hour {hour}`, which writes it again"
_RESTORE = "restore an earlier version of the object"
_REMEDIES = {  # by the first folder of the key
    "manifests": _LAND,
    "closing": _LAND,
    "sink": _LAND,
    "decoded": "remove it, then run `tidelake decode --feed {feed} --hour {hour}`, which writes it again",
    "cuts": "remove it: it is rebuilt from publish/{name} and certificates/{name}, and `tidelake maintain --feed {feed}` writes it again",
    "certificates": "remove it: it is rebuilt from publish/{name} and cuts/{name}",
    "publish": "restore an earlier version of the object; if `tidelake status --feed {feed}` shows a cut of that number or a later one, "
    "remove it instead",
    "runs": "remove it, then run the hour again: `tidelake run --feed {feed} --hour …` writes it again",
    "mismatches": "remove it, then `tidelake redo --feed {feed} --from …` of the cut's hour writes it again",
    "reports": "remove it: `tidelake report --feed {feed} --hour …` writes it again",
    "seeds": "remove it and run `tidelake seed` again",
    "notices": "remove it: the next look at the feed writes it again and tells of the causes that last",
    "blocked": "remove it: a run of the hour that is blocked writes it again",
    "lake.json": "remove it: the next `tidelake run` writes it again",
    "leases": "when no run works on the feed, `tidelake unlock --feed {feed}` writes a new one",
}


class Document(BaseModel):
    """A JSON document of the lake. format: the version of its form; documents of Tidelake 0.1.0 lack it and have form 1."""

    format: int = FORMAT


def refuse_newer(store: Store, key: str, data: bytes) -> None:
    """Raise StorageError (NEWER_FORMAT) for a document of a form that this version of Tidelake does not know."""
    found = _FORMAT.match(data)
    if found is not None and int(found[1]) > FORMAT:
        raise newer(store, key, f"format {int(found[1])}", f"format {FORMAT}")


def newer(store: Store, key: str, found: str, known: str) -> StorageError:
    """Return the error for a document that a newer version of Tidelake wrote. found, known: its form, and the newest that is read."""
    return StorageError(
        f"{store.uri_of(key)} has {found}; this version of Tidelake reads {known}",
        code="NEWER_FORMAT",
        remedy="a newer version of Tidelake wrote it: install that version or a later one here, and leave the document as it is",
    )


def parsed(store: Store, key: str, data: bytes, validate: Callable[[bytes], _T]) -> _T:
    """Return a document's content. validate: a method of a pydantic model.

    Raises:
        DamageError: It cannot be read; with the object and its remedy.
        StorageError: NEWER_FORMAT.
    """
    refuse_newer(store, key, data)
    try:
        return validate(data)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        raise damaged(store, key, data, ".".join(map(str, first["loc"])), first["msg"]) from None


def read_document(store: Store, key: str, kind: type[_M]) -> _M:
    """Return a document. Raises StorageError (NOT_FOUND, NEWER_FORMAT), DamageError."""
    return parsed(store, key, store.read(key), kind.model_validate_json)


def find_document(store: Store, key: str, kind: type[_M]) -> _M | None:
    """Return a document, None if it does not exist. Raises DamageError, StorageError (NEWER_FORMAT)."""
    data = store.read_if_present(key)
    return None if data is None else parsed(store, key, data, kind.model_validate_json)


def members(store: Store, key: str, data: bytes) -> dict[str, Any]:
    """Return the members of a document without a model. Raises DamageError, StorageError (NEWER_FORMAT)."""
    refuse_newer(store, key, data)
    try:
        found = json.loads(data)
    except ValueError as e:
        raise damaged(store, key, data, "", str(e)) from None
    if not isinstance(found, dict):
        raise damaged(store, key, data, "", "not an object")
    return found


def schema_of(kind: type[BaseModel]) -> bytes:
    """Return the JSON Schema of a document, as a file."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(dialect | kind.model_json_schema(schema_generator=_Plain), indent=1, ensure_ascii=False).encode() + b"\n"


class _Plain(GenerateJsonSchema):
    """JSON Schema without titles, which would only repeat the members' names."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def damaged(store: Store, key: str, data: bytes, where: str, why: str) -> DamageError:
    """Return the error for an unreadable document. where: the member, empty for the whole document."""
    size = f"{len(data):,} bytes" if data else "empty"
    return DamageError(f"{store.uri_of(key)} ({size}) cannot be read: {where + ': ' if where else ''}{why}", remedy=remedy_of(key))


def remedy_of(key: str) -> str:
    """Return how to restore a lost or damaged document."""
    folder, _, name = key.partition("/")
    feed = name.partition("/")[0].removesuffix(".json")
    hour = name.partition("hour=")[2].partition("/")[0].removesuffix(".json") or "…"
    return _REMEDIES.get(folder, _RESTORE).format(feed=feed, hour=hour, name=name)
