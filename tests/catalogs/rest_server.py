"""A real REST catalog for tests: the server of Iceberg's own tests on Jetty, in a JVM of its own, over a JDBC catalog in memory.

with RestCatalog("s3://lake/warehouse", environment) as server:
    load_catalog("lake", type="rest", uri=server.uri, credential="reader:harbour-pass")

Iceberg publishes the classes of its tests with each version; those of 1.12.0 are not to be had here. The server answers only requests
that carry a token that it gave for the credential.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.io.ivy_jars import ivy_jars, java
from tidelake.spark.application import ivy_folder

VERSION = "1.11.0"
JARS = (
    f"org.apache.iceberg:iceberg-core:{VERSION}:tests",
    f"org.apache.iceberg:iceberg-aws:{VERSION}",
    "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.14",
    "software.amazon.awssdk:url-connection-client:2.54.17",  # Spark's bundle has another client than this version asks for
)
CREDENTIAL = "reader:harbour-pass"

_OF_SPARK = ("org.apache.iceberg_iceberg-aws-bundle-*.jar", "org.xerial_sqlite-jdbc-*.jar")  # S3's client, the database
_JAVA = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Daws.requestChecksumCalculation=when_required"]
_TOKENS = "/v1/oauth/tokens"
_KEPT = ("authorization", "content-type", "accept", "if-none-match")


class RestCatalog:
    """A server with an empty catalog. uri: its address; refused: how many requests came without a token that it gave."""

    def __init__(self, warehouse: str, environment: Mapping[str, str]) -> None:
        self._warehouse, self._environment = warehouse, environment
        self.refused = 0
        self.uri = ""

    def __enter__(self) -> Self:
        jars = [f"{ivy_jars(f'iceberg-rest-{VERSION}', JARS)}/*", *(str(p) for n in _OF_SPARK for p in (ivy_folder() / "jars").glob(n))]
        port, self._jvm = launch_gateway(
            classpath=":".join(jars), javaopts=_JAVA, java_path=java(), die_on_exit=True, return_proc=True, jarpath=_py4j()
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self._server = self._serve(self._gateway.jvm)
        inside = f"http://127.0.0.1:{self._server.getConnectors()[0].getLocalPort()}"
        self._door = ThreadingHTTPServer(("127.0.0.1", 0), _door(self, inside))
        threading.Thread(target=self._door.serve_forever, daemon=True).start()
        self.uri = f"http://127.0.0.1:{self._door.server_port}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._door.shutdown()
        self._door.server_close()
        self._gateway.shutdown()
        self._jvm.stdin.close()
        self._jvm.wait(20)

    def _serve(self, jvm: Any) -> Any:
        """Start Jetty. Returns its server."""
        catalog = jvm.org.apache.iceberg.jdbc.JdbcCatalog()
        catalog.initialize("inside", self._properties())
        adapter = jvm.org.apache.iceberg.rest.RESTCatalogAdapter(catalog)
        context = jvm.org.eclipse.jetty.ee10.servlet.ServletContextHandler()
        holder = jvm.org.eclipse.jetty.ee10.servlet.ServletHolder(jvm.org.apache.iceberg.rest.RESTCatalogServlet(adapter))
        context.addServlet(holder, "/*")
        server = jvm.org.eclipse.jetty.server.Server(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
        server.setHandler(context)
        server.start()
        return server

    def _properties(self) -> dict[str, str]:
        said = self._environment
        return {
            "uri": "jdbc:sqlite:file::memory:?cache=shared",
            "jdbc.schema-version": "V1",
            "clients": "1",
            "warehouse": self._warehouse,
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "http-client.type": "urlconnection",
            "s3.endpoint": said["AWS_ENDPOINT_URL_S3"],
            "s3.path-style-access": "true",
            "s3.access-key-id": said["AWS_ACCESS_KEY_ID"],
            "s3.secret-access-key": said["AWS_SECRET_ACCESS_KEY"],
            "client.region": said["AWS_REGION"],
        }


def _py4j() -> str:
    import pyspark

    return str(next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")))


def _door(server: RestCatalog, inside: str) -> type[BaseHTTPRequestHandler]:
    """The handler that lets a request in if it carries a token. It hands the credential on, whose tokens the server inside makes."""
    known, session = set[str](), requests.Session()

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            path = self.path.partition("?")[0]
            if path == _TOKENS:
                given = body.decode()
                if "client_id=reader" not in given or "client_secret=harbour-pass" not in given:
                    return self.refuse("invalid_client")
            elif self.headers.get("authorization") not in known:
                server.refused += 1
                return self.refuse("no token of this server")
            headers = {k: v for k in _KEPT if (v := self.headers.get(k)) is not None}
            said = session.request(self.command, inside + self.path, data=body, headers=headers, timeout=60)
            if path == _TOKENS and said.ok:
                known.add(f"Bearer {said.json()['access_token']}")
            self.answer(said.status_code, said.content, said.headers.get("content-type") or "application/json")

        do_GET = do_POST = do_HEAD = do_DELETE = handle_one

        def refuse(self, why: str) -> None:
            error = f'{{"error": {{"message": "{why}", "type": "NotAuthorizedException", "code": 401}}}}'
            self.answer(401, error.encode(), "application/json")

        def answer(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD" and status != 204:
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing of requests."""

    return Door
