"""The places that a feed names (archive or brokers, lake, catalog, checkpoints, schema registry), and whether each answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tidelake.config.feed import Feed
from tidelake.errors import DecodeError, StorageError
from tidelake.io.avro_schemas import SchemaSource, schema_source
from tidelake.io.object_store import Store
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.causes import named_causes
from tidelake.spark.lake_settings import LakeSettings, lake_settings

_UNUSED, _UNUSED_GLUE = (1 << 31) - 1, "00000000-0000-0000-0000-000000000000"  # ids that a registry has no schema of


@dataclass(frozen=True, slots=True)
class Place:
    """A place that a feed names.

    Attributes:
        uri: Where it is, without secrets.
        ask: Says whether something of the feed is there. It writes nothing, and raises TidelakeError if the place does not answer.
        empty: What to do if nothing is there; empty where that is so until the first hour is published.
    """

    uri: str
    ask: Callable[[], bool]
    empty: str = ""


def places(feed: Feed) -> Iterator[Place]:
    """Yield each place of a feed."""
    if feed.source.kind == "kafka":
        topics = "create the topics, or check uri and `topics` in feed.toml and the client's permissions"
        yield Place(f"kafka://{feed.source.uri}", partial(_has_topics, feed), topics)
    else:
        archive = open_store(str(feed.source.uri))
        written = "if the archiver has written objects already, check source.uri in feed.toml"
        yield Place(archive.uri, partial(_has_objects, archive), written)
    store = open_store(feed.lake.uri)
    yield Place(store.uri, partial(_has_objects, store))
    settings = lake_settings(feed)
    yield Place(settings.place, partial(_has_namespaces, settings))
    if feed.watermark.uri is not None:
        folder, _, name = feed.watermark.uri.rpartition("/")  # a file
        checkpoints = open_store(folder)
        recorded = "record checkpoints, or check watermark.uri in feed.toml"
        yield Place(checkpoints.uri_of(name), partial(_has_object, checkpoints, name), recorded)
    if feed.avro is not None:
        source = schema_source(feed.avro.schemas, feed.folder)
        yield Place(source.where, partial(_answers, source, _UNUSED_GLUE if feed.avro.schemas.startswith("glue:") else _UNUSED))


def _has_topics(feed: Feed) -> bool:
    """Raises StorageError if the brokers have some of the feed's topics and not others."""
    from tidelake.io.kafka import Topics

    with Topics(str(feed.source.uri), feed.source.kafka, f"tidelake-{feed.name}") as topics:
        there = topics.partitions()
    missing = [t for t in feed.topics if t not in there]
    if missing and len(missing) < len(feed.topics):
        raise StorageError(
            f"no topic {', '.join(missing)} that this client may see",
            code="NOT_FOUND",
            remedy="check `topics` in feed.toml and the client's permissions",
        )
    return not missing


def _has_objects(store: Store) -> bool:
    return bool(store.some("", 1))


def _has_object(store: Store, key: str) -> bool:
    return store.head(key) is not None


def _has_namespaces(settings: LakeSettings) -> bool:
    """A new catalog on SQLite is a file that does not exist yet, and stays so."""
    catalog = LakeCatalog(settings)
    with named_causes(settings.place, settings.warehouse):
        return not catalog.is_new and bool(catalog.namespaces())


def _answers(source: SchemaSource, schema_id: int | str) -> bool:
    """Ask for a schema. That there is none of this id is an answer."""
    try:
        source(schema_id)
    except DecodeError as e:
        if e.code != "UNKNOWN_SCHEMA":
            raise
    return True
