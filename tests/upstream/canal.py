"""Alibaba's Canal, its server and its Kafka producer, as its documentation sets them up: all messages in one topic with one partition.

https://github.com/alibaba/canal/wiki/Canal-Kafka-RocketMQ-QuickStart
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.io.ivy_jars import java
from tests.io.kafka_broker import KafkaBroker
from tests.io.sql_server import HOST, REPLICATOR, SqlServer
from tests.tidb.values import FOREIGN
from tests.upstream.canal_conf import DESTINATION, write_conf
from tests.upstream.process import Process
from tests.upstream.programs import jars
from tests.upstream.workload import DATABASE
from tests.upstream.workload import TYPES as ALL_TYPES

TYPES = [t for t in ALL_TYPES if t not in FOREIGN[:2]]  # it reads the bytes of latin1 and gbk as UTF-8

_SOURCE = Path(__file__).with_name("CanalServer.java")
_JAVA = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-Duser.timezone=UTC")
_OPENED = ("java.base/java.lang", "java.base/java.util", "java.base/java.net", "java.base/java.nio", "java.base/sun.nio.ch")
_STARTED = b"the next step is binlog dump"


def canal(server: SqlServer, broker: KafkaBroker, topic: str, folder: Path, *, flat: bool) -> Process:
    """A server that writes into a topic. flat: JSON messages, else protobuf.

    It is told where to begin, and begins there again if it was killed while it wrote its place: meta.dat is empty for some milliseconds.
    """
    begin = server.execute("SHOW MASTER STATUS")[0]
    conf, classes = folder / "conf", folder / "classes"
    settings: dict[str, object] = {
        "canal.serverMode": "kafka",
        "canal.mq.flatMessage": str(flat).lower(),
        "canal.mq.servers": broker.servers,
        "kafka.bootstrap.servers": broker.servers,
        "canal.file.data.dir": folder / "data",
        "canal.withoutNetty": "true",
    }
    instance: dict[str, object] = {
        "canal.instance.master.address": f"{HOST}:{server.port}",
        "canal.instance.master.journal.name": begin[0],
        "canal.instance.master.position": begin[1],
        "canal.instance.mysql.slaveId": 184056,
        "canal.instance.dbUsername": REPLICATOR.user,
        "canal.instance.dbPassword": REPLICATOR.password,
        "canal.instance.filter.regex": rf"{DATABASE}\\..*",
        "canal.mq.topic": topic,
    }
    write_conf(conf, settings, instance)
    (folder / "data" / DESTINATION).mkdir(parents=True)
    libraries = ":".join(str(jar) for jar in sorted(jars("canal-1.1.7").glob("*.jar")))
    compiler = [java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", libraries, "-d", str(classes), str(_SOURCE)]
    subprocess.run(compiler, check=True, capture_output=True, text=True, timeout=600)
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    return Process([java(), *_JAVA, *opened, "-cp", f"{conf}:{classes}:{libraries}", "CanalServer", DESTINATION], folder)


def connected(producer: Process) -> bool:
    """Whether it has begun to read the binlog."""
    return _STARTED in producer.log.read_bytes()
