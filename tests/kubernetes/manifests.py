"""The files of docker/kubernetes, and what `kubectl apply --kustomize` makes of them as far as they use it."""

from __future__ import annotations

import copy
from typing import Any

from tests.docker_files import DOCKER, yaml

FOLDER = DOCKER / "kubernetes"


def objects(name: str) -> list[dict[str, Any]]:
    """The objects of a file."""
    return [found for found in yaml.safe_load_all((FOLDER / name).read_text()) if found]


def kustomization() -> dict[str, Any]:
    """The content of kustomization.yaml."""
    [found] = objects("kustomization.yaml")
    return found


def applied(files: dict[str, str]) -> list[dict[str, Any]]:
    """All objects with namespace, images and ConfigMaps as the kustomization says. files: content of files that a user adds."""
    said = kustomization()
    made = [copy.deepcopy(found) for name in said["resources"] for found in objects(name)]
    for generator in said["configMapGenerator"]:
        data = {name: files[name] if name in files else (FOLDER / name).read_text() for name in generator["files"]}
        made.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data})
    images = {image["name"]: f"{image['newName']}:{image['newTag']}" for image in said["images"]}
    for one in made:
        one["metadata"]["namespace"] = said["namespace"]
        for subject in one.get("subjects", []):
            subject["namespace"] = said["namespace"]
        if one["kind"] == "CronJob":
            for container in template(one)["spec"]["containers"]:
                container["image"] = images.get(container["image"], container["image"])
    return made


def template(cron_job: dict[str, Any]) -> dict[str, Any]:
    """The pod template of a CronJob."""
    found: dict[str, Any] = cron_job["spec"]["jobTemplate"]["spec"]["template"]
    return found


def spark_settings(container: dict[str, Any]) -> dict[str, str]:
    """TIDELAKE_SPARK_CONF of a container, as written."""
    [text] = [variable["value"] for variable in container["env"] if variable["name"] == "TIDELAKE_SPARK_CONF"]
    return dict(line.split("=", 1) for line in text.splitlines())
