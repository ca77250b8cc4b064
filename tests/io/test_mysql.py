"""Sessions with a source: what keeps one from beginning is said."""

from __future__ import annotations

import pytest

from tidelake.errors import StorageError
from tidelake.io.mysql import reader

pymysql = pytest.importorskip("pymysql", reason="needs PyMySQL, of the extra `mysql`")


def test_an_account_whose_password_needs_another_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyMySQL does for MariaDB's ed25519 without PyNaCl."""

    def connect(**_: object) -> None:
        raise RuntimeError("'pynacl' package is required for ed25519_password auth method")

    monkeypatch.setattr(pymysql, "connect", connect)
    with (
        pytest.raises(StorageError, match="mysql://db:3306 cannot be reached: 'pynacl' package is required") as error,
        reader("mysql://u:p@db:3306"),
    ):
        pass
    assert error.value.code == "UPSTREAM"
