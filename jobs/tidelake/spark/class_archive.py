"""An archive of the classes that Spark loads, which the JVM maps into memory (class data sharing, JEP 350): a session starts sooner.

`python -m tidelake.spark.class_archive` makes it, beside this Python's packages; `make setup` does. An application uses it if it is of
the same Java, Spark and jars. A JVM whose class path differs starts without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from tidelake.spark.java import ensure_java

_FOLDER = Path(sys.prefix) / "share" / "tidelake"
_EXIT_SECONDS = 120


def archive_path(jars: list[str]) -> Path:
    """Return where the archive of this Java, Spark and these jars is, or would be."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "java")
    of = [version("pyspark"), str(java.resolve()), *(str(_written(p)) for p in (java, *map(Path, jars)) if p.exists()), *jars]
    return _FOLDER / f"classes-{hashlib.sha256(repr(of).encode()).hexdigest()[:16]}.jsa"


def _written(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.stat().st_mtime_ns


def java_options(jars: list[str]) -> str:
    """Return the JVM's options to use the archive; none without one."""
    path = archive_path(jars)
    return f" -XX:SharedArchiveFile={path} -Xlog:cds*=off" if path.is_file() else ""


def main() -> int:
    """Make the archive, unless it is there. Exit code 0 also if this Java cannot make one."""
    from tidelake.spark.application import cached_jars, ivy_folder
    from tidelake.spark.session import first_classes

    ensure_java()
    path = archive_path(cached_jars(ivy_folder()))
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob("classes-*.jsa*"):
            old.unlink()
        part = path.with_suffix(".jsa.part")
        first_classes(f"-XX:ArchiveClassesAtExit={part} -Xlog:cds*=off", _EXIT_SECONDS)
        if part.is_file():
            part.replace(path)
    sys.stderr.write(f"Spark's classes are {'' if path.is_file() else 'not '}archived in {path.parent}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
