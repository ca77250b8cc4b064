"""Maxwell as its documentation sets it up: all rows and statements in one topic with one partition, keyed by primary key.

https://maxwells-daemon.io/quickstart/

Version 1.22.6 is the newest in Maven Central. What it needs beside its jars:

Java 15 and later   a class of Nashorn, which its JSON writer asks every value for; an empty one does, if no scripts are used
MySQL 8             an account with mysql_native_password: its reader of the binlog does not know caching_sha2_password
MariaDB 10.6, later `old_mode` without UTF8_IS_UTF8MB3: it makes its own tables in `utf8`, and does not know that charset as `utf8mb3`
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from tests.io.ivy_jars import java
from tests.io.kafka_broker import KafkaBroker
from tests.io.sql_server import HOST, REPLICATOR, SqlServer
from tests.tidb.values import BYTES, ENUMS, EXACT, FLOATS, FOREIGN, NUMBERS, TEXTS
from tests.upstream.process import Process
from tests.upstream.programs import jars

# What Maxwell can send. It lacks TIME below zero or above a day, BIT of more than 31 bits, YEAR 0, and JSON that MariaDB adds as it runs.
_TYPES = (*NUMBERS, *EXACT, *FLOATS, "DATE", "DATETIME", "DATETIME(3)", "DATETIME(6)", "TIMESTAMP", "TIMESTAMP(6)")
_TYPES += (*TEXTS, *FOREIGN, *BYTES, "BIT(1)", "BIT(10)", *ENUMS)
_JAVA = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8")
_NASHORN = "jdk/nashorn/api/scripting/ScriptObjectMirror"
_JAVA_8 = 52  # version of class files
_SETTINGS = """
host={host}
port={port}
user={user}
password={password}
producer=kafka
kafka.bootstrap.servers={servers}
kafka.acks=all
kafka.retries=10
kafka.max.in.flight.requests.per.connection=1
ignore_producer_error=false
kafka_topic={topic}
output_ddl=true
output_binlog_position=true
output_xoffset=true
output_server_id=true
output_primary_key_columns=true
{more}
"""
_BEFORE = {  # by SqlServer.kind
    "mariadb": ["SET GLOBAL old_mode = ''"],
    "mysql": [f"ALTER USER '{REPLICATOR.user}'@'{HOST}' IDENTIFIED WITH mysql_native_password BY '{REPLICATOR.password}'"],
}


def types(server: SqlServer) -> Sequence[str]:
    """Types of columns that it sends as they are."""
    return [*_TYPES, "JSON"] if server.kind == "mysql" else _TYPES


def maxwell(server: SqlServer, broker: KafkaBroker, topic: str, folder: Path, **settings: object) -> Process:
    """The program that writes into a topic. settings: more of its own."""
    server.execute(*_BEFORE[server.kind], "DROP DATABASE IF EXISTS maxwell")
    stub = folder / "classes" / f"{_NASHORN}.class"
    stub.parent.mkdir(parents=True, exist_ok=True)
    stub.write_bytes(_empty_class(_NASHORN))
    more = "\n".join(f"{name}={value}" for name, value in settings.items())
    known = {"host": HOST, "port": server.port, "user": REPLICATOR.user, "password": REPLICATOR.password}
    known |= {"servers": broker.servers, "topic": topic, "more": more}
    (folder / "config.properties").write_text(_SETTINGS.format(**known))
    path = f"{jars('maxwell-1.22.6')}/*:{folder / 'classes'}"
    return Process([java(), *_JAVA, "-cp", path, "com.zendesk.maxwell.Maxwell", f"--config={folder / 'config.properties'}"], folder)


def connected(process: Process) -> bool:
    """Whether it follows the binlog, since its last start."""
    log = process.log.read_text(errors="replace")
    return log.rfind("Binlog connected") > log.rfind("is booting")


def _empty_class(name: str) -> bytes:
    """A public class without members, as javac would write it."""
    names = [name, "java/lang/Object"]
    pool = b"".join(b"\1" + struct.pack(">H", len(n)) + n.encode() + b"\7" + struct.pack(">H", 2 * i + 1) for i, n in enumerate(names))
    public_super, this, parent, none = 0x21, 2, 4, 0
    header = struct.pack(">IHHH", 0xCAFEBABE, 0, _JAVA_8, 2 * len(names) + 1)
    return header + pool + struct.pack(">7H", public_super, this, parent, none, none, none, none)
