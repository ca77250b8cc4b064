"""Where the lake is: one answer for Spark and for pyiceberg, from feed.toml and AWS's variables, and no secret in what people see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake import lakes
from tidelake.config.feed import Feed, load_feed
from tidelake.errors import ConfigError
from tidelake.io import storage
from tidelake.spark.lake_settings import LakeSettings, lake_settings

CATALOG = "spark.sql.catalog.lake"
SECRETS = ("s3cr3t/+", "AKIDSECRET", "t0ken")


def feed(tmp_path: Path, uri: str = "s3://bucket/lake", catalog: str | None = None) -> Feed:
    elsewhere = f"jdbc:sqlite:{tmp_path}/catalog.db" if uri.startswith("s3://") else None
    return lakes.feed(tmp_path, lake={"uri": uri, "catalog": catalog or elsewhere})


def spark(settings: LakeSettings, name: str) -> str | None:
    return settings.spark.get(f"{CATALOG}.{name}")


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's AWS settings; the working folder is empty."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", SECRETS[1])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRETS[0])
    monkeypatch.chdir(tmp_path)
    storage.reset()


# the catalog


def test_without_a_catalog_a_local_lake_has_an_sqlite_file_beside_it(tmp_path: Path) -> None:
    found = lake_settings(feed(tmp_path, str(tmp_path / "lake") + "/"))
    assert found.warehouse == str(tmp_path / "lake" / "warehouse")
    assert found.iceberg["uri"] == f"sqlite:///{tmp_path}/lake/catalog.db?timeout=30"
    assert found.sqlite == tmp_path / "lake" / "catalog.db"
    assert not (tmp_path / "lake").exists()


def test_a_lake_on_s3_says_its_catalog_and_is_told_where_it_was_without(tmp_path: Path) -> None:
    bare = lakes.feed(tmp_path, lake={"uri": "s3://b/x/"})
    with pytest.raises(ConfigError, match=r"lake\.catalog: missing") as error:
        lake_settings(bare)
    was = Path(error.value.remedy.rpartition("jdbc:sqlite:")[2])
    assert (was.parent, "to try it on this machine alone: " in error.value.remedy) == (tmp_path / ".tidelake", True)
    was.parent.mkdir()
    was.touch()
    with pytest.raises(ConfigError, match=f"found jdbc:sqlite:{was}"):
        lake_settings(bare)


@pytest.mark.parametrize("uri", ["file:///data/x/lake", "/data/x/lake"])
def test_a_local_lake_may_be_a_file_uri(tmp_path: Path, uri: str) -> None:
    assert lake_settings(feed(tmp_path, uri, f"jdbc:sqlite:{tmp_path}/c.db")).warehouse == "/data/x/lake/warehouse"


def test_both_readers_see_one_sqlite_file_and_wait_for_each_other(tmp_path: Path) -> None:
    found = lake_settings(feed(tmp_path, catalog="jdbc:sqlite:deep/er/catalog.db?foo=1"))
    path = tmp_path / "deep" / "er" / "catalog.db"
    assert found.spark[CATALOG] == "org.apache.iceberg.spark.SparkCatalog"
    assert (spark(found, "type"), spark(found, "uri")) == ("jdbc", f"jdbc:sqlite:{path}?busy_timeout=30000")
    assert spark(found, "jdbc.schema-version") == "V1"
    assert {k: found.iceberg[k] for k in ("type", "uri")} == {"type": "sql", "uri": f"sqlite:///{path}?timeout=30"}
    assert found.sqlite == path


@pytest.mark.parametrize(
    ("uri", "jdbc", "user", "password", "alchemy"),
    [
        ("db:5432/lake", "db:5432/lake", None, None, "db:5432/lake"),
        ("db/lake?user=u&password=p%40%2F", "db/lake", "u", "p@/", "u:p%40%2F@db/lake"),
        ("u:p%40%2F@db:5432/lake", "db:5432/lake", "u", "p@/", "u:p%40%2F@db:5432/lake"),
        ("db/lake?user=u", "db/lake", "u", None, "u@db/lake"),
        (
            "db/lake?user=u&password=p&sslmode=require&tcpKeepAlive=true",
            "db/lake?sslmode=require&tcpKeepAlive=true",
            "u",
            "p",
            "u:p@db/lake?sslmode=require",
        ),
    ],
)
def test_postgresql_is_said_to_spark_as_jdbc_and_to_pyiceberg_as_sqlalchemy(
    tmp_path: Path, uri: str, jdbc: str, user: str | None, password: str | None, alchemy: str
) -> None:
    found = lake_settings(feed(tmp_path, catalog=f"jdbc:postgresql://{uri}"))
    assert (spark(found, "type"), spark(found, "uri")) == ("jdbc", f"jdbc:postgresql://{jdbc}")
    assert (spark(found, "jdbc.user"), spark(found, "jdbc.password")) == (user, password)
    assert (found.iceberg["type"], found.iceberg["uri"]) == ("sql", f"postgresql+psycopg2://{alchemy}")


@pytest.mark.parametrize("uri", ["http://rest:8181", "https://rest/catalog"])
def test_a_rest_catalog_is_the_same_for_both(tmp_path: Path, uri: str) -> None:
    found = lake_settings(feed(tmp_path, catalog=uri))
    assert (spark(found, "type"), spark(found, "uri")) == ("rest", uri)
    assert (found.iceberg["type"], found.iceberg["uri"]) == ("rest", uri)


@pytest.mark.parametrize("uri", ["jdbc:mysql://u:s3cr3t@h/d", "glue", "postgresql://u:s3cr3t@h/d", "s3cr3t@host", "sqlite:///x"])
def test_a_catalog_of_another_form_is_refused_without_showing_what_it_holds(tmp_path: Path, uri: str) -> None:
    with pytest.raises(ConfigError) as error:
        lake_settings(feed(tmp_path, catalog=uri))
    said = str(error.value)
    assert "lake.catalog: found " in said
    assert "jdbc:sqlite:<path>, jdbc:postgresql://host:port/db, glue://<region> or a REST catalog's URL" in said
    assert "s3cr3t" not in said


def test_spark_keeps_no_tables_in_a_cache_because_others_write_too(tmp_path: Path) -> None:
    assert spark(lake_settings(feed(tmp_path)), "cache-enabled") == "false"


# S3


def test_a_lake_on_s3_takes_endpoint_region_and_credentials_from_aws_s_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AWS_ENDPOINT_URL_S3": "http://s3:9000", "AWS_DEFAULT_REGION": "eu-west-1", "AWS_SESSION_TOKEN": "t0ken"}.items():
        monkeypatch.setenv(name, value)
    found = lake_settings(feed(tmp_path))
    assert found.warehouse == spark(found, "warehouse") == found.iceberg["warehouse"] == "s3://bucket/lake/warehouse"
    assert spark(found, "io-impl") == "org.apache.iceberg.aws.s3.S3FileIO"
    shared = {
        "s3.endpoint": "http://s3:9000",
        "s3.access-key-id": "AKIDSECRET",
        "s3.secret-access-key": "s3cr3t/+",
        "s3.session-token": "t0ken",
    }
    assert {name: spark(found, name) for name in shared} == shared
    assert {name: found.iceberg.get(name) for name in shared} == shared
    assert (spark(found, "client.region"), found.iceberg["s3.region"]) == ("eu-west-1", "eu-west-1")


def test_only_another_endpoint_than_amazon_s_is_asked_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    amazon = lake_settings(feed(tmp_path))
    assert (spark(amazon, "s3.endpoint"), spark(amazon, "s3.path-style-access")) == (None, None)
    assert not {"s3.endpoint", "s3.force-virtual-addressing"} & amazon.iceberg.keys()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://s3:9000")
    storage.reset()
    other = lake_settings(feed(tmp_path))
    assert (spark(other, "s3.path-style-access"), other.iceberg["s3.force-virtual-addressing"]) == ("true", "false")


def test_a_profile_may_hold_the_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    (tmp_path / "credentials").write_text("[lake]\naws_access_key_id = OFPROFILE\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "lake")
    assert lake_settings(feed(tmp_path)).iceberg["s3.access-key-id"] == "OFPROFILE"


def test_a_local_lake_needs_no_credentials(tmp_path: Path) -> None:
    found = lake_settings(feed(tmp_path, str(tmp_path / "lake")))
    assert not any("s3" in name for name in [*found.spark, *found.iceberg])


# secrets


def test_secrets_of_the_environment_are_in_no_message_and_no_representation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", SECRETS[2])
    found = lake_settings(feed(tmp_path, "s3://bucket/lake", "jdbc:postgresql://u:s3cr3t%2F%2B@db/lake"))
    shown = f"{found!r} {found}"
    assert not [secret for secret in (*SECRETS, "s3cr3t%2F%2B") if secret in shown]


def test_secrets_in_a_feed_s_uris_are_not_in_its_representation(tmp_path: Path) -> None:
    folder = tmp_path / "schemas" / "shop"
    folder.mkdir(parents=True)
    (folder / "feed.toml").write_text(
        'protocol = "open"\ntopics = ["t"]\npartitions = 1\n[source]\nuri = "${S}"\nlayout = "aiven-jsonl"\n'
        '[lake]\nuri = "${S}"\ncatalog = "${S}"\n[watermark]\nfrom = "checkpoints"\nuri = "${S}"\n'
    )
    loaded = load_feed(tmp_path / "schemas", "shop", {"S": "jdbc:postgresql://u:s3cr3t@h/d"})
    assert loaded.lake.catalog == "jdbc:postgresql://u:s3cr3t@h/d"
    assert "s3cr3t" not in f"{loaded!r} {loaded} {loaded.lake!r}"
