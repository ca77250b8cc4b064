"""A real Trino for tests, on loopback, that reads the lake through a catalog: 540 MB of Maven Central, once.

with Trino(folder, by_rest(server), environment) as trino:
    trino.rows("SELECT 1 AS n")  # [{"n": 1}]

Trino 476 runs on Java 24 and newer (tests.catalogs.trino_java).
"""

from __future__ import annotations

import base64
import re
import shutil
import socket
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import requests

from tests.catalogs.postgresql_server import PASSWORD, USER, PostgreSQL
from tests.catalogs.rest_server import CREDENTIAL, RestCatalog
from tests.catalogs.trino_java import has_module, trino_java
from tests.io.ivy_jars import ivy_jars
from tests.io.whole_folder import unpack, whole_folder

VERSION = "476"
FILES = (f"io.trino:trino-server-core:{VERSION}@tar.gz", f"io.trino:trino-iceberg:{VERSION}@zip")
OLDEST = 24  # Java
START_SECONDS = 240

_JVM = ("-Xmx1G", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djdk.attach.allowAttachSelf=true")
_VECTORS = "jdk.incubator.vector"  # Trino asks for it and runs without it
_READ: dict[str, Callable[[Any], Any]] = {
    "decimal": Decimal,
    "real": lambda text: float(np.float32(text)),  # sent with as many digits as tell it from other floats of 32 bits
    "date": date.fromisoformat,
    "timestamp": lambda text: datetime.fromisoformat(text.replace(" UTC", "+00:00")),
    "varbinary": base64.b64decode,
}


def by_rest(server: RestCatalog) -> dict[str, str]:
    """How Trino reaches a lake's REST catalog (docs/how-to/query.md)."""
    return {
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": server.uri,
        "iceberg.rest-catalog.security": "OAUTH2",
        "iceberg.rest-catalog.oauth2.credential": CREDENTIAL,
        "iceberg.rest-catalog.oauth2.server-uri": f"{server.uri}/v1/oauth/tokens",
        "iceberg.rest-catalog.case-insensitive-name-matching": "true",
    }


def by_postgresql(server: PostgreSQL, warehouse: str) -> dict[str, str]:
    """How Trino reaches a lake's catalog in PostgreSQL (docs/how-to/query.md)."""
    return {
        "iceberg.catalog.type": "jdbc",
        "iceberg.jdbc-catalog.catalog-name": "lake",
        "iceberg.jdbc-catalog.driver-class": "org.postgresql.Driver",
        "iceberg.jdbc-catalog.connection-url": server.catalog.partition("?")[0],
        "iceberg.jdbc-catalog.connection-user": USER,
        "iceberg.jdbc-catalog.connection-password": PASSWORD,
        "iceberg.jdbc-catalog.default-warehouse-dir": warehouse,
        "iceberg.jdbc-catalog.schema-version": "V1",
    }


class Trino:
    """A server with catalog `lake`. catalog: the settings of by_rest or by_postgresql."""

    def __init__(self, folder: Path, catalog: Mapping[str, str], s3: Mapping[str, str]) -> None:
        self._java, self._home = trino_java(OLDEST), program()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._folder = folder
        (folder / "catalog").mkdir(parents=True)
        settings = {
            "node.id": "tests",
            "node.environment": "tests",
            "node.internal-address": "127.0.0.1",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": self._port,
            "node.bind-ip": "127.0.0.1",
            "discovery.uri": f"http://127.0.0.1:{self._port}",
            "plugin.dir": self._home / "plugin",
            "catalog.config-dir": folder / "catalog",
            "catalog.management": "static",
            "query.max-memory-per-node": "300MB",
        }
        lake = {
            "connector.name": "iceberg",
            **catalog,
            "fs.native-s3.enabled": "true",
            "s3.endpoint": s3["AWS_ENDPOINT_URL_S3"],
            "s3.region": s3["AWS_REGION"],
            "s3.path-style-access": "true",
            "s3.aws-access-key": s3["AWS_ACCESS_KEY_ID"],
            "s3.aws-secret-key": s3["AWS_SECRET_ACCESS_KEY"],
        }
        for path, said in ((folder / "config.properties", settings), (folder / "catalog" / "lake.properties", lake)):
            path.write_text("".join(f"{name}={value}\n" for name, value in said.items()))
        self._process: subprocess.Popen[bytes] | None = None
        self._deadline = 0.0

    def __enter__(self) -> Self:
        modules = [f"--add-modules={_VECTORS}"] if has_module(self._java, _VECTORS) else []
        command = [self._java, *_JVM, *modules, f"-Dconfig={self._folder / 'config.properties'}", "-cp", f"{self._home / 'lib'}/*"]
        log = self._folder / "log"
        with log.open("wb") as out:
            self._process = subprocess.Popen([*command, "io.trino.server.TrinoServer"], stdout=out, stderr=out, cwd=self._folder)
        self._deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                if requests.get(f"http://127.0.0.1:{self._port}/v1/info", timeout=5).json()["starting"] is False:
                    self.rows("SELECT 1")
                    return self
            except (requests.RequestException, RuntimeError):
                pass
            if self._process.poll() is not None or time.monotonic() > self._deadline:
                self._process.kill()
                raise RuntimeError(f"Trino does not start:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.5)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The result of a statement, as Python's values. Raises RuntimeError."""
        while True:
            columns, rows, error = self._asked(sql)
            if error is None:
                return [{c["name"]: _value(c["type"], v) for c, v in zip(columns, row, strict=True)} for row in rows]
            starting = error["errorName"] == "NO_NODES_AVAILABLE"  # of a server that does not know its own node yet
            if not starting or time.monotonic() > self._deadline:
                raise RuntimeError(f"{sql}: {error['message']}")
            time.sleep(0.5)

    def _asked(self, sql: str) -> tuple[list[dict[str, Any]], list[list[Any]], dict[str, Any] | None]:
        """Columns, rows, and the error."""
        headers = {"X-Trino-User": "tests", "X-Trino-Time-Zone": "UTC", "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME"}
        said = requests.post(f"http://127.0.0.1:{self._port}/v1/statement", data=sql.encode(), headers=headers, timeout=120).json()
        columns, rows = [], list[list[Any]]()
        while True:
            columns = said.get("columns", columns)
            rows += said.get("data", [])
            if "error" in said or "nextUri" not in said:
                return columns, rows, said.get("error")
            said = requests.get(said["nextUri"], headers=headers, timeout=120).json()


def _value(kind: str, value: Any) -> Any:
    read = _READ.get(re.split(r"[( ]", kind)[0])
    return value if value is None or read is None else read(value)


def program() -> Path:
    """The folder of Trino's server with the Iceberg plugin alone, fetched at the first use."""
    packed = ivy_jars(f"trino-packed-{VERSION}", FILES)

    def fill(part: Path) -> Path:
        with tarfile.open(next(packed.glob("*.tar.gz"))) as tar:
            unpack(tar, part)
        server = next(part.glob("trino-server-core-*"))
        shutil.rmtree(server / "plugin")
        with zipfile.ZipFile(next(packed.glob("*.zip"))) as plugin:
            plugin.extractall(part)
        (server / "plugin").mkdir()
        next(part.glob("trino-iceberg-*")).rename(server / "plugin" / "iceberg")
        return server

    return whole_folder(packed.with_name(f"trino-{VERSION}"), fill)
