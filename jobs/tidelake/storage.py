"""Objects: list, read, write, put if absent. The only user of boto3.

A Store is rooted at a URI, `s3://bucket/prefix` or a local folder; keys are relative to it and use `/`. S3 endpoint, region and
credentials come from where every AWS program takes them (AWS_ENDPOINT_URL_S3, AWS_PROFILE, AWS_ACCESS_KEY_ID, …).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tidelake.errors import StorageError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class ObjectInfo:
    """A listed object. etag changes when the object does: S3's ETag, or time and size of a local file."""

    key: str
    size: int
    etag: str


class Store(ABC):
    """Objects below one URI."""

    uri: str

    @abstractmethod
    def objects(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Every object whose key starts with prefix, sorted by key."""

    @abstractmethod
    def folders(self, prefix: str = "") -> list[str]:
        """The names directly below a prefix (`""` or ending in `/`) that have something below them, sorted."""

    @abstractmethod
    def open(self, key: str) -> IO[bytes]:
        """A forward-only stream of the object. Raises StorageError (NOT_FOUND)."""

    @abstractmethod
    def write(self, key: str, data: bytes) -> None:
        """Write or replace an object, whole or not at all."""

    @abstractmethod
    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write the object unless one is there; False if there was."""

    @abstractmethod
    def put_if_match(self, key: str, data: bytes, etag: str) -> bool:
        """Replace the object if it still is the one with this etag; False if not."""

    @abstractmethod
    def upload(self, key: str, path: Path) -> None:
        """Write a local file as an object, whole or not at all."""

    @abstractmethod
    def head(self, key: str) -> ObjectInfo | None:
        """The object, None where there is none."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove the object if it is there."""

    def read(self, key: str) -> bytes:
        """The whole object."""
        with self.open(key) as stream:
            return stream.read()

    def read_if_present(self, key: str) -> bytes | None:
        """The whole object, None where there is none."""
        try:
            return self.read(key)
        except StorageError as e:
            if e.code == "NOT_FOUND":
                return None
            raise

    def download(self, key: str, path: Path) -> str:
        """Copy an object into a local file, in chunks; returns its sha256 in hex."""
        digest = hashlib.sha256()
        with self.open(key) as stream, path.open("wb") as out:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
                out.write(chunk)
        return digest.hexdigest()

    def uri_of(self, key: str) -> str:
        """The object's full URI."""
        return f"{self.uri}/{key}" if key else self.uri


def open_store(uri: str) -> Store:
    """The store at a URI. Raises StorageError for a scheme that is neither s3 nor a path."""
    if uri.startswith("s3://"):
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        return _S3Store(uri.rstrip("/"), bucket, prefix.strip("/"))
    if "://" in uri and not uri.startswith("file://"):
        raise StorageError(f"unknown scheme in {uri.split('://')[0]}://…", remedy="use s3://bucket/prefix or a local folder")
    return _LocalStore(Path(uri.removeprefix("file://")).resolve())


def s3_settings() -> dict[str, str]:
    """What other S3 clients need to know: endpoint, region, access_key, secret_key, token; absent members are absent here."""
    session, client = _session(), _client()
    credentials = session.get_credentials()
    frozen = credentials.get_frozen_credentials() if credentials else None
    found = {
        "endpoint": client.meta.endpoint_url if _custom_endpoint() else None,
        "region": client.meta.region_name,
        "access_key": frozen.access_key if frozen else None,
        "secret_key": frozen.secret_key if frozen else None,
        "token": frozen.token if frozen else None,
    }
    return {name: value for name, value in found.items() if value}


class _LocalStore(Store):
    def __init__(self, root: Path) -> None:
        self.root = root
        self.uri = str(root)

    def objects(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folder = self.root / prefix.rpartition("/")[0]
        paths = (Path(at) / name for at, _, names in os.walk(folder) for name in names if not name.startswith(".tmp-"))
        keys = sorted(p.relative_to(self.root).as_posix() for p in paths)
        return (info for key in keys if key.startswith(prefix) and (info := self.head(key)))

    def folders(self, prefix: str = "") -> list[str]:
        folder = self.root / prefix
        return sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []

    def open(self, key: str) -> IO[bytes]:
        try:
            return (self.root / key).open("rb")
        except FileNotFoundError as e:
            raise StorageError(f"{self.uri_of(key)} does not exist", code="NOT_FOUND") from e

    def write(self, key: str, data: bytes) -> None:
        with self._beside(key) as part:
            part.write_bytes(data)
            part.replace(self.root / key)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        with self._beside(key) as part:
            part.write_bytes(data)
            try:
                (self.root / key).hardlink_to(part)
            except FileExistsError:
                return False
            return True

    def put_if_match(self, key: str, data: bytes, etag: str) -> bool:
        with self._beside(key) as part, self._locked(key):
            part.write_bytes(data)
            now = self.head(key)
            if now is None or now.etag != etag:
                return False
            part.replace(self.root / key)
            return True

    def upload(self, key: str, path: Path) -> None:
        with self._beside(key) as part:
            shutil.copyfile(path, part)
            part.replace(self.root / key)

    def head(self, key: str) -> ObjectInfo | None:
        try:
            stat = (self.root / key).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return ObjectInfo(key, stat.st_size, f"{stat.st_mtime_ns:x}-{stat.st_size:x}-{stat.st_ino:x}")

    def delete(self, key: str) -> None:
        (self.root / key).unlink(missing_ok=True)

    @contextmanager
    def _beside(self, key: str) -> Iterator[Path]:
        """A temporary file in the object's folder, removed afterwards if still there."""
        folder = (self.root / key).parent
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".tmp-", dir=folder)
        os.close(handle)
        part = Path(name)
        part.chmod(0o644)
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        import fcntl

        target = self.root / key
        with (target.parent / f".tmp-lock-{target.name}").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class _S3Store(Store):
    def __init__(self, uri: str, bucket: str, prefix: str) -> None:
        self.uri = uri
        self.bucket = bucket
        self.prefix = f"{prefix}/" if prefix else ""

    def objects(self, prefix: str = "") -> Iterator[ObjectInfo]:
        pages = _client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix + prefix)
        with _named(self.uri_of(prefix)):
            for page in pages:
                for item in page.get("Contents", []):
                    yield ObjectInfo(item["Key"].removeprefix(self.prefix), item["Size"], item["ETag"].strip('"'))

    def folders(self, prefix: str = "") -> list[str]:
        paginator = _client().get_paginator("list_objects_v2")
        with _named(self.uri_of(prefix)):
            pages = list(paginator.paginate(Bucket=self.bucket, Prefix=self.prefix + prefix, Delimiter="/"))
        names = [p["Prefix"].rstrip("/").rpartition("/")[2] for page in pages for p in page.get("CommonPrefixes", [])]
        return sorted(names)

    def open(self, key: str) -> IO[bytes]:
        with _named(self.uri_of(key)):
            body: Any = _client().get_object(Bucket=self.bucket, Key=self.prefix + key)["Body"]
        return body  # type: ignore[no-any-return]  # a StreamingBody reads like a file

    def write(self, key: str, data: bytes) -> None:
        with _named(self.uri_of(key)):
            _client().put_object(Bucket=self.bucket, Key=self.prefix + key, Body=data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self._put_when(key, data, IfNoneMatch="*")

    def put_if_match(self, key: str, data: bytes, etag: str) -> bool:
        return self._put_when(key, data, IfMatch=f'"{etag}"')

    def _put_when(self, key: str, data: bytes, **condition: str) -> bool:
        from botocore.exceptions import ClientError

        with _named(self.uri_of(key)):
            try:
                _client().put_object(Bucket=self.bucket, Key=self.prefix + key, Body=data, **condition)  # type: ignore[arg-type]
            except ClientError as e:
                if e.response["Error"]["Code"] in ("PreconditionFailed", "412", "ConditionalRequestConflict", "NoSuchKey"):
                    return False
                raise
            return True

    def upload(self, key: str, path: Path) -> None:
        with _named(self.uri_of(key)):
            _client().upload_file(str(path), self.bucket, self.prefix + key)

    def head(self, key: str) -> ObjectInfo | None:
        from botocore.exceptions import ClientError

        with _named(self.uri_of(key)):
            try:
                found = _client().head_object(Bucket=self.bucket, Key=self.prefix + key)
            except ClientError as e:
                if e.response["Error"]["Code"] in ("404", "NoSuchKey", "NotFound"):
                    return None
                raise
        return ObjectInfo(key, found["ContentLength"], found["ETag"].strip('"'))

    def delete(self, key: str) -> None:
        with _named(self.uri_of(key)):
            _client().delete_object(Bucket=self.bucket, Key=self.prefix + key)


@cache
def _session() -> Any:
    import boto3

    return boto3.session.Session()


@cache
def _client() -> S3Client:
    from botocore.config import Config

    style: Any = {"addressing_style": "path"} if _custom_endpoint() else {}
    config = Config(retries={"mode": "standard", "max_attempts": 5}, s3=style, connect_timeout=10, read_timeout=60)
    session = _session()
    client: S3Client = session.client("s3", config=config, region_name=session.region_name or "us-east-1")
    return client


def _custom_endpoint() -> bool:
    return bool(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"))


@contextmanager
def _named(uri: str) -> Iterator[None]:
    """Errors of the S3 client as StorageError that names the object and says what to check."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as e:
        code = e.response["Error"]["Code"]
        missing = code in ("404", "NoSuchKey", "NotFound", "NoSuchBucket")
        remedy = "check the bucket and key" if missing else "check the credentials and what they may do"
        raise StorageError(
            f"{uri}: {code}: {e.response['Error'].get('Message', '')}", code="NOT_FOUND" if missing else "", remedy=remedy
        ) from e
    except BotoCoreError as e:
        raise StorageError(f"{uri}: {e}", remedy="check AWS_ENDPOINT_URL_S3, the network and the credentials") from e
