"""URLs of services: a password is the same for everyone who gets it, or the URL is refused, and no error says anything of it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from tests.lake import lakes
from tidelake.errors import ConfigError
from tidelake.io import storage
from tidelake.io.avro_schemas import schema_source
from tidelake.io.mysql import _parsed
from tidelake.io.service_url import service_url
from tidelake.io.storage import s3_settings
from tidelake.spark.lake_settings import LakeSettings, lake_settings

PRINTABLE = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1)
RAW = st.text(st.sampled_from("aZ09#&+%@?/:=[]<>.,;!\"'`$*() -_~^|\\{}é中%41%zz"), min_size=1)
SECRET = "hunter2"


def catalog(uri: str) -> LakeSettings:
    return lake_settings(lakes.feed(Path("/nowhere"), lake={"uri": "/nowhere/lake", "catalog": uri}))


def passwords(found: LakeSettings) -> tuple[str | None, str | None]:
    """What Spark and pyiceberg log in with."""
    return found.spark.get("spark.sql.catalog.lake.jdbc.password"), make_url(found.iceberg["uri"]).password


@given(PRINTABLE)
@example("#&+%?@/:")
def test_any_password_is_the_same_to_spark_and_to_pyiceberg(password: str) -> None:
    for uri in (f"db:5432/lake?user=u&password={quote(password, safe='')}", f"u:{quote(password, safe='')}@db:5432/lake"):
        found = catalog(f"jdbc:postgresql://{uri}")
        assert passwords(found) == (password, password)
        assert found.spark["spark.sql.catalog.lake.uri"] == "jdbc:postgresql://db:5432/lake"
        assert (make_url(found.iceberg["uri"]).host, make_url(found.iceberg["uri"]).database) == ("db", "lake")
        assert password not in repr(found).replace("/nowhere/lake/warehouse", "") or len(password) < 12


@given(PRINTABLE)
@example("#&+%?@/:")
def test_any_password_is_the_same_to_mysql(password: str) -> None:
    server, options = _parsed(f"mysql://{quote(password, safe='')}:{quote(password, safe='')}@tidb:4000?connect_timeout=5")
    assert (server.user, server.password, server.host, server.port, options) == (password, password, "tidb", 4000, {"connect_timeout": 5})
    assert password not in repr(server) or len(password) < 12


@given(RAW)
@example("#")
@example("a&b")
@example("a&user=b")
@example("50%")
@example("12/x")
@example("12?x=y")
def test_a_password_that_is_not_escaped_is_taken_as_it_is_or_refused(raw: str) -> None:
    for uri in (f"db/lake?user=u&password={raw}", f"u:{raw}@db:5432/lake", f"u:{SECRET}{raw}@db/lake"):
        found, refused = tried(f"jdbc:postgresql://{uri}")
        assert SECRET not in refused
        if found is not None:
            taken = {raw, SECRET + raw} | ({unescaped(raw), unescaped(SECRET + raw)} if "%" in raw else set())
            assert passwords(found)[0] == passwords(found)[1]
            assert passwords(found)[0] in taken
            assert make_url(found.iceberg["uri"]).host == "db"


def tried(uri: str) -> tuple[LakeSettings | None, str]:
    """The settings, or what is said against them."""
    try:
        return catalog(uri), ""
    except ConfigError as e:
        return None, str(e)


def unescaped(text: str) -> str:
    return service_url(f"x://u:{quote(text, safe='%')}@h", "x", "").password


HOSTILE = [
    f"u:{SECRET}#x@db/lake",
    f"u:{SECRET}?@db/lake",
    f"u:{SECRET}/@db/lake",
    f"u:12/{SECRET}@db/lake",
    f"u:12?x={SECRET}@db/lake",
    f"u:12?{SECRET}=1@db/lake",
    f"u:{SECRET}%@db/lake",
    f"u:{SECRET}%ff@db/lake",
    f"u:{SECRET} @db/lake",
    f"u:{SECRET}\n@db/lake",
    f"[{SECRET}",
    f"u:x@db:{SECRET}/lake",
    f"db/lake?password=x&{SECRET}",
    f"db/lake?password=x&{SECRET}=1",
    f"db/lake?password=x&password={SECRET}",
    f"{SECRET}\u2100@x",
]


@pytest.mark.parametrize("rest", HOSTILE)
def test_no_refusal_shows_a_secret(rest: str) -> None:
    tries = [
        lambda: catalog(f"jdbc:postgresql://{rest}"),
        lambda: _parsed(f"mysql://{rest}"),
        lambda: schema_source(f"https://{rest}", Path()),
        lambda: catalog(f"https://{rest}"),
    ]
    for attempt in tries:
        with pytest.raises(ConfigError) as refused:
            attempt()
        said = [str(refused.value), repr(refused.value.__cause__)]
        assert refused.value.__suppress_context__ or refused.value.__context__ is None
        assert not [text for text in said if SECRET in text]


def test_a_refusal_says_how_to_write_what_was_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        catalog(f"jdbc:postgresql://u:{SECRET}#x@db/lake")
    assert "lake.catalog: an @ follows its host; write it like jdbc:postgresql://host:port/db?user=USER&password=PASSWORD" in str(
        refused.value
    )
    assert "# as %23 and & as %26" in str(refused.value)


def test_a_url_whose_login_programs_would_print_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for uri in (f"https://u:{SECRET}@rest/catalog", f"http://{SECRET}@rest"):
        with pytest.raises(ConfigError, match="a URL with a user, password or option in it, which logs would show") as refused:
            catalog(uri)
        assert SECRET not in str(refused.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://u:{SECRET}@s3:9000")
    storage.reset()
    with pytest.raises(ConfigError, match="AWS_ENDPOINT_URL_S3: a URL with a user, password or option") as refused:
        s3_settings()
    assert SECRET not in str(refused.value)


def test_options_of_the_driver_come_through_and_an_address_may_be_ipv6() -> None:
    found = catalog("jdbc:postgresql://[::1]:5432/lake?ApplicationName=a%20b&sslmode=require&user=u")
    assert found.spark["spark.sql.catalog.lake.uri"] == "jdbc:postgresql://[::1]:5432/lake?ApplicationName=a%20b&sslmode=require"
    assert found.iceberg["uri"] == "postgresql+psycopg2://u@[::1]:5432/lake?sslmode=require"
    assert service_url("mysql://u:p@[::1]", "x", "").shown == "mysql://[::1]"
