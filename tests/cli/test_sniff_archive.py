"""sniff of a folder or prefix: what people and programs get, --write, exit codes, and what goes wrong with S3."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.archives.objects import Message
from tests.cli.calls import call
from tests.sniff.archived import HOUR, TOPIC, fill, put
from tidelake.config.feed import load_feed
from tidelake.io import storage
from tidelake.io.storage import open_store
from tidelake.land import land_hour

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys).create_bucket(Bucket="cdc")
    yield address
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A URI of a bucket on moto."""
    for name, value in {"AWS_ENDPOINT_URL_S3": endpoint, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(name, value)
    storage.reset()
    yield f"s3://cdc/test-{next(_NUMBERS)}"
    storage.reset()


def test_people_get_what_is_there_what_is_guaranteed_and_a_feed_toml(tmp_path: Path) -> None:
    fill(open_store(str(tmp_path)), "confluent-json")
    done = call("sniff", tmp_path)
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, "")
    assert lines[:6] == [
        f"{tmp_path}: 4 objects",
        "1 feed can be landed",
        "",
        "1. confluent-json · canal-json (certain)",
        f"   in {tmp_path}",
        "   as {topic}/year={yyyy}/month={MM}/day={dd}/hour={HH}/{topic}+{partition}+{start_offset}",
    ]
    assert lines[7].split() == [TOPIC, "4", "0.0", "0–1", "2026-01-05T10", "…", "2026-01-05T11", "0", "4", "20", "by", "name,", "no", "gap"]
    at = lines.index("   evidence")
    assert lines[at + 1 : at + 4] == [
        "     confluent-json: its reader took 20 records of 4 objects, gz, as in",
        f"       {TOPIC}/year=2026/month=01/day=05/hour=10/{TOPIC}+0+0000000000.json.gz",
        "     canal-json: 20 of 20 messages decode; one JSON object a message",
    ]
    assert "     they hold 12 rows of 1 table (shop.orders), 4 statements, resolved ts in 2 partitions" in lines
    at = lines.index("   guaranteed?")
    assert [line[5:].partition(":")[0] for line in lines[at + 1 : at + 9] if not line.startswith("           ")] == [
        "no  keys", "?   offsets", "no  null values", "yes bytes", "no  the rest", "?   hours",
    ]  # fmt: skip
    assert "           to fix it: s3.object.tagging = true, and `tags = true` under [source]" in lines
    assert "   tried: with the feed.toml below `land` finds 2 objects in hour 2026-01-05T10" in lines
    toml = lines[lines.index("   feed.toml") + 1 : lines.index("next") - 1]
    assert tomllib.loads("\n".join(toml))["source"] == {
        "uri": "${TIDELAKE_ARCHIVE}",
        "layout": "confluent-json",
        "first_hour": "2026-01-05T10",
    }
    assert lines[lines.index("next") + 1 :] == [
        f"  tidelake sniff {tmp_path} --write schemas/",
        f"  export TIDELAKE_ARCHIVE={tmp_path} TIDELAKE_LAKE=s3://… TIDELAKE_CATALOG=jdbc:postgresql://…",
        "  tidelake check",
        "  tidelake land --feed shop-orders --hour 2026-01-05T10",
    ]


def test_from_s3_programs_get_json_and_the_written_feed_lands(bucket: str, tmp_path: Path) -> None:
    fill(open_store(f"{bucket}/lake"), "aiven-jsonl", place="{topic}/{at:%Y/%m/%d/%H}/{partition}-{first}.{extension}")
    done = call("sniff", "--json", f"{bucket}/", "--write", tmp_path / "shop" / "feed.toml")
    assert (done.code, done.err) == (0, f"wrote {tmp_path / 'shop' / 'feed.toml'}\n")
    found = json.loads(done.out)
    assert (found["uri"], found["listed"], found["whole"], found["unknown"], found["storage_sinks"]) == (bucket, 4, True, [], [])
    (section,) = found["sections"]
    assert (section["base"], section["layout"], section["decided"], section["blockers"]) == (f"{bucket}/lake", "aiven-jsonl", True, [])
    assert section["topics"][0]["hours"] == {"2026-01-05T10": 2, "2026-01-05T11": 2}
    assert section["topics"][0]["offsets"]["last"] == {"0": 9, "1": 9}
    assert section["guesses"][0]["protocol"] == "canal-json"
    assert section["feed"]["tried"] == {"hour": "2026-01-05T10", "objects": 2, "not_found": [], "unknown": []}
    environment = section["feed"]["environment"] | {"TIDELAKE_LAKE": str(tmp_path / "lake")}
    feed = load_feed(tmp_path, "shop", environment)
    assert (feed.source.uri, feed.source.template) == (f"{bucket}/lake", "{topic}/{yyyy}/{MM}/{dd}/{HH}/{partition}-{start_offset}")
    assert land_hour(feed, HOUR).messages == 10


def test_tags_that_prove_offsets_are_found_and_used(bucket: str, endpoint: str, tmp_path: Path) -> None:
    store = open_store(bucket)
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    fill(store, "confluent-json")
    for info in store.objects():
        first = int(info.key.rpartition("+")[2].partition(".")[0])
        tags = {"startOffset": first, "endOffset": first + 4, "recordCount": 5}
        told = [{"Key": name, "Value": str(value)} for name, value in tags.items()]
        client.put_object_tagging(Bucket="cdc", Key=f"{bucket.rpartition('/')[2]}/{info.key}", Tagging={"TagSet": told})
    done = call("sniff", "--json", bucket, "--write", tmp_path / "shop" / "feed.toml")
    (section,) = json.loads(done.out)["sections"]
    assert (done.code, section["tags"]) == (0, True)
    (offsets,) = [p for p in section["promises"] if p["what"] == "offsets"]
    assert (offsets["state"], offsets["mend"]) == ("kept", "")
    feed = load_feed(tmp_path, "shop", section["feed"]["environment"] | {"TIDELAKE_LAKE": str(tmp_path / "lake")})
    assert feed.source.tags
    assert land_hour(feed, HOUR).messages == 10


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    fill(open_store(str(tmp_path / "a")), "aiven-jsonl")
    target = tmp_path / "feed.toml"
    target.write_text("mine")
    done = call("sniff", tmp_path / "a", "--write", target)
    assert (done.code, target.read_text()) == (2, "mine")
    assert done.err == f"error: CONFIG: --write {target}: already exists and is not overwritten; remove it, or give another name\n"


def test_of_several_feeds_the_one_of_the_folder_s_name_is_written(tmp_path: Path) -> None:
    fill(open_store(str(tmp_path / "a")), "aiven-jsonl")
    fill(open_store(str(tmp_path / "b")), "aiven-parquet", topic="other")
    fill(open_store(str(tmp_path / "c")), "aiven-parquet", topic="other")
    done = call("sniff", tmp_path)
    named = [line.partition("missing beside ")[2] for line in done.out.splitlines() if "missing beside " in line]
    assert named == [f"schemas/{name}/feed.toml" for name in ("shop-orders", "other", "other-2")]
    target = tmp_path / "schemas" / "other-2" / "feed.toml"
    assert call("sniff", tmp_path, "--write", target).code == 0
    assert tomllib.loads(target.read_text())["source"]["uri"] == "${TIDELAKE_ARCHIVE}/c"
    wrong = call("sniff", tmp_path, "--write", tmp_path / "schemas" / "x" / "feed.toml")
    assert wrong.code == 2
    assert "the folder's name is none of the feeds found; give a folder for all, or one of" in wrong.err


def test_what_cannot_be_landed_says_why_and_exits_with_three_if_nothing_is_recognised(tmp_path: Path) -> None:
    put(open_store(str(tmp_path)), "aiven-jsonl", [Message(0, b"hello", None)], 0, 0)
    done = call("sniff", tmp_path)
    lines = [line.strip() for line in done.out.splitlines()]
    assert (done.code, done.err) == (3, "")
    assert lines[1] == "no feed can be landed"
    assert "1. aiven-jsonl · no protocol of TiCDC or Canal" in lines
    assert "the messages' protocol is undecided" in lines
    assert "shop.orders[0]@0: text; value begins with 68 65 6c 6c 6f, key with null" in lines
    assert call("sniff", tmp_path, "--write", tmp_path / "feed.toml").code == 2
    assert not (tmp_path / "feed.toml").exists()


def test_an_extension_that_the_layout_does_not_have_stands_in_the_template(tmp_path: Path) -> None:
    fill(open_store(str(tmp_path)), "aiven-jsonl", place="{topic}/dt={at:%Y-%m-%d}/hr={at:%H}/{topic}+{partition}+{first}.data")
    done = call("sniff", tmp_path)
    assert done.code == 0
    assert 'template = "{topic}/dt={yyyy}-{MM}-{dd}/hr={HH}/{topic}+{partition}+{start_offset}.data"' in done.out
    assert "`land` finds 2 objects in hour 2026-01-05T10" in done.out


def test_a_listing_is_cut_and_says_so(tmp_path: Path) -> None:
    for i in range(30):
        fill(open_store(str(tmp_path)), "aiven-jsonl", topic=f"t{i:02d}")
    done = call("sniff", tmp_path, "--max-objects", 100)
    first = done.out.splitlines()[0]
    assert first.startswith(f"{tmp_path}: a sample of ")
    assert "as there are more, " in first
    assert call("sniff", tmp_path, "--max-objects", 99).code == 2


@pytest.mark.parametrize(("made", "says"), [(False, "does not exist"), (True, "is an empty folder")])
def test_nothing_in_a_folder(tmp_path: Path, made: bool, says: str) -> None:
    target = tmp_path / "archive"
    if made:
        target.mkdir()
    done = call("sniff", target if made else f"{target}/")
    assert (done.code, done.out) == (2, "")
    assert says in done.err.lower() or "no such file" in done.err.lower()


def test_nothing_below_a_prefix_says_what_is_there(bucket: str) -> None:
    fill(open_store(f"{bucket}/topics"), "aiven-jsonl")
    done = call("sniff", f"{bucket}/topic")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: NOTHING_THERE: no object is below {bucket}/topic; below {bucket} there are topics\n"
    key = f"{TOPIC}/dt=2026-01-05/hr=10/{TOPIC}+0+00000000000000000000.jsonl.gz"
    one = call("sniff", f"{bucket}/topics/{key}")
    assert one.code == 2
    assert f"{key} is one object; give its folder" in one.err


def test_a_bucket_that_is_not_there(bucket: str) -> None:
    done = call("sniff", "s3://nowhere/x")
    assert (done.code, done.out) == (1, "")
    assert "NoSuchBucket" in done.err
    assert "there is no such bucket at this endpoint: check its name" in done.err


def test_no_credentials(bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    storage.reset()
    done = call("sniff", bucket)
    assert (done.code, done.out) == (1, "")
    assert "Unable to locate credentials; give credentials as to every AWS program: AWS_PROFILE" in done.err


def test_options_of_files_and_of_archives_are_told_apart(tmp_path: Path) -> None:
    fill(open_store(str(tmp_path / "a")), "aiven-jsonl")
    file = next(p for p in (tmp_path / "a").rglob("*.gz"))
    assert "--lines is for one file" in call("sniff", tmp_path / "a", "--lines", tmp_path / "x").err
    assert "--write is for archives" in call("sniff", file, "--write", tmp_path / "x").err
