"""What a new generation says of the one before."""

from __future__ import annotations

from typing import Any

from tests.land.manifests import hour
from tidelake.land.generation import new_offsets, since
from tidelake.land.store.manifest import Manifest, SourceFile


def generation(number: int, layout: str = "kcat", **sources: str) -> Manifest:
    """A manifest of which only the sources matter; a="1" is an object and the hash of its bytes."""
    found = tuple(SourceFile(key=key, size=1, etag="", sha256=digest) for key, digest in sources.items())
    rest: dict[str, Any] = {"objects": (), "partitions": {}, "findings": ()}
    return Manifest(feed="f", hour="2026-01-05T10", generation=number, protocol="open", layout=layout, sources=found, **rest)


def said(before: Manifest, now: Manifest) -> list[tuple[str, str, str]]:
    return [(f.code, f.severity, f.detail) for f in since(before, {s.key: s.sha256 for s in now.sources}, now.layout)]


def test_objects_that_came_went_and_changed_are_two_findings() -> None:
    before, now = generation(3, a="1", b="2", c="3"), generation(4, b="2", c="other", d="4", e="5")
    assert said(before, now) == [
        ("CHANGED_AFTER_LANDING", "warning", "since generation 3: other bytes in c"),
        ("LATE_FILE", "warning", "since generation 3: 2 objects appeared, 1 disappeared"),
    ]


def test_the_first_three_of_many_changed_objects_are_named() -> None:
    before, now = generation(1, a="1", b="1", c="1", d="1", e="1"), generation(2, e="2", d="2", c="2", b="2", a="2")
    assert said(before, now) == [("CHANGED_AFTER_LANDING", "warning", "since generation 1: other bytes in a, b, c and 2 more")]


def test_another_layout_is_a_finding_of_its_own() -> None:
    before, now = generation(1, a="1"), generation(2, "secor", a="1")
    assert said(before, now) == [("LAYOUT_CHANGED", "warning", "since generation 1: read as secor, not kcat")]


def test_what_a_generation_brings_is_told_by_partition_and_offset() -> None:
    before = hour("2026-01-05T10", p0=((0, 4), (8, 9)), p1=((0, 9),))
    now = hour("2026-01-05T10", p0=((0, 6), (8, 12)), p1=((0, 9),), p2=((7, 7),))
    assert new_offsets(before, now) == "; new: t[0] 5–6, 10–12 (5 messages), t[2] 7 (1 message)"


def test_a_generation_that_repeats_what_was_there_brings_nothing() -> None:
    one = hour("2026-01-05T10", p0=((0, 9),))
    assert new_offsets(one, one) == "; no new offsets"


def test_what_is_new_stands_behind_what_came_and_what_changed() -> None:
    before, now = generation(1, a="1"), {"a": "2", "b": "1"}
    assert [f.detail for f in since(before, now, "kcat", "; no new offsets")] == [
        "since generation 1: other bytes in a; no new offsets",
        "since generation 1: 1 object appeared, 0 disappeared; no new offsets",
    ]
