"""The connection type `tidelake`: what Airflow shows of it, what its test finds, and what a task gets of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import CHECKOUT
from tidelake import __version__
from tidelake.config.feed import Feed, load_feed
from tidelake.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("ignore:ProvidersManager.hooks is deprecated")  # Airflow's server uses it
PLACES = ("TIDELAKE_LAKE", "TIDELAKE_ARCHIVE", "TIDELAKE_CATALOG")
SECRETS = ("harbour-key", "harbour-secret", "harbour-pass")


@pytest.fixture(autouse=True)
def environment(metadata_database: None, warm_children: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__TEST_CONNECTION", "Enabled")
    for name in (*PLACES, "TIDELAKE_AWS_CONN_ID", "AWS_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def feed() -> Feed:
    return load_feed(CHECKOUT / "schemas", "bazaar-open", expand=False)


def here(folder: Path) -> dict[str, Any]:
    """A connection to places of this machine."""
    places = {"TIDELAKE_LAKE": f"{folder}/lake", "TIDELAKE_ARCHIVE": f"{folder}/archive", "TIDELAKE_CATALOG": f"jdbc:sqlite:{folder}/c.db"}
    return {"conn_type": "tidelake", "extra": places}


def nowhere() -> dict[str, Any]:
    """A connection to servers that do not run."""
    catalog = "jdbc:postgresql://127.0.0.1:9/catalog?user=keeper&password=harbour-pass"
    places = {"TIDELAKE_LAKE": "s3://harbour/lake", "TIDELAKE_ARCHIVE": "s3://harbour/archive", "TIDELAKE_CATALOG": catalog}
    login = {"host": "http://127.0.0.1:9", "login": "harbour-key", "password": "harbour-secret"}
    return {"conn_type": "tidelake", **login, "extra": places | {"AWS_REGION": "eu-north-1"}}


def test_airflow_lists_the_package_as_a_provider_with_a_form_for_its_connection() -> None:
    from airflow.providers_manager import ProvidersManager
    from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

    manager = ProvidersManager()
    assert manager.providers["tidelake"].version == __version__
    hook = ProvidersManagerTaskRuntime().hooks["tidelake"]
    assert hook is not None
    assert (hook.hook_name, hook.connection_id_attribute_name, hook.connection_testable) == ("Tidelake", "tidelake_conn_id", True)
    form = {name: found for name, found in manager.connection_form_widgets.items() if found.package_name == "tidelake"}
    assert {found.field_name: found.is_sensitive for found in form.values()} == {
        "TIDELAKE_LAKE": False,
        "TIDELAKE_CATALOG": True,
        "TIDELAKE_ARCHIVE": False,
        "AWS_REGION": False,
    }
    assert manager.field_behaviours["tidelake"]["hidden_fields"] == ["schema"]


def test_what_the_package_says_of_itself_is_what_airflow_wants() -> None:
    import jsonschema
    from airflow import __file__ as airflow

    from tidelake.airflow.provider import get_provider_info

    full = json.loads((Path(airflow).parent / "provider.yaml.schema.json").read_text())["properties"]["connection-types"]
    jsonschema.validate(get_provider_info()["connection-types"], full)  # Airflow itself checks less of it


def test_the_test_of_a_connection_asks_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelake.airflow.hook import TidelakeHook

    monkeypatch.setenv("AIRFLOW_CONN_HARBOUR", json.dumps(here(tmp_path)))
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "object").write_bytes(b"x")
    archives = ", ".join(f"{tmp_path}/archive/{name}" for name in ("craft", "open"))
    first, rest = f"{tmp_path}/archive/avro", f"{tmp_path}/archive/checkpoints.json, {tmp_path}/archive/canal-json, {archives}"
    says = f"8 places of 4 feeds answer; nothing is stored yet in {first}, jdbc:sqlite:{tmp_path}/c.db, {rest}"
    assert TidelakeHook("harbour").test_connection() == (True, says)


def test_the_button_of_a_connection_says_what_does_not_answer_and_no_secret() -> None:
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi.testclient import TestClient

    server = TestClient(create_app(apps="core"))
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="keeper", role="ADMIN"))
    given = nowhere()
    body = {"connection_id": "harbour", **given, "extra": json.dumps(given["extra"])}
    answer = server.post("/api/v2/connections/test", json=body, headers={"Authorization": f"Bearer {token}"})
    said = answer.json()
    assert (answer.status_code, said["status"]) == (200, False)
    lines = said["message"].splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["bazaar-avro"] * 4 + ["bazaar-canal", "bazaar-craft", "bazaar-open"]
    assert sum("STORAGE: s3://harbour/" in line for line in lines) == 6
    assert sum("CATALOG: the catalog jdbc:postgresql://127.0.0.1:9/catalog: " in line for line in lines) == 1
    assert not [secret for secret in SECRETS if secret in answer.text]


def test_the_button_works_for_a_saved_connection_with_port_0(tmp_path: Path) -> None:
    """Airflow 3.3.1 and 3.3.2 refuse it without a port (apache/airflow#73298), because the button sends port 0."""
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi.testclient import TestClient

    server = TestClient(create_app(apps="core"))
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="keeper", role="ADMIN"))
    login = {"Authorization": f"Bearer {token}"}
    given = here(tmp_path)
    body = {"connection_id": "pier", **given, "extra": json.dumps(given["extra"]), "port": 0}
    assert server.post("/api/v2/connections", json=body, headers=login).status_code == 201
    try:
        said = server.post("/api/v2/connections/test", json=body, headers=login).json()
    finally:
        server.delete("/api/v2/connections/pier", headers=login)
    assert said["status"] is True
    assert said["message"].startswith("8 places of 4 feeds answer; ")


def test_many_places_that_do_not_answer_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelake.airflow import hook

    monkeypatch.setenv("AIRFLOW_CONN_HARBOUR", json.dumps({"conn_type": "tidelake"}))
    monkeypatch.setattr(hook, "SHOWN", 1)
    works, said = hook.TidelakeHook("harbour").test_connection()
    assert not works
    assert said.splitlines()[1:] == ["and 3 more: `tidelake doctor` lists all"]


def test_a_connection_without_places_says_which_variables_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelake.airflow.hook import TidelakeHook

    monkeypatch.setenv("AIRFLOW_CONN_HARBOUR", json.dumps({"conn_type": "tidelake"}))
    works, said = TidelakeHook("harbour").test_connection()
    assert not works
    assert said.count("the environment has no TIDELAKE_ARCHIVE; set TIDELAKE_ARCHIVE, or an Airflow connection that provides it") == 4


def test_the_test_of_a_connection_without_feeds_says_where_they_should_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelake.airflow.hook import TidelakeHook

    monkeypatch.setenv("TIDELAKE_SCHEMAS", str(tmp_path))
    works, said = TidelakeHook("harbour").test_connection()
    assert (works, said) == (False, f"CONFIG: {tmp_path} has no */feed.toml; set TIDELAKE_SCHEMAS to the folder of the feeds")


def test_a_server_that_does_not_answer_in_time_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelake.airflow import hook

    monkeypatch.setattr(hook, "TEST_SECONDS", 0.01)
    said = hook.TidelakeHook("harbour").test_connection()
    assert said == (False, "no answer within 0.01 s: check the endpoint, and that its server is running")


def test_one_connection_gives_a_task_places_and_the_object_store(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelake.airflow.connections import given

    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE", json.dumps(nowhere()))
    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE_S3", json.dumps({"conn_type": "aws", "login": "another-key", "password": "another-secret"}))
    found = given(feed)
    assert {name: found.pop(name) for name in PLACES} == {name: nowhere()["extra"][name] for name in PLACES}
    assert found == {
        "AWS_ACCESS_KEY_ID": "harbour-key",
        "AWS_SECRET_ACCESS_KEY": "harbour-secret",
        "AWS_REGION": "eu-north-1",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
    }


@pytest.mark.parametrize("own", [{"conn_type": "generic", "login": "ignored"}, {"conn_type": "tidelake"}], ids=["other type", "no login"])
def test_a_connection_that_says_nothing_of_the_object_store_leaves_it_to_that_of_aws(
    feed: Feed, monkeypatch: pytest.MonkeyPatch, own: dict[str, Any]
) -> None:
    from tidelake.airflow.connections import given

    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE", json.dumps(own | {"extra": {"TIDELAKE_LAKE": "", "AWS_REGION": "unused"}}))
    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE_S3", json.dumps({"conn_type": "aws", "login": "harbour-key", "password": "harbour-secret"}))
    assert given(feed) == {"AWS_ACCESS_KEY_ID": "harbour-key", "AWS_SECRET_ACCESS_KEY": "harbour-secret"}


def test_a_connection_of_aws_that_is_named_comes_first(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelake.airflow.connections import given

    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE", json.dumps({"conn_type": "tidelake", "login": "another-key", "password": "another-secret"}))
    monkeypatch.setenv("AIRFLOW_CONN_PIER", json.dumps({"conn_type": "aws", "login": "harbour-key", "password": "harbour-secret"}))
    monkeypatch.setenv("TIDELAKE_AWS_CONN_ID", "pier")
    assert given(feed) == {"AWS_ACCESS_KEY_ID": "harbour-key", "AWS_SECRET_ACCESS_KEY": "harbour-secret"}
    monkeypatch.setenv("TIDELAKE_AWS_CONN_ID", "nowhere")
    with pytest.raises(ConfigError, match="no Airflow connection 'nowhere'"):
        given(feed)
