"""Four hours of a producer: two in peace, one in which it is killed, one in which the broker is. The lake is compared after each."""

from __future__ import annotations

from random import Random

from tests.io.kafka_broker import KafkaBroker
from tests.upstream.landed import LandedFeed
from tests.upstream.process import Process
from tests.upstream.topic import Hours
from tests.upstream.workload import Workload


def play(
    work: Workload, hours: Hours, feed: LandedFeed, producer: Process, broker: KafkaBroker, random: Random, *, named: bool, least: int = 0
) -> None:
    """Let it happen.

    named: changes have names, so that tables without a key are equal after repeats, too; least: an hour has more messages than this.
    """
    work.begin()
    _hour(work, hours, producer, least)
    feed.run(0)
    feed.equal(work)
    _hour(work, hours, producer, least)
    feed.run(1, killed=random)
    feed.equal(work)
    for _ in range(3):
        work.transact(15)
        producer.kill()
        work.transact(5)
        producer.start()
    _hour(work, hours, producer, least)
    feed.run(2)
    feed.equal(work, keyed=not named)
    work.transact(10)
    broker.kill()
    work.transact(10)
    broker.start()
    _hour(work, hours, producer, least)
    feed.run(3)
    feed.equal(work, keyed=not named)


def _hour(work: Workload, hours: Hours, producer: Process, least: int) -> None:
    """Changes and statements until the producer has sent them all, as an hour of the topic."""
    work.transact(30)
    work.alter(4)
    work.transact(30)
    hours.quiet(producer, work.mark())
    assert hours.close() > least
