"""Masked columns through decode, order and compact: what readers see, what stands in which file, and what is refused."""

from __future__ import annotations

import base64
import hmac
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.decode.landed_file import landed_file
from tests.lake import lakes
from tests.lake.histories import TOPIC, ddl, feeder, publish, publish_again, resolved, row, row_schema, rows_of
from tests.lake.windows import judged, opened, table
from tests.protocols import both_paths
from tests.protocols.json_messages import Message, column, open_key, open_message
from tidelake.config.lake_paths import manifest_key
from tidelake.config.options import SinkOptions
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.decode.landed_source import LandedReader
from tidelake.decode.stage import decode_hour
from tidelake.errors import ConfigError, OrderError
from tidelake.io.duckdb_door import write_jsonl
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.folding import file_rows
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Manifest, PartitionFacts
from tidelake.order.arrow import bucket_changes, rows_reader, rows_reading
from tidelake.query.asof import table_asof
from tidelake.query.changes import changes_of
from tidelake.query.diff import differences
from tidelake.query.render import expressions, local
from tidelake.query.scd2 import scd2_frame
from tidelake.spark.application import SECRETS
from tidelake.tso import parse_hour
from tidelake.wire.hashes import Hashes, hex_digits
from tidelake.wire.masks import mark

KEY = "a key of these tests, long enough"
SQL = """CREATE TABLE d.people (id VARCHAR(20) PRIMARY KEY, mail VARCHAR(99), note TEXT, photo BLOB, born BIGINT, gone TEXT);
CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20));"""
MASKS = {"id": "hash", "mail": "hash", "note": "truncate(4)", "photo": "truncate(4)", "born": "null", "gone": "drop"}
RESOLVED = [*resolved(200), *resolved(300)]
KVN = ("id bigint", "v varchar", "n int")
CLEAR = b"CLEAR"  # in every value that no reader may see
DIGITS = 7305519

pytestmark = pytest.mark.usefixtures("small_hours")


def digest(text: str) -> str:
    return hmac.digest(KEY.encode(), text.encode(), "sha256").hex()


def policies(masks: dict[str, str], table: str = "d.people") -> dict[str, dict[str, ColumnPolicy]]:
    return {table: {c: ColumnPolicy(mask=m) for c, m in masks.items()}}


def image(person: str, mail: str | None) -> dict[str, Any]:
    """The columns of a row; NULL where there is no mail."""
    photo = base64.b64encode(b"\x01\x02\x03\x04" + CLEAR).decode()
    texts = {"mail": (15, mail and f"CLEAR-{mail}"), "note": (15, f"中文字x CLEAR {person}"), "gone": (15, "CLEAR gone")}
    plain = {n: column(code, v, 64) for n, (code, v) in texts.items()}
    return {"id": column(15, f"CLEAR-{person}", 67, key=True), **plain, "photo": column(252, photo, 1), "born": column(8, DIGITS, 64)}


def sent(ts: int, after: dict[str, Any] | None, before: dict[str, Any] | None = None) -> Message:
    """A row event of d.people."""
    value = {"d": before} if after is None else {"u": after} | ({"p": before} if before else {})
    return open_message((open_key(ts, "d", "people"), value))


def statement(ts: int, query: str) -> Message:
    return open_message(({"ts": ts, "scm": "d", "tbl": "people", "t": 2}, {"q": query, "t": 1}))


def resolved_at(ts: int) -> Message:
    return open_message(({"ts": ts, "t": 3}, None))


def landed(lake: Lake, hour: str, first: int, messages: Sequence[Message], protocol: str = "open", **facts: object) -> str:
    """An hour as landing leaves it, decoded. protocol: the manifest's; facts: more of its only partition."""
    last, path = first + len(messages) - 1, lake.feed.lake.uri
    batch = both_paths.batch(messages)
    offsets = pa.array(range(first, last + 1), pa.int64())
    content = pa.Table.from_batches([batch]).set_column(2, batch.schema.field(2), offsets)
    pq.write_table(content, f"{path}/{hour}.parquet")
    at: dict[str, Any] = {"first": first, "last": last, "count": len(messages), "bytes": 1} | facts
    part = PartitionFacts(**at, ranges=((first, last),), gaps=(), min_timestamp_ms=1, max_timestamp_ms=1)
    found: dict[str, Any] = {
        "sources": (),
        "objects": (landed_file(Path(path) / f"{hour}.parquet"),),
        "partitions": {TOPIC: {0: part}},
        "findings": (),
    }
    manifest = Manifest(feed="shop", hour=hour, generation=1, protocol=protocol, layout="aiven-jsonl", **found)
    lake.store.write(manifest_key("shop", hour, 1), manifest.to_json())
    decode_hour(lake, parse_hour(hour))
    return hour


FIRST = [
    sent(100, image("ann", "a@x")),
    sent(110, image("bob", None)),
    sent(120, image("ann", "b@x"), image("ann", "a@x")),
    sent(130, None, image("bob", None)),
    sent(140, image("eve", "b@x")),
]


def masked(**mails: str | None) -> list[dict[str, Any]]:
    """What `asof` prints of these people."""
    rest = {"note": "中文字x", "photo": {"hex": "01020304"}, "born": None}
    rows = [{"id": digest(f"CLEAR-{p}"), "mail": mail and digest(f"CLEAR-{mail}")} | rest for p, mail in mails.items()]
    return sorted(rows, key=lambda r: str(r["id"]))


def printed(lake: Lake, ts: int | None = None) -> list[dict[str, Any]]:
    with table_asof(lake, "d.people", ts) as found, NamedTemporaryFile() as file:
        write_jsonl(local(found.rows, "UTC"), expressions(found.columns), file.name)
        return sorted((json.loads(line) for line in Path(file.name).read_text().splitlines()), key=lambda r: str(r["id"]))


def holding(folder: Path, word: bytes) -> set[str]:
    """The kinds of Parquet files that hold the word, in their values or their statistics."""
    found = set()
    for path in folder.rglob("*.parquet"):
        whole = [path.read_bytes(), *(bytes(b) for c in pq.read_table(path).columns for a in c.chunks for b in a.buffers() if b)]
        if any(word in part for part in whole):
            found.add("events" if "_events" in str(path) else "changelog" if "_changelog" in str(path) else "snapshot")
    return found


@pytest.fixture
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lake]:
    """A feed that masks at the stage that the parameter says."""
    policy = Policy(mask_at=request.param, mask_key=KEY, before_images="all")
    made = feeder(tmp_path, SQL, columns=policies(MASKS), policy=policy)
    (tmp_path / "lake").mkdir()
    with Lake.of(made.feed) as lake:
        yield lake


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("workers", [pytest.param("Spark", marks=pytest.mark.long), "this process"], indirect=True)
@pytest.mark.parametrize("lake", ["decode", pytest.param("order", marks=pytest.mark.long)], indirect=True)
def test_no_reader_sees_a_masked_value_and_with_decode_no_event_holds_one(lake: Lake, tmp_path: Path) -> None:
    publish(lake, landed(lake, "2026-01-05T10", 0, [*FIRST, resolved_at(200)]))
    assert printed(lake) == masked(ann="b@x", eve="b@x")
    changes = [r for part in changes_of(lake, "d.people", 0, None) for r in part.rows.read_all().to_pylist()]
    kinds = sorted((r["_commit_ts"], r["_change_type"], r["id"], r["mail"]) for r in changes)
    ann, bob, eve = (digest(f"CLEAR-{p}") for p in ("ann", "bob", "eve"))
    a, b = digest("CLEAR-a@x"), digest("CLEAR-b@x")
    assert kinds == [
        (100, "INSERT", ann, a),
        (110, "INSERT", bob, None),
        (120, "UPDATE_AFTER", ann, b),
        (120, "UPDATE_BEFORE", ann, a),
        (130, "DELETE", bob, None),
        (140, "INSERT", eve, b),
    ]
    assert {(r["note"], r["photo"], r["born"], "gone" in r) for r in changes} == {("中文字x", b"\x01\x02\x03\x04", None, False)}
    assert printed(lake, 125) == masked(ann="b@x", bob=None)
    versions, columns = scd2_frame(lake, "d.people", None, lake.spark)
    assert [c.name for c in columns][:5] == ["id", "mail", "note", "photo", "born"]
    assert sorted((r["_valid_from_ts"], r["_valid_to_ts"], r["id"], r["mail"]) for r in versions.collect()) == [
        (100, 120, ann, a), (110, 130, bob, None), (120, None, ann, b), (140, None, eve, b)
    ]  # fmt: skip
    (change,) = differences(lake, "d.people", 125, 200)
    assert (change.added, change.removed, change.changed, change.columns_added) == (1, 1, 0, ())
    in_clear = {"events"} if lake.feed.policy.mask_at == "order" else set()
    warehouse = tmp_path / "lake" / "warehouse"
    assert holding(warehouse, CLEAR) == in_clear
    assert holding(warehouse, str(DIGITS).encode()) == in_clear
    assert holding(warehouse, "中文字x".encode()) >= {"events", "changelog", "snapshot"}
    assert [p for p in (tmp_path / "lake").rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()] == []
    if in_clear:
        return  # the rest is the same
    more = [FIRST[2], sent(250, image("zoe", "z@x")), sent(260, image("eve", "c@x"), image("eve", "another"))]
    publish(lake, landed(lake, "2026-01-05T11", 6, [*more, sent(270, None, image("nil", "n@x")), resolved_at(300)]))
    assert judged(lake)[0] == {"d.people": {"replays": 1}}
    assert printed(lake) == masked(ann="b@x", eve="c@x", zoe="z@x")
    found = read_certificate(lake.store, "shop", 2)["rows"]["d.people"]["before_images"]
    gone = f"id={digest('CLEAR-nil')} at {TOPIC}[0]@9: delete of a row that does not exist in the lake"
    assert found == {"compared": 3, "missing": 1, "examples": [gone]}, "masked columns are not compared"
    assert publish_again(lake, "2026-01-05T11", "2026-01-05T11")[1] == {}
    assert printed(lake) == masked(ann="b@x", eve="c@x", zoe="z@x")


@pytest.mark.parametrize("lake", ["decode"], indirect=True)
def test_masks_follow_columns_and_tables_that_get_other_names(lake: Lake, tmp_path: Path) -> None:
    """Statements stand behind the rows that they concern, as those of another partition may."""
    ann, eve = ({("email" if n == "mail" else n): c for n, c in image(p, m).items()} for p, m in (("ann", "n@x"), ("eve", "o@x")))
    renamed = [
        open_message((open_key(150, "d", "people"), {"u": ann})),
        open_message((open_key(170, "d", "humans"), {"u": eve})),
        statement(145, "ALTER TABLE people RENAME COLUMN mail TO email"),
        statement(160, "RENAME TABLE people TO humans"),
    ]
    hour = landed(lake, "2026-01-05T10", 0, [*FIRST, *renamed, resolved_at(200)])
    assert holding(tmp_path / "lake", CLEAR) - {"snapshot"} == set()
    publish(lake, hour)
    people = lake.catalog.load("d.humans")
    mails = sorted(r["email"] for batch in people.scan({}, ["email"]) for r in batch.to_pylist())
    assert mails == sorted(digest(f"CLEAR-{m}") for m in ("n@x", "o@x"))
    assert holding(tmp_path / "lake" / "warehouse", CLEAR) == set()
    counts = read_certificate(lake.store, "shop", 1)["rows"]["d.humans"]["masked"]
    assert {c: list(by) for c, by in counts.items()} == {("email" if c == "mail" else c): [m] for c, m in MASKS.items()}
    assert {n for by in counts.values() for n in by.values()} == {8}, "images before and after changes"


@pytest.mark.parametrize("lake", ["decode"], indirect=True)
@pytest.mark.parametrize(
    ("counted", "protocol", "options", "asked"),
    [
        (None, "open", {}, 1),  # an earlier version landed it, or a feed without masks
        (2, "open", {}, 1),
        (0, "open", {}, 0),
        (0, "craft", {}, 1),  # another feed.toml landed it
        (0, "open", {"large_message_handle_compression": "lz4"}, 1),
    ],
)
def test_objects_in_which_landing_found_no_statement_are_not_read_for_statements(
    counted: int | None, protocol: str, options: dict[str, Any], asked: int, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.feed = lake.feed.model_copy(update={"options": SinkOptions(**options)})
    keys, read = list[str](), LandedReader._statements
    monkeypatch.setattr(LandedReader, "_statements", lambda self, key: (keys.append(key), read(self, key))[1])
    landed(lake, "2026-01-05T10", 0, [*FIRST, resolved_at(200)], protocol, statements=counted)
    assert keys == ["2026-01-05T10.parquet"] * asked


def test_a_published_table_keeps_its_masks(tmp_path: Path) -> None:
    """And a default is masked too, and a number that fits no type is counted."""
    masks, key = policies({"v": "hash", "w": "hash"}, "d.k"), Policy(mask_key=KEY, invalid_values="null")
    with opened(tmp_path, "CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20), n INT)", columns=masks, policy=key) as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 100, row_schema(*KVN), ("1", "a", "x")), *RESOLVED[:1]]))
        counts = read_certificate(lake.store, "shop", 1)["rows"]["d.k"]
        assert counts["nulled_values"] == {"n": 1}
        added = ddl(210, "ALTER TABLE d.k ADD COLUMN w VARCHAR(9) DEFAULT 'dd'")
        hour = feed.add(lake, [*added, row(0, "insert", 250, row_schema(*KVN, "w varchar"), ("2", "b", "7", "cc")), *RESOLVED[1:]])
        for columns, policy, said in (
            ({}, key, "the feed sets no mask"),
            (masks, Policy(mask_key=KEY[::-1]), f"the feed sets {mark('hash', KEY[::-1].encode())}"),
            (policies({"v": "drop"}, "d.k"), key, "the feed sets drop"),
        ):
            lake.feed = feed.feed.model_copy(update={"columns": columns, "policy": policy})
            with pytest.raises(ConfigError, match=said) as error:
                publish(lake, hour)
            assert error.value.code == "MASK_CHANGED"
            assert KEY not in str(error.value)
        lake.feed = feed.feed.model_copy(update={"columns": policies({"id": "null", "v": "hash"}, "d.k")})
        with pytest.raises(ConfigError, match=r"id is in the key of d\.k"):
            publish(lake, hour)
        lake.feed = feed.feed
        publish(lake, hour)
        first, second = ("1", digest("a"), None, digest("dd")), ("2", digest("b"), "7", digest("cc"))
        assert rows_of(lake, "d.k") == table(first, second, names=("id", "v", "n", "w"))


def coded(folder: Path) -> Counter[tuple[str, bool]]:
    """The kinds of large files with hashes in v, and whether these are written once each."""
    found = Counter[tuple[str, bool]]()
    for path in folder.rglob("*.parquet"):
        facts = pq.read_metadata(path)
        if "_events" not in str(path) and facts.num_rows > 100:
            size = sum(
                facts.row_group(n).column(facts.schema.names.index("v")).total_uncompressed_size for n in range(facts.num_row_groups)
            )
            found["changelog" if "_changelog" in str(path) else "snapshot", size < 34 * facts.num_rows] += 1
    return found


@pytest.mark.parametrize("keyed", [True, False])
def test_hashes_that_repeat_are_written_once_also_beside_older_files(keyed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many, different = 6_000, 1_400  # different hashes have more bytes than a dictionary that Arrow's writer makes itself
    sql = f"CREATE TABLE d.k (id BIGINT{' PRIMARY KEY' if keyed else ''}, v VARCHAR(20))"
    names = row_schema("id bigint", "v varchar", key=("id",) if keyed else ())
    value = {n: f"v{n % different}" for n in range(many)}
    then = {n: f"v{(n + 7) % different}" for n in range(many) if n % 4}
    with opened(tmp_path, sql, columns=policies({"v": "hash"}, "d.k"), policy=Policy(mask_key=KEY)) as (feed, lake):
        inserts = [row(0, "insert", 100, names, (str(n), v)) for n, v in value.items()]
        taken = Hashes.taken
        with monkeypatch.context() as patch:  # as an earlier version wrote events and tables
            patch.setattr(Hashes, "taken", lambda self: hex_digits(taken(self)).cast(pa.binary()))
            for writer in (file_rows, rows_reading, bucket_changes):
                patch.setattr(writer, "as_dictionary", lambda cells: cells)
            publish(lake, feed.add(lake, [*inserts, *RESOLVED[:1]]))
        assert coded(tmp_path) == {("changelog", False): 1, ("snapshot", False): 1}
        old, new = (("9", value[9]), ("9", "v2"))
        publish(lake, feed.add(lake, [row(0, "update", 220, names, new, old), *resolved(230)]))
        value[9] = "v2"
        assert coded(tmp_path)["snapshot", True] == 1, "the rows that did not change"
        shuffled, streams = list[pa.DataType](), rows_reader.streams
        monkeypatch.setattr(
            rows_reader, "streams", lambda rows: (shuffled.extend(rows.select(["a2", "b2"]).schema.types), streams(rows))[1]
        )
        updates = [row(0, "update", 250, names, (str(n), v), (str(n), value[n])) for n, v in then.items()]
        deletes = [row(0, "delete", 260, names, None, (str(n), v)) for n, v in value.items() if n % 8 == 0]
        publish(lake, feed.add(lake, [*updates, *deletes, *RESOLVED[1:]]))
        now = {n: then.get(n, v) for n, v in value.items() if n % 8}
        assert rows_of(lake, "d.k") == table(*((str(n), digest(v)) for n, v in now.items()))
        assert rows_of(lake, "d.k", 240) == table(*((str(n), digest(v)) for n, v in value.items()))
        assert coded(tmp_path) == {("changelog", False): 1, ("changelog", True): 1, ("snapshot", False): 1, ("snapshot", True): 2}
        assert {pa.types.is_dictionary(t) for t in shuffled} == {True}


def test_cells_that_were_decoded_under_another_mask_stop_the_window(tmp_path: Path) -> None:
    hashed = row_schema("id bigint", "v varchar")
    marked = type(hashed)(tuple(c if c.key else type(c)(c.name, c.type, mask="truncate(1)") for c in hashed.columns))
    with opened(tmp_path, columns=policies({"v": "hash"}, "d.k"), policy=Policy(mask_key=KEY)) as (feed, lake):
        hour = feed.add(lake, [row(0, "insert", 100, marked, ("1", "a")), *RESOLVED[:1]])
        with pytest.raises(OrderError, match=r"column v of d.k was decoded with mask truncate\(1\), the feed sets hash:") as error:
            publish(lake, hour)
        assert (error.value.code, error.value.exit_code) == ("MASKED", 3)


def test_what_the_application_began_with_is_not_the_lake_s(tmp_path: Path) -> None:
    with Lake.of(lakes.feed(tmp_path)) as lake:
        assert [lake.spark.conf.get(key, None) for key in SECRETS] == [None] * len(SECRETS)
