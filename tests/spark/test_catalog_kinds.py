"""Properties of REST catalogs and of Glue: the same for Spark and for pyiceberg, and no secret in what people see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.feed_texts import HEAD, LAKE, SOURCE
from tests.lake import lakes
from tests.spark.test_lake_settings import spark
from tidelake.config.feed import Feed, load_feed, unset_variables
from tidelake.errors import ConfigError
from tidelake.spark.lake_settings import lake_settings

SECRET = "harbour-pass"


def rest(tmp_path: Path, properties: dict[str, object], catalog: str = "https://rest/catalog/") -> Feed:
    return lakes.feed(tmp_path, lake={"uri": str(tmp_path / "lake"), "catalog": catalog, "rest": properties})


def test_a_rest_catalog_s_login_goes_to_both_and_is_in_no_representation(tmp_path: Path) -> None:
    feed = rest(tmp_path, {"credential": f"reader:{SECRET}", "scope": "PRINCIPAL_ROLE:ALL", "warehouse": "shop"})
    found = lake_settings(feed)
    wanted = {
        "type": "rest",
        "uri": "https://rest/catalog/",
        "credential": f"reader:{SECRET}",
        "scope": "PRINCIPAL_ROLE:ALL",
        "warehouse": "shop",
        "oauth2-server-uri": "https://rest/catalog/v1/oauth/tokens",
    }
    assert found.iceberg == wanted
    assert {name: spark(found, name) for name in wanted} == wanted
    assert found.warehouse == str(tmp_path / "lake" / "warehouse"), "tables are written below the lake, whatever the server calls it"
    assert SECRET not in f"{feed!r} {feed} {found!r} {found.place}"


def test_the_server_of_tokens_may_be_another(tmp_path: Path) -> None:
    found = lake_settings(rest(tmp_path, {"credential": "a:b", "oauth2-server-uri": "https://login/token"}))
    assert found.iceberg["oauth2-server-uri"] == spark(found, "oauth2-server-uri") == "https://login/token"
    assert "oauth2-server-uri" not in lake_settings(rest(tmp_path, {"token": "t"})).iceberg


def test_dotted_names_and_switches_of_toml_are_read(tmp_path: Path) -> None:
    found = lake_settings(rest(tmp_path, {"rest": {"sigv4-enabled": True, "signing-name": "glue"}}))
    assert (found.iceberg["rest.sigv4-enabled"], spark(found, "rest.signing-name")) == ("true", "glue")


def test_a_variable_may_hold_the_login(tmp_path: Path) -> None:
    folder = tmp_path / "schemas" / "shop"
    folder.mkdir(parents=True)
    text = LAKE.partition("catalog = ")[0] + 'catalog = "https://rest"\n[lake.rest]\ntoken = "${TOKEN}"\n'
    (folder / "feed.toml").write_text(HEAD + SOURCE + text)
    environment = {"STAGE": "test", "PASSWORD": "x", "TOKEN": SECRET}
    assert load_feed(tmp_path / "schemas", "shop", environment).lake.rest == {"token": SECRET}
    assert "TOKEN" in unset_variables(load_feed(tmp_path / "schemas", "shop", {}, expand=False), {})


def test_a_login_of_another_kind_of_catalog_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"lake\.rest: lake\.catalog is no REST catalog") as error:
        lake_settings(rest(tmp_path, {"token": SECRET}, "jdbc:postgresql://db/lake"))
    assert SECRET not in str(error.value)


def test_a_property_that_both_clients_do_not_share_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"header\.x-key cannot be set; allowed: audience, credential, "):
        rest(tmp_path, {"header.x-key": SECRET})


@pytest.mark.parametrize(("uri", "region"), [("glue://eu-central-1", "eu-central-1"), ("glue://", None)])
def test_glue_is_asked_in_its_region_at_aws_s_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, region: str | None
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL_GLUE", raising=False)
    plain = lakes.feed(tmp_path, lake={"uri": str(tmp_path / "lake"), "catalog": uri})
    found = lake_settings(plain)
    assert (found.iceberg["type"], spark(found, "type"), found.place) == ("glue", "glue", uri)
    assert (found.iceberg.get("glue.region"), spark(found, "client.region")) == (region, region)
    assert (found.iceberg.get("glue.endpoint"), spark(found, "glue.endpoint")) == (None, None)
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", "http://127.0.0.1:5000")
    found = lake_settings(plain)
    assert found.iceberg["glue.endpoint"] == spark(found, "glue.endpoint") == "http://127.0.0.1:5000"


def test_a_malformed_region_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"lake\.catalog: 'glue://moon' has no region"):
        lake_settings(lakes.feed(tmp_path, lake={"uri": str(tmp_path / "lake"), "catalog": "glue://moon"}))
