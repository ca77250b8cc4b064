"""Walk a lake: every JSON document names its form (docs/architecture.md 9.1)."""

from __future__ import annotations

import json
import re

from tidelake.io.storage import Store

_NAMES = ("format", "predicateType", "payloadType")  # of a document, a certificate, a signature
_OF_OTHERS = re.compile(r"schemas/[^/]+/(avro|sink)/|warehouse/")  # byte for byte; Iceberg's metadata has `format-version`


def documents(store: Store) -> dict[str, bool]:
    """Key of every JSON document of the lake → whether it names its form, first."""
    keys = (o.key for o in store.objects() if o.key.endswith(".json") and not _OF_OTHERS.match(o.key))
    return {key: _names_its_form(json.loads(store.read(key))) for key in keys}


def _names_its_form(document: object) -> bool:
    return isinstance(document, dict) and any(name in document for name in _NAMES)
