"""A certificate proves the files of its tables and names the certificate before it; the chain goes over every kind of cut."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.checkout import CHECKOUT
from tests.lake import cheap, lakes
from tidelake.config.lake_paths import certificate_key, cut_key, file_list_key, file_lists, intent_key, manifest_key
from tidelake.errors import DamageError
from tidelake.io.documents import read_document
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Advance, FilesChange, Intent, ProvenFile
from tidelake.lake.cut_documents import certificate, find_certificate, find_certificate_bytes, read_certificate, read_cut
from tidelake.lake.opened import Lake
from tidelake.lake.proof import stored_lists
from tidelake.lake.proof.model import Certificate, json_schema
from tidelake.lake.proof.snapshot_files import TableFiles
from tidelake.lake.proof.stored_lists import StoredLists
from tidelake.maintenance.expire import forget_lists
from tidelake.maintenance.needs import RetainedCuts
from tidelake.publish.abandon import abandon
from tidelake.publish.certify import certify
from tidelake.publish.rollback import rollback
from tidelake.publish.steps import declare

SCHEMA = CHECKOUT / "schemas" / "certificate.schema.json"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake.of(lakes.feed(tmp_path)) as opened:
        yield opened


def document(lake: Lake, seq: int) -> dict[str, Any]:
    """A certificate as it is stored. It is as the schema says."""
    found: dict[str, Any] = json.loads(lake.store.read(certificate_key("shop", seq)))
    assert [e.message for e in Draft202012Validator(json.loads(SCHEMA.read_bytes())).iter_errors(found)] == []
    Certificate.model_validate(found)
    return found


def sha256(lake: Lake, seq: int) -> str:
    return hashlib.sha256(lake.store.read(certificate_key("shop", seq))).hexdigest()


def in_metadata(table: LakeTable, snapshot_id: int) -> list[tuple[str, int, int]]:
    """(path, size, rows) of a snapshot's files, sorted."""
    files = TableFiles(table.table.metadata, table.table.io).files(snapshot_id)
    return sorted((f.file.path, f.file.size, f.file.rows) for f in files)


def test_the_schema_is_that_of_the_certificate() -> None:
    assert SCHEMA.read_bytes() == json_schema(), "write it anew: python -m tests.publish.test_certify"
    Draft202012Validator.check_schema(json.loads(SCHEMA.read_bytes()))


def test_the_subjects_are_the_tables_with_the_list_of_their_files_and_its_sum(lake: Lake) -> None:
    cut = cheap.publish(lake, cheap.publish(lake, None, 0), 1)
    said = document(lake, 2)
    assert [(s["name"], s["annotations"]["kind"], s["annotations"]["rows"]) for s in said["subject"]] == [
        ("d.k", "snapshot", 3),
        ("d_changelog.k", "changelog", 3),
    ]
    assert said["predicate"]["uncovered"] == ["d.idle"], "cheap cuts write it beside Tidelake"
    for s in said["subject"]:
        at, table = s["annotations"], lake.catalog.load(s["name"])
        content = lake.store.read(file_list_key("shop", table.uuid, s["digest"]["sha256"]))
        assert hashlib.sha256(content).hexdigest() == s["digest"]["sha256"]
        lines = [line.split("\t") for line in content.decode().splitlines()]
        assert [(path, int(size), int(rows)) for path, _, size, rows, _ in lines] == in_metadata(table, at["snapshot_id"])
        proven = [(path, digest) for path, digest, *_ in lines if digest != "-"]
        assert [hashlib.sha256(Path(path.removeprefix("file://")).read_bytes()).hexdigest() for path, _ in proven] == [d for _, d in proven]
        assert (len(lines), len(lines) - len(proven)) == (at["files"], at["unproven"]) == (3, 1), "the first file is older than the list"
        assert at["metadata"] == table.metadata
    assert cut.files.keys() == {lake.catalog.load(t).uuid for t in ("d.k", "d_changelog.k")}


def test_a_file_that_a_worker_summed_up_is_not_read_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = cheap.publish(lake, None, 0)
    k = cut.snapshots["d.k@-1"]
    lists = StoredLists(lake.store, "shop", k.uuid)
    before = lists.files(cut.files[k.uuid].sha256)
    new = ProvenFile(path="file:///new.parquet", sha256="ab" * 32, size=5, rows=1)
    change = FilesChange(base=k.snapshot_id, to=77, added=[new], removed=[before[0].path])
    advance = Advance(identifier="d.k", uuid=k.uuid, base=k.snapshot_id, to=77, branch="run_2_1", incarnation="d.k@-1", files=change)
    intent = Intent(cut=cut.model_copy(update={"seq": 2}, deep=True), advances=[advance])
    monkeypatch.setattr(Lake, "workers", None)
    certify(lake, intent, "hour")
    after = lists.files(intent.cut.files[k.uuid].sha256)
    assert after == sorted([*before[1:], new], key=lambda f: f.path)
    assert intent.advances[0].files is None, "the intent stays small"


def test_every_certificate_names_the_one_before_over_rollback_and_abandoned_numbers(lake: Lake) -> None:
    one = cheap.publish(lake, None, 0)
    two = cheap.publish(lake, one, 1)
    rollback(lake, "cut 1")
    three = read_cut(lake.store, "shop", 3)
    declare(lake.store, Intent(cut=two.model_copy(update={"seq": 4, "snapshots": {}, "changelogs": {}})))
    assert abandon(lake) is not None
    five = three.model_copy(update={"seq": 4})  # what cheap.publish counts from
    assert cheap.publish(lake, five, 2).seq == 5
    said = [read_certificate(lake.store, "shop", n) for n in (1, 2, 3, 5)]
    assert [(s["kind"], s["parent_seq"]) for s in said] == [("hour", None), ("hour", None), ("rollback", 1), ("hour", None)]
    before = [None, *({"cut": n, "sha256": sha256(lake, n)} for n in (1, 2, 3))]
    assert [s["previous"] for s in said] == before
    assert [s["abandoned"] for s in said] == [[], [], [], [4]]
    assert [s["digest"] for s in document(lake, 3)["subject"]] == [s["digest"] for s in document(lake, 1)["subject"]]


def test_a_certificate_of_the_version_before_is_read_and_the_chain_goes_on_from_its_bytes(lake: Lake) -> None:
    cut = cheap.publish(lake, None, 0)
    flat = {k: v for k, v in read_certificate(lake.store, "shop", 1).items() if k not in ("previous", "kind", "inputs", "definitions")}
    lake.store.write(certificate_key("shop", 1), json.dumps(flat).encode())
    assert find_certificate(lake.store, "shop", 1) == flat
    cheap.publish(lake, cut, 1)
    assert read_certificate(lake.store, "shop", 2)["previous"] == {"cut": 1, "sha256": sha256(lake, 1)}


def test_a_statement_about_something_else_is_refused(lake: Lake) -> None:
    cheap.publish(lake, None, 0)
    lake.store.write(
        certificate_key("shop", 1), json.dumps(document(lake, 1) | {"predicateType": "https://slsa.dev/provenance/v1"}).encode()
    )
    with pytest.raises(DamageError, match=r"certificates/shop/00000001.json \(.* cannot be read: _type: .*not a certificate of Tidelake"):
        find_certificate(lake.store, "shop", 1)


def test_a_lost_certificate_and_a_lost_cut_are_rebuilt_byte_for_byte(lake: Lake) -> None:
    cheap.publish(lake, None, 0)
    intent = read_document(lake.store, intent_key("shop", 1), Intent)
    before = lake.store.read(certificate_key("shop", 1))
    lake.store.delete(certificate_key("shop", 1))
    assert certificate(intent, read_cut(lake.store, "shop", 1)) == before == find_certificate_bytes(lake.store, "shop", 1)
    lake.store.write(certificate_key("shop", 1), before)
    before = lake.store.read(cut_key("shop", 1))
    lake.store.delete(cut_key("shop", 1))
    assert read_cut(lake.store, "shop", 1).model_dump_json(indent=1).encode() == before


def test_the_input_and_the_definitions_are_named_with_their_sums(lake: Lake) -> None:
    lake.feed.folder.mkdir(parents=True)
    (lake.feed.folder / "feed.toml").write_text("x = 1\n")
    (lake.feed.folder / "expectations").mkdir()
    (lake.feed.folder / "expectations" / "d.k.toml").write_text("")
    key = manifest_key("shop", "2026-01-01T00", 2)
    lake.store.write(key, b"{}")
    cut = cheap.publish(lake, None, 0)
    again = Intent(cut=cut.model_copy(update={"seq": 2, "generations": {"2026-01-01T00": 2, "2026-01-01T01": 1}}, deep=True))
    certify(lake, again, "hour")
    lost = {"hour": "2026-01-01T01", "generation": 1, "key": manifest_key("shop", "2026-01-01T01", 1), "sha256": None}
    there = {"hour": "2026-01-01T00", "generation": 2, "key": key, "sha256": hashlib.sha256(b"{}").hexdigest()}
    assert again.certificate["inputs"] == {"manifests": [there, lost]}
    assert again.certificate["definitions"]["files"] == {
        "feed.toml": hashlib.sha256(b"x = 1\n").hexdigest(),
        "expectations/d.k.toml": hashlib.sha256(b"").hexdigest(),
    }


def test_lists_that_no_retained_cut_needs_go_with_their_parts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_lists, "WHOLE", 1)
    monkeypatch.setattr(stored_lists, "_A_PART", 1 << 64)
    cut = None
    for hour in range(8):
        cut = cheap.publish(lake, cut, hour)
    there = {o.key for o in lake.store.objects(file_lists("shop"))}
    needed = _lists_of(lake, 1) | _lists_of(lake, 8)
    assert len(needed) < len(there)
    assert forget_lists(lake, RetainedCuts(lake.store, "shop").lists([1, 8])) == len(there) - len(needed)
    assert {o.key for o in lake.store.objects(file_lists("shop"))} == needed


def test_while_a_part_is_missing_all_lists_of_its_table_stay(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stored_lists, "WHOLE", 1)
    monkeypatch.setattr(stored_lists, "_A_PART", 1 << 64)  # one part: the list of cut 1 is never a part of the list of cut 2
    cut = cheap.publish(lake, cheap.publish(lake, None, 0), 1)
    k, changelog = (lake.catalog.load(t).uuid for t in ("d.k", "d_changelog.k"))
    lost = file_list_key("shop", k, cut.files[k].sha256)
    lake.store.delete(lost)
    assert forget_lists(lake, RetainedCuts(lake.store, "shop").lists([2])) == 1
    assert {o.key.split("/")[-2] for o in lake.store.objects(file_lists("shop"))} == {k, changelog}
    assert f"all lists of files of table {k} stay: DAMAGED: {lake.store.uri_of(lost)}: it is missing" in caplog.text


def _lists_of(lake: Lake, seq: int) -> set[str]:
    """The keys of all lists of a cut and their parts."""
    files = read_cut(lake.store, "shop", seq).files
    return {
        StoredLists(lake.store, "shop", u).key(name)
        for u, f in files.items()
        for name in StoredLists(lake.store, "shop", u).names({f.sha256: f.files})
    }


if __name__ == "__main__":
    SCHEMA.write_bytes(json_schema())
