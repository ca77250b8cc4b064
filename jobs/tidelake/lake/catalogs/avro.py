"""pyiceberg's Avro files, with what depends on the schema alone made once.

For every manifest and every list of manifests, pyiceberg parses the schema in the header and builds readers for its fields, or it builds
writers and writes the schema as JSON. Those of a schema are the same each time, and they take ten times as long as the entry of one file.
pyiceberg 0.12 has no place to keep them, so its module of manifests gets these two classes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, cast

from pyiceberg import manifest
from pyiceberg.avro.codecs import AVRO_CODEC_KEY, CODEC_MAPPING_ICEBERG_TO_AVRO
from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import MAGIC, META_SCHEMA, SYNC_SIZE, AvroFile, AvroFileHeader, AvroOutputFile, D
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import construct_reader, construct_writer, resolve_reader, resolve_writer
from pyiceberg.avro.writer import Writer
from pyiceberg.io import OutputFile
from pyiceberg.schema import Schema
from pyiceberg.types import StructType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

_KEPT = 256  # schemas: one for each column and transform that tables are partitioned by
_SCHEMA = "avro.schema"
_Of = tuple[tuple[int, Callable[..., Any]], ...]  # pairs of a field's id and the class of its values
_READ_HEADER = construct_reader(META_SCHEMA, {-1: AvroFileHeader})
_WRITE_HEADER = construct_writer(META_SCHEMA)


def keep_schemas() -> None:
    """Let pyiceberg read and write manifests, and lists of them, with these classes."""
    vars(manifest).update(AvroFile=_Reading, AvroOutputFile=_Writing)


@lru_cache(_KEPT)
def entry_schema(version: Literal[1, 2, 3], partition: StructType) -> Schema:
    """Return the schema of a manifest's entries, the same object each time.

    version: the table's format version; partition: type of its partitions' values.
    """
    return manifest.manifest_entry_schema_with_data_file(version, manifest.data_file_with_partition(partition, version))


class _Same:
    """A schema as a key: it is the same object each time. pyiceberg's have no hash."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.schema is other.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(_KEPT)
def _reader(text: str, wanted: _Same, types: _Of, enums: _Of) -> Reader:
    return resolve_reader(AvroSchemaConversion().avro_to_iceberg(json.loads(text)), wanted.schema, dict(types), dict(enums))


@lru_cache(_KEPT)
def _writer(record: _Same, file: _Same) -> Writer:
    return resolve_writer(record.schema, file.schema)


@lru_cache(_KEPT)
def _text(schema: _Same, name: str) -> str:
    return json.dumps(AvroSchemaConversion().iceberg_to_avro(schema.schema, schema_name=name))


class _Reading(AvroFile[D]):
    def __enter__(self) -> _Reading[D]:
        with self.input_file.open() as f:
            self.decoder = new_decoder(f.read())
        self.header = _READ_HEADER.read(self.decoder)
        types, enums = tuple(self.read_types.items()), tuple(self.read_enums.items())
        self.reader = _reader(self.header.meta[_SCHEMA], _Same(cast(Schema, self.read_schema)), types, enums)
        return self


class _Writing(AvroOutputFile[D]):
    def __init__(
        self, output_file: OutputFile, file_schema: Schema, schema_name: str, record_schema: Schema, metadata: dict[str, str]
    ) -> None:
        self.output_file, self.file_schema, self.schema_name, self.metadata = output_file, file_schema, schema_name, metadata
        self.sync_bytes = os.urandom(SYNC_SIZE)
        self.writer = _writer(_Same(record_schema), _Same(file_schema))

    def _write_header(self) -> None:
        codec = self.metadata[AVRO_CODEC_KEY]
        kept = {_SCHEMA: _text(_Same(self.file_schema), self.schema_name), AVRO_CODEC_KEY: CODEC_MAPPING_ICEBERG_TO_AVRO.get(codec, codec)}
        _WRITE_HEADER.write(self.encoder, AvroFileHeader(MAGIC, {**self.metadata, **kept}, self.sync_bytes))
