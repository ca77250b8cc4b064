"""Check the certificates of a feed from the files of a lake: an independent reader of docs/reference/certificate.md.

    python audit.py LAKE FEED [--public-key PEM]...

Needs this file, Python and pyarrow; with a public key also the command openssl. LAKE is a folder, or s3://bucket/path (variables AWS_*).
Exit code: 0 if all that was checked is as certified, 3 if not, 2 if the feed has no certificates.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from pyarrow import fs

Json = dict[str, Any]
STATEMENT, PREDICATE, PAYLOAD = "https://in-toto.io/Statement/v1", "urn:tidelake:certificate:v2", "application/vnd.in-toto+json"
LINE = re.compile(rb"([^\t\n]+)\t([0-9a-f]{64}|-)\t(\d+)\t(-?\d+)\t(data|deletes|list(?=\t))(?:(?<=list)\t(\d+)\t(\d+)\t(\d+))?\n")
RETAINED = re.compile(rb'"changelog_retained_after": (\d+)')


class Wrong(Exception):
    """Something is not as certified: what was found, and what was expected."""


def require(what: str, found: object, expected: object = True) -> None:
    if found != expected:
        raise Wrong(f"{what}: {found}, expected {expected}")


@cache
def file_system(scheme: str) -> fs.FileSystem:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")  # pyarrow does not read the first one
    return fs.S3FileSystem(endpoint_override=endpoint) if scheme in ("s3", "s3a") else fs.LocalFileSystem()


def read(location: str) -> bytes:
    scheme, _, path = location.rpartition("://")
    try:
        with file_system(scheme).open_input_stream(path, compression=None) as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        raise Wrong(f"it is missing: {location}") from None


def names(folder: str) -> list[str]:
    scheme, _, path = folder.rpartition("://")
    return sorted(found.base_name for found in file_system(scheme).get_file_info(fs.FileSelector(path, allow_not_found=True)))


@cache
def digest_of(location: str) -> tuple[str, int]:  # sha256 and size of a file
    return hashlib.sha256(content := read(location)).hexdigest(), len(content)


def avro_records(content: bytes) -> list[Json]:  # of a file with codec null or deflate
    source = io.BytesIO(content)
    require("the first bytes of an Avro file", source.read(4), b"Obj\x01")
    meta, sync = _avro({"type": "map", "values": "bytes"}, source), source.read(16)
    schema, codec = json.loads(meta["avro.schema"]), meta.get("avro.codec", b"null")
    require("codec is null or deflate", codec in (b"null", b"deflate"))
    records = []
    while source.tell() < len(content):
        count, block = _long(source), source.read(_long(source))
        body = io.BytesIO(block if codec == b"null" else zlib.decompress(block, wbits=-15))
        records += [_avro(schema, body) for _ in range(count)]
        require("the end of an Avro block", source.read(16), sync)
    return records


def _long(source: io.BytesIO) -> int:
    value = shift = 0
    while (byte := source.read(1)[0]) > 0x7F:
        value |= (byte & 0x7F) << shift
        shift += 7
    value |= byte << shift
    return (value >> 1) ^ -(value & 1)


def _items(source: io.BytesIO) -> Iterator[int]:
    while count := _long(source):
        if count < 0:  # the size of the block follows
            _long(source)
        yield from range(abs(count))


def _primitive(kind: str, source: io.BytesIO) -> Any:  # boolean, float and double are left as bytes: no rule needs their values
    if kind in ("int", "long"):
        return _long(source)
    content = source.read({"null": 0, "boolean": 1, "float": 4, "double": 8}[kind] if kind not in ("bytes", "string") else _long(source))
    return content.decode() if kind == "string" else content


def _avro(schema: Any, source: io.BytesIO) -> Any:  # Iceberg's schemas refer to no type by its name
    match schema:
        case list():
            return _avro(schema[_long(source)], source)
        case str():
            return _primitive(schema, source)
        case {"type": "record", "fields": fields}:
            return {field["name"]: _avro(field["type"], source) for field in fields}
        case {"type": "array", "items": items}:
            return [_avro(items, source) for _ in _items(source)]
        case {"type": "map", "values": values}:
            return {_primitive("string", source): _avro(values, source) for _ in _items(source)}
        case {"type": "fixed", "size": size}:
            return source.read(size)
        case {"type": other}:
            return _avro(other, source)


@cache
def snapshots(folder: str) -> dict[tuple[str, int], set[str]]:
    """Locations of the manifest lists in all metadata files of a table, by UUID and snapshot."""
    found: dict[tuple[str, int], set[str]] = {}
    for metadata in [json.loads(read(f"{folder}/{name}")) for name in names(folder) if name.endswith(".metadata.json")]:
        for snapshot in metadata["snapshots"]:
            found.setdefault((metadata["table-uuid"], snapshot["snapshot-id"]), set()).add(snapshot["manifest-list"])
    return found


@cache
def manifest_files(location: str) -> list[tuple[str, int, int, int]]:  # path, size, rows and content of the live ones
    live = [entry["data_file"] for entry in avro_records(read(location)) if entry["status"] != 2]
    return [(file["file_path"], file["file_size_in_bytes"], file["record_count"], file["content"]) for file in live]


def verifies(public_key: str, message: bytes, signature: bytes) -> bool:  # by the Ed25519 key in a PEM file
    with tempfile.NamedTemporaryFile(buffering=0) as signed, tempfile.NamedTemporaryFile(buffering=0) as by:
        signed.write(message)
        by.write(signature)
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public_key, "-rawin", "-in", signed.name, "-sigfile", by.name]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Audit:
    """checked, unchecked: how many, by name (and reason). wrong: cut, key or location, and what. said: the predicate at hand."""

    def __init__(self, lake: str, feed: str, public_keys: list[str]) -> None:
        self.lake, self.feed, self.public_keys = lake.rstrip("/"), feed, public_keys
        self.checked, self.unchecked = Counter[str](), Counter[tuple[str, str]]()
        self.wrong, self.compared = list[tuple[int, str, str]](), set[object]()  # files are compared with their sums once each
        self.there = {folder: names(f"{self.lake}/{folder}/{feed}") for folder in ("certificates", "cuts", "publish", "signatures")}
        kept = [RETAINED.findall(self.read("certificates", int(name[:-5]))) for name in self.there["certificates"]]
        self.changes_after = max((int(ts) for found in kept for ts in found), default=0)  # older changelogs may be gone
        self.lists: dict[tuple[str, int], str] = {}  # digests, by UUID and snapshot
        self.continued: dict[int, Json] = {0: {"applied_ts": 0, "resolved_ts": 0, "offsets": {}}}  # members that later cuts refer to
        self.number, self.said, self.rows = 0, Json(uncovered=[]), dict[tuple[str, str], int]()

    def key(self, folder: str, number: int) -> str:
        return f"{folder}/{self.feed}/{number:08}.json"

    def read(self, folder: str, number: int) -> bytes:
        return read(f"{self.lake}/{self.key(folder, number)}")

    @contextmanager
    def place(self, what: str, key: str, number: int | None = None) -> Iterator[None]:
        """Count a check. What it raises is wrong at this place."""
        self.checked[what] += 1
        try:
            yield
        except (Wrong, LookupError, TypeError, ValueError, AttributeError, zlib.error) as error:
            what = str(error) if isinstance(error, Wrong) else f"it does not have its form: {type(error).__name__}: {error}"
            self.wrong.append((self.number if number is None else number, key, what))

    def run(self) -> None:
        for name in self.there["certificates"]:
            self.before = self.number, self.said, self.rows
            self.number, self.said, self.rows, self.subjects = int(name.removesuffix(".json")), {}, {}, list[Json]()
            with self.place("certificates", self.key("certificates", self.number)):
                self.certificate(self.read("certificates", self.number))
        what = "it is missing, but its cut is there (or a run publishes it just now); the cut is abandoned"
        for number in [int(n[:-5]) for n in self.there["cuts"] if n > max(self.there["certificates"], default="")]:
            with self.place("cuts without a certificate", self.key("certificates", number), number):
                require(what, "abandoned_at_ms" in json.loads(self.read("cuts", number)))

    def certificate(self, content: bytes) -> None:
        document, key = json.loads(content), self.key("certificates", self.number)
        self.said = said = document["predicate"] if "_type" in document else document
        self.subjects = document.get("subject", [])
        self.rows = {(s["annotations"]["kind"], s["annotations"]["uuid"]): s["annotations"]["rows"] for s in self.subjects}
        require("it is of", (said["feed"], said["cut"]), (self.feed, self.number))
        self.continued[self.number] = {name: said[name] for name in self.continued[0]}
        require("it has no _type, but one before it has", "_type" not in document and "previous" in self.before[1], False)
        if "_type" not in document:
            self.unchecked["certificates", "an earlier version wrote them"] += 1
            return
        require("_type and predicateType", (document["_type"], document["predicateType"]), (STATEMENT, PREDICATE))
        self.parent = self.before[0] if said["parent_seq"] is None else said["parent_seq"]
        for check in (self.chain, self.windows, self.counts, self.tables, self.inputs, self.offsets):
            with self.place(check.__name__, key):
                check()
        if f"{self.number:08}.json" in self.there["publish"]:
            with self.place("intents", key):
                self.intent(document, content)
        self.signature(content)
        if f"{self.number:08}.json" in (*self.there["cuts"], self.there["certificates"][-1]):
            with self.place("cuts", self.key("cuts", self.number)):
                self.cut(json.loads(self.read("cuts", self.number)))
            for subject in self.subjects:
                if subject["annotations"]["kind"] == "snapshot" or said["resolved_ts"] > self.changes_after:
                    self.table(subject)
                else:
                    self.unchecked["changelogs", "their changes are not kept"] += 1
        else:
            self.unchecked["cuts", "retention removed them"] += 1

    def chain(self) -> None:
        named = self.said["previous"] or {"cut": 0, "sha256": None}
        require("abandoned", self.said["abandoned"], list(range(named["cut"] + 1, self.number)))
        for number in self.said["abandoned"]:
            with self.place("abandoned cuts", self.key("cuts", number), number):
                require("it has abandoned_at_ms", "abandoned_at_ms" in json.loads(self.read("cuts", number)))
        if named["sha256"]:
            with self.place("sha256 of certificates", key := self.key("certificates", named["cut"]), named["cut"]):
                require(f"sha256, by cut {self.number}", digest_of(f"{self.lake}/{key}")[0], named["sha256"])
        require("number of the certificate before", self.before[0], named["cut"])

    def windows(self) -> None:
        said, kind = self.said, self.said["kind"]
        require("kind is known", kind in ("hour", "seed", "redo", "rollback", "rewrite"))
        require(f"cut {self.parent}, which it continues, has a certificate", self.parent in self.continued)
        applied_ts, resolved_ts = (self.continued[self.parent][name] for name in ("applied_ts", "resolved_ts"))
        require("previous of a seed", said["previous"] if kind == "seed" else None, None)
        again = kind in ("rollback", "rewrite")
        ends = (applied_ts, resolved_ts) if again else (resolved_ts, said["resolved_ts"])
        require(f"window, by cut {self.parent}", (said["applied_ts"], said["resolved_ts"]), ends)
        require("resolved_ts is greater than applied_ts", again or said["resolved_ts"] > said["applied_ts"])
        went, dropped = (said.get("let_go", {}).get(name, {}) for name in ("tables", "dropped"))
        logs = {t["uuid"]: (i, t["identifier"]) for i, t in self.before[1].get("changelogs", {}).items()}
        for of, rows in self.before[2].items() if kind == "rewrite" else ():
            life, name = logs.get(of[1], ("", ""))
            left = self.rows.get(of, 0) + went.get(name, {"rows": 0})["rows"]
            require(f"rows of {of} and those let go of", (left, of in self.rows or life in dropped), (rows, True))

    def counts(self) -> None:
        said, read_now = self.said, self.said["kind"] in ("hour", "redo")
        for table, members in said["rows"].items():
            n = Counter({name: number for name, number in members.items() if isinstance(number, int)})
            plain = n["inserts"] + n["deletes"] + n["upserts"]
            require(f"events of {table}", n["events"], n["duplicates"] + n["updates"] + plain)
            changes = plain + 2 * n["updates"] - n["updates_without_before_image"] + n["exchanged_in"] + n["exchanged_out"]
            require(f"changes of {table}", n["changes"], changes if read_now else n["changes"])
        if not said.get("counts"):
            self.unchecked["counts", "the certificate has none"] += 1
            return
        window, total = said["counts"]["window"], Counter[str]()
        for table, n in said["counts"]["tables"].items():
            require(f"in of {table}", n["in"], n["out"] + n["duplicate"] + n["late"] + n["quarantined"])
            total.update(n)
        if read_now:
            require("late of all tables", total["late"], window["late"])
            inside = total["in"] - total["late"]
            require("out, duplicate and quarantined of all tables", inside, inside if window["undated"] else window["in"])
        if said["kind"] == "hour" and [] == said["uncovered"] == self.before[1].get("uncovered"):
            grown = sum(rows - self.before[2].get(of, 0) for of, rows in self.rows.items() if of[0] == "changelog")
            require("changes of all tables", total["changes"], grown)

    def tables(self) -> None:
        members = {"snapshot": self.said["tables"], "changelog": self.said["changelogs"]}
        every = {table["identifier"] for tables in members.values() for table in tables.values()}
        require("uncovered", sorted(self.said["uncovered"]), sorted(every - {subject["name"] for subject in self.subjects}))
        for subject in self.subjects:
            facts, list_ = subject["annotations"], subject["digest"]["sha256"]
            table = members[facts["kind"]][facts["incarnation"]]
            snapshot = facts["uuid"], facts["snapshot_id"]
            expected = (table["identifier"], table["uuid"], table["snapshot_id"], self.lists.setdefault(snapshot, list_))
            require("identifier, uuid, snapshot_id and list", (subject["name"], *snapshot, list_), expected)
            require(f"rows of {subject['name']}", facts["rows"], table["rows"] if facts["kind"] == "snapshot" else facts["rows"])

    def inputs(self) -> None:
        self.landed: dict[tuple[str, str], list[list[int]]] = {}
        hours = sorted([*self.said["generations"].items(), *self.said.get("earlier_generations", {}).items()])
        require("hours", sorted((m["hour"], m["generation"]) for m in self.said["inputs"]["manifests"]), hours)
        for named in self.said["inputs"]["manifests"]:
            with self.place("manifests", named["key"]):
                found = digest_of(location := f"{self.lake}/{named['key']}")[0]
                require("sha256", found, named["sha256"] or found)
                self.manifest(json.loads(read(location)))

    def manifest(self, manifest: Json) -> None:
        for o in manifest["objects"]:
            self.file("landed objects", f"{self.lake}/{o['key']}", o["key"], o["sha256"], o["size"])
        unit = 2**32 if manifest["layout"] == "storage-sink" else 1
        for topic, partition, facts in [(t, p, facts) for t, inside in manifest["partitions"].items() for p, facts in inside.items()]:
            ranges = [*facts["ranges"], *facts.get("legal_gaps", [])]
            self.landed.setdefault((topic, partition), []).extend([first // unit, last // unit] for first, last in ranges)

    def offsets(self) -> None:
        if self.said["kind"] in ("rollback", "rewrite") or self.parent not in self.continued:
            return
        for topic, partition, (first, last) in [(t, p, ends) for t, inside in self.said["offsets"].items() for p, ends in inside.items()]:
            before = self.continued[self.parent]["offsets"].get(topic, {}).get(partition, [first, first - 1])
            require(f"{topic}[{partition}]: {first} to {last} contain {before}", first <= before[0] and last >= before[1])
            lacks = first
            for begin, end in sorted([before, *self.landed.get((topic, partition), [])]):
                lacks = max(lacks, end + 1) if begin <= lacks else lacks
            require(f"{topic}[{partition}]: offsets {first} to {last}, landed to", min(lacks - 1, last), last)

    def intent(self, document: Json, content: bytes) -> None:
        require("bytes are JSON as the page says", json.dumps(document, ensure_ascii=False, indent=1).encode() == content)
        members = json.loads(self.read("publish", self.number))["certificate"]
        names = (self.said.keys() | members.keys()) - {"published_at_ms", "tables", "changelogs"}
        differs = sorted(name for name in names if self.said.get(name) != members.get(name))
        require(f"members that differ from {self.key('publish', self.number)}", differs, [])

    def signature(self, content: bytes) -> None:
        if f"{self.number:08}.json" < min(self.there["signatures"], default="9"):
            self.unchecked["certificates", "they are not signed"] += 1
            return
        with self.place("signatures", self.key("signatures", self.number)):
            envelope = json.loads(self.read("signatures", self.number))
            require("payloadType", envelope["payloadType"], PAYLOAD)
            require("the payload is the certificate", base64.b64decode(envelope["payload"]) == content)
            signatures = [base64.b64decode(one["sig"]) for one in envelope["signatures"]]
            signed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(content), content)
            verified = any(verifies(key, signed, sig) for key in self.public_keys for sig in signatures)
            require("a public key verifies it", verified or not self.public_keys)
            self.unchecked["signatures", "without --public-key, only their form and payload are compared"] += not self.public_keys

    def cut(self, document: Json) -> None:
        require("seq and snapshots", (document["seq"], document["snapshots"]), (self.number, self.said["tables"]))
        for name in "feed hour applied_ts resolved_ts run version published_at_ms changelogs".split():
            require(name, document[name], self.said[name])
        for subject in self.subjects:
            facts, uuid = subject["annotations"], subject["annotations"]["uuid"]
            found = document["files"][uuid]["sha256"], document["metadata"].get(uuid)
            require(f"list and metadata of {uuid}", found, (subject["digest"]["sha256"], facts["metadata"]))

    def files(self, folder: str, name: str, named: tuple[int, ...], part: tuple[bytes, int] | None = None) -> Iterator[tuple[Any, ...]]:
        """The files of a list. named: what is said of its files, size, rows and unproven; part: of its last path and level."""
        with self.place("lists of files", key := f"{folder}/{name}.tsv"):
            require("sha256", digest_of(f"{self.lake}/{key}")[0], name)
            require("bytes that are no line of the form", LINE.sub(b"", content := read(f"{self.lake}/{key}")), b"")
            lines, sums = [line.groups() for line in LINE.finditer(content)], [(0, 0, 0, 0)]
            require("the paths are sorted, each once", paths := [line[0] for line in lines], sorted(set(paths)))
            require("last path and level", part and (paths[-1], max(int(line[7] or 0) for line in lines) + 1), part)
            for path, sha256, size, rows, kind, files, unproven, level in lines:
                file = path.decode(), int(size), int(rows), int(kind == b"deletes")
                sums += [(int(files or 1), file[1], -file[2] if file[3] else file[2], int(unproven or sha256 == b"-"))]
                yield from self.files(folder, sha256.decode(), sums[-1], (path, int(level))) if level else [(file, sha256.decode())]
            require("files, size, rows and unproven", tuple(map(sum, zip(*sums, strict=True))), named)

    def table(self, subject: Json) -> None:
        facts, name = subject["annotations"], subject["name"]
        named = tuple(facts[member] for member in ("files", "size", "rows", "unproven"))
        listed = list(self.files(f"files/{self.feed}/{facts['uuid']}", subject["digest"]["sha256"], named))
        for file, sha256 in listed:
            self.file("data and delete files", file[0], file[0], sha256, file[1])
        self.unchecked["Iceberg snapshots", "the place of the metadata is not known"] += facts["metadata"] is None
        lists = snapshots(facts["metadata"].rpartition("/")[0]) if facts["metadata"] and len(listed) == facts["files"] else {}
        for location in lists.get((facts["uuid"], facts["snapshot_id"]), [""] if lists else []):
            with self.place("Iceberg snapshots", location or facts["metadata"]):
                require(f"{name}: a metadata file has snapshot {facts['snapshot_id']}", bool(location))
                files = {file for manifest in avro_records(read(location)) for file in manifest_files(manifest["manifest_path"])}
                what = f"{name}, snapshot {facts['snapshot_id']}: files in one of list and snapshot"
                require(what, sorted(path for path, *_ in files ^ {file for file, _ in listed}), [])

    def file(self, what: str, location: str, key: str, sha256: str, size: int) -> None:
        if (location, sha256, size) not in self.compared:
            self.compared.add((location, sha256, size))
            with self.place(what, key):
                found = digest_of(location)
                require("sha256 and size", found, (found[0] if sha256 == "-" else sha256, size))
                self.unchecked[f"sha256 of {what}", "not known when the certificate was written"] += sha256 == "-"


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the certificates of a feed from the files of a lake.")
    parser.add_argument("lake", help="folder, or s3://bucket/path")
    parser.add_argument("feed")
    parser.add_argument("--public-key", action="append", default=[], metavar="PEM", help="Ed25519 public key; may be repeated")
    flags = parser.parse_args()
    (audit := Audit(flags.lake, flags.feed, flags.public_key)).run()
    code, verdict = (2, "it has no certificates") if not audit.checked else (3, "not as certified") if audit.wrong else (0, "as certified")
    said = [f"{flags.feed}: {verdict}"]
    said += [f"  WRONG cut {number}, {key}: {what}" for number, key, what in sorted(audit.wrong, key=lambda wrong: wrong[0])]
    said += [f"  checked: {many} {what}" for what, many in sorted(audit.checked.items())]
    said += [f"  not checked: {many} {what}: {why}" for (what, why), many in sorted(audit.unchecked.items()) if many]
    sys.stdout.write("\n".join([*said, "  not checked: numbers of messages and events, statements, decisions, and values in tables", ""]))
    return code


if __name__ == "__main__":
    sys.exit(main())
