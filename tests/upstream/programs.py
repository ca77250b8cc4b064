"""Producers of change messages, as jars of Maven Central, fetched once. `python -m tests.upstream.programs` fetches all of them."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.io import kafka_broker
from tests.io.ivy_jars import ivy_jars
from tests.io.mysql_server import NEEDS_LINUX, mysqld

_CONNECT = [f"{kafka_broker.GROUP}:{name}:{kafka_broker.VERSION}" for name in ("connect-runtime", "connect-json", "connect-transforms")]
PROGRAMS = {  # name of the folder in the cache → modules
    **{
        f"debezium-{kind}-3.5.0": (*_CONNECT, f"io.debezium:debezium-connector-{kind}:3.5.0.Final", "org.slf4j:slf4j-simple:1.7.36")
        for kind in ("mariadb", "mysql")
    },
    "maxwell-1.22.6": ("com.zendesk:maxwell:1.22.6", "org.apache.logging.log4j:log4j-api:2.8.2"),
    "canal-1.1.7": ("com.alibaba.otter:canal.server:1.1.7", "com.alibaba.otter:connector.kafka:1.1.7"),
}


def jars(name: str) -> Path:
    """The folder with a program's jars, for `java -cp folder/*`."""
    return ivy_jars(name, PROGRAMS[name])


def main() -> int:
    """Fetch all programs, the broker and MySQL's server. Returns the exit code."""
    kafka_broker.kafka_jars()
    sys.stderr.write(f"MySQL: {mysqld() or NEEDS_LINUX}\n")
    for name in PROGRAMS:
        sys.stderr.write(f"{name}: {jars(name)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
