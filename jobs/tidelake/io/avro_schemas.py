"""Avro schemas by id: from a JSON file {id: schema text}, a folder of <id>.avsc, a Confluent registry, or AWS Glue's.

Ids are Confluent's numbers and AWS Glue's UUIDs. A source is callable and can be pickled, without the schemas that it has fetched.
"""

from __future__ import annotations

import base64
import json
import re
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import ClassVar
from typing import Protocol as Interface

from tidelake.errors import ConfigError, DecodeError, StorageError
from tidelake.io.service_url import service_url
from tidelake.io.storage import aws_client, aws_errors, open_store

_FILE = ".avsc"
_WHAT = "Avro schemas: the registry's URL"
_FORM = "give http(s)://[user:password@]host[:port][/path]"
_TIMEOUT_SECONDS = 10
_PAUSES_SECONDS = (0.5, 1.0, 2.0)  # pause before each further attempt
_MAX_BYTES = 16 << 20
_MAX_FOUND = 10_000  # hostile messages may name any number of ids
_KIND = "a JSON file {id: schema text}, a folder of <id>.avsc, an http(s):// registry, or glue://<region>"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REGION = re.compile(r"([a-z]+(-[a-z]+)+-[0-9]+)?")


class SchemaSource(Interface):
    """Schemas by id. Raises DecodeError (UNKNOWN_SCHEMA) for an unknown id, StorageError if the source cannot be asked.

    where: the location in a form that errors may print; nearby: repeated requests cost next to nothing.
    """

    nearby: ClassVar[bool]

    @property
    def where(self) -> str: ...

    def __call__(self, schema_id: int | str) -> str: ...


def schema_source(location: str, base: Path) -> SchemaSource:
    """Return the schemas at a location; a relative path starts at `base`. Raises ConfigError if there is nothing usable, StorageError."""
    if location.startswith(("http://", "https://")):
        return _registry(location)
    if location.startswith("glue://"):
        return _glue(location)
    uri = location if "://" in location else str(base / location)
    folder, _, name = uri.rstrip("/").rpartition("/")
    try:
        if any(True for _ in open_store(uri).objects()):
            return _Folder(uri, uri)
        text = open_store(folder or "/").read_if_present(name)
    except StorageError as e:
        if uri.startswith("s3://") and e.code != "NOT_FOUND":
            raise
        raise ConfigError(f"Avro schemas {uri}: {e.message}", remedy=f"give {_KIND}") from e
    if text is None:
        raise ConfigError(f"Avro schemas {uri}: does not exist", remedy=f"give {_KIND}")
    return _File(uri, _schemas(uri, text))


def schemas_here(location: str, base: Path) -> dict[str, str] | None:
    """Return all schemas of a file or folder on this machine, by id; None for a location that workers can ask themselves.

    The schemas are sent to workers, whose machines may not have the file. Raises what `schema_source` raises.
    """
    if "://" in location and not location.startswith("file://"):
        return None
    source = schema_source(location, base)
    if isinstance(source, _File):
        return dict(source.schemas)
    assert isinstance(source, _Folder), "what else is local"
    names = (o.key for o in open_store(source.location).objects())
    return {name.removesuffix(_FILE): source(name.removesuffix(_FILE)) for name in names if name.endswith(_FILE) and "/" not in name}


def handed_over(where: str, schemas: Mapping[str, str]) -> SchemaSource:
    """Return a source of schemas that another machine read. where: their location there."""
    return _File(where, schemas)


def _schemas(uri: str, text: bytes) -> dict[str, str]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise ConfigError(f"Avro schemas {uri}: not JSON: {e}", remedy=f"give {_KIND}") from e
    if not isinstance(content, dict) or not all(isinstance(schema, str | dict) for schema in content.values()):
        raise ConfigError(f"Avro schemas {uri}: not an object of ids and schemas", remedy=f"give {_KIND}")
    return {schema_id.lower(): schema if isinstance(schema, str) else json.dumps(schema) for schema_id, schema in content.items()}


@dataclass(frozen=True, slots=True)
class _File:
    nearby: ClassVar[bool] = True

    where: str
    schemas: Mapping[str, str] = field(repr=False)

    def __call__(self, schema_id: int | str) -> str:
        found = self.schemas.get(str(schema_id).lower())
        if found is None:
            raise _unknown(schema_id, self.where)
        return found


@dataclass(frozen=True)
class Fetching(ABC):
    """A source that fetches each id once."""

    nearby: ClassVar[bool] = False

    where: str
    location: str = field(repr=False)
    _found: dict[str, str | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[Callable[..., SchemaSource], tuple[object, ...]]:
        return type(self), (self.where, self.location)

    def __call__(self, schema_id: int | str) -> str:
        name = str(schema_id).lower()
        if name not in self._found:
            if len(self._found) >= _MAX_FOUND:
                self._found.clear()
            self._found[name] = self._fetch(name)
        found = self._found[name]
        if found is None:
            raise _unknown(schema_id, self.where)
        return found

    @abstractmethod
    def _fetch(self, name: str) -> str | None:
        """Return the schema's text, None if there is none. Raises StorageError."""


class _Folder(Fetching):
    nearby = True

    def _fetch(self, name: str) -> str | None:
        text = open_store(self.location).read_if_present(f"{name}{_FILE}")
        return None if text is None else text.decode(errors="replace")  # the parser refuses a schema that is not UTF-8


class _Registry(Fetching):
    """A Confluent schema registry. User and password of the location are only sent in a header."""

    def _fetch(self, name: str) -> str | None:
        for pause in (*_PAUSES_SECONDS, None):
            try:
                return self._ask(name)
            except urllib.error.HTTPError as e:
                e.close()
                if e.code == 404:
                    return None
                if e.code < 500 and e.code != 429:
                    raise StorageError(f"{self.where} answers {e.code} {e.reason}", remedy="check its address and credentials") from None
                reason = f"{e.code} {e.reason}"
            except (OSError, HTTPException) as e:
                reason = type(e).__name__ if isinstance(e, HTTPException) else str(e)
            if pause is not None:
                time.sleep(pause)
        raise StorageError(f"{self.where} cannot be asked for schema {name}: {reason}", remedy="check the registry and the network")

    def _ask(self, name: str) -> str:
        url = service_url(self.location, _WHAT, _FORM)
        request = urllib.request.Request(f"{self.where}/schemas/ids/{name}", headers={"Accept": "application/json"})
        if url.user or url.password:
            secret = f"{url.user}:{url.password}".encode()
            request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(secret).decode()}")
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            text = answer.read(_MAX_BYTES + 1)
        try:
            schema = json.loads(text)["schema"] if len(text) <= _MAX_BYTES else None
        except (ValueError, TypeError, KeyError, RecursionError):
            schema = None
        if not isinstance(schema, str):
            raise StorageError(f"{self.where} gives no schema text for id {name}", remedy="check that it is a schema registry")
        return schema


class _Glue(Fetching):
    """AWS Glue's schema registry: schema versions by UUID. location: the region; empty: the environment's."""

    def _fetch(self, name: str) -> str | None:
        if not _UUID.fullmatch(name):
            return None
        try:
            with aws_errors(f"{self.where}: schema {name}"):
                return str(aws_client("glue", self.location).get_schema_version(SchemaVersionId=name)["SchemaDefinition"])
        except StorageError as e:
            if e.code == "NOT_FOUND":
                return None
            raise


def _glue(location: str) -> _Glue:
    region = location.removeprefix("glue://")
    if not _REGION.fullmatch(region):
        raise ConfigError(f"Avro schemas {location}: no region", remedy="give glue://<region>, like glue://eu-central-1, or glue:// alone")
    return _Glue(location, region)


def _registry(location: str) -> _Registry:
    url = service_url(location, _WHAT, _FORM)
    if not url.host or url.options or not location.isascii():
        raise ConfigError(f"{_WHAT} is malformed", remedy=_FORM)
    return _Registry(url.shown.rstrip("/"), location)


def _unknown(schema_id: int | str, where: str) -> DecodeError:
    return DecodeError(f"no schema {schema_id} in {where}", code="UNKNOWN_SCHEMA")
