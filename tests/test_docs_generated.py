"""The generated reference pages and the JSON Schema of feed.toml are those of the code, and the schema reads feeds as Tidelake does."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from docs import generate
from tests.checkout import CHECKOUT
from tidelake.config.feed import feed_names

FRESH = generate.generated()
SCHEMA = generate.feed_schema()
SMALLEST: dict[str, Any] = {
    "protocol": "open",
    "topics": ["shop"],
    "partitions": 3,
    "source": {"uri": "s3://bucket/open", "layout": "aiven-jsonl"},
    "lake": {"uri": "s3://lake/shop"},
}


@pytest.mark.parametrize("path", list(FRESH), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_a_generated_file_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == FRESH[path], "run `make reference`"


@pytest.mark.parametrize("name", feed_names(CHECKOUT / "schemas"))
def test_the_schema_accepts_every_feed_of_the_repository(name: str) -> None:
    jsonschema.validate(tomllib.loads((CHECKOUT / "schemas" / name / "feed.toml").read_text(encoding="utf-8")), SCHEMA)


@pytest.mark.parametrize(
    "right",
    [
        {"partitions": {"shop": 3}},
        {"source": {"uri": "b:9092", "kind": "kafka", "in_flight": "64 MB", "kafka": {"security": {"protocol": "SSL"}}}},
        {"columns": {"shop.people": {"mail": {"mask": "truncate(4)"}}}, "tables": {"shop.people": {"buckets": 4}}},
    ],
)
def test_the_schema_accepts_what_the_file_may_say(right: dict[str, Any]) -> None:
    jsonschema.validate(SMALLEST | right, SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"protocols": "open"},
        {"protocol": "opem"},
        {"partitions": 0},
        {"source": {"uri": "s3://bucket/open", "layout": "aiven-jsonl", "in_flight": 256}},
        {"policy": {"mask_key": "in the clear"}},
        {"columns": {"shop.people": {"mail": {"mask": "blur"}}}},
    ],
)
def test_the_schema_refuses_what_the_file_may_not_say(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(SMALLEST | wrong, SCHEMA)


def test_a_key_without_a_description_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = generate.DESCRIPTIONS.read_text(encoding="utf-8")
    (tmp_path / "settings.toml").write_text(text.replace("wait_hours =", "waiting_hours ="), encoding="utf-8")
    monkeypatch.setattr(generate, "DESCRIPTIONS", tmp_path / "settings.toml")
    with pytest.raises(ValueError, match=r"\('policy', 'wait_hours'\), \('policy', 'waiting_hours'\)"):
        generate.descriptions()
