"""The table schemas that a Simple feed's messages carried: one object per version in the lake, for other workers and later hours."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidelake.config.lake_paths import table_schema_key
from tidelake.io.documents import FORMAT, refuse_newer
from tidelake.io.storage import Store
from tidelake.wire.simple.simple_schema import SimpleTableSchema

_MAX_MISSING = 10_000  # hostile messages may name any number of versions


@dataclass(slots=True)
class LakeShelf:
    """A feed's table schemas, as one task reads them. A schema that was missing once is not requested again. Raises StorageError."""

    store: Store
    feed: str
    _missing: set[str] = field(default_factory=set, init=False)

    def find(self, database: str, table: str, version: int) -> SimpleTableSchema | None:
        """Return the schema of a version, None if no message has carried it so far."""
        key = table_schema_key(self.feed, database, table, version)
        if key in self._missing:
            return None
        text = self.store.read_if_present(key)
        if text is not None:
            refuse_newer(self.store, key, text)
            return SimpleTableSchema.from_json(text.decode())
        if len(self._missing) >= _MAX_MISSING:
            self._missing.clear()
        self._missing.add(key)
        return None

    def keep(self, schema: SimpleTableSchema) -> None:
        """Store the schema unless it exists. A version never changes, so any writer may be the first."""
        key = table_schema_key(self.feed, schema.database, schema.table, schema.version)
        self.store.put_if_absent(key, f'{{"format": {FORMAT},{schema.json[1:]}'.encode())
        self._missing.discard(key)
