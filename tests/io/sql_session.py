"""One session of statements with a server that speaks MySQL's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pymysql.connections import Connection


def connected(**address: Any) -> Connection[Any]:
    """A session of root at an address of pymysql's: `unix_socket`, or `host` and `port`. Raises pymysql.Error."""
    import pymysql

    return pymysql.connect(user="root", charset="utf8mb4", autocommit=True, conv=pymysql.converters.encoders, **address)


def executed(connection: Connection[Any] | None, statements: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The rows of the last of the statements. Values are as the server writes them, as text or bytes. Raises pymysql.Error."""
    assert connection is not None
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())
