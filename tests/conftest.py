"""Fixtures that several folders share."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.quick_spark import ROOM
from tests.searches import examples
from tidelake.demo.embedded_s3 import EmbeddedS3
from tidelake.io import storage

if TYPE_CHECKING:
    from tests.io.kafka_broker import KafkaBroker

FreshUri = Callable[[str], str]
WORKERS = ("Spark", "this process")
JAVA = "spark.driver.extraJavaOptions"

settings.register_profile("tidelake", max_examples=examples(100), deadline=None)  # first uses of libraries are slow, that is no failure
settings.load_profile("tidelake")


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedS3]:
    """A real S3 server, started when the first test wants it."""
    with EmbeddedS3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3(s3_server: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> Iterator[FreshUri]:
    """The environment points to the S3 server; gives a function that makes a URI below which nothing is."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    storage.reset()
    yield lambda name: f"s3://{s3_server.bucket}/{name}-{next(_NUMBERS)}"
    storage.reset()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A real Kafka broker, started when the first test wants it."""
    from tests.io.kafka_broker import KafkaBroker

    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    """The name of a topic that no other test uses, with one partition and nothing in it."""
    from tests.land.live import fresh

    name = fresh()
    kafka.create(name, 1)
    return name


@pytest.fixture(scope="session")
def spark_app(s3_server: EmbeddedS3) -> Iterator[None]:
    """One Spark application for all tests; lakes opened meanwhile use sessions of it. Its workers keep the environment it starts with."""
    from tidelake.lake.opened import Lake
    from tidelake.spark.application import static_settings
    from tidelake.spark.run_parts import SparkWorkers, ThisProcess, Workers, is_small
    from tidelake.spark.session import keep

    def workers(lake: Lake, sizes: Iterable[int]) -> Workers:
        return ThisProcess(lake.settings.worker) if _HERE[0] and is_small(sizes) else SparkWorkers(lake.spark)

    os.environ.update(s3_server.environment)
    os.environ.setdefault("TIDELAKE_DRIVER_MEMORY", "1g")
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TIDELAKE_SPARK_CONF", f"{JAVA}={static_settings(brief=True)[JAVA]} {ROOM}")
            stack.enter_context(keep("tidelake tests", brief=True))
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(Lake, "workers", workers)
        yield


@pytest.fixture(params=WORKERS)
def workers(request: pytest.FixtureRequest, spark_app: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who reads parts: Spark's workers, as where an application runs already, or this process, as where none does and parts are small."""
    monkeypatch.setattr(f"{__name__}._HERE", [request.param == "this process"])
    return str(request.param)


@pytest.fixture(scope="session")
def small_hours(spark_app: None) -> None:
    """This process reads parts, as it does in small hours; Spark is up for what else needs it. Tests of rules want no more."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Spark's workers read parts for tests that ask for them alone, whatever ran before."""
    used = getattr(item, "fixturenames", ())
    _HERE[0] = "small_hours" in used or "spark_app" not in used


_HERE = [True]  # whether this process reads small parts
_NUMBERS = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses the S3 server or Spark is marked so; its files come first, else one process works on the last of them alone."""
    for item in items:
        used = getattr(item, "fixturenames", ())
        if "s3" in used:
            item.add_marker(pytest.mark.s3)
        if "spark_app" in used:
            item.add_marker(pytest.mark.spark)
    slow = {item.path for item in items if any(item.iter_markers("spark"))}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collectstart() -> None:
    """Collecting makes ten thousand tests and no garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays, too."""
    gc.freeze()
    gc.enable()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What a file imported stays, so the garbage collector need not visit it again: visiting was a seventh of the work of a process."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    """Everything is visited once more at the end, as libraries expect that look for what they leaked."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many vectors of every protocol were understood; in the process that gathers what others ran."""
    from tests.vectors.table import lines

    table = list(lines(terminalreporter.stats))
    if table:
        terminalreporter.section("vectors")
        for line in table:
            terminalreporter.write_line(line)
