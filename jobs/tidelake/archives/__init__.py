"""Archived Kafka objects → MESSAGE batches, one module a layout (docs/reference/archives.md). The only registry."""

from __future__ import annotations

from importlib import import_module

from tidelake.archives.paths import TIMELESS, all_have_keys, list_all, list_hour, numbered, topics_of
from tidelake.archives.readers.shape import KEYED_PROTOCOLS, Layout, Listing, Lost, Sibling, SourceObject, absent, beside
from tidelake.errors import ConfigError

_MODULES = {
    "aiven-jsonl": "aiven_jsonl",
    "aiven-jsonl-string": "aiven_jsonl_string",
    "aiven-jsonl-nested": "aiven_jsonl_nested",
    "aiven-json": "aiven_json",
    "aiven-csv": "aiven_csv",
    "aiven-avro": "aiven_avro",
    "aiven-parquet": "aiven_parquet",
    "confluent-json": "confluent_json",
    "confluent-json-string": "confluent_json_string",
    "confluent-json-nested": "confluent_json_nested",
    "confluent-avro": "confluent_avro",
    "confluent-parquet": "confluent_parquet",
    "confluent-bin": "confluent_bin",
    "confluent-bin-open": "confluent_bin_open",
    "lenses-json": "lenses_json",
    "lenses-avro": "lenses_avro",
    "lenses-parquet": "lenses_parquet",
    "kcat": "kcat",
    "secor": "secor",
    "canonical": "canonical",
    "storage-sink": "storage_sink",
}


def layout_names() -> list[str]:
    """The layouts this version reads."""
    return list(_MODULES)


def layout_of(name: str) -> Layout:
    """The layout of this name. Raises ConfigError for one that this version does not read."""
    if name not in _MODULES:
        raise ConfigError(f"source.layout: unknown layout {name!r}", remedy=f"known: {', '.join(_MODULES)}")
    layout: Layout = import_module(f"tidelake.archives.{_MODULES[name]}").LAYOUT
    return layout


__all__ = [
    "KEYED_PROTOCOLS",
    "TIMELESS",
    "Layout",
    "Listing",
    "Lost",
    "Sibling",
    "SourceObject",
    "absent",
    "all_have_keys",
    "beside",
    "layout_names",
    "layout_of",
    "list_all",
    "list_hour",
    "numbered",
    "topics_of",
]
