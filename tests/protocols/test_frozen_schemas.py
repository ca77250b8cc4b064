"""Avro schemas kept in the lake: the first meaning of an id stays, whoever is asked later, and a replay asks nobody."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import ClassVar

import pytest

from tests.conftest import FreshUri
from tests.protocols.schema_registry import serving
from tidelake.errors import ConfigError, DecodeError, StorageError
from tidelake.io import avro_schemas
from tidelake.io.avro_schemas import schema_source
from tidelake.io.storage import open_store
from tidelake.protocols.frozen_schemas import frozen_schemas

TEXT, OTHER = '{"type": "record"}', '{"type": "long"}'
KEY = "schemas/shop/avro/1.avsc"


class Source:
    """Says what it is told to, and keeps what it was asked."""

    nearby: ClassVar[bool] = False
    where = "source"

    def __init__(self, **schemas: str) -> None:
        self.schemas = schemas
        self.asked: list[int | str] = []

    def __call__(self, schema_id: int | str) -> str:
        self.asked.append(schema_id)
        if f"_{schema_id}" not in self.schemas:
            raise DecodeError(f"no schema {schema_id}", code="UNKNOWN_SCHEMA")
        return self.schemas[f"_{schema_id}"]


def test_a_replay_needs_no_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_schemas, "_PAUSES_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setenv("no_proxy", "*")
    with serving() as registry:
        registry.schemas["1"] = TEXT
        location = f"http://{registry.url}"
        assert frozen_schemas(schema_source(location, Path()), str(tmp_path), "shop")(1) == TEXT
    assert open_store(str(tmp_path)).read(KEY) == TEXT.encode()
    replay = frozen_schemas(schema_source(location, Path()), str(tmp_path), "shop")
    assert replay(1) == TEXT
    with pytest.raises(StorageError, match="cannot be asked for schema 2"):
        replay(2)


def test_a_kept_schema_wins_and_the_registry_is_not_asked(tmp_path: Path) -> None:
    open_store(str(tmp_path)).write(KEY, TEXT.encode())
    source = Source(_1=OTHER)
    assert frozen_schemas(source, str(tmp_path), "shop")(1) == TEXT
    assert source.asked == []
    assert frozen_schemas(source, str(tmp_path), "other")(1) == OTHER


def test_a_file_that_says_something_else_than_the_lake_is_an_error_that_names_both(tmp_path: Path) -> None:
    (tmp_path / "avro.json").write_text(json.dumps({"1": TEXT}))
    lake = str(tmp_path / "lake")
    assert frozen_schemas(schema_source("avro.json", tmp_path), lake, "shop")(1) == TEXT
    (tmp_path / "avro.json").write_text(json.dumps({"1": json.dumps(json.loads(TEXT), indent=3)}))
    assert frozen_schemas(schema_source("avro.json", tmp_path), lake, "shop")(1) == TEXT
    (tmp_path / "avro.json").write_text(json.dumps({"1": OTHER}))
    with pytest.raises(ConfigError) as error:
        frozen_schemas(schema_source("avro.json", tmp_path), lake, "shop")(1)
    assert (error.value.code, error.value.exit_code) == ("SCHEMA_CHANGED", 2)
    assert f"schema 1 in {tmp_path}/avro.json differs from the one in {lake}/{KEY}" in error.value.message
    (tmp_path / "avro.json").write_text("{}")
    assert frozen_schemas(schema_source("avro.json", tmp_path), lake, "shop")(1) == TEXT


def test_a_folder_is_compared_too(tmp_path: Path) -> None:
    (tmp_path / "avro").mkdir()
    (tmp_path / "avro" / "1.avsc").write_text(TEXT)
    before, after = (frozen_schemas(schema_source("avro", tmp_path), str(tmp_path / "lake"), "shop") for _ in range(2))
    assert before(1) == TEXT
    (tmp_path / "avro" / "1.avsc").write_text(OTHER)
    with pytest.raises(ConfigError, match="SCHEMA_CHANGED: schema 1 in"):
        after(1)


def test_an_id_that_nobody_knows_keeps_its_code_and_is_asked_for_once(tmp_path: Path) -> None:
    source = Source()
    frozen = frozen_schemas(source, str(tmp_path), "shop")
    for _ in range(2):
        with pytest.raises(DecodeError, match="UNKNOWN_SCHEMA: no schema 7 in source"):
            frozen(7)
    assert source.asked == ["7"]
    assert list(open_store(str(tmp_path)).objects()) == []


@pytest.mark.parametrize("text", ["no JSON", "[" * 100_000])
def test_what_is_no_schema_is_given_on_to_be_refused_and_not_kept(tmp_path: Path, text: str) -> None:
    assert frozen_schemas(Source(_1=text), str(tmp_path), "shop")(1) == text
    assert list(open_store(str(tmp_path)).objects()) == []


@pytest.mark.parametrize("texts", [(TEXT, TEXT), (TEXT, OTHER)])
def test_workers_that_meet_an_id_together_agree_on_what_it_means(tmp_path: Path, texts: tuple[str, str]) -> None:
    start = Barrier(2)

    class Waiting(Source):
        def __call__(self, schema_id: int | str) -> str:
            start.wait()  # both have seen that the lake lacks it
            return super().__call__(schema_id)

    def meet(text: str) -> str:
        try:
            return frozen_schemas(Waiting(_1=text), str(tmp_path), "shop")(1)
        except ConfigError as e:
            return e.code

    with ThreadPoolExecutor(2) as pool:
        said = sorted(pool.map(meet, texts))
    kept = open_store(str(tmp_path)).read(KEY).decode()
    assert kept in texts
    assert said == ([kept, kept] if texts[0] == texts[1] else sorted([kept, "SCHEMA_CHANGED"]))


def test_a_source_sent_to_workers_goes_on_keeping(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_text(TEXT)
    frozen = frozen_schemas(schema_source(str(tmp_path), Path()), str(tmp_path / "lake"), "shop")
    there = pickle.loads(pickle.dumps(frozen))
    assert there(1) == TEXT
    assert (tmp_path / "lake" / KEY).read_text() == TEXT


def test_a_lake_that_cannot_be_asked_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / KEY).mkdir(parents=True)
    with pytest.raises(StorageError, match="Is a directory"):
        frozen_schemas(Source(_1=TEXT), str(tmp_path), "shop")(1)


def test_a_schema_is_kept_in_the_object_store(s3: FreshUri) -> None:
    lake = s3("lake")
    assert frozen_schemas(Source(_1=TEXT), lake, "shop")(1) == TEXT
    assert frozen_schemas(Source(), lake, "shop")(1) == TEXT
