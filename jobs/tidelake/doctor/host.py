"""Checks of this host: Python, packages, Java, Spark's jars, memory, disk."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from tidelake import __version__
from tidelake.doctor.diagnosis import Check, Diagnosis
from tidelake.spark.application import PACKAGES, cached_jars, ivy_folder, static_settings
from tidelake.spark.java import java_version

WORKER_BYTES = 1 << 30  # the most that a Python worker takes (docs/scale.md)
DISK_BYTES = 10 << 30  # rows that order keeps on the disk of a worker
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of the container: version 2 and 1
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def host_checks() -> Iterator[tuple[str, Check]]:
    """Yield the checks of this host."""
    yield "python", _python
    yield "packages", _packages
    yield "java", _java
    yield "spark jars", _jars
    yield "memory", _memory
    yield "disk", _disk


def _python() -> Diagnosis:
    return Diagnosis(subject="python", found=f"{platform.python_version()}, tidelake {__version__}, {os.cpu_count()} cores")


def _packages() -> Diagnosis:
    wanted = [Requirement(text) for text in requires("tidelake") or ()]
    wrong = list(_unmet(r for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})))
    if wrong:
        remedy = "install the versions that Tidelake needs: `pip install -r requirements-runtime.lock`, or `pip install tidelake` again"
        return Diagnosis(subject="packages", state="problem", found="; ".join(wrong), remedy=remedy)
    return Diagnosis(subject="packages", found=f"{len(wanted)} requirements met")


def _unmet(wanted: Iterable[Requirement]) -> Iterator[str]:
    for r in wanted:
        try:
            installed = version(r.name)
        except PackageNotFoundError:
            yield f"{r.name} is not installed"
            continue
        if not r.specifier.contains(installed, prereleases=True):
            yield f"{r.name} {installed} is installed, not {r.specifier}"


def _java() -> Diagnosis:
    """Raises ConfigError if there is none that Spark can use."""
    return Diagnosis(subject="java", found=java_version())


def _jars() -> Diagnosis:
    folder = ivy_folder()
    if cached_jars(folder):
        return Diagnosis(subject="spark jars", found=f"{len(PACKAGES)} in {folder}")
    remedy = "run `python -m tidelake.spark.jars` where Maven Central can be reached"
    return Diagnosis(subject="spark jars", state="warning", found=f"not all in {folder}: the first Spark downloads them", remedy=remedy)


def _memory() -> Diagnosis:
    settings, cores = static_settings(), os.cpu_count() or 1
    driver = _size(settings["spark.driver.memory"])
    needed = driver + cores * WORKER_BYTES
    total = min([psutil.virtual_memory().total, *_limits()])
    found = f"{_shown(total)}; Spark's driver may take {_shown(driver)}, {cores} workers {_shown(WORKER_BYTES)} each"
    if needed > total:
        remedy = "lower TIDELAKE_DRIVER_MEMORY, use fewer cores (TIDELAKE_SPARK_MASTER=local[N]), or give the host more memory"
        return Diagnosis(subject="memory", state="warning", found=found, remedy=remedy)
    return Diagnosis(subject="memory", found=found)


def _limits() -> Iterator[int]:
    """The memory limits of the container."""
    for path in _LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            yield int(text)


def _size(text: str) -> int:
    """Return a size of Spark in bytes; a number without unit is in MiB."""
    unit = text[-1].lower()
    return int(text[:-1]) * _UNITS[unit] if unit in _UNITS else int(text) * _UNITS["m"]


def _disk() -> Diagnosis:
    folder = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).partition(",")[0]
    free = shutil.disk_usage(folder).free
    found = f"{_shown(free)} free in {folder}, where Spark's workers keep rows"
    if free < DISK_BYTES:
        remedy = f"free space, or set SPARK_LOCAL_DIRS to a folder with more than {_shown(DISK_BYTES)}"
        return Diagnosis(subject="disk", state="warning", found=found, remedy=remedy)
    return Diagnosis(subject="disk", found=found)


def _shown(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GiB"
