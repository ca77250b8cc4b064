"""Archives as unrecognised have them: what sniff writes for each is taken by check, and lands the first hour."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from tests.archives.objects import WRITERS, Message, gzipped
from tests.cli.calls import call
from tests.sniff.archived import HOUR, TOPIC, put
from tests.sniff.messages import avro, of_every_protocol
from tidelake.io.storage import Store, open_store

_AIVEN = "{topic}/dt={at:%Y-%m-%d}/hr={at:%H}/{topic}+{partition}+{first:020d}.{extension}"


def messages(protocol: str, hour: int) -> list[Message]:
    """All that there is of a protocol, in an hour."""
    sent = of_every_protocol()[protocol]
    start = int(HOUR.timestamp() * 1000) + hour * 3_600_000
    return [Message(len(sent) * hour + i, value, key, start + i) for i, (key, value) in enumerate(sent)]


def archive(
    store: Store,
    protocol: str = "open",
    layout: str = "aiven-jsonl",
    topic: str = TOPIC,
    place: str = "",
    hours: Sequence[int] = (0, 1),
    partitions: Sequence[int] = (0,),
) -> None:
    for hour in hours:
        for partition in partitions:
            put(store, layout, messages(protocol, hour), partition, hour, topic, place)


def written(store: Store, extension: str, content: Callable[[Sequence[Message]], bytes], protocol: str = "open") -> None:
    """An object of each hour with a content of its own."""
    for hour in (0, 1):
        sent = messages(protocol, hour)
        at = HOUR + timedelta(hours=hour)
        key = _AIVEN.format(topic=TOPIC, at=at, partition=0, first=sent[0].offset, extension=extension)
        store.write(key.rstrip("."), content(sent))


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk left. landed: exit codes of land --dry-run and land, by feed; tomls: by feed."""

    sniffed: int
    checked: int
    landed: dict[str, tuple[int, int]]
    tomls: dict[str, str]
    said: str
    findings: str


def walk(folder: Path, monkeypatch: pytest.MonkeyPatch, *flags: str) -> Walked:
    """sniff --write, check, land --dry-run and land of the first hour of each feed."""
    archived, schemas = folder / "archive", folder / "schemas"
    done = call("sniff", archived, "--json", "--write", schemas, *flags)
    places = {"ARCHIVE": archived, "LAKE": folder / "lake", "CATALOG": f"jdbc:sqlite:{folder}/c.db", "CHECKPOINTS": folder / "none.json"}
    for name, value in places.items():
        monkeypatch.setenv(f"TIDELAKE_{name}", str(value))
    feeds = [s["feed"] for s in json.loads(done.out)["sections"] if s["feed"]]
    landed, findings = {}, ""
    for feed in feeds:
        hour = ("--feed", feed["name"], "--hour", feed["tried"]["hour"], "--schemas", schemas)
        dry, real = call("land", *hour, "--dry-run"), call("land", *hour)
        landed[feed["name"]] = dry.code, real.code
        findings += real.out + real.err
    checked = call("check", "--schemas", schemas).code if feeds else -1
    return Walked(done.code, checked, landed, {f["name"]: f["toml"] for f in feeds}, done.out + done.err, findings)


Make = Callable[[Store], None]
ARCHIVES: dict[str, Make] = {
    "objects without a byte, and of an hour before": lambda s: [
        archive(s),
        s.write(f"{TOPIC}/dt=2026-01-05/hr=09/{TOPIC}+0+00000000000000000000.jsonl.gz", b""),
    ][0],
    "objects without a record, of a partition of their own": lambda s: [
        archive(s, partitions=(0, 1)),
        s.write(f"{TOPIC}/dt=2026-01-05/hr=10/{TOPIC}+0+00000000000000000003.jsonl.gz", gzipped(b"")),
    ][0],
    "extensions of somebody's own": lambda s: written(s, "data.gz", lambda sent: gzipped(WRITERS["aiven-jsonl"][0](sent))),
    "the extension of another layout": lambda s: written(s, "bin", WRITERS["aiven-parquet"][0]),
    "no extension": lambda s: written(s, "", lambda sent: gzipped(WRITERS["aiven-jsonl"][0](sent))),
    "strays in every folder": lambda s: [
        archive(s),
        *(s.write(f"{folder}README.md", b"# read me") for folder in ("", f"{TOPIC}/", f"{TOPIC}/dt=2026-01-05/hr=10/")),
    ][0],
    "a topic with dashes and numbers": lambda s: archive(s, topic="shop-orders-2", place=_AIVEN.replace("+", "-")),
    "a topic with dots and underscores at its ends": lambda s: archive(s, "craft", "aiven-parquet", topic="_cdc.Shop__v1."),
    "a prefix with a date, a blank and an umlaut": lambda s: archive(s, place="backup-2025-12-31/my archive/über/" + _AIVEN),
    "topics that begin late": lambda s: [archive(s, topic="a.late", hours=(3,)), archive(s, topic="b-early", hours=(0, 3))][0],
    "hours before topics": lambda s: archive(s, "canal-json", "aiven-avro", place="raw/{at:%Y/%m/%d/%H}/{topic}/{partition}-{first}.avro"),
    "minutes as folders": lambda s: archive(s, place="{topic}/{at:%Y/%m/%d/%H}/30/{topic}+{partition}+{first}.{extension}"),
    "packets of Canal": lambda s: archive(s, "canal", topic="canal"),
    "Simple in Avro": lambda s: archive(s, "simple-avro", "aiven-parquet", topic="simple"),
    "a changefeed of Debezium through JsonConverter": lambda s: archive(s, "debezium", "aiven-jsonl-nested", topic="dbz"),
    "Lenses": lambda s: archive(s, layout="lenses-parquet"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_what_sniff_writes_is_checked_and_lands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    ARCHIVES[name](open_store(str(tmp_path / "archive")))
    found = walk(tmp_path, monkeypatch)
    assert (found.sniffed, found.checked) == (0, 0), found.said
    assert list(found.landed.values()) == [(0, 0)], found.findings


def test_feeds_of_one_database_get_namespaces_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path / "archive"))
    archive(store, "open", topic="a.open", place=f"one/{_AIVEN}")
    archive(store, "craft", "aiven-parquet", topic="b_craft", place=f"two/{_AIVEN}")
    found = walk(tmp_path, monkeypatch)
    assert found.landed == {"a-open": (0, 0), "b_craft": (0, 0)}
    assert all('\nnamespace = "{feed}_{database}"' in toml for toml in found.tomls.values())
    assert "info: LOSSY_LAYOUT: 1 of 1 objects have no headers; " in found.findings


def test_a_feed_alone_in_its_database_has_the_usual_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(open_store(str(tmp_path / "archive")))
    (toml,) = walk(tmp_path, monkeypatch).tomls.values()
    assert '\n# Where several feeds carry the same database: namespace = "{feed}_{database}"' in toml


def test_a_folder_gets_every_feed_and_nothing_is_overwritten(tmp_path: Path) -> None:
    store, schemas = open_store(str(tmp_path / "archive")), tmp_path / "schemas"
    archive(store, topic="one", place=f"1/{_AIVEN}")
    archive(store, "craft", topic="two", place=f"2/{_AIVEN}")
    (schemas / "one").mkdir(parents=True)
    (schemas / "one" / "feed.toml").write_text("mine")
    done = call("sniff", tmp_path / "archive", "--write", schemas)
    assert done.code == 0
    assert done.err.splitlines() == [
        f"left {schemas}/one/feed.toml unchanged: it already exists",
        f"wrote {schemas}/two/feed.toml",
    ]
    assert (schemas / "one" / "feed.toml").read_text() == "mine"
    again = call("sniff", tmp_path / "archive", "--write", schemas)
    assert again.code == 2
    assert again.err.endswith(f"--write {schemas}: all of these feeds already exist; remove the files that should be written again\n")


def test_a_protocol_that_cannot_be_decided_can_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path / "archive"))
    archive(store, "open", hours=(0,))
    archive(store, "craft", hours=(1,))
    undecided = call("sniff", tmp_path / "archive")
    assert undecided.code == 3
    assert "`--protocol NAME` writes a feed.toml for it" in undecided.out
    found = walk(tmp_path, monkeypatch, "--protocol", "craft")
    assert (found.sniffed, found.checked, list(found.landed.values())) == (0, 0, [(0, 0)])
    (toml,) = found.tomls.values()
    assert toml.startswith('# craft is said: 5 of 10 sampled messages decode.\nprotocol = "craft"\n')
    assert "protocol 'opne' is not supported" in call("sniff", tmp_path / "archive", "--protocol", "opne").err


def test_a_protocol_that_is_certain_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(open_store(str(tmp_path / "archive")))
    (toml,) = walk(tmp_path, monkeypatch, "--protocol", "craft").tomls.values()
    assert 'protocol = "open"' in toml


def test_an_archive_of_a_protocol_that_shows_nothing_can_be_said_too(tmp_path: Path) -> None:
    put(open_store(str(tmp_path)), "aiven-jsonl", [Message(0, b"hello", None)], 0, 0)
    found = json.loads(call("sniff", tmp_path, "--json", "--protocol", "simple-json").out)["sections"][0]
    guess = found["guesses"][0]
    assert (guess["protocol"], guess["confidence"], guess["decoded"]) == ("simple-json", "said", 0)
    assert found["feed"]["toml"].startswith("# simple-json is said: 0 of 1 sampled messages decode.\n")


def test_the_first_hour_is_that_of_all_topics_and_later_tables_are_not_asked_for(tmp_path: Path) -> None:
    sent, schemas = avro()
    store = open_store(str(tmp_path))
    store.write("avro_schemas.json", json.dumps({str(k): v if isinstance(v, str) else json.dumps(v) for k, v in schemas.items()}).encode())
    start = int(HOUR.timestamp() * 1000)
    rows = [Message(i, value, key, start + i) for i, (key, value) in enumerate(sent)]
    put(store, "aiven-jsonl", rows, 0, 2, topic="a_late")
    done = call("sniff", tmp_path)
    assert "tables.sql: the CREATE TABLE statements as of the first hour: shop.orders\n" in done.out
    put(store, "aiven-jsonl", [Message(0, b"\x00\x00", b"k")], 0, 0, topic="z_early")
    put(store, "aiven-jsonl", rows, 0, 0, topic="z_early")
    again = call("sniff", tmp_path)
    assert "  tidelake land --feed feed --hour 2026-01-05T10\n" in again.out
    assert "`land` finds 1 object in hour 2026-01-05T10" in again.out


def test_tables_whose_create_statement_is_in_the_messages_are_not_asked_for(tmp_path: Path) -> None:
    from tests.sniff.messages import CHANGES, STATEMENT, TS
    from tidelake.demo.messages.encode_open import OpenEncoder
    from tidelake.demo.messages.model import Ddl

    encoder = OpenEncoder()
    born = Ddl(TS - 1, "shop", "orders", "CREATE TABLE `orders` (id INT PRIMARY KEY, name VARCHAR(16))", 3)
    sent = [encoder.ddl(born, 0), *(encoder.rows([c], 0) for c in CHANGES), encoder.ddl(STATEMENT, 0), encoder.resolved(TS + 4, 0)]
    start = int(HOUR.timestamp() * 1000)
    put(open_store(str(tmp_path)), "aiven-jsonl", [Message(i, v, k, start + i) for i, (k, v) in enumerate(sent)], 0, 0)
    done = call("sniff", tmp_path)
    assert "tables.sql: the CREATE TABLE statements as of the first hour\n" in done.out
    assert "(not in tables.sql, as the messages hold their CREATE TABLE: shop.orders)" in done.out


@pytest.mark.parametrize(
    ("extension", "content", "says", "mend"),
    [
        (
            "csv.gz",
            lambda sent: gzipped(b"\n".join(b"a2V5,%s,%d,%d" % (m.value or b"", m.offset, m.timestamp_ms or 0) for m in sent)),
            "(Aiven's csv without base64): their values are not base64, and nothing else marks the end of a value",
            "set format.output.fields.value.encoding = base64 in the connector; what it writes then is layout aiven-csv",
        ),
        (
            "jsonl.gz",
            lambda sent: WRITERS["aiven-jsonl"][0](sent),
            "the name says gzip, the first bytes are",
            "rename or rewrite them: the codec in a name must be that of the content",
        ),
        (
            "jsonl.gz",
            lambda sent: gzipped(b""),
            "(objects without a record): they hold no record yet",
            "run again when the archiver",
        ),
    ],
)
def test_what_keeps_objects_from_landing_is_named_with_its_cure(
    tmp_path: Path, extension: str, content: Callable[[Sequence[Message]], bytes], says: str, mend: str
) -> None:
    written(open_store(str(tmp_path)), extension, content, "canal-json")
    done = call("sniff", tmp_path)
    assert done.code == 3
    assert says in done.out
    assert f"→ {mend}" in done.out


def test_no_error_of_python_is_shown(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    written(store, "parquet", lambda sent: b"PAR1 and nothing more")
    put(store, "aiven-jsonl", [Message(0, b"hello", None)], 0, 0, topic="other", place=_AIVEN.replace("jsonl", "json"))
    store.write("t/dt=2026-01-05/hr=10/t+0+0.txt", b"[1,\n2")
    for said in (call("sniff", tmp_path).out, *(call("sniff", path).out for path in tmp_path.rglob("*") if path.is_file())):
        assert "Error: " not in said


def test_objects_that_hold_less_than_all_fields_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(sent: Sequence[Message]) -> bytes:
        lines = ({"offset": m.offset, "value": base64.b64encode(m.value or b"").decode()} for m in sent)
        return gzipped(b"\n".join(json.dumps(line).encode() for line in lines))

    written(open_store(str(tmp_path / "archive")), "jsonl.gz", bare, "canal-json")
    found = walk(tmp_path, monkeypatch)
    assert found.landed == {"shop-orders": (0, 0)}
    for what in ("headers", "timestamps"):
        assert f"info: LOSSY_LAYOUT: 1 of 1 objects have no {what}; " in found.findings
    promises = {p["what"]: (p["state"], p["says"]) for p in json.loads(found.said.partition("wrote ")[0])["sections"][0]["promises"]}
    assert promises["headers"] == ("lost", "2 of 2 objects that were read hold none; no protocol needs them")
    assert promises["timestamps"] == ("lost", "2 of 2 objects that were read hold none; no protocol needs them")
