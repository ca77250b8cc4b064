"""Settings of the lake's catalog, for Spark (Iceberg's Java catalogs) and for pyiceberg, so that both see the same tables."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import CATALOG
from tidelake.config.source import VARIABLE
from tidelake.errors import ConfigError
from tidelake.io.storage import s3_settings
from tidelake.spark import catalog_kinds
from tidelake.spark.catalog_kinds import GLUE, Both
from tidelake.spark.worker_secrets import NONE, Secrets, of_environment

_FORMS = "jdbc:sqlite:<path>, jdbc:postgresql://host:port/db, glue://<region> or a REST catalog's URL"
_REST = ("http://", "https://")
_SCHEMES = ("jdbc:sqlite:", "jdbc:postgresql://", GLUE, *_REST)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSettings:
    """Settings of a lake. spark: runtime configuration of the catalog `lake`; iceberg: properties of pyiceberg's catalog, `type` included.

    sqlite: the catalog's file for a SQLite catalog; worker: the secrets handed to Spark's workers. spark and iceberg hold secrets and are
    left out of the representation: never print them.
    """

    warehouse: str
    spark: dict[str, str] = field(repr=False)
    iceberg: dict[str, str] = field(repr=False)
    sqlite: Path | None = None
    worker: Secrets = NONE

    @property
    def place(self) -> str:
        """The location of the catalog for messages, without login and options."""
        if self.sqlite is not None:
            return f"jdbc:sqlite:{self.sqlite}"
        if self.iceberg["type"] == "glue":
            return f"{GLUE}{self.iceberg.get('glue.region', '')}"
        scheme, _, rest = self.spark[f"spark.sql.catalog.{CATALOG}.uri"].partition("?")[0].partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def lake_settings(feed: Feed) -> LakeSettings:
    """Return the settings of a feed's lake. Raises ConfigError for a catalog URI in an unknown form."""
    warehouse = _warehouse(feed)
    uri, what = feed.lake.catalog or _default_catalog(feed), f"{feed.folder / 'feed.toml'}: lake.catalog"
    sqlite = Path(uri.removeprefix("jdbc:sqlite:").partition("?")[0]).resolve() if uri.startswith("jdbc:sqlite:") else None
    if feed.lake.rest and not uri.startswith(_REST):
        raise ConfigError(f"{feed.folder / 'feed.toml'}: lake.rest: lake.catalog is no REST catalog", remedy="remove [lake.rest]")
    spark, iceberg = catalog_kinds.sqlite(sqlite) if sqlite is not None else _of_server(feed, uri, what)
    common = {"warehouse": warehouse, "cache-enabled": "false"}  # another process, or pyiceberg in this one, may change a table
    if warehouse.startswith("s3://"):
        s3 = s3_settings()
        spark, iceberg = _spark_s3(s3) | spark, _iceberg_s3(s3) | iceberg
    prefix = f"spark.sql.catalog.{CATALOG}"
    return LakeSettings(
        warehouse=warehouse,
        spark={prefix: "org.apache.iceberg.spark.SparkCatalog"} | {f"{prefix}.{k}": v for k, v in (common | spark).items()},
        iceberg={"warehouse": warehouse} | iceberg,
        sqlite=sqlite,
        worker=of_environment(feed.policy.mask_key or ""),
    )


def _of_server(feed: Feed, uri: str, what: str) -> Both:
    if uri.startswith(_REST):
        return catalog_kinds.rest(uri, feed.lake.rest, what)
    if uri.startswith("jdbc:postgresql://"):
        return catalog_kinds.postgresql(uri, what)
    if uri.startswith(GLUE):
        return catalog_kinds.glue(uri, what)
    raise _unknown_form(feed, uri)


def file_settings(uri: str) -> dict[str, str]:
    """Return the settings of pyiceberg's file system for a lake at this URI."""
    return _iceberg_s3(s3_settings()) if uri.startswith("s3://") else {}


def check_catalog(feed: Feed) -> None:
    """Raise ConfigError for a catalog URI in an unknown form. The feed's variables may be unset. Connects to nothing."""
    uri = feed.lake.catalog
    if uri is not None and not VARIABLE.match(uri) and not uri.startswith(_SCHEMES):
        raise _unknown_form(feed, uri)


def _unknown_form(feed: Feed, uri: str) -> ConfigError:
    scheme, colon, _ = uri.partition(":")
    found = f"a {scheme!r} URI" if colon else "no URI"
    return ConfigError(f"{feed.folder / 'feed.toml'}: lake.catalog: found {found}", remedy=f"allowed: {_FORMS}")


def _warehouse(feed: Feed) -> str:
    uri = feed.lake.uri.rstrip("/")
    if uri.startswith("s3://"):
        return f"{uri}/warehouse"
    return str((Path(uri.removeprefix("file://")) / "warehouse").resolve())


def _default_catalog(feed: Feed) -> str:
    uri = feed.lake.uri.rstrip("/")
    if not uri.startswith("s3://"):
        return f"jdbc:sqlite:{Path(uri.removeprefix('file://')).resolve() / 'catalog.db'}"
    before = Path(".tidelake", f"catalog-{hashlib.sha256(uri.encode()).hexdigest()[:12]}.db").resolve()  # default of earlier versions
    raise ConfigError(
        f"{feed.folder / 'feed.toml'}: lake.catalog: missing: a lake on S3 has its catalog elsewhere",
        remedy=f"allowed: {_FORMS}; "
        + (f"found jdbc:sqlite:{before}" if before.exists() else f"to try it on this machine alone: jdbc:sqlite:{before}"),
    )


def _spark_s3(s3: dict[str, str]) -> dict[str, str]:
    names = {"endpoint": "s3.endpoint", "region": "client.region", "access_key": "s3.access-key-id", "secret_key": "s3.secret-access-key"}
    names |= {"token": "s3.session-token"}
    return {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"} | _renamed(s3, names) | _path_style(s3, "s3.path-style-access", "true")


def _iceberg_s3(s3: dict[str, str]) -> dict[str, str]:
    names = {"endpoint": "s3.endpoint", "region": "s3.region", "access_key": "s3.access-key-id", "secret_key": "s3.secret-access-key"}
    return _renamed(s3, names | {"token": "s3.session-token"}) | _path_style(s3, "s3.force-virtual-addressing", "false")


def _renamed(s3: dict[str, str], names: dict[str, str]) -> dict[str, str]:
    return {names[k]: v for k, v in s3.items()}


def _path_style(s3: dict[str, str], name: str, value: str) -> dict[str, str]:
    return {name: value} if "endpoint" in s3 else {}
