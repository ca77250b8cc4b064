"""Send secrets to Spark's workers: the masks' key, and S3's key.

The rule: a secret is never part of a plan, which Spark writes into its event log and shows in its UI; a Connect server writes
down the whole plan of a client. Functions contain only the place where workers find the secrets:

file:PATH        a file of mode 0600 that this process's session wrote; it is removed when the session ends
environment:ID   the environment of a Spark Connect server elsewhere and of its executors; ID is that of the masks' key (masks.mark)
''               no secrets

Functions of a driver in this process are sent in tasks, which Spark does not write down, and contain the secrets. Functions of a Connect
client are part of its plan and read the place in the worker.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, Field

from tidelake.errors import ConfigError
from tidelake.io import storage
from tidelake.spark.worker_errors import errors_as_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX = "tidelake-handed-"
_FILE, _ENVIRONMENT = "file", "environment"
_S3_PLACE = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
_S3_KEY = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class Secrets(BaseModel):
    """Secrets for workers. mask_key: key of the feed's hashes.

    s3: the environment variables for S3. A process that uses a profile or a role hands over no key; its workers need their own profile or
    role.
    """

    model_config = ConfigDict(frozen=True)

    s3: dict[str, str] = Field(default={}, repr=False)
    mask_key: str = Field(default="", repr=False)


NONE = Secrets()
_places: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()  # no setting: a Connect server does not return secret-looking values


@dataclass(frozen=True, slots=True)
class Handed:
    """The secrets of a function that Spark runs in workers. known: None if the function is part of a Connect client's plan."""

    place: str = ""
    known: Secrets | None = field(default=None, repr=False)

    def secrets(self) -> Secrets:
        """Return the secrets, in the worker. A missing file reaches the driver as ConfigError (SECRETS)."""
        with errors_as_text():
            return read(self.place) if self.known is None else self.known


def of_environment(mask_key: str) -> Secrets:
    """Return the secrets that this process hands to workers."""
    return Secrets(s3=_s3(os.environ), mask_key=mask_key)


@contextmanager
def handed_over(secrets: Secrets, folder: Path | None) -> Iterator[str]:
    """Write the secrets to a file during the block and yield its place. folder: where the file is put, default the temporary folder.

    Files of killed processes are removed first; a running process holds a lock on its own file.
    """
    if secrets == NONE:
        yield ""
        return
    within = Path(tempfile.gettempdir() if folder is None else folder).resolve()
    sweep(within)
    path, descriptor = _locked_file(within)
    try:
        os.write(descriptor, secrets.model_dump_json().encode())
        yield f"{_FILE}:{path}"
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def elsewhere(mask_key: str) -> str:
    """Return the place for workers of a Connect server that this process did not start."""
    return f"{_ENVIRONMENT}:{_id(mask_key) if mask_key else ''}"


def keep_place(spark: SparkSession, place: str) -> None:
    """Record where the workers of a session find their secrets."""
    _places[spark] = place


def place_of(spark: SparkSession) -> str:
    """Return the place recorded for the session."""
    return _places.get(spark, "")


def handed(spark: SparkSession) -> Handed:
    """Return, in the driver or client, the secrets for a function that Spark runs in workers."""
    place = place_of(spark)
    return Handed(place) if is_client(spark) else Handed(place, read(place))


def is_client(spark: SparkSession) -> bool:
    """Return whether Spark runs in a Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def read(place: str) -> Secrets:
    """Return the secrets at a place. Raises ConfigError (SECRETS) for a file that is not on this machine."""
    kind, _, what = place.partition(":")
    if kind == _ENVIRONMENT:
        return Secrets(s3=_s3(os.environ), mask_key=next((v for v in os.environ.values() if what and _id(v) == what), ""))
    if kind != _FILE:
        return NONE
    try:
        return Secrets.model_validate_json(Path(what).read_bytes())
    except FileNotFoundError as e:
        raise ConfigError(
            f"a worker does not find {what}, which holds its secrets",
            code="SECRETS",
            remedy="a Connect server whose executors run on other machines is named by TIDELAKE_SPARK_REMOTE, and they have the secrets in "
            "their environment: docs/cluster.md",
        ) from e


def take_s3(variables: Mapping[str, str]) -> None:
    """Use the driver's S3 settings in a worker. A key comes with its own token, or without one."""
    gone = [name for name in _S3_KEY if name in os.environ and name not in variables] if _S3_KEY[0] in variables else []
    if not gone and all(os.environ.get(name) == value for name, value in variables.items()):
        return
    for name in gone:
        del os.environ[name]
    os.environ.update(variables)
    storage.reset()


def sweep(folder: Path) -> None:
    """Remove the files of killed processes from a folder."""
    for path in folder.glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # removed, or another user's
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)


def _s3(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name in (*_S3_PLACE, *_S3_KEY) if (value := environment.get(name))}


def _id(mask_key: str) -> str:
    from tidelake.wire.masks import mark

    return mark("hash", mask_key.encode())


def _locked_file(folder: Path) -> tuple[Path, int]:
    """Create a file of mode 0600, lock it, and return it with its descriptor."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, dir=folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:  # not removed by `sweep` before it was locked
            return Path(name), descriptor
        os.close(descriptor)
