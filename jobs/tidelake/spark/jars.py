"""Fetch Spark's jars (Iceberg, catalogs) once through Ivy. `python -m tidelake.spark.jars` fills the cache for later sessions.

Ivy asks only Maven Central (ivysettings.xml). The jars in the cache must match jars.sha256, which has one line per jar in the format of
sha256sum.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from tidelake.errors import StorageError
from tidelake.spark.application import cached_jars, ivy_folder
from tidelake.spark.session import fetch_jars

SUMS = Path(__file__).with_name("jars.sha256")


def known_sums() -> dict[str, str]:
    """Return the sha256, in hex, of every jar by its name in the cache."""
    lines = (line.split(maxsplit=1) for line in SUMS.read_text(encoding="utf-8").splitlines())
    return {name.strip(): digest for digest, name in lines}


def check_jars(folder: Path) -> None:
    """Compare the jars of a folder with their checksums; jars of other versions are skipped. Raises StorageError (JAR_CHECKSUM)."""
    for name, wanted in known_sums().items():
        path = folder / name
        if not path.exists():
            continue
        with path.open("rb") as jar:
            found = hashlib.file_digest(jar, "sha256").hexdigest()
        if found != wanted:
            raise StorageError(
                f"{path}: its sha256 is {found}, not that of {SUMS.name}",
                code="JAR_CHECKSUM",
                remedy="it was damaged or replaced: delete it, and run `python -m tidelake.spark.jars` again",
            )


def main() -> int:
    """Fetch the jars unless all are cached, and check them. Returns the exit code."""
    if not cached_jars(ivy_folder()):
        fetch_jars()
    missing = not cached_jars(ivy_folder())
    try:
        check_jars(ivy_folder() / "jars")
    except StorageError as e:
        sys.stderr.write(f"error: {e}\n")
        return e.exit_code
    sys.stderr.write(f"Spark's jars are {'not all ' if missing else ''}in {ivy_folder()}\n")
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())
