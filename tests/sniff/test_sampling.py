"""A listing is bounded, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sniff.archived import fill
from tidelake.io.storage import ObjectInfo, Store, open_store
from tidelake.protocols import Context
from tidelake.sniff.archive import look
from tidelake.sniff.sampling import MOST_FOLDERS, MOST_REQUESTS, Sample, sample


def counting(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, list[int]]:
    """A store, and how many objects each call of `some` asked for; nothing may list it all."""
    store, asked = open_store(str(root)), list[int]()
    some = store.some

    def counted(prefix: str, most: int) -> list[ObjectInfo]:
        asked.append(most)
        return some(prefix, most)

    def forbidden(prefix: str = "") -> None:
        raise AssertionError(f"all of {prefix!r} is listed")

    monkeypatch.setattr(store, "some", counted)
    monkeypatch.setattr(store, "objects", forbidden)
    return store, asked


def write(root: Path, *keys: str) -> None:
    for key in keys:
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(b"x")


def test_what_fits_is_listed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "b/2", "a/1", "c")
    store, asked = counting(tmp_path, monkeypatch)
    found = sample(store, 3)
    assert (list(found.objects), found.whole, found.left_out, asked) == (["a/1", "b/2", "c"], True, 0, [4])


def test_of_dates_the_first_and_the_last_are_looked_into_and_of_topics_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = [f"dt=2026-01-{day:02d}" for day in range(1, 31)]
    write(tmp_path, *(f"{topic}/{day}/hr={hour:02d}/{topic}+0+{hour}" for topic in "abc" for day in days for hour in range(24)))
    store, asked = counting(tmp_path, monkeypatch)
    found = sample(store, 100)
    seen = {tuple(key.split("/")[:2]) for key in found.objects}
    assert not found.whole
    assert {topic for topic, _ in seen} == {"a", "b", "c"}
    assert {day for topic, day in seen if topic == "b"} == {days[0], days[-1]}
    assert found.left_out == 3 * 28 + 3 * 2 * 22
    assert {key for key in found.objects if key.startswith("c/dt=2026-01-30/")} >= {
        "c/dt=2026-01-30/hr=00/c+0+0",
        "c/dt=2026-01-30/hr=23/c+0+23",
    }
    assert len(found.objects) <= 200
    assert sum(asked) < 3 * 30 * 24


def test_requests_are_bounded_whatever_the_folders_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, *(f"{a}/{b}/{c}/{n}" for a in "klmnopqrst" for b in "abcdefghij" for c in "uvwxyz" for n in range(3)))
    store, asked = counting(tmp_path, monkeypatch)
    found = sample(store, 50)
    assert found.requests <= MOST_REQUESTS
    assert len(asked) <= found.requests + 1
    assert 0 < len(found.objects) <= 100


def test_of_very_many_topics_some_are_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, *(f"topic_{i:03d}x/{i}" for i in range(100)))
    store, _ = counting(tmp_path, monkeypatch)
    found: Sample = sample(store, 50)
    assert found.left_out == 80
    assert len([key for key in found.objects if key.startswith(("topic_000x", "topic_095x"))]) == 2
    assert MOST_FOLDERS == 24


def test_a_cut_listing_says_nothing_of_missing_hours(tmp_path: Path) -> None:
    for i in range(40):
        fill(open_store(str(tmp_path)), "aiven-jsonl", topic=f"t{i:02d}x")
    archive = look(str(tmp_path), Context(), most=100, messages=20)
    assert (archive.whole, archive.listed < 160, archive.left_out > 0) == (False, True, True)
    assert {t.missing for s in archive.sections for t in s.topics} == {None}
