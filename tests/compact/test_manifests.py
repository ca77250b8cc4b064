"""Compact reads the manifests of its window's changes, not those of the hours before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import ManifestFile

from tests.lake.histories import publish, resolved, row
from tests.lake.windows import KV, opened

pytestmark = pytest.mark.usefixtures("small_hours")


def test_an_hour_reads_no_manifest_of_changes_of_hours_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, plain = list[str](), ManifestFile.fetch_manifest_entry

    def watched(self: ManifestFile, *given: Any, **named: Any) -> Any:
        read.append(self.manifest_path)
        return plain(self, *given, **named)

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", watched)
    with opened(tmp_path) as (made, lake):
        for n in range(4):
            standing = {m.manifest_path for m in _manifests(lake.catalog.load("d_changelog.k"))} if n else set[str]()
            read.clear()
            cut = publish(lake, made.add(lake, [row(0, "insert", 10 * n + 5, KV, (str(n), "a")), *resolved(10 * n + 9)]))
            assert cut is not None
            changelog = lake.catalog.load("d_changelog.k")
            assert (len(standing), standing & set(read)) == (n, set())
            assert {m.manifest_path for m in _manifests(changelog)} - standing <= set(read)


def _manifests(table: Any) -> list[ManifestFile]:
    snapshot = table.table.snapshot_by_id(table.main)
    assert snapshot is not None
    found: list[ManifestFile] = snapshot.manifests(table.table.io)
    return found
