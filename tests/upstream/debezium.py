"""Debezium's connectors in Kafka Connect, standalone, as their documentation sets them up: all messages in one topic with one partition.

https://debezium.io/documentation/reference/stable/connectors/mariadb.html
https://debezium.io/documentation/reference/stable/connectors/mysql.html
"""

from __future__ import annotations

import socket
from pathlib import Path

from tests.io.ivy_jars import java
from tests.io.kafka_broker import KafkaBroker
from tests.io.sql_server import HOST, REPLICATOR, SqlServer
from tests.upstream.process import Process
from tests.upstream.programs import jars
from tests.upstream.workload import DATABASE
from tests.upstream.workload import TYPES as ALL_TYPES

TYPES = [t for t in ALL_TYPES if t != "BOOL"]  # a column that a statement calls so is sent as true or false, whatever number it holds

_JAVA = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_WORKER = """
bootstrap.servers={servers}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable={schemas}
value.converter.schemas.enable={schemas}
value.converter.replace.null.with.default=false
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=500
listeners=http://127.0.0.1:{port}
plugin.discovery=only_scan
"""
_CONNECTOR = """
name=shop
connector.class={connector}
tasks.max=1
database.hostname={host}
database.port={server_port}
database.user={user}
database.password={password}
database.server.id=184055
database.ssl.mode={ssl}
topic.prefix={topic}
database.include.list={database}
schema.history.internal.kafka.bootstrap.servers={servers}
schema.history.internal.kafka.topic={topic}-history
include.schema.changes=true
enable.time.adjuster=false
skipped.operations=none
heartbeat.interval.ms=1000
provide.transaction.metadata=true
transforms=one
transforms.one.type=org.apache.kafka.connect.transforms.RegexRouter
transforms.one.regex=.*
transforms.one.replacement={topic}
"""
# By SqlServer.kind. Without TLS, passwords of MySQL (caching_sha2_password) are refused: "Public Key Retrieval is not allowed".
_OF_SERVER = {
    "mariadb": {"connector": "io.debezium.connector.mariadb.MariaDbConnector", "ssl": "disable"},
    "mysql": {"connector": "io.debezium.connector.mysql.MySqlConnector", "ssl": "preferred"},
}


def debezium(server: SqlServer, broker: KafkaBroker, topic: str, folder: Path, *, schemas: bool = True, **settings: object) -> Process:
    """The server's connector that writes into a topic. settings: of the connector, with _ for the dots of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    known = {"servers": broker.servers, "folder": folder, "topic": topic, "database": DATABASE, "host": HOST, "server_port": server.port}
    known |= {"user": REPLICATOR.user, "password": REPLICATOR.password, "schemas": str(schemas).lower(), "port": port}
    known |= _OF_SERVER[server.kind]
    more = "".join("{}={}\n".format(name.replace("_", "."), value) for name, value in settings.items())
    files = {"worker.properties": _WORKER, "connector.properties": _CONNECTOR}
    for name, text in files.items():
        (folder / name).write_text(text.format(**known) + (more if text is _CONNECTOR else ""))
    program = "org.apache.kafka.connect.cli.ConnectStandalone"
    libraries = f"{jars(f'debezium-{server.kind}-3.5.0')}/*"
    return Process([java(), *_JAVA, "-cp", libraries, program, *(str(folder / n) for n in files)], folder)
