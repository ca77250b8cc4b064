"""docker/compose.yaml and docker/.env.example: which secrets there are, how they are made, and which service has which."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from typing import Any

from tests.docker_files import COMPOSE, DOCKER, compose, services

EXAMPLE = (DOCKER / ".env.example").read_text()
POSTGRES, S3 = {"POSTGRES_PASSWORD"}, {"S3_ACCESS_KEY", "S3_SECRET_KEY"}
FERNET, JWT, SESSIONS = {"AIRFLOW_FERNET_KEY"}, {"AIRFLOW_JWT_SECRET"}, {"AIRFLOW_SECRET_KEY"}


def strings(found: Any) -> list[str]:
    """Return all texts in it, but not the names of things."""
    match found:
        case dict():
            return [text for value in found.values() for text in strings(value)]
        case list():
            return [text for value in found for text in strings(value)]
        case _:
            return [str(found)]


def required(found: Any) -> set[str]:
    """Return the variables without which Compose refuses the file."""
    return {name for text in strings(found) for name in re.findall(r"\$\{(\w+):\?\}", text)}


def examples() -> dict[str, list[str]]:
    """Return the comment lines above each variable that must be set."""
    parts = re.findall(r"((?:^# .*\n)+)^([A-Z]\w*)=(.*)$", EXAMPLE, re.MULTILINE)
    assert [value for _, _, value in parts] == [""] * len(parts), "a secret in the example"
    return {name: [line.removeprefix("#").strip() for line in comment.splitlines()] for comment, name, _ in parts}


def test_a_service_has_the_secrets_that_it_uses_and_no_others() -> None:
    """API server: the page reads the lake. Scheduler: its tasks are the stages. Scheduler and triggerer serve logs to the API server."""
    assert {name: required(service) for name, service in services().items()} == {
        "airflow-api-server": POSTGRES | S3 | FERNET | JWT | SESSIONS,
        "airflow-dag-processor": POSTGRES | FERNET,
        "airflow-migrate": POSTGRES | S3,
        "airflow-scheduler": POSTGRES | S3 | FERNET | JWT | SESSIONS,
        "airflow-triggerer": POSTGRES | FERNET | SESSIONS,
        "kafka": set(),
        "postgres": POSTGRES,
        "s3": S3,
        "spark-master": set(),
        "spark-worker": set(),
    }
    assert not any("env_file" in service for service in services().values()), "a file gives a service all variables"


def test_secrets_come_from_the_environment_and_a_forgotten_one_is_an_error() -> None:
    for name, service in services().items():
        for variable, value in service.get("environment", {}).items():
            if re.search("SECRET|PASSWORD|FERNET|ACCESS_KEY|_JWT", variable):
                assert re.fullmatch(r"\$\{\w+:\?\}", value), f"{name}: {variable} has its value in the file"
    for text in strings(compose()):
        assert not re.search(r"://\w*:[^/@…\s]+@|password=\w", re.sub(r"\$\{\w+:\?\}", "…", text)), f"a password in {text}"
        assert ":-}" not in text, f"{text} can be empty, which is not the same as unset"
    assert (DOCKER / ".gitignore").read_text().split() == [".env"]


def test_the_example_has_every_variable_that_must_be_set_and_no_other() -> None:
    assert examples().keys() == required(compose())
    assert len(re.findall(r"^[^#\n].*=", EXAMPLE, re.MULTILINE)) == len(required(compose())) == 6
    assert "docker/.env.example" in COMPOSE.read_text().partition("\nname:")[0]


def test_the_example_says_what_a_variable_is_and_its_command_makes_a_value() -> None:
    from cryptography.fernet import Fernet

    made = {}
    for name, (sentence, *_, command) in examples().items():
        assert sentence.endswith("."), name
        program, text = re.fullmatch(r"(python3) -c '(.+)'", command).groups()  # type: ignore[union-attr]
        done = [subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout for _ in range(2)]
        assert program
        assert done[0] != done[1], f"{name} is always the same"
        made[name] = done[0].removesuffix("\n")
    fernet = made.pop("AIRFLOW_FERNET_KEY")
    assert len(base64.urlsafe_b64decode(fernet)) == 32
    assert Fernet(fernet).decrypt(Fernet(fernet).encrypt(b"connection")) == b"connection"
    for name, value in made.items():
        assert re.fullmatch(r"[0-9a-f]{20,}", value), f"{name} stands in URLs, or in a file where $ has a meaning"
    for signs in JWT | SESSIONS:  # HS512, which warns of a shorter key
        assert len(made[signs]) >= 64


def test_the_example_lists_the_optional_variables_with_their_defaults() -> None:
    listed = dict(re.findall(r"^#([A-Z]\w*)=(.*)$", EXAMPLE, re.MULTILINE))
    defaults = {name: value for text in strings(compose()) for name, value in re.findall(r"\$\{(\w+):-([^}]*)\}", text)}
    passed = {name for service in services().values() for name, value in service.get("environment", {}).items() if value is None}
    assert passed == {"TIDELAKE_SPARK_MASTER"}
    assert listed == defaults | {"TIDELAKE_SPARK_MASTER": "spark://spark-master:7077"}
    assert listed.keys() >= {"TIDELAKE_SCHEMAS", "TIDELAKE_MEMORY", "TIDELAKE_CPUS", "TIDELAKE_DRIVER_MEMORY"}


def test_the_example_s_cluster_is_the_master_of_the_compose_file() -> None:
    [master] = re.findall(r"^#TIDELAKE_SPARK_MASTER=(.*)$", EXAMPLE, re.MULTILINE)
    host, port = re.search(r"--host (\S+) --port (\d+)", services()["spark-master"]["command"]).groups()  # type: ignore[union-attr]
    assert master == f"spark://{host}:{port}"
    assert master in services()["spark-worker"]["command"].split()
