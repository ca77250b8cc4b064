"""Object keys below the lake's URI and table names in the catalog. No other module builds a key or a name."""

from __future__ import annotations

import hashlib
import re

CATALOG = "lake"
SYSTEM = "_tidelake"  # namespace of Tidelake's own tables
MAIN = "main"
BRANCH = "run_"  # prefix of staging branches, run_<cut>_<fence>
_OWN_COLUMNS = (
    "_change_type _change_seq _commit_ts _commit_at _commit_at_day _origin "
    "_topic _kafka_partition _offset _ordinal _partial "  # of changelogs and snapshots
    "_valid_from_ts _valid_to_ts _valid_from _valid_to _current _change"  # of --scd2 and diff
)
BUCKET = "tidelake_bucket"  # partition field of bucketed tables; Iceberg allows no column of that name
_ICEBERG_COLUMNS = "_file _pos _deleted _spec_id _partition _change_ordinal _commit_snapshot_id _row_id _last_updated_sequence_number"
_WORKING_COLUMNS = (  # columns that the queries that fold and compare rows add
    "_at _bucket _copy _count _from _gone _half _key _missing _n _new _old _row _rows _silent _to _v _verdict _weight _weights _whole"
)
RESERVED_COLUMNS = frozenset(f"{BUCKET} {_OWN_COLUMNS} {_ICEBERG_COLUMNS} {_WORKING_COLUMNS}".split())
_SOURCE_COLUMN = "__src"
EVENT, PARTITION_EXCHANGE, NEW_KEY = "event", "partition_exchange", "new_key"  # `_origin` of a change


IDENTITY = "lake.json"  # identity of the lake and of the catalog that holds its tables


def cut_of_branch(branch: str) -> int | None:
    """Return the number of the cut that a run staged on this branch; None for other branches."""
    match = re.fullmatch(rf"{BRANCH}([0-9]+)_[0-9]+", branch)
    return int(match[1]) if match else None


def landed_folder(feed: str, topic: str, hour: str, partition: int) -> str:
    """Return the folder of the canonical objects of one topic, partition and hour."""
    return f"landed/{feed}/{topic}/hour={hour}/partition={partition}"


def landed_key(feed: str, topic: str, hour: str, partition: int, first: int, last: int, digest: str) -> str:
    """Return the key of a canonical object: its first and last offset and the hash of its content."""
    return f"{landed_folder(feed, topic, hour, partition)}/{_canonical_name(first, last, digest)}"


def in_hours(folder: str, begin: str) -> str:
    """Return the prefix of the documents of hours that begin with a text, such as a month. folder: manifests() or decoded()."""
    return f"{folder}hour={begin}"


def hour_of_document(key: str) -> str:
    """Return the hour of a key below in_hours()."""
    return key.rsplit("/hour=", 1)[1].partition("/")[0].removesuffix(".json")


def hour_of_landed(key: str) -> str:
    """Return the hour of a canonical object."""
    return key.rsplit("/hour=", 1)[1].partition("/")[0]


def archived_folder(topic: str, hour: str, partition: int) -> str:
    """Return the folder of the archiver's objects of one topic, partition and hour, below the archive's URI."""
    return f"{topic}/hour={hour}/partition={partition}"


def archived_key(topic: str, hour: str, partition: int, first: int, last: int, digest: str) -> str:
    """Return the key of an archiver's object: the first and last offset that it covers and the hash of its content."""
    return f"{archived_folder(topic, hour, partition)}/{_canonical_name(first, last, digest)}"


def archived_topic_key(topic: str) -> str:
    """Return the key of the archiver's record about a topic, below the archive's SYSTEM."""
    return f"topics/{topic}.json"


def _canonical_name(first: int, last: int, digest: str) -> str:
    return f"{first:020d}-{last:020d}-{digest[:16]}.parquet"


def manifests(feed: str) -> str:
    """Return the prefix of a feed's manifests."""
    return f"manifests/{feed}/"


def manifest_key(feed: str, hour: str, generation: int) -> str:
    """Return the key of an hour's manifest. generation: number from 1."""
    return f"{manifests(feed)}hour={hour}/{generation:06d}.json"


def sink_key(feed: str, hour: str) -> str:
    """Return the key of the record of which storage sink files an hour took, and up to where its folders are landed."""
    return f"sink/{feed}/hour={hour}.json"


def closing_key(feed: str, hour: str) -> str:
    """Return the key of what was read of the messages after an hour to judge whether it is complete."""
    return f"closing/{feed}/hour={hour}.json"


def decoded(feed: str) -> str:
    """Return the prefix of a feed's decode records."""
    return f"decoded/{feed}/"


def decoded_key(feed: str, hour: str) -> str:
    """Return the key of an hour's decode record."""
    return f"{decoded(feed)}hour={hour}.json"


def table_schema_key(feed: str, database: str, table: str, version: int) -> str:
    """Return the key of one version of a table's schema that a Simple feed carried."""
    return f"schemas/{feed}/simple/{lake_name(database)}/{lake_name(table)}/{version}.json"


def avro_key(feed: str, schema_id: str) -> str:
    """Return the key of the schema of a feed's schema id, which never changes."""
    return f"schemas/{feed}/avro/{schema_id}.avsc"


def sink_schemas(feed: str) -> str:
    """Return the prefix of a storage sink's schema files; below it each keeps its key in the archive."""
    return f"schemas/{feed}/sink/"


def run_key(feed: str, seq: int, stage: str) -> str:
    """Return the key of a stage's output for the cut with this number."""
    return f"runs/{feed}/{seq:08d}/{stage}.json"


def placed_deletes(feed: str, seq: int) -> str:
    """Return the folder of the commit ts that order gives to deletes without one, while it stages a cut."""
    return f"runs/{feed}/{seq:08d}/deletes/"


def mismatches(feed: str) -> str:
    """Return the prefix of a feed's rows that are put aside because they fit no table."""
    return f"mismatches/{feed}/"


def mismatches_key(feed: str, seq: int) -> str:
    """Return the key of the rows put aside in the window of the cut with this number."""
    return f"{mismatches(feed)}{seq:08d}.json"


def seed_reports(feed: str, run: str) -> str:
    """Return the prefix of a seed run's reports, one for each file of the export."""
    return f"seeds/{feed}/{run}/"


def seed_report_key(feed: str, run: str, number: int) -> str:
    """Return the key of a seed run's report on one file of the export. number: of the file, from 0."""
    return f"{seed_reports(feed, run)}{number:06d}.json"


def intents(feed: str) -> str:
    """Return the prefix of a feed's publish intents."""
    return f"publish/{feed}/"


def intent_key(feed: str, seq: int) -> str:
    """Return the key of a cut's publish intent. Cuts count from 1."""
    return f"{intents(feed)}{seq:08d}.json"


def cuts(feed: str) -> str:
    """Return the prefix of a feed's cuts."""
    return f"cuts/{feed}/"


def seq_of(key: str) -> int:
    """Return the cut number in a key below cuts(), intents() or certificates()."""
    return int(key.rpartition("/")[2].removesuffix(".json"))


def cut_key(feed: str, seq: int) -> str:
    """Return the key of a published cut's document."""
    return f"{cuts(feed)}{seq:08d}.json"


def certificates(feed: str) -> str:
    """Return the prefix of a feed's certificates."""
    return f"certificates/{feed}/"


def certificate_key(feed: str, seq: int) -> str:
    """Return the key of a published cut's certificate."""
    return f"{certificates(feed)}{seq:08d}.json"


def signatures(feed: str) -> str:
    """Return the prefix of the signatures of a feed's certificates."""
    return f"signatures/{feed}/"


def signature_key(feed: str, seq: int) -> str:
    """Return the key of the signature of a cut's certificate."""
    return f"{signatures(feed)}{seq:08d}.json"


def file_lists(feed: str) -> str:
    """Return the prefix of the lists of files of a feed's tables."""
    return f"files/{feed}/"


def file_list_key(feed: str, uuid: str, sha256: str) -> str:
    """Return the key of a list of files. uuid: of the table; sha256: of the list."""
    return f"{file_lists(feed)}{uuid}/{sha256}.tsv"


def decisions(feed: str) -> str:
    """Return the prefix of the decisions about a feed's rejected messages."""
    return f"decisions/{feed}/"


def lease_key(feed: str) -> str:
    """Return the key of a feed's lease."""
    return f"leases/{feed}.json"


def reports(feed: str) -> str:
    """Return the prefix of a feed's data-quality reports. An hour, or the beginning of one, may follow."""
    return f"reports/{feed}/"


def quality_key(feed: str, hour: str) -> str:
    """Return the key of an hour's data-quality result, as JSON."""
    return f"{reports(feed)}{hour}.json"


def report_key(feed: str, hour: str) -> str:
    """Return the key of an hour's data-quality report, as HTML."""
    return f"{reports(feed)}{hour}.html"


def blocked(feed: str) -> str:
    """Return the prefix of what blocked a feed's hours."""
    return f"blocked/{feed}/"


def blocked_key(feed: str, hour: str) -> str:
    """Return the key of what blocked an hour when it ran last."""
    return f"{blocked(feed)}hour={hour}.json"


def notices_key(feed: str) -> str:
    """Return the key of the record of which notifier has heard of which cause."""
    return f"notices/{feed}.json"


def events_table(feed: str) -> str:
    """Return the name of a feed's events table."""
    return f"{SYSTEM}.{feed.replace('-', '_')}_events"


def late_table(feed: str) -> str:
    """Return the name of a feed's table of late rows, which came after the cut that should hold them."""
    return f"{SYSTEM}.{feed.replace('-', '_')}_late"


def ddl_table() -> str:
    """Return the name of the DDL ledger of all feeds."""
    return f"{SYSTEM}.ddl"


def published_table() -> str:
    """Return the name of the table of all feeds' published cuts."""
    return f"{SYSTEM}.published"


def changelog_namespace(namespace: str) -> str:
    """Return the namespace of the changelogs of a namespace's tables."""
    return f"{namespace}_changelog"


def lake_name(name: str) -> str:
    """Return a database's or table's name with the characters that the catalog and paths allow; a hash keeps changed names distinct."""
    safe = re.sub(r"[^A-Za-z0-9_$-]", "_", name)
    return safe if safe == name else f"{safe}_{name_hash(name)}"


def name_hash(name: str) -> str:
    """Return a hash that distinguishes a name from others with the same written form."""
    return hashlib.sha256(name.encode()).hexdigest()[:6]


def column_name(name: str) -> str:
    """Return a source column's name in lake tables.

    A name that is reserved (in any case), or reserved with `__src` already appended, gets `__src` appended. Different columns of a table
    keep different names, also where case is ignored.
    """
    plain = name.lower()
    while plain.endswith(_SOURCE_COLUMN):
        plain = plain.removesuffix(_SOURCE_COLUMN)
    return f"{name}{_SOURCE_COLUMN}" if plain in RESERVED_COLUMNS else name


def past_namespace(namespace: str) -> str:
    """Return the namespace of dropped or replaced tables that a cut still needs."""
    return f"{namespace}_past"


def is_reserved(namespace: str) -> bool:
    """Return whether the lake reserves a namespace. Case is ignored, because some catalogs fold it."""
    folded = namespace.lower()
    return folded == SYSTEM or folded.endswith((changelog_namespace(""), past_namespace("")))
