"""The archive itself says where a partition goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelake.io.storage import Store, open_store
from tidelake.land.archiver.resume import Reached, reached

OBJECTS = (
    "shop/hour=2026-01-05T10/partition=0/00000000000000000000-00000000000000000009-0af3.parquet",
    "shop/hour=2026-01-05T10/partition=1/00000000000000000000-00000000000000000004-0af3.parquet",
    "shop/hour=2026-01-05T11/partition=0/00000000000000000010-00000000000000000014-0af3.parquet",
    "shop/hour=2026-01-05T11/partition=0/00000000000000000015-00000000000000000120-0af3.parquet",
    "shop/hour=2026-01-05T11/partition=10/00000000000000000000-00000000000000000700-0af3.parquet",
    "shop/hour=2026-01-05T11/partition=1/notes.txt",
    "shop/hour=2026-01-05T12/_SUCCESS",
    "shop/hour=later/partition=0/00000000000000000000-00000000000000000999-0af3.parquet",
    "shop.other/hour=2026-01-05T13/partition=0/00000000000000000000-00000000000000000999-0af3.parquet",
)


@pytest.fixture
def archive(tmp_path: Path) -> Store:
    store = open_store(str(tmp_path))
    for key in OBJECTS:
        store.write(key, b"x")
    return store


def test_a_partition_goes_on_behind_the_last_offset_of_its_newest_hour(archive: Store) -> None:
    assert reached(archive, "shop", [0, 1, 2]) == {0: Reached(121, "2026-01-05T11"), 1: Reached(5, "2026-01-05T10")}
    assert reached(archive, "nothing", [0]) == {}


def test_no_hour_is_listed_before_the_one_in_which_all_are_found(archive: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    objects = type(archive).objects
    monkeypatch.setattr(type(archive), "objects", lambda self, prefix="": (asked.append(prefix), objects(self, prefix))[1])
    assert reached(archive, "shop", [0, 10]) == {0: Reached(121, "2026-01-05T11"), 10: Reached(701, "2026-01-05T11")}
    assert asked == ["shop/hour=2026-01-05T12/", "shop/hour=2026-01-05T11/"]
