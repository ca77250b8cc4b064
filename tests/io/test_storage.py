"""Every kind of store keeps the same promises: a local folder, moto's S3, and a real S3 server."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from moto.server import ThreadedMotoServer

from tests.conftest import FreshUri
from tidelake.errors import StorageError
from tidelake.io import storage
from tidelake.io.object_store import RangedObject
from tidelake.io.storage import ObjectInfo, Store, open_store, probe_conditional_puts
from tidelake.spark.application import static_settings

WRITERS = 8
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def moto_endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b").create_bucket(
        Bucket="lake"
    )
    yield endpoint
    server.stop()


@pytest.fixture
def moto(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FreshUri]:
    for name, value in {"AWS_ENDPOINT_URL_S3": moto_endpoint, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(name, value)
    storage.reset()
    yield lambda name: f"s3://lake/{name}-{next(_NUMBERS)}"
    storage.reset()


@pytest.fixture(params=["local", "moto", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return open_store(str(tmp_path / "store"))
    fresh: FreshUri = request.getfixturevalue(request.param)
    return open_store(fresh("store"))


def race(action: Callable[[int], bool]) -> list[int]:
    """The numbers of those that won, of WRITERS that start at once."""
    start = Barrier(WRITERS)

    def run(number: int) -> bool:
        start.wait()
        return action(number)

    with ThreadPoolExecutor(WRITERS) as pool:
        return [number for number, won in enumerate(pool.map(run, range(WRITERS))) if won]


def etag(store: Store, key: str) -> str:
    info = store.head(key)
    assert info is not None
    return info.etag


def test_what_was_written_is_read_and_listed(store: Store) -> None:
    store.write("a/b", b"one")
    store.write("a/b", b"three")
    assert store.read("a/b") == b"three"
    assert store.head("a/b") == ObjectInfo("a/b", 5, etag(store, "a/b"))
    assert list(store.objects()) == [store.head("a/b")]
    info = store.head("a/b")
    assert info is not None
    assert [i.modified_ms // 1000 for i in store.objects()] == [info.modified_ms // 1000]  # S3 answers HEAD in seconds
    assert info.modified_ms > 1_600_000_000_000


def test_a_folder_is_no_object(store: Store) -> None:
    store.write("a/b", b"one")
    assert store.head("a") is None


def test_objects_are_listed_by_key_and_a_prefix_need_not_end_at_a_folder(store: Store) -> None:
    for key in ("a/x/2", "a/x-1", "a/x/10", "b", "a/y", "a.1"):
        store.write(key, key.encode())
    assert [info.key for info in store.objects()] == ["a.1", "a/x-1", "a/x/10", "a/x/2", "a/y", "b"]
    assert [info.key for info in store.objects("a/x")] == ["a/x-1", "a/x/10", "a/x/2"]
    assert [info.key for info in store.objects("a/x/")] == ["a/x/10", "a/x/2"]
    assert [info.key for info in store.objects("none/")] == []


def test_some_objects_are_no_more_than_asked_for(store: Store) -> None:
    for key in ("a/x/1", "a/x/2", "a/x-3", "b/4"):
        store.write(key, key.encode())
    assert sorted(info.key for info in store.some("", 9)) == ["a/x-3", "a/x/1", "a/x/2", "b/4"]
    assert sorted(info.key for info in store.some("a/x", 9)) == ["a/x-3", "a/x/1", "a/x/2"]
    assert store.some("a/x/", 1) == [store.head("a/x/1")]
    assert len(store.some("", 3)) == 3
    assert store.some("none/", 3) == []


def test_folders_are_the_names_below_a_prefix_that_hold_something(store: Store) -> None:
    for key in ("t/b/1", "t/a/x/1", "t/file", "u/1"):
        store.write(key, b"")
    assert store.folders("t/") == ["a", "b"]
    assert store.folders() == ["t", "u"]
    assert store.folders("none/") == []


def test_more_objects_than_one_page_are_all_listed(store: Store, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "100")  # a request to moto takes 13 ms
    many = 105 if request.node.callspec.params["store"] == "moto" else 1_050
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: store.write(f"many/{i:04d}", b""), range(many)))
    assert [info.key for info in store.objects("many/")] == [f"many/{i:04d}" for i in range(many)]


def test_an_object_that_is_not_there_is_told_apart_from_failure(store: Store, tmp_path: Path) -> None:
    assert store.head("none") is None
    assert store.read_if_present("none") is None
    store.delete("none")
    for action in (
        store.read,
        store.open,
        lambda key: store.download(key, tmp_path / "copy"),
        lambda key: store.fetch(key, tmp_path / "c"),
    ):
        with pytest.raises(StorageError, match="none") as caught:
            action("none")
        assert caught.value.code == "NOT_FOUND"


def test_a_deleted_object_is_gone(store: Store) -> None:
    store.write("a", b"1")
    store.delete("a")
    assert list(store.objects()) == []


def test_a_file_goes_up_and_comes_down_with_its_hash(store: Store, tmp_path: Path) -> None:
    content = os.urandom(9 << 20)  # more than one part of an upload
    (tmp_path / "up").write_bytes(content)
    store.upload("big", tmp_path / "up")
    assert store.download("big", tmp_path / "down") == hashlib.sha256(content).hexdigest()
    assert (tmp_path / "down").read_bytes() == content


def test_an_object_is_fetched_as_a_file_and_a_local_one_is_not_copied(store: Store, tmp_path: Path) -> None:
    content = os.urandom(3 << 20)
    store.write("a/big", content)
    found, is_local = store.fetch("a/big", tmp_path / "copy"), "://" not in store.uri
    assert found.read_bytes() == content
    assert found == (Path(store.uri_of("a/big")) if is_local else tmp_path / "copy")
    assert (tmp_path / "copy").exists() is not is_local


def test_ranges_of_an_object_are_read_like_a_file(store: Store) -> None:
    data = bytes(range(256)) * 5
    store.write("k", data)
    assert [store.read("k", *at) for at in ((), (3,), (3, 9), (0, 5), (1270, 2000))] == [data, data[3:], data[3:9], data[:5], data[1270:]]
    with RangedObject(store, "k", len(data)) as file:
        assert (file.read(2), file.tell(), file.seek(-4, io.SEEK_END), file.read(9), file.read(1)) == (data[:2], 2, 1276, data[-4:], b"")
        assert (file.seek(10), file.seek(5, io.SEEK_CUR), file.read(), file.readable(), file.seekable()) == (10, 15, data[15:], True, True)


def test_an_object_is_put_only_where_none_is(store: Store) -> None:
    assert store.put_if_absent("a", b"first") is True
    assert store.put_if_absent("a", b"second") is False
    assert store.read("a") == b"first"


def test_an_object_is_replaced_only_if_it_is_still_the_one_that_was_seen(store: Store) -> None:
    store.write("a", b"first")
    seen = etag(store, "a")
    assert store.put_if_match("a", b"second", seen) is True
    assert store.put_if_match("a", b"third", seen) is False
    assert store.read("a") == b"second"
    assert store.put_if_match("none", b"x", seen) is False
    assert store.head("none") is None


def test_of_writers_that_put_one_object_at_once_exactly_one_wins(store: Store) -> None:
    for turn in range(3):
        (winner,) = race(lambda number, key=f"k{turn}": store.put_if_absent(key, b"from %d" % number))  # type: ignore[misc]
        assert store.read(f"k{turn}") == b"from %d" % winner


def test_of_writers_that_replace_one_object_at_once_exactly_one_wins(store: Store) -> None:
    store.write("k", b"begin")
    for turn in range(3):
        seen = etag(store, "k")
        (winner,) = race(lambda number, seen=seen, turn=turn: store.put_if_match("k", b"%d from %d" % (turn, number), seen))  # type: ignore[misc]
        assert store.read("k") == b"%d from %d" % (turn, winner)


def test_the_probe_accepts_stores_that_keep_conditions_and_leaves_what_was_there(store: Store) -> None:
    store.write("probe-somebody-s", b"1")
    probe_conditional_puts(store)
    assert [o.key for o in store.objects()] == ["probe-somebody-s"]


@pytest.mark.parametrize("ignored", ["put_if_absent", "put_if_match"])
def test_the_probe_refuses_a_store_that_ignores_a_condition(ignored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path))

    def always(key: str, data: bytes, *_: str) -> bool:
        store.write(key, data)
        return True

    monkeypatch.setattr(store, ignored, always)
    with pytest.raises(StorageError, match=r"CONDITIONAL_PUTS: .* ignores conditional puts"):
        probe_conditional_puts(store)
    assert list(store.objects()) == []


def test_a_lake_that_cannot_be_made_is_named_and_not_the_probe(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError) as error:
        probe_conditional_puts(open_store(str(tmp_path / "file" / "lake")))
    assert f"the store is not writable: {tmp_path}/file/lake" in error.value.message
    assert "probe-" not in str(error.value)


def test_conditional_puts_leave_no_lock_files(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.write("a/lease.json", b"1")
    assert store.put_if_match("a/lease.json", b"2", etag(store, "a/lease.json"))
    assert not store.put_if_match("a/lease.json", b"3", "another")
    probe_conditional_puts(store)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["lease.json"]


def test_unfinished_local_writes_are_not_listed(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.write("a/b", b"1")
    (tmp_path / "a" / ".tmp-123").write_bytes(b"half")
    assert [info.key for info in store.objects()] == ["a/b"]


def test_errors_of_the_file_system_name_the_object(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = open_store(str(tmp_path))
    with pytest.raises(StorageError, match=f"STORAGE: {tmp_path}/file/below: "):
        store.write("file/below", b"1")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="Is a directory"):
        store.read("folder")


def test_a_scheme_that_is_not_known_is_refused() -> None:
    with pytest.raises(StorageError, match=r"unknown scheme in gs://.*use s3://bucket/prefix or a local folder"):
        open_store("gs://bucket/x")


def test_a_file_uri_is_a_local_folder(tmp_path: Path) -> None:
    open_store(f"file://{tmp_path}").write("a", b"1")
    assert (tmp_path / "a").read_bytes() == b"1"


def test_wrong_credentials_are_an_error_that_says_so(s3: FreshUri, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = s3("secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    storage.reset()
    with pytest.raises(StorageError, match=r"SignatureDoesNotMatch.*check the credentials"):
        open_store(uri).write("a", b"1")


def test_a_server_that_is_not_there_is_an_error_that_says_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    storage.reset()
    with pytest.raises(StorageError, match="check AWS_ENDPOINT_URL_S3, the network and the credentials"):
        open_store("s3://lake/x").read("a")
    storage.reset()


def test_other_clients_learn_endpoint_region_and_keys(s3: FreshUri) -> None:
    settings = storage.s3_settings()
    assert settings == {
        "endpoint": os.environ["AWS_ENDPOINT_URL_S3"],
        "region": "us-east-1",
        "access_key": os.environ["AWS_ACCESS_KEY_ID"],
        "secret_key": os.environ["AWS_SECRET_ACCESS_KEY"],
    }


def test_an_upload_that_s3_refuses_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """upload_file wraps what S3 answers in an error that is none of botocore's."""
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    (tmp_path / "up").write_bytes(b"x")

    def refused(**_: Any) -> tuple[Any, dict[str, Any]]:
        return AWSResponse("", 403, {}, None), {"Error": {"Code": "AccessDenied", "Message": "no"}}

    client.meta.events.register("before-call.s3.PutObject", refused)
    monkeypatch.setattr(storage, "_client", lambda: client)
    with pytest.raises(StorageError, match=r"s3://nowhere/up: .*AccessDenied"):
        open_store("s3://nowhere").upload("up", tmp_path / "up")


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_files_of_a_local_store_have_the_mode_that_the_umask_leaves(tmp_path: Path, umask: int, mode: int) -> None:
    store, source = open_store(str(tmp_path / "store")), tmp_path / "source"
    source.write_bytes(b"3")
    before = os.umask(umask)
    try:
        store.write("a/written", b"1")
        store.put_if_absent("a/put", b"2")
        store.upload("a/uploaded", source)
        assert static_settings()["spark.hadoop.fs.permissions.umask-mode"] == f"{umask:03o}"
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "store" / "a").iterdir()} == dict.fromkeys(
        ("written", "put", "uploaded"), mode
    )
    assert (tmp_path / "store" / "a").stat().st_mode & 0o777 == 0o777 & ~umask


def test_links_that_hide_objects_are_named(tmp_path: Path) -> None:
    """A link to a file is read as the file; one that leads nowhere, or to a folder, is not passed over."""
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (tmp_path / "elsewhere" / "file").write_bytes(b"there")
    root = tmp_path / "archive" / "t"
    root.mkdir(parents=True)
    (root / "a").symlink_to(tmp_path / "elsewhere" / "file")
    store = open_store(str(tmp_path / "archive"))
    assert [(o.key, o.size) for o in store.objects()] == [("t/a", 5)]
    for name, target, why in (("b", "gone", "which does not exist"), ("c", "elsewhere/below", "a folder, which is not followed")):
        (root / name).symlink_to(tmp_path / target)
        for listed in (lambda: list(store.objects("t/")), lambda: store.some("t/", 10)):
            with pytest.raises(StorageError, match=f"LINK: .*/t/{name} is a link to .*/{target}, {why}"):
                listed()
        (root / name).unlink()
