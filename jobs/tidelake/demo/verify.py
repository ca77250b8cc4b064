"""Compares printed tables with the truth files of a workload (their README defines the canonical text of each type)."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

TruthRow = Mapping[str, Any]


def differences(
    got: Iterable[TruthRow], table: Mapping[str, Any], ignore: Iterable[str] = (), unsettled: Iterable[tuple[Any, ...]] = ()
) -> list[str]:
    """Return the differences between printed rows and a table of the truth as sentences; [] if they are equal.

    ignore: columns that cannot be compared; unsettled: keys of rows for which both states are right.
    """
    columns = [c for c in table["columns"] if c not in set(ignore)]
    open_keys = {tuple(str(v) for v in key) for key in unsettled}
    key = table["key"]

    def plain(rows: Iterable[TruthRow]) -> Counter[tuple[Any, ...]]:
        kept = (r for r in rows if not key or tuple(str(r[k]) for k in key) not in open_keys)
        return Counter(tuple(_plain(r[c], table["types"][c]) for c in columns) for r in kept)

    got = list(got)
    named = [f"columns are {sorted(r)}, wanted {columns}" for r in got[:1] if not set(columns) <= set(r)]
    if named:
        return named
    have, want = plain(got), plain(table["rows"])
    extra = [f"only in the lake ({n}×): {dict(zip(columns, r, strict=True))}" for r, n in (have - want).items()]
    missing = [f"only in the truth ({n}×): {dict(zip(columns, r, strict=True))}" for r, n in (want - have).items()]
    return [*extra, *missing]


def _plain(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "json":
        return json.dumps(json.loads(value), sort_keys=True)
    if kind == "double":
        return float(value)
    if kind == "float":
        return struct.pack("<f", float(value))
    if kind == "vector":
        return tuple(struct.pack("<f", x) for x in json.loads(value))
    if kind == "bin":
        return value["hex"].lower()
    return value
