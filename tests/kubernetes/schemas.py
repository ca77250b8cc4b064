"""Kubernetes' own JSON schemas, strict: a field that Kubernetes does not know is an error. Where they come from: tests/data/README.md."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from tests.data_files import data_bytes, data_path

jsonschema = pytest.importorskip("jsonschema", reason="comes with Airflow")

FOLDER = data_path("kubernetes")
VERSIONS = ("1.32.0", "1.37.0")
KINDS = {
    "v1 ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "v1 Pod": "io.k8s.api.core.v1.Pod",
    "v1 Secret": "io.k8s.api.core.v1.Secret",
    "v1 Service": "io.k8s.api.core.v1.Service",
    "v1 ServiceAccount": "io.k8s.api.core.v1.ServiceAccount",
    "batch/v1 CronJob": "io.k8s.api.batch.v1.CronJob",
    "rbac.authorization.k8s.io/v1 Role": "io.k8s.api.rbac.v1.Role",
    "rbac.authorization.k8s.io/v1 RoleBinding": "io.k8s.api.rbac.v1.RoleBinding",
}


def faults(found: dict[str, Any]) -> list[str]:
    """What is wrong with an object by each version's schema, with the place in it."""
    kind = f"{found.get('apiVersion')} {found.get('kind')}"
    if kind not in KINDS:
        return [f"{kind}: not a kind that the tests know"]
    errors = [(version, error) for version in VERSIONS for error in _validator(version, KINDS[kind]).iter_errors(found)]
    return [f"{version}: {error.json_path}: {error.message}" for version, error in errors]


@cache
def _validator(version: str, name: str) -> Any:
    definitions = json.loads(data_bytes(f"kubernetes/v{version}.json.xz"))
    return jsonschema.Draft202012Validator({"$defs": definitions, "$ref": f"#/$defs/{name}"})
