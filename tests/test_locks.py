"""The locks of Python packages: complete and hashed."""

from __future__ import annotations

import re

import pytest

from tests.checkout import CHECKOUT
from tests.docker_files import instructions


def test_what_the_image_needs_beyond_the_package_is_locked() -> None:
    lock = (CHECKOUT / "requirements.lock").read_text()
    for name in ("apache-airflow", "asyncpg", "psycopg2-binary", "pyspark"):
        assert re.search(rf"^{name}==", lock, re.MULTILINE), name
    assert not re.search(r"^pyspark-client==", lock, re.MULTILINE)


def test_pip_installs_nothing_without_a_hash_and_asks_for_nothing_else() -> None:
    calls = [c for name, *words in instructions() if name == "RUN" for c in " ".join(words).split("&&") if re.search(r"\bpip\b", c)]
    assert len(calls) == 4
    for call in calls:
        assert "--no-deps" in call
        assert "--require-hashes" in call or "--no-index" in call
    make = [line for line in (CHECKOUT / "Makefile").read_text().splitlines() if "pip install" in line and "-editable" not in line]
    assert make
    assert all("--require-hashes" in line and "--no-deps" in line for line in make)


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-build.lock", "requirements-audit.lock"])
def test_every_line_of_a_lock_has_a_version_and_a_hash(name: str) -> None:
    text = re.sub(r"^ *#.*\n", "", (CHECKOUT / name).read_text(), flags=re.MULTILINE).replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.strip()]
    assert lines
    for line in lines:
        assert re.match(r"[a-z0-9][a-z0-9.-]*(\[[a-z,-]+\])?==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line[:80]


def test_what_builds_the_wheel_is_locked() -> None:
    lock = (CHECKOUT / "requirements-build.lock").read_text()
    whole = (CHECKOUT / "requirements.lock").read_text()
    for name in ("hatchling", "uv"):
        assert re.search(rf"^{name}==", lock, re.MULTILINE), name
    for line in re.findall(r"^(?!uv=)[a-z-]+==\S+", lock, re.MULTILINE):
        assert re.search(rf"^{re.escape(line)}\b", whole, re.MULTILINE), f"{line} is another in requirements.lock"
