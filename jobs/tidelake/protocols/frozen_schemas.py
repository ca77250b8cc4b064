"""Avro schemas kept in the lake: the schema that a worker first reads for an id is kept, and a replay does not ask the registry.

Kept as `schemas/<feed>/avro/<id>.avsc` below the lake's URI, put-if-absent, by whoever meets the id first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from tidelake.config.lake_paths import avro_key
from tidelake.errors import ConfigError, DecodeError
from tidelake.io.avro_schemas import Fetching, SchemaSource
from tidelake.io.storage import Store, open_store


def frozen_schemas(source: SchemaSource, lake_uri: str, feed: str) -> SchemaSource:
    """The source's schemas, each as it was when the lake first saw it; those in the lake need no source.

    Raises ConfigError (SCHEMA_CHANGED) where the source is asked and says something else than the lake. Files and folders are asked
    always, registries for new ids only.
    """
    return _Frozen(source.where, lake_uri, source=source, feed=feed)


@dataclass(frozen=True, kw_only=True)
class _Frozen(Fetching):
    """location: the lake's URI."""

    source: SchemaSource
    feed: str

    def __reduce__(self) -> tuple[Callable[..., SchemaSource], tuple[object, ...]]:
        return frozen_schemas, (self.source, self.location, self.feed)

    def _fetch(self, name: str) -> str | None:
        store, key = open_store(self.location), avro_key(self.feed, name)
        kept = store.read_if_present(key)
        given = self._given(name) if kept is None or self.source.nearby else None
        if given is not None:
            if kept is None and isinstance(_meaning(given), bytes):
                return given.decode()  # not to be kept: it will be refused where it is parsed
            kept = kept or _kept(store, key, given)
            if _meaning(kept) != _meaning(given):
                raise _changed(name, self.source.where, store.uri_of(key))
        return None if kept is None else kept.decode()

    def _given(self, name: str) -> bytes | None:
        try:
            return self.source(name).encode(errors="replace")
        except DecodeError:
            return None


def _kept(store: Store, key: str, given: bytes) -> bytes:
    """What the lake has from now on."""
    return given if store.put_if_absent(key, given) else store.read(key)


def _meaning(text: bytes) -> object:
    """Blanks apart; text that is not JSON as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _changed(name: str, source: str, lake: str) -> ConfigError:
    return ConfigError(
        f"schema {name} in {source} differs from the one in {lake}, with which rows of that id were decoded",
        code="SCHEMA_CHANGED",
        remedy="restore the old one, or remove the lake's and decode those hours again",
    )
