"""Translate errors of the libraries below a lake by cause: the catalog's server, a lost file of a table, Spark's disk and memory."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from tidelake.errors import DamageError, StorageError, TidelakeError

_NO_SPACE = "No space left on device"
_FULL = 64 << 20  # bytes free; a disk with less counts as full
_PATH = re.compile(r"No space left on device:? '([^']+)'")
_QUOTED = re.compile(r"'([^']+)'")
_JAVA = re.compile(r"^(?:: |Caused by: )([\w.$]+(?:Exception|Error)): *(.*)$", re.MULTILINE)
_MEMORY = ("OutOfMemoryError", "GC overhead limit")


@contextmanager
def named_causes(place: str, warehouse: str) -> Iterator[None]:
    """Raise errors of the catalog, pyiceberg and Spark as StorageError or DamageError with their cause. place: the catalog, without
    secrets.
    """
    try:
        yield
    except TidelakeError:
        raise
    except DBAPIError as e:
        raise unreachable(place, str(e.orig)) from e
    except Exception as e:
        found = _of_catalog(e, place) or _of_disk(e, warehouse) or _of_spark(e)
        if found is None:
            raise
        raise found from e


def unreachable(place: str, why: str) -> StorageError:
    """Return the error for a catalog that does not answer or refuses. why: the library's message; its first line is used."""
    said = why.strip().partition("\n")[0]
    server = "check that its server is running and reachable from here, and the login in lake.catalog{}; then run again"
    server = server.format(" or [lake.rest]" if place.startswith("http") else "")
    if place.startswith("glue:"):
        server = "check AWS's login and region, its rights in Glue, and that Glue is reachable from here; then run again"
    remedy = "check the file, its folder and the disk" if place.startswith("jdbc:sqlite:") else server
    return StorageError(f"the catalog {place}: {said}", code="CATALOG", remedy=remedy)


def _of_catalog(e: Exception, place: str) -> StorageError | None:
    """Return the error of a REST catalog or of AWS Glue: no connection, or a refused request."""
    kind = type(e)
    if kind.__module__.startswith("botocore.") and place.startswith("glue:"):
        return unreachable(place, str(e))
    if kind.__module__.startswith("requests."):
        return unreachable(place, _reason(e))
    if kind.__module__ == "pyiceberg.exceptions" and any(base.__name__ == "RESTError" for base in kind.__mro__):
        return unreachable(place, str(e))
    return None


def _reason(e: BaseException) -> str:
    """Return the operating system's text for a failed connection; the error's type if there is none."""
    at: BaseException | None = e
    while at is not None:
        if isinstance(at, OSError) and at.strerror:
            return at.strerror
        at = at.__cause__ or at.__context__
    return type(e).__name__


def _of_disk(e: Exception, warehouse: str) -> StorageError | None:
    text = str(e)
    full = isinstance(e, OSError) and e.errno == errno.ENOSPC
    if full or _NO_SPACE in text:
        named = _PATH.search(text)
        where = named[1] if named else str(e.filename) if isinstance(e, OSError) and e.filename else _full_disks(warehouse)
        return StorageError(
            f"{_NO_SPACE}: {where}",
            code="DISK_FULL",
            remedy="free space there, or let Spark use another folder (SPARK_LOCAL_DIRS); then run again: finished work is kept",
        )
    if isinstance(e, FileNotFoundError) and type(e).__module__ == "builtins":
        return lost_file("a table of the lake", e)
    return None


def lost_file(table: str, e: FileNotFoundError) -> DamageError:
    """Return the error for a missing file of a table."""
    named = _QUOTED.search(str(e))
    return DamageError(
        f"{table}: a file is missing: {e.filename or (named[1] if named else e)}",
        code="FILE_LOST",
        remedy="restore it from a backup or an earlier version of the object; were files removed from the warehouse by hand?",
    )


def _full_disks(warehouse: str) -> str:
    """Return the folders that Spark writes to whose disk is full; if none is full, all of them with their free bytes."""
    folders = [p for p in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if p] or [tempfile.gettempdir()]
    folders += [warehouse] if warehouse.startswith("/") else []
    free = {f: shutil.disk_usage(f).free for f in folders if Path(f).exists()}
    full = {f: n for f, n in free.items() if n < _FULL} or free
    return "; ".join(f"{f} has {n:,} bytes free" for f, n in full.items())


def _of_spark(e: Exception) -> StorageError | None:
    """Return the error for the last cause that an error of Spark's JVM names."""
    if not type(e).__module__.startswith(("py4j", "pyspark")):
        return None
    causes, text = _JAVA.findall(str(e)), str(e)
    if any(word in text for word in _MEMORY):
        said = "Spark ran out of memory"
        return StorageError(said, code="MEMORY", remedy="give it more: TIDELAKE_DRIVER_MEMORY, on a cluster the executors' memory")
    if not type(e).__module__.startswith("py4j") or not causes:
        return None
    kind, message = causes[-1]
    return StorageError(f"Spark: {kind.rpartition('.')[2]}: {message}", code="SPARK", remedy="--debug shows where")
