"""Properties of each kind of catalog, for Iceberg's Java catalogs and for pyiceberg."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlencode

from tidelake.errors import ConfigError
from tidelake.io.service_url import service_url, without_login

Properties = dict[str, str]
Both = tuple[Properties, Properties]  # Spark's, pyiceberg's

GLUE = "glue://"
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
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


def sqlite(path: Path) -> Both:
    """Return the properties for a SQLite file."""
    spark = {"type": "jdbc", "uri": f"jdbc:sqlite:{path}?busy_timeout=30000", "jdbc.schema-version": "V1"}
    return spark, {"type": "sql", "uri": f"sqlite:///{path}?timeout=30"}


def postgresql(uri: str, what: str) -> Both:
    """Return the properties for jdbc:postgresql:…. what: the setting's name in errors. Raises ConfigError without the URL."""
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


def rest(uri: str, properties: Mapping[str, str], what: str) -> Both:
    """Return the properties for a REST catalog. properties: [lake.rest]. Raises ConfigError for a URL with a login."""
    without_login(uri, what, "give a REST catalog's URL without them, and the login in [lake.rest]")
    both = {"type": "rest", "uri": uri, **properties}
    if "credential" in both:  # the clients' own default, which both of them deprecate
        both.setdefault("oauth2-server-uri", f"{uri.rstrip('/')}/v1/oauth/tokens")
    return both, dict(both)


def glue(uri: str, what: str) -> Both:
    """Return the properties for AWS Glue: `glue://<region>`, or `glue://` for the region of AWS's variables.

    The clients take the login from AWS's variables, profiles and roles. Raises ConfigError for a malformed region.
    """
    region = uri.removeprefix(GLUE)
    if region and not _REGION.fullmatch(region):
        raise ConfigError(f"{what}: {uri!r} has no region", remedy="give glue://<region>, like glue://eu-central-1, or glue:// alone")
    spark, iceberg = {"type": "glue"}, {"type": "glue"}
    if region:
        spark, iceberg = spark | {"client.region": region}, iceberg | {"glue.region": region}
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_GLUE") or os.environ.get("AWS_ENDPOINT_URL"):
        without_login(endpoint, "AWS_ENDPOINT_URL_GLUE", "give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        spark, iceberg = spark | {"glue.endpoint": endpoint}, iceberg | {"glue.endpoint": endpoint}
    return spark, iceberg


def _query(options: dict[str, str]) -> str:
    return f"?{urlencode(options, quote_via=quote)}" if options else ""
