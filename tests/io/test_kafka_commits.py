"""Offsets that are recorded in a consumer group while its brokers go and come back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import pytest

from tests.io.kafka_broker import START_SECONDS, KafkaBroker
from tests.land.live import committed
from tidelake.errors import StorageError
from tidelake.io import kafka as client
from tidelake.io.kafka import Topics


def test_a_commit_that_is_asked_for_while_the_broker_restarts_is_carried_through(
    kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_SECONDS", 2 * START_SECONDS)  # a busy machine starts a broker slowly
    with Topics(kafka.servers, {}, topic) as topics, ThreadPoolExecutor(1) as pool:
        topics.commit({(topic, 0): 1})
        kafka.kill()
        started = pool.submit(kafka.start)
        topics.commit({(topic, 0): 2})
        started.result()
    assert committed(kafka, topic, topic) == 2


def test_commits_while_brokers_are_away_say_so_and_those_after_are_recorded(
    kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.2)  # so requests are under way as the broker goes, and as it comes
    groups, back = [f"{topic}-{number}" for number in range(3)], Event()
    failed: dict[str, list[str]] = {group: [] for group in groups}
    with ExitStack() as opened:
        for group in groups:
            opened.enter_context(Topics(kafka.servers, {}, group)).commit({(topic, 0): 1})

    def commit(group: str) -> None:
        while True:
            returned = back.is_set()
            try:
                with Topics(kafka.servers, {}, group) as topics:
                    topics.commit({(topic, 0): 2})
            except StorageError as e:
                failed[group].append(str(e))
                continue
            if returned:
                return

    with ThreadPoolExecutor(len(groups)) as pool:
        running = [pool.submit(commit, group) for group in groups]
        kafka.kill()
        try:
            while not all(len(said) >= 3 for said in failed.values()):
                assert not any(future.done() for future in running)
        finally:
            kafka.start()
            back.set()
    assert {said.partition(": ")[0] for several in failed.values() for said in several} == {"NO_BROKER"}
    assert [committed(kafka, group, topic) for group in groups] == [2, 2, 2]
