"""Connections to MySQL, MariaDB or TiDB. The only user of pymysql, which is an extra: `tidelake[mysql]`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidelake.errors import ConfigError, StorageError
from tidelake.io.service_url import ServiceUrl, service_url

_PORT = 3306
_WHAT = "the source's URL (--connect, TIDELAKE_UPSTREAM)"
_OPTIONS = {"unix_socket": str, "ssl_ca": str, "connect_timeout": int, "read_timeout": int}
_FORM = "write it like mysql://user:password@host:4000, with ?ssl_ca=FILE for TLS or ?unix_socket=PATH"


class MysqlReader:
    """A session for queries."""

    def __init__(self, connection: object, shown: str) -> None:
        self._connection = connection
        self._shown = shown

    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        """Return all rows, as text. Raises StorageError (UPSTREAM) with the server's message."""
        import pymysql

        try:
            with self._connection.cursor() as cursor:  # type: ignore[attr-defined]
                cursor.execute(sql)
                found = cursor.fetchall()
        except pymysql.Error as e:
            raise StorageError(f"{self._shown} refused: {_words(e)}; asked: {sql[:200]}", code="UPSTREAM") from e
        return [tuple(None if v is None else str(v) for v in row) for row in found]


@contextmanager
def reader(url: str) -> Iterator[MysqlReader]:
    """Open a session for the block. Raises ConfigError for an invalid URL, StorageError (UPSTREAM) for a server that refuses."""
    server, options = _parsed(url)
    try:
        import pymysql
    except ImportError as e:
        raise ConfigError("a connection needs PyMySQL, which is not installed", remedy="pip install 'tidelake[mysql]'") from e
    shown = f"mysql://{server.address}"
    try:
        connection = pymysql.connect(
            host=server.host or "localhost",
            port=server.port or _PORT,
            user=server.user,
            password=server.password,
            charset="utf8mb4",
            conv=pymysql.converters.encoders,  # no decoders: every value as the server wrote it
            **options,
        )
    except (pymysql.Error, OSError, RuntimeError) as e:  # RuntimeError: the account's password needs a package that is not installed
        raise StorageError(f"{shown} cannot be reached: {_words(e)}", code="UPSTREAM") from e
    with connection:
        yield MysqlReader(connection, shown)


def _parsed(text: str) -> tuple[ServiceUrl, dict[str, str | int]]:
    url = service_url(text, _WHAT, _FORM)
    if url.scheme not in ("mysql", "mariadb", "tidb") or not (url.host or "unix_socket" in url.options):
        raise ConfigError(f"{_WHAT} is not the URL of a MySQL server", remedy=_FORM)
    if not url.options.keys() <= _OPTIONS.keys():  # the option's name may be the rest of a password
        raise ConfigError(f"{_WHAT} has an unknown option", remedy=f"allowed: {', '.join(_OPTIONS)}; an & in a password is %26")
    try:
        return url, {name: _OPTIONS[name](value) for name, value in url.options.items()}
    except ValueError:
        raise ConfigError(f"{_WHAT}: a timeout is a number of seconds", remedy=_FORM) from None


def _words(error: Exception) -> str:
    return str(error.args[-1]) if error.args else type(error).__name__
