"""Where Avro schemas come from: a JSON file, a folder, a registry of Confluent's or of AWS Glue."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from tests.protocols.schema_registry import Registry, serving
from tidelake.errors import ConfigError, DecodeError, StorageError
from tidelake.io import avro_schemas, storage
from tidelake.io.avro_schemas import handed_over, schema_source, schemas_here

UUID = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"
TEXT = '{"type": "record"}'


def test_a_json_file_holds_schemas_by_id_as_text_or_as_objects(tmp_path: Path) -> None:
    (tmp_path / "avro.json").write_text(json.dumps({"1": TEXT, "2": {"type": "int"}, UUID.upper(): "glue"}))
    source = schema_source("avro.json", tmp_path)
    assert (source(1), source(2), source(UUID)) == (TEXT, '{"type": "int"}', "glue")


def test_a_folder_holds_schemas_in_files_named_by_id(tmp_path: Path) -> None:
    folder = tmp_path / "schemas" / "shop"
    folder.mkdir(parents=True)
    (folder / "7.avsc").write_text(TEXT)
    (folder / f"{UUID}.avsc").write_text("glue")
    source = schema_source("schemas/shop", tmp_path)
    assert (source(7), source(UUID)) == (TEXT, "glue")


def test_a_location_may_be_absolute(tmp_path: Path) -> None:
    (tmp_path / "avro.json").write_text(json.dumps({"1": TEXT}))
    for location in (str(tmp_path / "avro.json"), f"file://{tmp_path}/avro.json"):
        assert schema_source(location, Path("/nowhere"))(1) == TEXT


def test_a_file_and_a_folder_in_the_object_store(s3: Callable[[str], str]) -> None:
    from tidelake.io.storage import open_store

    uri = s3("avro")
    open_store(uri).write("avro.json", json.dumps({"1": TEXT}).encode())
    open_store(uri).write("shop/2.avsc", b"two")
    assert schema_source(f"{uri}/avro.json", Path())(1) == TEXT
    assert schema_source(f"{uri}/shop", Path())(2) == "two"
    with pytest.raises(ConfigError, match="does not exist"):
        schema_source(f"{uri}/nothing", Path())


@pytest.mark.parametrize("location", ["avro.json", "folder"])
def test_an_unknown_id_is_a_decode_error_that_names_id_and_location(tmp_path: Path, location: str) -> None:
    (tmp_path / "avro.json").write_text("{}")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "1.avsc").write_text(TEXT)
    source = schema_source(location, tmp_path)
    with pytest.raises(DecodeError) as error:
        source(5)
    assert (error.value.code, error.value.message) == ("UNKNOWN_SCHEMA", f"no schema 5 in {tmp_path / location}")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not an object of ids and schemas"),
        (b'{"1": 5}', "not an object of ids and schemas"),
    ],
)
def test_an_unusable_file_is_a_wrong_configuration(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / "avro.json").write_bytes(content)
    with pytest.raises(ConfigError, match=says) as error:
        schema_source("avro.json", tmp_path)
    assert f"Avro schemas {tmp_path}/avro.json" in error.value.message
    assert error.value.exit_code == 2


@pytest.mark.parametrize("location", ["gs://bucket/x", "ftp://host/x"])
def test_an_unknown_scheme_is_a_wrong_configuration(tmp_path: Path, location: str) -> None:
    with pytest.raises(ConfigError, match="unknown scheme"):
        schema_source(location, tmp_path)


def test_an_empty_folder_is_a_wrong_configuration(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError):
        schema_source("empty", tmp_path)


def test_a_source_can_be_sent_to_workers_without_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "avro.json").write_text(json.dumps({"1": TEXT}))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "1.avsc").write_text(TEXT)
    file, folder = (schema_source(location, tmp_path) for location in ("avro.json", "folder"))
    assert (file(1), folder(1)) == (TEXT, TEXT)
    (tmp_path / "avro.json").unlink()
    (tmp_path / "folder" / "1.avsc").write_text("changed")
    there = [pickle.loads(pickle.dumps(source)) for source in (file, folder)]
    assert [source(1) for source in there] == [TEXT, "changed"]
    assert folder(1) == TEXT


def test_what_only_this_machine_has_is_handed_over(tmp_path: Path) -> None:
    (tmp_path / "avro.json").write_text(json.dumps({"1": TEXT, UUID.upper(): "glue"}))
    (tmp_path / "folder" / "below").mkdir(parents=True)
    for name in ("1.avsc", f"{UUID}.avsc", "README", "below/2.avsc"):
        (tmp_path / "folder" / name).write_text(TEXT if name == "1.avsc" else "glue")
    whole = {"1": TEXT, UUID: "glue"}
    locations = ("avro.json", "folder", f"{tmp_path}/folder", f"file://{tmp_path}/avro.json")
    assert [schemas_here(location, tmp_path) for location in locations] == [whole] * 4
    assert [schemas_here(location, tmp_path) for location in ("s3://bucket/x", "http://registry", "glue://")] == [None] * 3
    there = handed_over("avro.json", whole)
    assert (there(1), there(UUID), there.nearby) == (TEXT, "glue", True)
    with pytest.raises(DecodeError, match=r"no schema 2 in avro\.json"):
        there(2)


def test_hostile_ids_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_schemas, "_MAX_FOUND", 3)
    (tmp_path / "1.avsc").write_text(TEXT)
    source: Any = schema_source(".", tmp_path)
    for i in range(2, 20):
        with pytest.raises(DecodeError):
            source(i)
    assert source(1) == TEXT
    assert len(source._found) <= 3


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setattr(avro_schemas, "_PAUSES_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setenv("no_proxy", "*")
    with serving() as server:
        yield server


def test_a_registry_is_asked_once_for_each_id(registry: Registry) -> None:
    registry.schemas["1"] = TEXT
    source = schema_source(f"http://{registry.url}/base/", Path())
    assert [source(1), source(1)] == [TEXT, TEXT]
    for _ in range(2):
        with pytest.raises(DecodeError, match=f"UNKNOWN_SCHEMA: no schema 2 in http://{registry.url}/base"):
            source(2)
    assert registry.asked == [("/base/schemas/ids/1", None), ("/base/schemas/ids/2", None)]


def test_user_and_password_go_into_the_header_and_into_nothing_that_is_printed(registry: Registry) -> None:
    registry.schemas["1"] = TEXT
    source = schema_source(f"http://us%40er:s3cr%3At@{registry.url}", Path())
    assert source(1) == TEXT
    assert registry.asked == [("/schemas/ids/1", "Basic " + base64.b64encode(b"us@er:s3cr:t").decode())]
    with pytest.raises(DecodeError) as unknown:
        source(2)
    registry.answers = [(401, b"")]
    with pytest.raises(StorageError) as refused:
        source(3)
    for printed in (str(unknown.value), str(refused.value), repr(source)):
        assert "s3cr" not in printed
        assert registry.url in printed
    assert pickle.loads(pickle.dumps(source))(1) == TEXT


def test_credentials_do_not_follow_a_redirect(registry: Registry) -> None:
    with serving() as other:
        other.schemas["1"] = TEXT
        registry.answers = [(302, f"http://{other.url}/schemas/ids/1".encode())]
        assert schema_source(f"http://u:p@{registry.url}", Path())(1) == TEXT
        assert other.asked == [("/schemas/ids/1", None)]


def test_a_registry_that_stumbles_is_asked_again(registry: Registry) -> None:
    registry.schemas["1"] = TEXT
    registry.answers = [(500, b""), (429, b""), (503, b"")]
    assert schema_source(f"http://{registry.url}", Path())(1) == TEXT
    assert len(registry.asked) == 4


def test_a_registry_that_is_down_fails_the_run_and_not_the_message(registry: Registry) -> None:
    registry.answers = [(503, b"")] * 4
    source = schema_source(f"http://{registry.url}", Path())
    with pytest.raises(StorageError, match="cannot be asked for schema 1: 503"):
        source(1)
    registry.schemas["1"] = TEXT
    assert source(1) == TEXT


def test_a_registry_that_nobody_runs_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(avro_schemas, "time", SimpleNamespace(sleep=pauses.append))
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(StorageError, match=r"http://127\.0\.0\.1:9 cannot be asked for schema 1: .*refused"):
        schema_source("http://127.0.0.1:9", Path())(1)
    assert pauses == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"schema": 5}', b"[" * 100_000, b"null"])
def test_an_answer_that_is_no_schema_fails_the_run(registry: Registry, body: bytes) -> None:
    registry.answers = [(200, body)]
    with pytest.raises(StorageError, match="gives no schema text for id 1"):
        schema_source(f"http://{registry.url}", Path())(1)


def test_an_answer_is_not_read_without_end(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_schemas, "_MAX_BYTES", 20)
    registry.schemas["1"] = "x" * 20
    with pytest.raises(StorageError, match="gives no schema text"):
        schema_source(f"http://{registry.url}", Path())(1)


@pytest.mark.parametrize(
    "url", ["http://", "http://u:pass/word@host", "https://u:p@h:99999", "http://h/?q=pass", "http://h/#pass", "http://u:p@h/a b"]
)
def test_a_malformed_registry_url_is_a_wrong_configuration_and_is_not_printed(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        schema_source(url, Path())
    assert "CONFIG: Avro schemas: the registry's URL" in str(error.value)
    assert "pass" not in str(error.value).replace("password", "")


def test_an_ipv6_registry_keeps_its_brackets() -> None:
    assert "http://[::1]:8081/x" in repr(schema_source("http://u:p@[::1]:8081/x/", Path()))


AVRO = '{"type": "record", "name": "r", "fields": []}'


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """AWS Glue with one schema; the id of its version."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    _aws(monkeypatch, f"http://{host}:{port}")
    client = storage.aws_client("glue", "eu-central-1")
    made = client.create_schema(SchemaName="orders", DataFormat="AVRO", Compatibility="NONE", SchemaDefinition=AVRO)
    yield made["SchemaVersionId"]
    client.delete_schema(SchemaId={"SchemaArn": made["SchemaArn"]})
    storage.reset()
    server.stop()


def _aws(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    for name, value in {"AWS_ENDPOINT_URL_GLUE": endpoint, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_REGION", raising=False)
    storage.reset()


def test_glue_is_asked_for_a_version_s_definition_by_its_uuid(glue: str) -> None:
    source = schema_source("glue://eu-central-1", Path())
    assert source(glue.upper()) == AVRO
    assert pickle.loads(pickle.dumps(source))(glue) == AVRO
    for unknown in (UUID, 5):
        with pytest.raises(DecodeError, match=f"UNKNOWN_SCHEMA: no schema {unknown} in glue://eu-central-1"):
            source(unknown)
    with pytest.raises(DecodeError, match="UNKNOWN_SCHEMA"):
        schema_source("glue://us-west-2", Path())(glue)


def test_the_region_may_be_the_environment_s(glue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    storage.reset()
    assert schema_source("glue://", Path())(glue) == AVRO


def test_glue_that_cannot_be_asked_fails_the_run_and_not_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=pauses.append))  # of this module alone: other threads sleep, too
    _aws(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(StorageError, match=f"glue://eu-central-1: schema {UUID}: .*127[.]0[.]0[.]1:9"):
        schema_source("glue://eu-central-1", Path())(UUID)
    assert len(pauses) == 5
    storage.reset()


@pytest.mark.parametrize("location", ["glue://eu_central_1", "glue://eu-central-1/registry", "glue://x"])
def test_a_glue_location_without_a_region_is_a_wrong_configuration(location: str) -> None:
    with pytest.raises(ConfigError, match="give glue://<region>"):
        schema_source(location, Path())
