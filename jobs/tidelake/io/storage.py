"""Object storage on S3 or in a local folder: list, read, write, put if absent. The only user of boto3.

A Store has a root URI, `s3://bucket/prefix` or a local folder; keys are relative to it and use `/`. S3 endpoint, region and
credentials come from the usual AWS settings (AWS_ENDPOINT_URL_S3, AWS_PROFILE, AWS_ACCESS_KEY_ID, …).
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Any

from tidelake.errors import StorageError
from tidelake.io.file_lock import locked
from tidelake.io.object_store import CHUNK, ObjectInfo, Store, probe_conditional_puts
from tidelake.io.service_url import without_login

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["CHUNK", "ObjectInfo", "Store", "open_store", "probe_conditional_puts", "reset"]

CONNECT_SECONDS = 10
READ_SECONDS = 60  # longest time without a byte
BACK_OFF_SECONDS = 0.5  # after an interrupted download; doubled after each further one without data

_ATTEMPTS = 5  # of a conditional put that S3 answers with a conflict, and of an interrupted download
_MISSING = frozenset({"404", "NoSuchKey", "NotFound", "NoSuchBucket", "EntityNotFoundException"})
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"})
_BUSY = frozenset({"SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "ThrottlingException", "500", "502", "503", "504"})


def open_store(uri: str) -> Store:
    """Return the store at a URI. Raises StorageError for a scheme that is neither s3 nor a path."""
    if uri.startswith("s3://"):
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        return _S3Store(uri.rstrip("/"), bucket, prefix.strip("/"))
    if "://" in uri and not uri.startswith("file://"):
        raise StorageError(f"unknown scheme in {uri.split('://')[0]}://…", remedy="use s3://bucket/prefix or a local folder")
    return _LocalStore(Path(uri.removeprefix("file://")).resolve())


def reset() -> None:
    """Close the S3 client and drop all cached clients, so that the next use reads changed environment variables."""
    if aws_client.cache_info().currsize:
        _client().close()
    aws_client.cache_clear()
    _session.cache_clear()


def s3_answers(environment: Mapping[str, str], bucket: str) -> bool:
    """Return whether the S3 server in AWS's variables is up, accepts the credentials and has the bucket. Tries once, up to a second."""
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    config = Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=1, s3={"addressing_style": "path"})
    client = _session().client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL_S3"],
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        config=config,
    )
    try:
        client.head_bucket(Bucket=bucket)
    except (BotoCoreError, ClientError):
        return False
    return True


def s3_settings() -> dict[str, str]:
    """Return the settings for other S3 clients: endpoint, region, access_key, secret_key, token. Unset ones are absent."""
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
        folder, _, begin = prefix.rpartition("/")
        keys = sorted(p.relative_to(self.root).as_posix() for p in _files(self._path(folder), begin))
        return (info for key in keys if (info := self._listed(key)))

    def some(self, prefix: str, most: int) -> list[ObjectInfo]:
        folder, _, begin = prefix.rpartition("/")
        found = (self._listed(path.relative_to(self.root).as_posix()) for path in _files(self._path(folder), begin))
        return list(islice((info for info in found if info), most))

    def folders(self, prefix: str = "") -> list[str]:
        folder = self._path(prefix)
        found = folder.iterdir() if folder.is_dir() else ()
        return sorted(p.name for p in found if p.is_dir() and any(names for _, _, names in os.walk(p)))

    def open(self, key: str) -> IO[bytes]:
        with self._errors(key):
            return self._path(key).open("rb")

    def fetch(self, key: str, path: Path) -> Path:
        with self.open(key):
            return self._path(key)

    def write(self, key: str, data: bytes) -> None:
        with self._beside(key, data) as part:
            part.replace(self._path(key))

    def put_if_absent(self, key: str, data: bytes) -> bool:
        with self._beside(key, data) as part:
            try:
                self._path(key).hardlink_to(part)
            except FileExistsError:
                return False
            return True

    def put_if_match(self, key: str, data: bytes, etag: str) -> bool:
        with self._beside(key, data) as part, self._locked(key):
            now = self.head(key)
            if now is None or now.etag != etag:
                return False
            part.replace(self._path(key))
            return True

    def upload(self, key: str, path: Path) -> None:
        with self._beside(key, path) as part:
            part.replace(self._path(key))

    def head(self, key: str) -> ObjectInfo | None:
        try:
            with self._errors(key):
                found = self._path(key).stat()
        except StorageError as e:
            if e.code == "NOT_FOUND":
                return None
            raise
        etag = f"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"
        info = ObjectInfo(key, found.st_size, etag, found.st_mtime_ns // 1_000_000)
        return info if S_ISREG(found.st_mode) else None  # a folder is not an object

    def delete(self, key: str) -> None:
        with self._errors(key):
            self._path(key).unlink(missing_ok=True)

    def _listed(self, key: str) -> ObjectInfo | None:
        """Return a listed object; None if it has been removed since. Raises StorageError (LINK) for a link that hides objects."""
        info, path = self.head(key), self._path(key)
        if info is None and path.is_symlink():
            raise StorageError(
                f"{path} is a link to {path.readlink()}, {'a folder, which is not followed' if path.exists() else 'which does not exist'}",
                code="LINK",
                remedy="replace the link by its target (mount or copy it), or remove it",
            )
        return info

    def _path(self, key: str) -> Path:
        """Return the path of an object. Raises StorageError (BAD_KEY) for a key outside the store."""
        if key.startswith("/") or "\0" in key or ".." in key.split("/"):
            raise StorageError(
                f"{self.uri}: {key!r} is not a valid key of an object below it", code="BAD_KEY", remedy="remove or rename it"
            )
        return self.root / key

    @contextmanager
    def _beside(self, key: str, content: bytes | Path) -> Iterator[Path]:
        """Yield a temporary file with this content in the object's folder, flushed to disk; remove it afterwards if it still exists."""
        folder = self._path(key).parent
        with self._errors(key):
            folder.mkdir(parents=True, exist_ok=True)
            part = folder / f".tmp-{uuid.uuid4().hex}"
            try:
                with part.open("xb") as out:  # the umask sets its mode
                    if isinstance(content, bytes):
                        out.write(content)
                    else:
                        with content.open("rb") as source:
                            shutil.copyfileobj(source, out, CHUNK)
                    out.flush()
                    os.fsync(out.fileno())
                yield part
            finally:
                part.unlink(missing_ok=True)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as e:
            raise StorageError(f"{self.uri_of(key)} does not exist", code="NOT_FOUND") from e
        except OSError as e:
            raise StorageError(f"{self.uri_of(key)}: {e.strerror or e}", remedy="check the folder, its permissions and the disk") from e

    def _locked(self, key: str) -> AbstractContextManager[None]:
        target = self._path(key)
        return locked(target.parent / f".tmp-lock-{target.name}")


def _files(folder: Path, begin: str = "") -> Iterator[Path]:
    """Yield the files in and below a folder lazily, and links to folders. begin: of the names of what is read in the folder itself."""
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name.startswith(begin))
        names, begin = [name for name in names if name.startswith(begin)], ""
        links = [name for name in folders if Path(at, name).is_symlink()]
        yield from (Path(at, name) for name in sorted([*names, *links]) if not name.startswith(".tmp-"))


class _S3Store(Store):
    def __init__(self, uri: str, bucket: str, prefix: str) -> None:
        self.uri = uri
        self.bucket = bucket
        self.prefix = f"{prefix}/" if prefix else ""

    def objects(self, prefix: str = "") -> Iterator[ObjectInfo]:
        pages = _client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix + prefix)
        with self._errors(prefix):
            items = [item for page in pages for item in page.get("Contents", [])]
        found = (_info(item["Key"].removeprefix(self.prefix), item["Size"], item["ETag"], item["LastModified"]) for item in items)
        yield from sorted(info for info in found if not info.key.endswith("/"))  # SeaweedFS lists folder by folder, not by key

    def some(self, prefix: str, most: int) -> list[ObjectInfo]:
        pages = (
            _client()
            .get_paginator("list_objects_v2")
            .paginate(Bucket=self.bucket, Prefix=self.prefix + prefix, PaginationConfig={"MaxItems": most, "PageSize": min(most, 1000)})
        )
        with self._errors(prefix):
            items = [item for page in pages for item in page.get("Contents", [])]
        found = (_info(item["Key"].removeprefix(self.prefix), item["Size"], item["ETag"], item["LastModified"]) for item in items)
        return [info for info in found if not info.key.endswith("/")]

    def folders(self, prefix: str = "") -> list[str]:
        paginator = _client().get_paginator("list_objects_v2")
        with self._errors(prefix):
            pages = list(paginator.paginate(Bucket=self.bucket, Prefix=self.prefix + prefix, Delimiter="/"))
        names = [p["Prefix"].rstrip("/").rpartition("/")[2] for page in pages for p in page.get("CommonPrefixes", [])]
        return sorted(names)

    def open(self, key: str) -> IO[bytes]:
        with self._errors(key):
            body: Any = _client().get_object(Bucket=self.bucket, Key=self.prefix + key)["Body"]
        return body  # type: ignore[no-any-return]  # a StreamingBody reads like a file

    def chunks(self, key: str, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the object in chunks. An interrupted download resumes where it broke off, if the object is still the same."""
        from botocore.exceptions import HTTPClientError, IncompleteReadError

        done, failures, last = begin, 0, "" if end is None else str(end - 1)
        condition = {"Range": f"bytes={begin}-{last}"} if begin or last else dict[str, Any]()
        with self._errors(key):
            while True:
                answer = _client().get_object(Bucket=self.bucket, Key=self.prefix + key, **condition)
                size = done + answer["ContentLength"]
                try:
                    for chunk in answer["Body"].iter_chunks(CHUNK):
                        yield chunk
                        done, failures = done + len(chunk), 0
                    return
                except (HTTPClientError, IncompleteReadError):
                    failures += 1
                    if done == size:
                        return
                    if failures == _ATTEMPTS:
                        raise
                time.sleep(BACK_OFF_SECONDS * 2 ** (failures - 1))
                condition = {"Range": f"bytes={done}-{last}", "IfMatch": answer["ETag"]}

    def write(self, key: str, data: bytes) -> None:
        with self._errors(key):
            _client().put_object(Bucket=self.bucket, Key=self.prefix + key, Body=data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self._put_when(key, data, IfNoneMatch="*")

    def put_if_match(self, key: str, data: bytes, etag: str) -> bool:
        return self._put_when(key, data, IfMatch=f'"{etag}"')

    def _put_when(self, key: str, data: bytes, **condition: str) -> bool:
        from botocore.exceptions import ClientError

        with self._errors(key):
            for attempt in range(_ATTEMPTS):
                try:
                    _client().put_object(Bucket=self.bucket, Key=self.prefix + key, Body=data, **condition)  # type: ignore[arg-type]
                    return True
                except ClientError as e:
                    code = e.response["Error"]["Code"]
                    if code in ("PreconditionFailed", "412", "NoSuchKey"):
                        tried_again = e.response["ResponseMetadata"].get("RetryAttempts", 0) > 0
                        return tried_again and self.read_if_present(key) == data  # the first attempt succeeded, its answer was lost
                    if code != "ConditionalRequestConflict" or attempt == _ATTEMPTS - 1:
                        raise
        raise AssertionError("unreachable")

    def upload(self, key: str, path: Path) -> None:
        with self._errors(key):
            _client().upload_file(str(path), self.bucket, self.prefix + key)

    def head(self, key: str) -> ObjectInfo | None:
        from botocore.exceptions import ClientError

        with self._errors(key):
            try:
                found = _client().head_object(Bucket=self.bucket, Key=self.prefix + key)
            except ClientError as e:
                if e.response["Error"]["Code"] in ("404", "NoSuchKey", "NotFound"):
                    return None
                raise
        return _info(key, found["ContentLength"], found["ETag"], found["LastModified"])

    def tags(self, key: str) -> dict[str, str]:
        with self._errors(key):
            found = _client().get_object_tagging(Bucket=self.bucket, Key=self.prefix + key)["TagSet"]
        return {tag["Key"]: tag["Value"] for tag in found}

    def delete(self, key: str) -> None:
        with self._errors(key):
            _client().delete_object(Bucket=self.bucket, Key=self.prefix + key)

    def _errors(self, key: str) -> AbstractContextManager[None]:
        return aws_errors(self.uri_of(key))


def _info(key: str, size: int, etag: str, modified: datetime) -> ObjectInfo:
    return ObjectInfo(key, size, etag.strip('"'), int(modified.timestamp() * 1000))


@contextmanager
def aws_errors(what: str) -> Iterator[None]:
    """Raise the errors of an AWS client as StorageError that names `what` (NOT_FOUND if it does not exist)."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (ClientError, BotoCoreError, Boto3Error) as e:
        answered = e.__context__ if isinstance(e, Boto3Error) else e  # upload_file wraps S3's error in its own
        if isinstance(answered, ClientError):
            answer, text = answered.response["Error"]["Code"], answered.response["Error"].get("Message", "")
            code, remedy = _meaning(answer)
            raise StorageError(f"{what}: {answer}: {text}", code=code, remedy=remedy) from e
        raise StorageError(f"{what}: {e}", remedy="check AWS_ENDPOINT_URL_S3, the network and the credentials") from e


def _meaning(answer: str) -> tuple[str, str]:
    """Return Tidelake's code for an AWS error code, and the remedy."""
    if answer in _MISSING:
        return "NOT_FOUND", "check the bucket and key"
    if answer in ("PreconditionFailed", "412"):
        return "CHANGED", "the object was replaced meanwhile: run again"
    if answer in _EXPIRED:
        return "CREDENTIALS_EXPIRED", "renew the credentials and run again: finished work is kept"
    if answer in _BUSY:
        return "UNAVAILABLE", "the store is overloaded or failing: run again later, finished work is kept"
    return "", "check the credentials and their permissions"


@cache
def aws_client(service: str, region: str = "") -> Any:
    """Return a client of an AWS service with time-outs and retries, for this region or the environment's; cached until `reset`."""
    from botocore.config import Config

    style: Any = {"addressing_style": "path"} if _custom_endpoint() else {}
    config = Config(retries={"mode": "standard", "max_attempts": 5}, s3=style, connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS)
    return _session().client(service, config=config, region_name=region or _session().region_name or "us-east-1")


@cache
def _session() -> Any:
    import boto3

    return boto3.session.Session()


def _client() -> S3Client:
    return aws_client("s3")  # type: ignore[no-any-return]  # the stubs know it


def _custom_endpoint() -> bool:
    url = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return bool(url and without_login(url, "AWS_ENDPOINT_URL_S3", "give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"))
