"""The settings of a feed, which is one changefeed's output and its destination: schemas/<feed>/feed.toml.

DAGs import this module at parse time, so it reads nothing but the feed's folder.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from tidelake.config.lake_config import LakeConfig
from tidelake.config.notify import Notifiers, Notify
from tidelake.config.options import SinkOptions
from tidelake.config.places import refuse_relative
from tidelake.config.policy import ColumnPolicy, Policy, ValueRules
from tidelake.config.retention import Maintenance
from tidelake.config.source import VARIABLE, Archiver, ClosedBy, Source, check_storage
from tidelake.config.table_name import by_table
from tidelake.config.variables import expanded
from tidelake.errors import ConfigError

Protocol = Literal[
    "open", "craft", "avro", "canal-json", "canal", "debezium", "maxwell", "csv", "simple-json", "simple-avro"
]  # one per module of protocols/
UNDATED = frozenset({"canal", "maxwell"})  # protocols whose rows carry no commit ts
EXTENDED = frozenset({"canal-json", "debezium"})  # protocols that carry commit ts and resolved ts with the TiDB extension
CLAIM_CHECK = frozenset({"open", "canal-json", "simple-json", "simple-avro"})  # protocols whose large rows may be in claim-check files
_QUIET = {"next-offset": 0, "resolved": 0, "quiet": 15}  # default quiet_minutes

_RULES = tuple(f.name for f in fields(ValueRules))
_ARCHIVER = "source.archiver"
_NOTIFY = "notify"  # what it names is of Airflow, which sends the messages; the stages need none of it
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_OFFSET = re.compile(r"[+-](0[0-9]|1[0-4]):[0-5][0-9]")
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]+")  # names that Kafka allows


def _counts(value: Any) -> Any:
    numbers = value.values() if isinstance(value, dict) else [value]
    if not numbers or not all(type(n) is int and n > 0 for n in numbers):
        raise ValueError('the number of partitions of every topic, or a table "topic" = number')
    return value


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Watermark(_Section):
    """Source of the resolved ts (docs/architecture.md 8.1). metadata: the sink's checkpoint, which landing waits for; offsets: no resolved
    ts, the closed hour is the cut (docs/offsets.md).

    one_partition_per, with offsets: the unit whose changes in one hour all come from one partition. none: no unit, cuts are incomplete.
    """

    source: Literal["messages", "checkpoints", "metadata", "offsets"] = Field(alias="from", default="messages")
    uri: str | None = Field(default=None, repr=False)
    one_partition_per: Literal["table", "key", "none"] = "table"

    @model_validator(mode="after")
    def _is_there(self) -> Watermark:
        if self.source == "checkpoints" and not self.uri:
            raise ValueError('from = "checkpoints" needs `uri`, the recorded checkpoints')
        if self.source != "offsets" and "one_partition_per" in self.model_fields_set:
            raise ValueError('one_partition_per goes with from = "offsets"')
        check_storage(self.uri, "uri")
        return self


class Avro(_Section):
    """Avro schemas: a JSON file {id: schema text} or a folder of <id>.avsc, relative to the feed's folder; a registry URL; or
    glue://<region>.
    """

    schemas: str = Field(repr=False)  # a registry's URL may hold a password


class TablePolicy(_Section):
    """Settings of one table, under [tables."db.table"]."""

    buckets: Annotated[int, Field(strict=True, ge=1, le=4096)] | None = None


class Feed(_Section):
    """Settings of one feed. `name` and `folder` come from the file's path, all other members from the file.

    partitions: number of partitions of every topic in Kafka; 1 for a storage sink, which has none.
    """

    name: str
    folder: Path
    protocol: Protocol
    topics: tuple[str, ...]
    partitions: Annotated[int | dict[str, int], BeforeValidator(_counts)]
    time_zone: str = "UTC"
    options: SinkOptions = SinkOptions()
    source: Source
    watermark: Watermark = Watermark()
    avro: Avro | None = None
    lake: LakeConfig
    policy: Policy = Policy()
    maintenance: Maintenance = Maintenance()
    notify: Notifiers = ()
    columns: dict[str, dict[str, ColumnPolicy]] = {}
    tables: dict[str, TablePolicy] = {}

    @model_validator(mode="before")
    @classmethod
    def _a_storage_sink_has_no_partitions(cls, values: Any) -> Any:
        source = values.get("source") if isinstance(values, dict) else None
        layout = source.get("layout") if isinstance(source, dict) else getattr(source, "layout", None)
        return {"partitions": 1} | values if layout == "storage-sink" else values

    @field_validator("topics")
    @classmethod
    def _names_or_one_pattern(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        names = [VARIABLE.sub("x", t) for t in topics]
        if len(topics) == 1 and len(topics[0]) > 2 and topics[0].startswith("/") and topics[0].endswith("/"):
            try:
                re.compile(topics[0][1:-1])
            except re.error as e:
                raise ValueError(f"not a regular expression: {e}") from e
        elif not topics or len(set(topics)) < len(topics) or not all(map(_TOPIC.fullmatch, names)):
            raise ValueError('different names of topics, or one pattern written "/…/"')
        return topics

    @field_validator("columns", "tables")
    @classmethod
    def _are_of_tables(cls, sections: dict[str, Any]) -> dict[str, Any]:
        return by_table(sections)

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, time_zone: str) -> str:
        if time_zone == "UTC" or _OFFSET.fullmatch(time_zone) or VARIABLE.fullmatch(time_zone):
            return time_zone
        try:
            ZoneInfo(time_zone)
        except (ValueError, OSError, ZoneInfoNotFoundError) as e:
            raise ValueError("a name like Asia/Shanghai, or an offset like +08:00") from e
        return time_zone

    @model_validator(mode="after")
    def _every_topic_has_partitions(self) -> Feed:
        if self.topic_pattern is None and not any(map(VARIABLE.search, self.topics)):
            for topic in self.topics:
                self.partitions_of(topic)
        return self

    @model_validator(mode="after")
    def _sections_fit_the_protocol(self) -> Feed:
        if self.protocol == "avro" and self.avro is None:
            raise ValueError("protocol avro needs [avro] schemas")
        if self.protocol == "avro" and self.watermark.source == "messages" and not self.options.avro_enable_watermark:
            raise ValueError('Avro messages carry no resolved ts: set [watermark] from = "checkpoints"')
        if self.protocol in UNDATED and self.watermark.source != "offsets":
            raise ValueError(f'protocol {self.protocol}: its rows carry no commit ts: set [watermark] from = "offsets" (docs/offsets.md)')
        if self.source.claim_check is not None and self.protocol not in CLAIM_CHECK:
            raise ValueError(f"source.claim_check: {self.protocol} messages name no files; only {', '.join(sorted(CLAIM_CHECK))} do")
        return self

    @model_validator(mode="after")
    def _masks_can_be_made(self) -> Feed:
        for table, columns in self.columns.items():
            for column, rules in columns.items():
                if rules.mask == "hash" and self.policy.mask_key is None:
                    raise ValueError(f'columns.{table}.{column}.mask: "hash" needs a key: [policy] mask_key = "${{NAME}}"')
                if rules.mask and rules.mask.startswith("truncate") and self.protocol == "debezium":
                    raise ValueError(f"columns.{table}.{column}.mask: no truncate for Debezium, whose messages may lack column types")
        return self

    @model_validator(mode="after")
    def _no_gap_passes_unseen(self) -> Feed:
        if self.watermark.source != "messages" and self.policy.on_finding.get("GAP") == "ignore":
            what = "the closed hour advances" if self.watermark.source == "offsets" else "recorded checkpoints advance"
            raise ValueError(f"policy.on_finding: GAP should be 'block' or 'warn', as {what} past it; found 'ignore'")
        return self

    @model_validator(mode="after")
    def _is_closed_by_what_there_is(self) -> Feed:
        if self.source.closed_by == "resolved" and self.watermark.source != "messages":
            raise ValueError('source.closed_by: "resolved" needs the resolved ts in the messages: [watermark] from = "messages"')
        return self

    @model_validator(mode="after")
    def _fits_the_storage_sink(self) -> Feed:
        sink, options = self.source.layout == "storage-sink", self.options
        if sink != (self.watermark.source == "metadata"):
            raise ValueError('[watermark] from = "metadata" goes with layout = "storage-sink", and only with it')
        if not sink:
            return self
        if self.partitions != 1:
            raise ValueError(f"partitions: a storage sink has none of Kafka's: leave it out (found {self.partitions!r})")
        if self.protocol == "csv" and not (
            options.include_commit_ts and options.quote == '"' and (options.terminator or "\n").endswith("\n")
        ):
            raise ValueError("CSV files of the storage sink need include_commit_ts, double quotes and a terminator that ends in a newline")
        if self.protocol == "canal-json" and not options.enable_tidb_extension:
            raise ValueError("Canal-JSON files of the storage sink need enable_tidb_extension: their lines carry no commit ts without it")
        return self

    @property
    def by_offsets(self) -> bool:
        """Whether changes are ordered by their offsets (docs/offsets.md)."""
        return self.watermark.source == "offsets"

    @property
    def of_tidb(self) -> bool:
        """Whether the source is TiDB for certain: rows have commit ts. Feeds ordered by their offsets may be of MySQL or MariaDB."""
        return not self.by_offsets

    @property
    def by_arrival(self) -> bool:
        """Whether changes of a key at one commit ts keep their order of arrival, because their kinds do not order them."""
        return self.watermark.source in ("checkpoints", "offsets")

    @property
    def closed_by(self) -> ClosedBy:
        """The rule that closes an hour. Default: the strongest rule that listings alone can judge.

        Every partition keeps receiving messages only where the messages carry the resolved ts. "resolved" is a stronger rule, but it reads
        messages and holds hours back while the changefeed lags (docs/landing.md).
        """
        return self.source.closed_by or ("next-offset" if self.watermark.source == "messages" else "quiet")

    @property
    def quiet_minutes(self) -> int:
        """Minutes that an hour's newest object must be old before the hour may be complete."""
        return _QUIET[self.closed_by] if self.source.quiet_minutes is None else self.source.quiet_minutes

    @property
    def topic_pattern(self) -> re.Pattern[str] | None:
        """The compiled topic pattern, None if topics are given by name."""
        return re.compile(first[1:-1]) if (first := self.topics[0]).startswith("/") else None

    def check_hour(self, hour: str) -> None:
        """Raise ConfigError (BEFORE_FIRST_HOUR) for an hour (`2026-01-05T10`) before `[source] first_hour`."""
        first = self.source.first_hour
        if first is not None and hour < first:
            raise ConfigError(
                f"hour {hour} of feed {self.name} is before its first hour, {first}",
                code="BEFORE_FIRST_HOUR",
                remedy="run hours from there on; `first_hour` under [source] in feed.toml sets where the feed starts",
            )

    def partitions_of(self, topic: str) -> int:
        """Return the topic's number of partitions. Raises ConfigError for a topic that is missing in `partitions`."""
        if isinstance(self.partitions, int):
            return self.partitions
        try:
            return self.partitions[topic]
        except KeyError as e:
            raise ConfigError(
                f"{self.folder / 'feed.toml'}: partitions: topic {topic!r} is missing", remedy="add it, or give one number for all topics"
            ) from e

    def namespace_of(self, database: str) -> str:
        """Return the lake's namespace for a database."""
        return self.lake.namespace.format(feed=self.name.replace("-", "_"), database=database)

    def _column_policies(self) -> dict[tuple[str, str], ColumnPolicy]:
        if self.__dict__.get("_known", (None,))[0] is not self.columns:  # a copy of the model may have others
            self.__dict__["_known"] = self.columns, {(t.lower(), c.lower()): p for t, of in self.columns.items() for c, p in of.items()}
        return self.__dict__["_known"][1]  # type: ignore[no-any-return]

    def rules_of(self, tables: Iterable[str], columns: Iterable[str]) -> ValueRules:
        """Return the rules of a column. tables, columns: present and former names, in any case; tables as table_name writes them."""
        names, known = [(t.lower(), c.lower()) for t, c in product(tables, columns)], self._column_policies()
        layers = [*(p for name in names if (p := known.get(name))), self.policy]
        said: dict[str, Any] = {n: next((v for p in layers if (v := getattr(p, n, None)) is not None), None) for n in _RULES}
        return ValueRules(**said)


def load_feed(
    schemas: Path, name: str, environment: Mapping[str, str] | None = None, *, expand: bool = True, archiving: bool = False
) -> Feed:
    """Read schemas/<name>/feed.toml. With `expand`, replace `${NAME}` from the environment; in [source.archiver] only with `archiving`,
    because the stages need neither Kafka nor its credentials; in [[notify]] never.

    Raises ConfigError: no such feed, invalid TOML (with the line), wrong or unknown keys, an unset variable.
    """
    path = schemas / name / "feed.toml"
    if not path.is_file():
        known = ", ".join(feed_names(schemas)) or "none"
        raise ConfigError(f"no feed {name!r} in {schemas}: {path} does not exist", remedy=f"existing feeds: {known}")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{path}: the folder's name {name!r} is the feed's name", remedy="use a-z, 0-9, _ and -, a letter first")
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as e:
        raise ConfigError(f"{path}: not TOML: {e}") from e
    _refuse_a_key(content, path)
    left = frozenset({_NOTIFY} if archiving else {_NOTIFY, _ARCHIVER})
    values = expanded(content, os.environ if environment is None else environment, str(path), left=left) if expand else content
    ours = {"name": name, "folder": path.parent}
    if wrong := sorted(ours.keys() & values.keys()):
        raise ConfigError(f"{path}: {wrong[0]}: unknown key; allowed: {', '.join(_keys(()))}")
    try:
        feed = Feed(**(values | ours))
    except ValidationError as e:
        raise ConfigError(f"{path}: " + "; ".join(_sentence(dict(error), content) for error in e.errors())) from None
    refuse_relative(path, values, content)
    return feed


def _refuse_a_key(content: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError for a mask key in the file: it must be a variable. The message does not repeat the key."""
    policy = content.get("policy")
    key = policy.get("mask_key") if isinstance(policy, dict) else None
    if key is not None and not (isinstance(key, str) and VARIABLE.fullmatch(key)):
        raise ConfigError(f'{path}: policy.mask_key: should be "${{NAME}}", a variable of the environment that holds the key')


def feed_names(schemas: Path) -> list[str]:
    """Return the names of the feeds in a schemas folder, sorted."""
    return sorted(p.parent.name for p in schemas.glob("*/feed.toml"))


def existing_feeds(schemas: Path) -> list[str]:
    """Return the names of the feeds in a schemas folder, sorted. Raises ConfigError if there is none."""
    if names := feed_names(schemas):
        return names
    raise ConfigError(f"{schemas} has no */feed.toml", remedy="set TIDELAKE_SCHEMAS to the folder of the feeds")


def chosen_feeds(schemas: Path, feed: str | None) -> list[str]:
    """Return the feeds of a command: the named one, or all. Raises ConfigError if there is none."""
    names = feed_names(schemas)
    if not names or (feed is not None and feed not in names):
        what = f"no feed {feed!r} in {schemas}" if feed is not None else f"no feeds in {schemas}"
        known = f"existing feeds: {', '.join(names)}" if names else "a feed is a folder with a feed.toml"
        raise ConfigError(what, remedy=f"{known}; or give --schemas DIR")
    return [feed] if feed is not None else names


def unset_variables(feed: Feed, environment: Mapping[str, str]) -> list[str]:
    """Return the variables that an unexpanded feed names and the environment lacks, sorted."""
    text = feed.model_dump_json()
    return sorted({name for name in VARIABLE.findall(text) if name not in environment})


def _sentence(error: dict[str, Any], content: Any) -> str:
    """Describe one error with the value as written in the file, because the values of variables may be secrets."""
    where = error["loc"]
    key = ".".join(str(part) for part in where) or "the file"
    if error["type"] == "missing":
        return f"{key}: missing"
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key; allowed: {', '.join(_keys(where[:-1]))}"
    for part in where:
        content = content[part]
    found = "" if isinstance(content, dict) and key != "partitions" else f" (found {content!r})"
    said = _SAID.get(error["type"], error["msg"].removeprefix("Value error, "))
    return f"{key}: {said}{found}"


_SAID = {"model_type": "should be a table", "dict_type": "should be a table", "tuple_type": "should be a list"}


def _keys(section: tuple[str | int, ...]) -> list[str]:
    """Return the keys that a section of the file may have."""
    models: dict[str | int, type[BaseModel]] = {
        "options": SinkOptions,
        "source": Source,
        "watermark": Watermark,
        "avro": Avro,
        "lake": LakeConfig,
        "policy": Policy,
        "maintenance": Maintenance,
        "notify": Notify,
        "columns": ColumnPolicy,
        "tables": TablePolicy,
    }
    inner = Archiver if section[:2] == ("source", "archiver") else models[section[0]] if section else Feed
    fields = inner.model_fields
    return [field.alias or name for name, field in fields.items() if section or name not in ("name", "folder")]
