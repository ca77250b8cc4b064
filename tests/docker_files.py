"""The files in docker/ and pyproject.toml, parsed."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import Any

import pytest

from tests.checkout import CHECKOUT

DOCKER = CHECKOUT / "docker"
COMPOSE = DOCKER / "compose.yaml"
yaml = pytest.importorskip("yaml", reason="PyYAML comes with Airflow")


@cache
def services() -> dict[str, dict[str, Any]]:
    """Return the services of the compose file by name."""
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


@cache
def compose() -> dict[str, Any]:
    """Return the compose file with its merges done and its variables as they are written."""
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return found


@cache
def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text())


@cache
def instructions() -> list[list[str]]:
    """Return the Dockerfile's instructions as words, without comments."""
    lines = [line for line in (DOCKER / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    return [line.split() for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line]


def image_tag(service: str) -> str:
    """Return the tag of the service's image; if a variable may name another image, that of the default."""
    return default(services()[service]["image"]).partition(":")[2]


def default(value: str) -> str:
    """Return the text with each `${NAME:-default}` replaced by its default."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
