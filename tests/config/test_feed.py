"""feed.toml → Feed, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tests.config.feed_texts import ENVIRONMENT, LAKE, PLAIN, SECRET, SOURCE, loaded, refused, written
from tidelake.config.feed import load_feed, unset_variables
from tidelake.config.finding_kinds import KINDS
from tidelake.config.options import SinkOptions
from tidelake.config.source import LayoutName
from tidelake.errors import ConfigError
from tidelake.protocols import protocol_names

SERVERS = "for live topics, `uri` lists the brokers, host:port,host:port"


def test_a_feed_with_the_least_that_must_be_said_has_the_documented_defaults(tmp_path: Path) -> None:
    feed = loaded(tmp_path, PLAIN)
    assert (feed.name, feed.folder) == ("shop", tmp_path / "shop")
    assert (feed.protocol, feed.topics, feed.partitions, feed.time_zone) == ("open", ("shop.open",), 3, "UTC")
    assert feed.options == SinkOptions()
    assert (feed.source.kind, feed.source.uri, feed.source.layout) == ("archive", "s3://archive/prod/open", "aiven-jsonl")
    assert (feed.watermark.source, feed.watermark.uri) == ("messages", None)
    assert (feed.lake.catalog, feed.lake.namespace) == (f"jdbc:postgresql://u:{SECRET}@db/lake", "{database}")
    policy = feed.policy
    assert (policy.on_reject, policy.on_gap, policy.ddl, policy.ignore_ddl, policy.zero_date) == ("block", "block", "evolve", (), "null")
    assert (policy.checksum, policy.handle_only) == ("warn", "quarantine")
    assert (policy.wide_decimal, policy.invalid_values, policy.mask_at, policy.mask_key) == ("string", "reject", "decode", None)
    assert (feed.avro, feed.columns, feed.tables) == (None, {}, {})


def test_ticdc_s_defaults_are_the_options_defaults() -> None:
    o = SinkOptions()
    assert (o.max_batch_size, o.max_message_bytes, o.open_output_old_value) == (16, 10 * 1024 * 1024, True)
    assert (o.avro_decimal_handling_mode, o.avro_bigint_unsigned_handling_mode) == ("precise", "long")
    assert (o.large_message_handle_option, o.large_message_handle_compression) == ("none", "none")
    assert (o.delimiter, o.quote, o.null, o.terminator, o.binary_encoding_method) == (",", '"', "\\N", "\r\n", "base64")
    assert [name for name, value in o.model_dump().items() if value is True] == ["open_output_old_value", "debezium_output_old_value"]


def test_every_section_is_read(tmp_path: Path) -> None:
    text = """
protocol = "avro"
topics = ["/cdc_.*/"]
partitions = {cdc_a = 2}
time_zone = "Asia/Shanghai"
[options]
enable_tidb_extension = true
max_batch_size = 64
[source]
uri = "/archive"
layout = "aiven-avro"
[watermark]
from = "checkpoints"
uri = "/archive/checkpoints.json"
[avro]
schemas = "schemas.json"
[lake]
uri = "/lake"
namespace = "{feed}_{database}"
[policy]
on_reject = "publish_incomplete"
on_gap = "warn"
on_finding = {GAP = "block", LATE_FILE = "ignore"}
ddl = "strict"
ignore_ddl = [415508856908021766, 7]
zero_date = "reject"
handle_only = "accept"
[columns."shop.orders".paid_at]
zero_date = "string"
[tables."shop.orders"]
buckets = 16
"""
    feed = loaded(tmp_path, text)
    assert feed.topic_pattern is not None
    assert feed.topic_pattern.pattern == "cdc_.*"
    assert (feed.partitions_of("cdc_a"), feed.time_zone) == (2, "Asia/Shanghai")
    assert (feed.options.enable_tidb_extension, feed.options.max_batch_size) == (True, 64)
    assert (feed.watermark.source, feed.watermark.uri) == ("checkpoints", "/archive/checkpoints.json")
    assert feed.avro is not None
    assert feed.avro.schemas == "schemas.json"
    assert feed.policy.ignore_ddl == (415508856908021766, 7)
    assert (feed.policy.on_reject, feed.policy.on_gap, feed.policy.ddl) == ("publish_incomplete", "warn", "strict")
    assert feed.policy.on_finding == {"GAP": "block", "LATE_FILE": "ignore"}
    assert feed.policy.handle_only == "accept"
    assert feed.columns["shop.orders"]["paid_at"].zero_date == "string"
    assert feed.tables["shop.orders"].buckets == 16
    assert feed.namespace_of("shop") == "shop_shop"


def test_the_place_of_claim_check_files_is_for_protocols_that_name_them(tmp_path: Path) -> None:
    place = '[source]\nclaim_check = "s3://claims/${STAGE}"\n'
    assert loaded(tmp_path, PLAIN.replace("[source]\n", place)).source.claim_check == "s3://claims/prod"
    said = refused(tmp_path, PLAIN.replace("[source]\n", place).replace('"open"', '"craft"', 1))
    assert "source.claim_check: craft messages name no files; only canal-json, open, simple-avro, simple-json do" in said


def test_a_feed_s_dashes_become_underscores_in_its_namespace(tmp_path: Path) -> None:
    written(tmp_path, PLAIN + 'namespace = "{feed}_{database}"\n', "bazaar-open")
    assert load_feed(tmp_path, "bazaar-open", ENVIRONMENT).namespace_of("shop") == "bazaar_open_shop"


def test_a_feed_never_shows_where_its_secrets_may_be(tmp_path: Path) -> None:
    assert SECRET not in repr(loaded(tmp_path, PLAIN))
    assert SECRET not in repr(loaded(tmp_path, PLAIN + f'[avro]\nschemas = "https://u:{SECRET}@registry"\n'))


def test_names_without_a_pattern_are_no_pattern(tmp_path: Path) -> None:
    assert loaded(tmp_path, PLAIN).topic_pattern is None


SINK = """protocol = "canal-json"
topics = ["/shop[.].*/"]
[options]
enable_tidb_extension = true
[source]
uri = "s3://b/sink"
layout = "storage-sink"
[watermark]
from = "metadata"
[lake]
uri = "s3://b/lake"
"""


def test_a_storage_sink_has_no_partitions(tmp_path: Path) -> None:
    assert loaded(tmp_path, SINK).partitions == loaded(tmp_path, f"partitions = 1\n{SINK}").partitions == 1
    for wrong in ("3", '{"shop.orders" = 1}'):
        with pytest.raises(ConfigError, match=r"the file: partitions: a storage sink has none of Kafka's: leave it out \(found [3{]"):
            loaded(tmp_path, f"partitions = {wrong}\n{SINK}")


def test_an_unknown_topic_of_a_table_of_partitions_is_named(tmp_path: Path) -> None:
    feed = loaded(tmp_path, PLAIN.replace("partitions = 3", 'partitions = {"shop.open" = 3}'))
    assert feed.partitions_of("shop.open") == 3
    with pytest.raises(ConfigError, match=r"feed\.toml: partitions: topic 'other' is missing; add it, or give one number"):
        feed.partitions_of("other")


def test_variables_come_from_the_environment_and_only_where_wanted(tmp_path: Path) -> None:
    raw = loaded(tmp_path, PLAIN, expand=False)
    assert raw.source.uri == "s3://archive/${STAGE}/open"
    assert unset_variables(raw, {"STAGE": "x"}) == ["PASSWORD"]
    assert unset_variables(raw, {}) == ["PASSWORD", "STAGE"]
    assert unset_variables(raw, ENVIRONMENT) == []


def test_an_unset_variable_is_named_with_its_key(tmp_path: Path) -> None:
    written(tmp_path, PLAIN)
    with pytest.raises(ConfigError) as error:
        load_feed(tmp_path, "shop", {"STAGE": "prod"})
    assert str(error.value).endswith(
        "feed.toml: lake.catalog: the environment has no PASSWORD; set PASSWORD, or an Airflow connection that provides it"
    )


def test_a_variable_in_a_list_is_expanded(tmp_path: Path) -> None:
    assert loaded(tmp_path, PLAIN.replace('["shop.open"]', '["shop.${STAGE}"]')).topics == ("shop.prod",)


@pytest.mark.parametrize("topic", ["${TOPIC}", "/${TOPIC}_.*/"])
def test_an_unset_variable_in_a_topic_is_no_mistake_of_the_file(tmp_path: Path, topic: str) -> None:
    text = PLAIN.replace('["shop.open"]', f'["{topic}"]').replace("partitions = 3", "partitions = {a = 1}")
    assert loaded(tmp_path, text, expand=False).topics == (topic,)


ALL_KEYS = "protocol, topics, partitions, time_zone, options, source, watermark, avro, lake, policy, maintenance, notify, columns, tables"
PROTOCOLS = "protocol: Input should be 'open', " + ", ".join(map(repr, protocol_names()[1:-1])) + f" or {protocol_names()[-1]!r}"
PARTITIONS = 'partitions: the number of partitions of every topic, or a table "topic" = number'
TOPICS = 'topics: different names of topics, or one pattern written "/…/"'
ZONE = "time_zone: a name like Asia/Shanghai, or an offset like +08:00"
NAMESPACE = "lake.namespace: letters, digits, _ and -, {feed} and {database} are allowed"
MISTAKES = [
    # (what is replaced, by what, what is said)
    ("partitions = 3", "partitions = true", f"{PARTITIONS} (found True)"),
    ("partitions = 3", 'partitions = "3"', f"{PARTITIONS} (found '3')"),
    ("partitions = 3", "partitions = 3.0", f"{PARTITIONS} (found 3.0)"),
    ("partitions = 3", "partitions = 0", f"{PARTITIONS} (found 0)"),
    ("partitions = 3", "partitions = {}", f"{PARTITIONS} (found {{}})"),
    ("partitions = 3", 'partitions = {"shop.open" = "3"}', f"{PARTITIONS} (found {{'shop.open': '3'}})"),
    ("partitions = 3", "partitions = {other = 3}", "partitions: topic 'shop.open' is missing; add it, or give one number for all topics"),
    ("partitions = 3", "", "partitions: missing"),
    ('["shop.open"]', '"shop.open"', "topics: should be a list (found 'shop.open')"),
    ('["shop.open"]', "[7]", "topics.0: Input should be a valid string (found 7)"),
    ('["shop.open"]', "[]", f"{TOPICS} (found [])"),
    ('["shop.open"]', '["a", "a"]', f"{TOPICS} (found ['a', 'a'])"),
    ('["shop.open"]', '["/a/", "b"]', f"{TOPICS} (found ['/a/', 'b'])"),
    ('["shop.open"]', '["/"]', f"{TOPICS} (found ['/'])"),
    ('["shop.open"]', '["a b"]', f"{TOPICS} (found ['a b'])"),
    ('["shop.open"]', '["/[/"]', "topics: not a regular expression: unterminated character set at position 0 (found ['/[/'])"),
    ('"open"', '"opne"', f"{PROTOCOLS} (found 'opne')"),
    ('"open"', "5", f"{PROTOCOLS} (found 5)"),
    ('"open"', '"avro"', "the file: protocol avro needs [avro] schemas"),
    ("[source]\n", 'name = "x"\n[source]\n', f"name: unknown key; allowed: {ALL_KEYS}"),
    ("[source]\n", "sauce = 1\n[source]\n", f"sauce: unknown key; allowed: {ALL_KEYS}"),
    ("[source]\n", 'time_zone = "Mars/Phobos"\n[source]\n', f"{ZONE} (found 'Mars/Phobos')"),
    ("[source]\n", 'time_zone = "../../etc/passwd"\n[source]\n', f"{ZONE} (found '../../etc/passwd')"),
    ("[source]\n", 'time_zone = "Asia"\n[source]\n', f"{ZONE} (found 'Asia')"),
    ("[source]\n", 'time_zone = "+8"\n[source]\n', f"{ZONE} (found '+8')"),
    ("[source]\n", "time_zone = 8\n[source]\n", "time_zone: Input should be a valid string (found 8)"),
    ('layout = "aiven-jsonl"', "", "source: an archive needs `layout`"),
    ('layout = "aiven-jsonl"', 'layout = "aiven-jsonl"\ntags = true', "source: only Confluent's connector writes `tags`"),
    (
        '"aiven-jsonl"',
        '"jsonl"',
        f"source.layout: Input should be {', '.join(map(repr, get_args(LayoutName)[:-1]))} or {get_args(LayoutName)[-1]!r} (found 'jsonl')",
    ),
    ("[lake]\n", "[lake]\nnamespace = 5\n", "lake.namespace: Input should be a valid string (found 5)"),
    ("[lake]\n", '[lake]\nnamespace = "{db}"\n', f"{NAMESPACE} (found '{{db}}')"),
    ("[lake]\n", '[lake]\nnamespace = "{database.__class__}"\n', f"{NAMESPACE} (found '{{database.__class__}}')"),
    ("[lake]\n", '[lake]\nnamespace = "{"\n', f"{NAMESPACE} (found '{{')"),
    ("[lake]\n", '[lake]\nnamespace = ""\n', f"{NAMESPACE} (found '')"),
    ("[lake]\n", 'in_flight = "0 MB"\n[lake]\n', "source.in_flight: a number and MB or GB, like \"256 MB\" (found '0 MB')"),
    ("[lake]\n", "in_flight = 64\n[lake]\n", 'source.in_flight: a number and MB or GB, like "256 MB" (found 64)'),
    ("[lake]\n", "[lake]\nbucket = 1\n", "lake.bucket: unknown key; allowed: uri, catalog, rest, namespace"),
    ("[lake]\n", "[watermark]\nsource = 1\n[lake]\n", "watermark.source: unknown key; allowed: from, uri, one_partition_per"),
    (
        "[lake]\n",
        '[watermark]\nfrom = "x"\n[lake]\n',
        "watermark.from: Input should be 'messages', 'checkpoints', 'metadata' or 'offsets' (found 'x')",
    ),
    (
        'layout = "aiven-jsonl"',
        'layout = "aiven-jsonl"\nkind = "kafka"',
        'source: `layout`, `template`, `hours` and `tags` are for archives; kind = "kafka" uses none of them',
    ),
    (
        'layout = "aiven-jsonl"',
        'layout = "storage-sink"\nhours = "timestamps"',
        "source: `hours`: the storage sink's hours follow from commit ts; leave it out",
    ),
    ('"s3://archive/${STAGE}/open"\nlayout = "aiven-jsonl"', '"b1"\nkind = "kafka"', f"source: {SERVERS}"),
    ('"s3://archive/${STAGE}/open"\nlayout = "aiven-jsonl"', '"b1:9092,"\nkind = "kafka"', f"source: {SERVERS}"),
    ("[lake]\n", "[source.kafka]\ndebug = 'all'\n[lake]\n", 'source: [source.kafka] is for kind = "kafka"'),
    ("[lake]\n", "[source.kafka]\nx.y = [1]\n[lake]\n", "source.kafka: x.y: should be a text, a number, true or false"),
    ("[lake]\n", "kafka = 5\n[lake]\n", "source.kafka: should be a table (found 5)"),
    *(
        ("[lake]\n", f'[source.kafka]\n{name} = "x"\n[lake]\n', f"source.kafka: {name} cannot be set: {why}")
        for name, why in {
            "bootstrap.servers": "it is source.uri, or servers of [source.archiver]",
            "enable.auto.commit": "offsets are committed after their messages are durable",
            "auto.offset.reset": "reading continues where it ended; missing offsets are a finding",
            "isolation.level": "only committed messages are read",
        }.items()
    ),
    (
        "[lake]\n",
        '[watermark]\nfrom = "checkpoints"\n[lake]\n',
        'watermark: from = "checkpoints" needs `uri`, the recorded checkpoints',
    ),
    (
        'layout = "aiven-jsonl"',
        'layout = "storage-sink"',
        'the file: [watermark] from = "metadata" goes with layout = "storage-sink", and only with it',
    ),
    ("[lake]\n", '[policy]\non_gap = "halt"\n[lake]\n', "policy.on_gap: Input should be 'block' or 'warn' (found 'halt')"),
    (
        "[lake]\n",
        '[policy.on_finding]\nGAP = "halt"\n[lake]\n',
        "policy.on_finding.GAP: Input should be 'block', 'warn' or 'ignore' (found 'halt')",
    ),
    (
        "[lake]\n",
        '[policy.on_finding]\nLATE = "warn"\n[lake]\n',
        f"policy.on_finding: unknown finding LATE; allowed: {', '.join(KINDS)}",
    ),
    (
        "[lake]\n",
        '[policy.on_finding]\nOVERLAP_CONFLICT = "ignore"\n[lake]\n',
        "policy.on_finding: OVERLAP_CONFLICT should be 'block' or 'warn', as messages are left out; found 'ignore'",
    ),
    (
        "[lake]\n",
        '[policy.on_finding]\nUNEXPECTED_PARTITION = "warn"\n[lake]\n',
        "policy.on_finding: UNEXPECTED_PARTITION should be 'block', as the resolved ts would pass rows that have not arrived; found 'warn'",
    ),
    (
        "[lake]\n",
        '[watermark]\nfrom = "checkpoints"\nuri = "/x"\n[policy.on_finding]\nGAP = "ignore"\n[lake]\n',
        "the file: policy.on_finding: GAP should be 'block' or 'warn', as recorded checkpoints advance past it; found 'ignore'",
    ),
    ("[lake]\n", '[policy]\nchecksum = "block"\n[lake]\n', "policy.checksum: Input should be 'warn' or 'quarantine' (found 'block')"),
    ("[lake]\n", "[policy]\nignore_ddl = 5\n[lake]\n", "policy.ignore_ddl: should be a list (found 5)"),
    ("[lake]\n", "[policy]\nignore_ddl = [true]\n[lake]\n", "policy.ignore_ddl.0: Input should be a valid integer (found True)"),
    (
        "[lake]\n",
        "[policy]\nzero_dates = 5\n[lake]\n",
        "policy.zero_dates: unknown key; "
        "allowed: on_reject, on_gap, on_late, incomplete, on_finding, clock_skew_minutes, wait_hours, decide_hours, ddl, "
        "ignore_ddl, zero_date, wide_decimal, invalid_values, checksum, "
        "handle_only, before_images, on_before_image, mask_at, mask_key",
    ),
    ("[lake]\n", '[columns]\n"a.b" = 5\n[lake]\n', "columns.a.b: should be a table (found 5)"),
    (
        "[lake]\n",
        '[columns."a.b"]\nc = {zero_date = 0}\n[lake]\n',
        "columns.a.b.c.zero_date: Input should be 'null', 'string' or 'reject' (found 0)",
    ),
    (
        "[lake]\n",
        '[columns."a.b".c]\nzero = 1\n[lake]\n',
        "columns.a.b.c.zero: unknown key; allowed: zero_date, wide_decimal, invalid_values, mask",
    ),
    ("[lake]\n", '[tables."a.b"]\nbuckets = 0\n[lake]\n', "tables.a.b.buckets: Input should be greater than or equal to 1 (found 0)"),
    ("[lake]\n", '[tables."a.b"]\nbuckets = true\n[lake]\n', "tables.a.b.buckets: Input should be a valid integer (found True)"),
    ("[lake]\n", '[tables."a.b"]\nbucket = 4\n[lake]\n', "tables.a.b.bucket: unknown key; allowed: buckets"),
    ("[lake]\n", "[options]\nmax_batch_size = []\n[lake]\n", "options.max_batch_size: Input should be a valid integer (found [])"),
    (SOURCE + LAKE, "lake = 5\nsource = 6\n", "source: should be a table (found 6); lake: should be a table (found 5)"),
]


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES, ids=[said[:60] for *_, said in MISTAKES])
def test_a_mistake_is_told_with_its_key_what_was_found_and_what_is_allowed(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in PLAIN
    assert refused(tmp_path, PLAIN.replace(old, new, 1)) == said


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    assert refused(tmp_path, 'topics = "x"\n') == (
        "protocol: missing; topics: should be a list (found 'x'); partitions: missing; source: missing; lake: missing"
    )
