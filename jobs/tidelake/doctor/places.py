"""The places that a feed names (archive or brokers, lake, catalog, checkpoints, schema registry), and whether each answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def places(feed: Feed) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each place of a feed, without secrets, and what asks it: whether something of the feed is there.

    Asking writes nothing. It raises TidelakeError if the place does not answer.
    """
    if feed.source.kind == "kafka":
        yield f"kafka://{feed.source.uri}", partial(_has_topics, feed)
    else:
        archive = open_store(str(feed.source.uri))
        yield archive.uri, partial(_has_objects, archive)
    store = open_store(feed.lake.uri)
    yield store.uri, partial(_has_objects, store)
    settings = lake_settings(feed)
    yield settings.place, partial(_has_namespaces, settings)
    if feed.watermark.uri is not None:
        folder, _, name = feed.watermark.uri.rpartition("/")  # a file
        checkpoints = open_store(folder)
        yield checkpoints.uri_of(name), partial(_has_object, checkpoints, name)
    if feed.avro is not None:
        source = schema_source(feed.avro.schemas, feed.folder)
        yield source.where, partial(_answers, source, _UNUSED_GLUE if feed.avro.schemas.startswith("glue:") else _UNUSED)


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
