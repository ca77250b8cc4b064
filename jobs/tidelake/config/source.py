"""The location of a feed's messages: [source] of feed.toml."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from tidelake.config.client_settings import flat_settings
from tidelake.errors import ConfigError
from tidelake.tso import parse_hour

LayoutName = Literal[
    "aiven-jsonl",
    "aiven-jsonl-string",
    "aiven-jsonl-nested",
    "aiven-json",
    "aiven-csv",
    "aiven-avro",
    "aiven-parquet",
    "confluent-json",
    "confluent-json-string",
    "confluent-json-nested",
    "confluent-avro",
    "confluent-parquet",
    "confluent-bin",
    "confluent-bin-open",
    "lenses-json",
    "lenses-avro",
    "lenses-parquet",
    "kcat",
    "secor",
    "canonical",
    "storage-sink",
]  # one per module of archives/, which asserts that both lists are equal
ClosedBy = Literal["next-offset", "resolved", "quiet"]
Hours = Literal["path", "timestamps"]
DateSeparator = Literal["none", "year", "month", "day"]

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")  # reference to an environment variable in feed.toml
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SIZE = re.compile(r"([1-9][0-9]{0,5}) ?(MB|GB)")
_TIME = re.compile(r"([1-9][0-9]{0,4}) ?(second|minute|hour)s?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_SERVERS = re.compile(r"[^\s/,@]+:\d+( *, *[^\s/,@]+:\d+)*")
_NOT_KAFKAS = {  # settings of Kafka's client that would break landing's guarantees
    "bootstrap.servers": "it is source.uri, or servers of [source.archiver]",
    "metadata.broker.list": "the servers are source.uri, or servers of [source.archiver]",
    "enable.auto.commit": "offsets are committed after their messages are durable",
    "enable.auto.offset.store": "offsets are committed after their messages are durable",
    "auto.commit.interval.ms": "offsets are committed after their messages are durable",
    "auto.offset.reset": "reading continues where it ended; missing offsets are a finding",
    "isolation.level": "only committed messages are read",
    "enable.partition.eof": "the ends of partitions must be known",
    "plugin.library.paths": "it would load code into Tidelake",
}


def check_storage(uri: str | None, key: str) -> None:
    """Raise ValueError for a storage URI whose scheme Tidelake does not read. The message leaves the URI out, which may hold a secret."""
    found = _SCHEME.match(uri or "")
    if found and found[1] not in ("s3", "file"):
        allowed = "s3://bucket/prefix (any S3-compatible store: set AWS_ENDPOINT_URL_S3), a folder's path, or file:///folder"
        raise ValueError(f"{key}: {found[1]}:// is not read; allowed: {allowed}")


def _bytes(value: Any) -> Any:
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError('a number and MB or GB, like "256 MB"')
    return int(found[1]) << (20 if found[2] == "MB" else 30)


def _seconds(value: Any) -> Any:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError('a number and seconds, minutes or hours, like "5 minutes"')
    return int(found[1]) * _SECONDS[found[2]]


def _client_settings(value: Any) -> Any:
    return flat_settings(value, _refuse_landings)


def _refuse_landings(name: str) -> None:
    if name in _NOT_KAFKAS:
        raise ValueError(f"{name} cannot be set: {_NOT_KAFKAS[name]}")


ClientSettings = Annotated[dict[str, Any], BeforeValidator(_client_settings)]


class Archiver(BaseModel):
    """Settings of `tidelake archive`, which writes the archive that the source reads: [source.archiver]. docs/archiver.md.

    servers: the topics' brokers, host:port,…; roll: seconds after which an object that is not full is closed; kafka: client settings, as
    for live topics.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: str = Field(repr=False)
    roll: Annotated[int, BeforeValidator(_seconds)] = 300
    kafka: ClientSettings = Field(default={}, repr=False)

    @field_validator("servers")
    @classmethod
    def _are_brokers(cls, servers: str) -> str:
        if not VARIABLE.search(servers) and not _SERVERS.fullmatch(servers):
            raise ValueError("brokers, host:port,host:port")
        return servers


class Source(BaseModel):
    """Location of the messages: an archive of Kafka objects, or live topics, whose uri is `host:port,…`.

    hours: what decides the hour of an archived message: its object's path or, where paths have none, its timestamp (docs/layouts.md).
    first_hour: the feed's first hour, like 2026-01-05T10 (UTC): its first run must begin with it, and no hour before it is run.
    kafka: settings of Kafka's client for live topics (librdkafka's CONFIGURATION.md).
    claim_check: location of the changefeed's claim-check files.
    in_flight: bytes of messages that landing may hold in memory before they are durable in the lake.
    closed_by, quiet_minutes: when an hour is complete (docs/landing.md); minutes since its newest object, for an archive.
    archiver: settings for `tidelake archive` to write the archive.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["archive", "kafka"] = "archive"
    uri: str = Field(repr=False)
    layout: LayoutName | None = None
    template: str | None = None
    hours: Hours = "path"
    first_hour: str | None = None
    claim_check: str | None = Field(default=None, repr=False)
    date_separator: DateSeparator = "day"  # date separator of the storage sink
    tags: bool = False  # Confluent's s3.object.tagging: objects without tags for their offsets are refused
    in_flight: Annotated[int, BeforeValidator(_bytes)] = 256 << 20
    closed_by: ClosedBy | None = None
    quiet_minutes: Annotated[int, Field(strict=True, ge=0, le=10_000)] | None = None
    kafka: ClientSettings = Field(default={}, repr=False)
    archiver: Archiver | None = None

    @field_validator("first_hour")
    @classmethod
    def _is_an_hour(cls, hour: str | None) -> str | None:
        if hour is not None:
            try:
                parse_hour(hour)
            except ConfigError as e:
                raise ValueError("an hour (UTC), like 2026-01-05T10") from e
        return hour

    @model_validator(mode="after")
    def _is_an_archive_with_a_layout_or_live_topics(self) -> Source:
        check_storage(self.claim_check, "claim_check")
        if self.kind == "kafka":
            return self._live()
        check_storage(self.uri, "uri")
        if self.layout is None:
            raise ValueError("an archive needs `layout`")
        if self.kafka:
            raise ValueError('[source.kafka] is for kind = "kafka"')
        if self.tags and not self.layout.startswith("confluent-"):
            raise ValueError("only Confluent's connector writes `tags`")
        if self.hours == "timestamps" and self.layout == "storage-sink":
            raise ValueError("`hours`: the storage sink's hours follow from commit ts; leave it out")
        if self.archiver and (self.hours == "timestamps" or self.layout != "canonical" or self.template):
            raise ValueError('[source.archiver] writes layout = "canonical", which needs no `template` and no `hours`')
        return self

    def _live(self) -> Source:
        if self.archiver:
            raise ValueError('[source.archiver] is for kind = "archive": it writes one; live topics are landed without an archive')
        if self.layout or self.template or self.tags or self.hours == "timestamps":
            raise ValueError('`layout`, `template`, `hours` and `tags` are for archives; kind = "kafka" uses none of them')
        if not VARIABLE.search(self.uri) and not _SERVERS.fullmatch(self.uri):
            raise ValueError("for live topics, `uri` lists the brokers, host:port,host:port")
        return self
