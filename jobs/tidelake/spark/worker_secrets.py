"""How secrets reach Spark's workers: the mask's key, and S3's key.

The rule: a secret is never part of a plan or an option, which Spark writes into its event log and shows in its UI; a Connect server
writes down the whole plan of a client. Options and functions name the place where workers find the secrets:

file:PATH        a file of mode 0600 that the session of this process wrote, and that is gone when it ends
environment:ID   the environment of a Spark Connect server elsewhere and of its executors; ID is that of the mask's key (masks.mark)
''               there are none

A data source is planned where the driver runs. What it reads there goes to the workers inside their tasks, which Spark does not write
down. Functions of a driver in this process travel in tasks as well, and take the secrets along; those of a Connect client are part of
its plan, and read the place in the worker.
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

OPTION = "handed"  # of data sources: the place

_PREFIX = "tidelake-handed-"
_FILE, _ENVIRONMENT = "file", "environment"
_S3_PLACE = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
_S3_KEY = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class Secrets(BaseModel):
    """s3: the environment's variables that say how S3 is reached; a process that has no key in them (a profile, a role) hands over none,
    and its workers need a profile or role of their own. mask_key: of the feed's hashes."""

    model_config = ConfigDict(frozen=True)

    s3: dict[str, str] = Field(default={}, repr=False)
    mask_key: str = Field(default="", repr=False)


NONE = Secrets()
_places: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()  # no setting: a Connect server does not give back what looks secret


@dataclass(frozen=True, slots=True)
class Handed:
    """What a function holds that Spark runs in workers. known: None where the function is part of a Connect client's plan."""

    place: str = ""
    known: Secrets | None = field(default=None, repr=False)

    def secrets(self) -> Secrets:
        """In the worker. Raises what the driver hears as a ConfigError (SECRETS) for a file that is not on this machine."""
        with errors_as_text():
            return read(self.place) if self.known is None else self.known


def of_environment(mask_key: str) -> Secrets:
    """What this process hands over."""
    return Secrets(s3=_s3(os.environ), mask_key=mask_key)


@contextmanager
def handed_over(secrets: Secrets, folder: Path | None) -> Iterator[str]:
    """The place of a file with the secrets, until the end. folder: where it is put, else where temporary files are.

    Files of processes that were killed are removed on this occasion: a living one holds a lock on its own.
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
    """The place for workers of a Connect server that this process did not start."""
    return f"{_ENVIRONMENT}:{_id(mask_key) if mask_key else ''}"


def keep_place(spark: SparkSession, place: str) -> None:
    """Where the workers of a session find their secrets."""
    _places[spark] = place


def place_of(spark: SparkSession) -> str:
    """What was kept for the session."""
    return _places.get(spark, "")


def handed(spark: SparkSession) -> Handed:
    """In the driver or client: for a function that Spark runs in workers."""
    place = place_of(spark)
    return Handed(place) if is_client(spark) else Handed(place, read(place))


def is_client(spark: SparkSession) -> bool:
    """Whether Spark runs in a Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def read(place: str) -> Secrets:
    """The secrets at a place. Raises ConfigError (SECRETS) for a file that is not on this machine."""
    kind, _, what = place.partition(":")
    if kind == _ENVIRONMENT:
        return Secrets(s3=_s3(os.environ), mask_key=next((v for v in os.environ.values() if what and _id(v) == what), ""))
    if kind != _FILE:
        return NONE
    try:
        return Secrets.model_validate_json(Path(what).read_bytes())
    except FileNotFoundError as e:
        raise ConfigError(
            f"a worker does not find {what}, which holds the secrets that it needs",
            code="SECRETS",
            remedy="a Connect server whose executors run on other machines is named by TIDELAKE_SPARK_REMOTE, and they have the secrets in "
            "their environment: docs/cluster.md",
        ) from e


def take_s3(variables: Mapping[str, str]) -> None:
    """In a worker: ask S3 from now on as the driver does. A key comes with its own token, or without one."""
    gone = [name for name in _S3_KEY if name in os.environ and name not in variables] if _S3_KEY[0] in variables else []
    if not gone and all(os.environ.get(name) == value for name, value in variables.items()):
        return
    for name in gone:
        del os.environ[name]
    os.environ.update(variables)
    storage.reset()


def sweep(folder: Path) -> None:
    """Remove what killed processes left in a folder."""
    for path in folder.glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # gone, or another user's
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
    """A new file of mode 0600 with a lock on it, and its descriptor."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, dir=folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:  # not swept away before it was locked
            return Path(name), descriptor
        os.close(descriptor)
