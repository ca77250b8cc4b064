"""Settings of the lake's catalog, for Spark (Iceberg's Java catalogs) and for pyiceberg, so that both see the same tables."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, urlencode

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import CATALOG
from tidelake.config.source import VARIABLE
from tidelake.errors import ConfigError
from tidelake.io.service_url import service_url, without_login
from tidelake.io.storage import s3_settings
from tidelake.spark.worker_secrets import NONE, Secrets, of_environment

_FORMS = "jdbc:sqlite:<path>, jdbc:postgresql://host:port/db or a REST catalog's URL"

_LIBPQ = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "application_name"})  # JDBC has more
# Options of PostgreSQL's JDBC driver 42.7. Another name may be the rest of a password with an `&`.
_JDBC = frozenset(
    """user password adaptiveFetch adaptiveFetchMaximum adaptiveFetchMinimum allowEncodingChanges ApplicationName assumeMinServerVersion
    authenticationPluginClassName autosave binaryTransfer binaryTransferDisable binaryTransferEnable cancelSignalTimeout channelBinding
    cleanupSavepoints connectTimeout currentSchema databaseMetadataCacheFields databaseMetadataCacheFieldsMiB defaultRowFetchSize
    disableColumnSanitiser escapeSyntaxCallMode groupStartupParameters gssEncMode gsslib gssResponseTimeout gssUseDefaultCreds
    hideUnprivilegedObjects hostRecheckSeconds jaasApplicationName jaasLogin kerberosServerName loadBalanceHosts localSocketAddress
    loggerFile loggerLevel loginTimeout logServerErrorDetail logUnclosedConnections maxResultBuffer maxSendBufferSize options
    preferQueryMode preparedStatementCacheQueries preparedStatementCacheSizeMiB prepareThreshold protocolVersion
    quoteReturningIdentifiers readOnly readOnlyMode receiveBufferSize replication reWriteBatchedInserts sendBufferSize socketFactory
    socketFactoryArg socketTimeout ssl sslcert sslfactory sslfactoryarg sslhostnameverifier sslkey sslmode sslNegotiation
    sslpasswordcallback sslResponseTimeout sslrootcert sspiServiceClass stringtype targetServerType tcpKeepAlive tcpNoDelay unknownLength
    useSpnego xmlFactoryFactory""".split()
)


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
        scheme, _, rest = self.spark[f"spark.sql.catalog.{CATALOG}.uri"].partition("?")[0].partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def lake_settings(feed: Feed) -> LakeSettings:
    """Return the settings of a feed's lake. Raises ConfigError for a catalog URI in an unknown form."""
    warehouse = _warehouse(feed)
    uri, what = feed.lake.catalog or _default_catalog(feed), f"{feed.folder / 'feed.toml'}: lake.catalog"
    sqlite = Path(uri.removeprefix("jdbc:sqlite:").partition("?")[0]).resolve() if uri.startswith("jdbc:sqlite:") else None
    if sqlite is not None:
        spark, iceberg = _sqlite(sqlite)
    elif uri.startswith("jdbc:postgresql://"):
        spark, iceberg = _postgresql(uri, what)
    elif uri.startswith(("http://", "https://")):
        without_login(uri, what, "give a REST catalog's URL without them")
        spark, iceberg = {"type": "rest", "uri": uri}, {"type": "rest", "uri": uri}
    else:
        raise _unknown_form(feed, uri)
    common = {"warehouse": warehouse, "cache-enabled": "false"}  # another process, or pyiceberg in this one, may change a table
    if warehouse.startswith("s3://"):
        s3 = s3_settings()
        spark |= _spark_s3(s3)
        iceberg |= _iceberg_s3(s3)
    prefix = f"spark.sql.catalog.{CATALOG}"
    return LakeSettings(
        warehouse=warehouse,
        spark={prefix: "org.apache.iceberg.spark.SparkCatalog"} | {f"{prefix}.{k}": v for k, v in (common | spark).items()},
        iceberg={"warehouse": warehouse} | iceberg,
        sqlite=sqlite,
        worker=of_environment(feed.policy.mask_key or ""),
    )


def file_settings(uri: str) -> dict[str, str]:
    """Return the settings of pyiceberg's file system for a lake at this URI."""
    return _iceberg_s3(s3_settings()) if uri.startswith("s3://") else {}


def check_catalog(feed: Feed) -> None:
    """Raise ConfigError for a catalog URI in an unknown form. The feed's variables may be unset. Connects to nothing."""
    uri = feed.lake.catalog
    if uri is not None and not VARIABLE.match(uri) and not uri.startswith(("jdbc:sqlite:", "jdbc:postgresql://", "http://", "https://")):
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


def _sqlite(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    spark = {"type": "jdbc", "uri": f"jdbc:sqlite:{path}?busy_timeout=30000", "jdbc.schema-version": "V1"}
    return spark, {"type": "sql", "uri": f"sqlite:///{path}?timeout=30"}


def _postgresql(uri: str, what: str) -> tuple[dict[str, str], dict[str, str]]:
    form = "write it like jdbc:postgresql://host:port/db?user=USER&password=PASSWORD"
    url = service_url(uri.removeprefix("jdbc:"), what, form)
    if not url.options.keys() <= _JDBC | _LIBPQ:
        raise ConfigError(f"{what}: it has an option that PostgreSQL's driver does not have", remedy=f"{form}; an & in a password is %26")
    url = replace(url, user=url.options.pop("user", url.user), password=url.options.pop("password", url.password))
    spark = {"type": "jdbc", "uri": f"jdbc:postgresql://{url.address}{url.path}{_query(url.options)}", "jdbc.schema-version": "V1"}
    spark |= {"jdbc.user": url.user} if url.user else {}
    spark |= {"jdbc.password": url.password} if url.password else {}
    shared = _query({k: v for k, v in url.options.items() if k in _LIBPQ})
    return spark, {"type": "sql", "uri": f"postgresql+psycopg2://{url.login}{url.address}{url.path}{shared}"}


def _query(options: dict[str, str]) -> str:
    return f"?{urlencode(options, quote_via=quote)}" if options else ""


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
