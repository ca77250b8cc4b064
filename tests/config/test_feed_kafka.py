"""What feed.toml says of Kafka: live topics, and the archiver that follows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.feed_texts import ENVIRONMENT, HEAD, LAKE, SECRET, loaded, refused
from tidelake.config.feed import load_feed, unset_variables


def test_a_feed_of_live_topics_passes_settings_on_to_the_client_and_shows_none_of_them(tmp_path: Path) -> None:
    text = '[source]\nkind = "kafka"\nuri = "b1:9092, b2:9092"\n[source.kafka]\nsecurity.protocol = "SASL_SSL"\n'
    text += '"sasl.password" = "${PASSWORD}"\nsasl.username = "u"\nsocket.keepalive.enable = true\n'
    feed = loaded(tmp_path, HEAD + text + LAKE)
    assert (feed.source.kind, feed.source.uri, feed.source.layout) == ("kafka", "b1:9092, b2:9092", None)
    password = {"sasl.password": SECRET, "sasl.username": "u"}
    assert feed.source.kafka == {"security.protocol": "SASL_SSL", "socket.keepalive.enable": True} | password
    assert SECRET not in repr(feed)
    assert unset_variables(loaded(tmp_path, HEAD + text + LAKE, expand=False), {}) == ["PASSWORD"]


ARCHIVER = '[source]\nuri = "s3://archive/${STAGE}"\nlayout = "canonical"\n[source.archiver]\nservers = "${BROKERS}"\n'


def test_the_archiver_s_section_is_expanded_where_it_archives_and_nowhere_else(tmp_path: Path) -> None:
    text = ARCHIVER + '[source.archiver.kafka]\n"sasl.password" = "${PASSWORD}"\nsecurity.protocol = "SASL_SSL"\n' + LAKE
    archiver = loaded(tmp_path, HEAD + text).source.archiver
    assert archiver is not None
    assert (archiver.servers, archiver.roll, archiver.kafka["sasl.password"]) == ("${BROKERS}", 300, "${PASSWORD}")
    assert refused(tmp_path, HEAD + text, archiving=True).startswith("source.archiver.servers: the environment has no BROKERS; set BROKERS")
    feed = load_feed(tmp_path, "shop", ENVIRONMENT | {"BROKERS": "b1:9092"}, archiving=True)
    assert feed.source.archiver is not None
    assert feed.source.archiver.servers == "b1:9092"
    assert feed.source.archiver.kafka == {"sasl.password": SECRET, "security.protocol": "SASL_SSL"}
    assert SECRET not in repr(feed)
    assert unset_variables(loaded(tmp_path, HEAD + text, expand=False), {}) == ["BROKERS", "PASSWORD", "STAGE"]


@pytest.mark.parametrize(("text", "seconds"), [("30 seconds", 30), ("1 minute", 60), ("5minutes", 300), ("2 hours", 7200)])
def test_the_archiver_s_objects_are_closed_after_a_time_with_its_unit(tmp_path: Path, text: str, seconds: int) -> None:
    archiver = loaded(tmp_path, f'{HEAD}{ARCHIVER}roll = "{text}"\n{LAKE}').source.archiver
    assert archiver is not None
    assert archiver.roll == seconds


ROLL = 'source.archiver.roll: a number and seconds, minutes or hours, like "5 minutes"'


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"${BROKERS}"', '"b1"', "source.archiver.servers: brokers, host:port,host:port (found 'b1')"),
        ('servers = "${BROKERS}"\n', "", "source.archiver.servers: missing"),
        ("servers", "brokers", "source.archiver.servers: missing; source.archiver.brokers: unknown key; allowed: servers, roll, kafka"),
        ('servers = "${BROKERS}"', 'servers = "${BROKERS}"\nroll = 5', f"{ROLL} (found 5)"),
        ('servers = "${BROKERS}"', 'servers = "${BROKERS}"\nroll = "0 minutes"', f"{ROLL} (found '0 minutes')"),
        (
            'servers = "${BROKERS}"',
            'servers = "${BROKERS}"\nkafka.enable.auto.commit = true',
            "source.archiver.kafka: enable.auto.commit cannot be set: offsets are committed after their messages are durable",
        ),
        (
            "canonical",
            "aiven-jsonl",
            'source: [source.archiver] writes layout = "canonical", which needs no `template` and no `hours`',
        ),
        (
            '"canonical"',
            '"canonical"\ntemplate = "x"',
            'source: [source.archiver] writes layout = "canonical", which needs no `template` and no `hours`',
        ),
        (
            'uri = "s3://archive/${STAGE}"\nlayout = "canonical"',
            'uri = "b1:9092"\nkind = "kafka"',
            'source: [source.archiver] is for kind = "archive": it writes one; live topics are landed without an archive',
        ),
    ],
)
def test_a_mistake_in_the_archiver_s_section_is_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = ARCHIVER.replace(old, new)
    assert text != ARCHIVER
    assert refused(tmp_path, HEAD + text + LAKE) == said
