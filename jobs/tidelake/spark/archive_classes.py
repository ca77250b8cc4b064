"""Makes the archive of Spark's classes (class_archive): `python -m tidelake.spark.archive_classes`, which `make setup` runs."""

from __future__ import annotations

import sys

from tidelake.spark.application import cached_jars, ivy_folder
from tidelake.spark.class_archive import archive_path
from tidelake.spark.java import ensure_java
from tidelake.spark.session import first_classes

_EXIT_SECONDS = 120


def main() -> int:
    """Make the archive, unless it is there. Exit code 0 also if this Java cannot make one or the folder is read-only."""
    ensure_java()
    path = archive_path(cached_jars(ivy_folder()))
    try:
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            for old in path.parent.glob("classes-*.jsa*"):
                old.unlink()
            part = path.with_suffix(".jsa.part")
            first_classes(f"-XX:ArchiveClassesAtExit={part} -Xlog:cds*=off", _EXIT_SECONDS)
            if not part.is_file():
                return _not_archived("this Java cannot do it")
            part.replace(path)
    except OSError as e:
        return _not_archived(str(e))
    sys.stderr.write(f"Spark's classes are archived in {path.parent}\n")
    return 0


def _not_archived(why: str) -> int:
    sys.stderr.write(f"Spark's classes are not archived, so sessions start a second later: {why}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
