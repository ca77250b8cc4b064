"""What is called what: object keys below the lake's URI, table names in the catalog. Nothing else builds a key or a name."""

from __future__ import annotations

import hashlib
import re

CATALOG = "lake"
SYSTEM = "_tidelake"  # namespace of Tidelake's own tables
MAIN = "main"
BRANCH = "run_"  # what runs stage is on branches run_<cut>_<fence>
_OWN_COLUMNS = (
    "_change_type _commit_ts _commit_at _commit_at_day _topic _kafka_partition _offset _ordinal _partial "  # of changelogs and snapshots
    "_valid_from_ts _valid_to_ts _valid_from _valid_to _current _change"  # of --scd2 and diff
)
BUCKET = "tidelake_bucket"  # the partition field of tables that are bucketed; Iceberg wants no column of that name
_ICEBERG_COLUMNS = "_file _pos _deleted _spec_id _partition _change_ordinal _commit_snapshot_id _row_id _last_updated_sequence_number"
_WORKING_COLUMNS = (  # of the queries that fold and compare rows, beside the columns of the table
    "_at _bucket _copy _count _from _gone _half _key _missing _n _new _old _row _rows _silent _to _v _verdict _weight _weights _whole"
)
RESERVED_COLUMNS = frozenset(f"{BUCKET} {_OWN_COLUMNS} {_ICEBERG_COLUMNS} {_WORKING_COLUMNS}".split())
_SOURCE_COLUMN = "__src"
MOVED_LAST, MOVED_FIRST = -2, -3  # `_kafka_partition` of rows that a statement moved: after or before all row events of their commit ts


IDENTITY = "lake.json"  # which lake this is, and whose catalog knows its tables


def cut_of_branch(branch: str) -> int | None:
    """The number of the cut that a run staged on this branch; None for a branch that no run made."""
    match = re.fullmatch(rf"{BRANCH}([0-9]+)_[0-9]+", branch)
    return int(match[1]) if match else None


def landed_folder(feed: str, topic: str, hour: str, partition: int) -> str:
    """Where the canonical objects of one topic, partition and hour lie."""
    return f"landed/{feed}/{topic}/hour={hour}/partition={partition}"


def landed_key(feed: str, topic: str, hour: str, partition: int, first: int, last: int, digest: str) -> str:
    """One canonical object: its offsets and the hash of its content."""
    return f"{landed_folder(feed, topic, hour, partition)}/{_canonical_name(first, last, digest)}"


def hour_of_landed(key: str) -> str:
    """The hour that a canonical object belongs to."""
    return key.rsplit("/hour=", 1)[1].partition("/")[0]


def archived_folder(topic: str, hour: str, partition: int) -> str:
    """Where the archiver's objects of one topic, partition and hour lie, below the archive's URI."""
    return f"{topic}/hour={hour}/partition={partition}"


def archived_key(topic: str, hour: str, partition: int, first: int, last: int, digest: str) -> str:
    """One object of the archiver: the offsets that it covers and the hash of its content."""
    return f"{archived_folder(topic, hour, partition)}/{_canonical_name(first, last, digest)}"


def archived_topic_key(topic: str) -> str:
    """What the archiver keeps of a topic, below the archive's SYSTEM."""
    return f"topics/{topic}.json"


def _canonical_name(first: int, last: int, digest: str) -> str:
    return f"{first:020d}-{last:020d}-{digest[:16]}.parquet"


def manifests(feed: str) -> str:
    """Prefix of a feed's manifests."""
    return f"manifests/{feed}/"


def manifest_key(feed: str, hour: str, generation: int) -> str:
    """The manifest of a generation of an hour; generations count from 1."""
    return f"{manifests(feed)}hour={hour}/{generation:06d}.json"


def sink_key(feed: str, hour: str) -> str:
    """Which files of a storage sink an hour took, and how far its folders are landed then."""
    return f"sink/{feed}/hour={hour}.json"


def closing_key(feed: str, hour: str) -> str:
    """What was read of the messages behind an hour, to know whether it is complete."""
    return f"closing/{feed}/hour={hour}.json"


def decoded(feed: str) -> str:
    """Prefix of what decode found."""
    return f"decoded/{feed}/"


def decoded_key(feed: str, hour: str) -> str:
    """What decode found in an hour."""
    return f"{decoded(feed)}hour={hour}.json"


def table_schema_key(feed: str, database: str, table: str, version: int) -> str:
    """One version of a table's schema, as a Simple feed brought it."""
    return f"schemas/{feed}/simple/{lake_name(database)}/{lake_name(table)}/{version}.json"


def avro_key(feed: str, schema_id: str) -> str:
    """What a schema id of a feed means, once and for all."""
    return f"schemas/{feed}/avro/{schema_id}.avsc"


def sink_schemas(feed: str) -> str:
    """Prefix of the schema files of a storage sink, each below it under the key that it has in the archive."""
    return f"schemas/{feed}/sink/"


def run_key(feed: str, seq: int, stage: str) -> str:
    """What a stage handed to the next for the cut with this number."""
    return f"runs/{feed}/{seq:08d}/{stage}.json"


def mismatches(feed: str) -> str:
    """Prefix of what is put aside because it fits no table."""
    return f"mismatches/{feed}/"


def mismatches_key(feed: str, seq: int) -> str:
    """What is put aside of the window of the cut with this number."""
    return f"{mismatches(feed)}{seq:08d}.json"


def seed_reports(feed: str, run: str) -> str:
    """Prefix of what a seed's run found in the files of the export, one below it for each."""
    return f"seeds/{feed}/{run}/"


def seed_report_key(feed: str, run: str, number: int) -> str:
    """What a seed's run found in one file of the export. number: of the file, from 0."""
    return f"{seed_reports(feed, run)}{number:06d}.json"


def intents(feed: str) -> str:
    """Prefix of a feed's publish intents."""
    return f"publish/{feed}/"


def intent_key(feed: str, seq: int) -> str:
    """The publish intent of a cut, the point of no return. Cuts count from 1."""
    return f"{intents(feed)}{seq:08d}.json"


def cuts(feed: str) -> str:
    """Prefix of a feed's cuts."""
    return f"cuts/{feed}/"


def seq_of(key: str) -> int:
    """The number of the cut that an object of cuts(), intents() or certificates() is about."""
    return int(key.rpartition("/")[2].removesuffix(".json"))


def cut_key(feed: str, seq: int) -> str:
    """A published cut's document."""
    return f"{cuts(feed)}{seq:08d}.json"


def certificates(feed: str) -> str:
    """Prefix of a feed's certificates."""
    return f"certificates/{feed}/"


def certificate_key(feed: str, seq: int) -> str:
    """The proof of a published cut."""
    return f"{certificates(feed)}{seq:08d}.json"


def decisions(feed: str) -> str:
    """Prefix of what people decided about rejected messages."""
    return f"decisions/{feed}/"


def lease_key(feed: str) -> str:
    """Who works on the feed."""
    return f"leases/{feed}.json"


def quality_key(feed: str, hour: str) -> str:
    """The data-quality result of an hour, for programs."""
    return f"reports/{feed}/{hour}.json"


def report_key(feed: str, hour: str) -> str:
    """The data-quality report of an hour, for people."""
    return f"reports/{feed}/{hour}.html"


def events_table(feed: str) -> str:
    """The feed's events."""
    return f"{SYSTEM}.{feed.replace('-', '_')}_events"


def late_table(feed: str) -> str:
    """The feed's rows that came after the cut that should hold them."""
    return f"{SYSTEM}.{feed.replace('-', '_')}_late"


def ddl_table() -> str:
    """All feeds' DDL ledger."""
    return f"{SYSTEM}.ddl"


def published_table() -> str:
    """All feeds' cuts."""
    return f"{SYSTEM}.published"


def changelog_namespace(namespace: str) -> str:
    """Where the changelogs of a namespace's tables are."""
    return f"{namespace}_changelog"


def lake_name(name: str) -> str:
    """A database's or table's name as the catalog and its paths can bear it; injective through a hash where characters change."""
    safe = re.sub(r"[^A-Za-z0-9_$-]", "_", name)
    return safe if safe == name else f"{safe}_{name_hash(name)}"


def name_hash(name: str) -> str:
    """What tells a name from others that would be written like it."""
    return hashlib.sha256(name.encode()).hexdigest()[:6]


def column_name(name: str) -> str:
    """A source column's name in lake tables: with `__src` behind it if it is reserved (in any case of letters) or a reserved name with
    `__src` already. Different columns of a table keep different names, also where case is ignored.
    """
    plain = name.lower()
    while plain.endswith(_SOURCE_COLUMN):
        plain = plain.removesuffix(_SOURCE_COLUMN)
    return f"{name}{_SOURCE_COLUMN}" if plain in RESERVED_COLUMNS else name


def past_namespace(namespace: str) -> str:
    """Where tables go that were dropped or replaced, as long as a cut needs them."""
    return f"{namespace}_past"


def is_reserved(namespace: str) -> bool:
    """Whether the lake keeps such a namespace for itself. Case does not count: some catalogs fold it."""
    folded = namespace.lower()
    return folded == SYSTEM or folded.endswith((changelog_namespace(""), past_namespace("")))
