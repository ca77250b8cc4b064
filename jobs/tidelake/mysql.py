"""A connection to MySQL, MariaDB or TiDB. The only user of pymysql, which is an extra: `tidelake[mysql]`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from tidelake.errors import ConfigError, StorageError

_PORT = 3306
_OPTIONS = {"unix_socket": str, "ssl_ca": str, "connect_timeout": int, "read_timeout": int}
_FORM = "write it like mysql://user:password@host:4000, with ?ssl_ca=FILE for TLS or ?unix_socket=PATH"


class Reader:
    """A session."""

    def __init__(self, connection: object, shown: str) -> None:
        self._connection = connection
        self._shown = shown

    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        """All rows, as text. Raises StorageError with the server's words."""
        import pymysql

        try:
            with self._connection.cursor() as cursor:  # type: ignore[attr-defined]
                cursor.execute(sql)
                found = cursor.fetchall()
        except pymysql.Error as e:
            raise StorageError(f"{self._shown} refused: {_words(e)}; asked: {sql[:200]}", code="UPSTREAM") from e
        return [tuple(None if v is None else str(v) for v in row) for row in found]


@contextmanager
def reader(url: str) -> Iterator[Reader]:
    """A session. Raises ConfigError for a URL that is none, StorageError for a server that refuses."""
    parts, options = _parsed(url)
    try:
        import pymysql
    except ImportError as e:
        raise ConfigError("a connection needs PyMySQL, which is not installed", remedy="pip install 'tidelake[mysql]'") from e
    shown = f"mysql://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"  # neither user nor password
    try:
        connection = pymysql.connect(
            host=parts.hostname or "localhost",
            port=parts.port or _PORT,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            charset="utf8mb4",
            conv=pymysql.converters.encoders,  # none that decodes: every value as the server wrote it
            **options,
        )
    except (pymysql.Error, OSError) as e:
        raise StorageError(f"{shown} cannot be reached: {_words(e)}", code="UPSTREAM") from e
    with connection:
        yield Reader(connection, shown)


def _parsed(url: str) -> tuple[SplitResult, dict[str, str | int]]:
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("mysql", "mariadb", "tidb") and parts.port != 0
    except ValueError as e:
        raise ConfigError("the source's URL has no readable port", remedy=_FORM) from e
    given = dict(parse_qsl(parts.query))
    if not whole or not (parts.hostname or "unix_socket" in given):
        raise ConfigError("the source's URL is not one of a MySQL server", remedy=_FORM)
    strange = sorted(set(given) - set(_OPTIONS))
    if strange:
        raise ConfigError(f"the source's URL: unknown options {', '.join(strange)}", remedy=f"allowed: {', '.join(_OPTIONS)}")
    try:
        return parts, {name: _OPTIONS[name](value) for name, value in given.items()}
    except ValueError as e:
        raise ConfigError("the source's URL: a timeout is a number of seconds", remedy=_FORM) from e


def _words(error: Exception) -> str:
    return str(error.args[-1]) if error.args else type(error).__name__
