"""A real Kafka broker for tests: one KRaft node on loopback, its jars through Ivy as Spark's are (docs/reference/platform.md 10).

with KafkaBroker(folder) as broker:
    Producer({"bootstrap.servers": broker.servers})
"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.ivy import fetched, java

GROUP, MODULE, VERSION = "org.apache.kafka", "kafka_2.13", "4.3.1"
START_SECONDS = 60

_HOST = "127.0.0.1"
_PORTS = range(10_000, 12_000)  # no other server of the tests is there
_JAVA = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.retention.ms=-1
log.retention.bytes=-1
log.message.timestamp.before.max.ms=9223372036854775807
log.message.timestamp.after.max.ms=9223372036854775807
log.cleaner.backoff.ms=100
log.cleaner.dedupe.buffer.size=2097152
log.initial.task.delay.ms=100
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
"""


class KafkaBroker:
    """A broker with its data in a folder; `kill` and `start` leave and take up what it holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port, controller = _free_ports()
        self.servers = f"{_HOST}:{port}"
        self._settings = folder / "server.properties"
        self._settings.write_text(_SETTINGS.format(port=port, controller=controller, data=folder / "data"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._run("kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c").wait()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process = self._run("kafka.Kafka")
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.admin.list_topics(timeout=1)
                return
            except KafkaException:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the broker does not start:\n{(self._folder / 'log').read_text()[-2000:]}") from None

    def kill(self) -> None:
        """SIGKILL, as a machine that is gone."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def create(self, topic: str, partitions: int, **settings: str) -> None:
        """Make a topic; settings with _ for the dots of their names."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        (made,) = self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values()
        made.result(30)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        (made,) = self.admin.create_partitions([NewPartitions(topic, partitions)]).values()
        made.result(30)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Delete a partition's first messages, as retention does."""
        (done,) = self.admin.delete_records([TopicPartition(topic, partition, offset)]).values()
        assert done.result(30).low_watermark == offset

    def make_anew(self, topic: str, partitions: int) -> None:
        """Delete a topic and make another one under its name."""
        (done,) = self.admin.delete_topics([topic]).values()
        done.result(30)
        while topic in self.admin.list_topics(timeout=10).topics:
            pass
        self.create(topic, partitions)

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [java(), *_JAVA, "-cp", f"{kafka_jars()}/*", program, *arguments, str(self._settings)]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder)


def kafka_jars() -> Path:
    """The folder with Kafka's jars, fetched at the first use."""
    return fetched(f"{MODULE}-{VERSION}", [f"{GROUP}:{MODULE}:{VERSION}"])


def _free_ports() -> list[int]:
    """Two ports that are free now, below those that the system gives to connections: a broker comes back at its own."""
    free = list[int]()
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            if probe.connect_ex((_HOST, port)) != 0:
                free.append(port)
        if len(free) == 2:
            break
    return free
