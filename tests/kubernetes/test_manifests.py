"""The files of docker/kubernetes: Kubernetes' schemas, names that agree, no secret, and docs/kubernetes.md names each."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.checkout import CHECKOUT
from tests.docker_files import instructions, project
from tests.kubernetes.manifests import FOLDER, applied, kustomization, objects, spark_settings, template
from tests.kubernetes.schemas import faults

FILES = {"feed.toml": "", "tables.sql": ""}


def one(kind: str, name: str = "") -> dict[str, Any]:
    """The object of this kind as it is applied; of several the one of this name."""
    [found] = [o for o in applied(FILES) if o["kind"] == kind and name in ("", o["metadata"]["name"])]
    return found


def driver() -> dict[str, Any]:
    """The container of the CronJob."""
    [found] = template(one("CronJob"))["spec"]["containers"]
    return dict(found)


def variables() -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in driver()["env"]}


@pytest.mark.parametrize("name", ["access.yaml", "driver.yaml", "executor.yaml", "hourly.yaml"])
def test_kubernetes_knows_every_field(name: str) -> None:
    assert objects(name)
    assert {str(found["metadata"]): faults(found) for found in objects(name) if faults(found)} == {}


def test_every_file_is_looked_at_and_what_is_applied_is_well_formed() -> None:
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {"access.yaml", "driver.yaml", "executor.yaml", "hourly.yaml", "kustomization.yaml"}
    assert [fault for found in applied(FILES) for fault in faults(found)] == []
    assert {found["kind"] for found in applied(FILES)} == {"ConfigMap", "CronJob", "Role", "RoleBinding", "ServiceAccount"}


@pytest.mark.parametrize(
    ("where", "name", "value", "fault"),
    [
        (("spec",), "restartPolicie", "Never", "'restartPolicie' was unexpected"),
        (("spec", "containers", 0), "command", "tini", "is not of type 'array'"),
        (("spec", "containers", 0, "securityContext", "capabilities"), "drop", [1], "is not of type 'string'"),
    ],
)
def test_a_wrong_manifest_is_told(where: tuple[Any, ...], name: str, value: Any, fault: str) -> None:
    [pod] = objects("executor.yaml")
    part = pod
    for step in where:
        part = part[step]
    part[name] = value
    assert faults(pod)
    assert all(fault in found for found in faults(pod))


def test_names_that_files_use_are_names_of_others() -> None:
    accounts = {found["metadata"]["name"] for found in objects("access.yaml") if found["kind"] == "ServiceAccount"}
    binding = one("RoleBinding")
    assert accounts == {"tidelake-driver", "tidelake-executor"}
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("Role", one("Role")["metadata"]["name"])
    assert [subject["name"] for subject in binding["subjects"]] == ["tidelake-driver"], "executors may do nothing"
    pods = [template(one("CronJob")), *objects("driver.yaml"), *objects("executor.yaml")]
    assert [pod["spec"]["serviceAccountName"] for pod in pods] == ["tidelake-driver", "tidelake-driver", "tidelake-executor"]
    assert [pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods] == ["driver", "driver", "executor"]
    assert {pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in pods} == {"tidelake"}
    maps = {generator["name"] for generator in kustomization()["configMapGenerator"]}
    volumes = [volume["configMap"]["name"] for pod in pods for volume in pod["spec"].get("volumes", [])]
    assert set(volumes) == maps
    [rule] = one("CronJob")["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"] == {"containerName": driver()["name"], "operator": "In", "values": [2, 3]}, "docs/exit-codes.md"


def test_the_role_is_of_the_namespace_and_short() -> None:
    """test_line.py compares it with what Spark asks for."""
    [rule] = one("Role")["rules"]
    assert rule == {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete", "deletecollection", "get", "list", "watch"]}
    assert not [found for found in applied(FILES) if found["kind"].startswith("Cluster")]


@pytest.mark.parametrize(
    "pod", [*objects("executor.yaml"), *objects("driver.yaml"), template(objects("hourly.yaml")[0])], ids=["executor", "driver", "hourly"]
)
def test_a_pod_keeps_to_the_restricted_pod_security_standard_and_is_the_image_s_user(pod: dict[str, Any]) -> None:
    user = re.search(r"useradd \S+ --uid (\d+)", " ".join(word for words in instructions() for word in words))
    assert user
    assert pod["spec"]["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": int(user[1]),
        "fsGroup": int(user[1]),
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for container in pod["spec"]["containers"]:
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod["spec"].keys()


def test_secrets_come_from_a_secret_and_are_no_setting_of_spark() -> None:
    assert driver()["envFrom"] == [{"secretRef": {"name": "tidelake"}}]
    assert not [name for name in variables() if re.search("SECRET|PASSWORD|ACCESS_KEY|TOKEN|CATALOG", name)]
    assert not [key for key in spark_settings(driver()) if re.search("(?i)secret|password|token|kubernetes.*env", key)]
    assert not [found for found in applied(FILES) if found["kind"] == "Secret"]


def test_the_image_is_one_and_what_it_starts_with_is_its_entry_point() -> None:
    version = project()["project"]["version"]
    assert driver()["image"] == f"registry.example/tidelake:{version}" == spark_settings(driver())["spark.kubernetes.container.image"]
    [entry] = [" ".join(words) for name, *words in instructions() if name == "ENTRYPOINT"]
    assert entry == '["tini", "--"]'
    for name in ("executor.yaml", "driver.yaml"):
        [pod] = objects(name)
        assert pod["spec"]["containers"][0]["command"] == ["tini", "--", "python", "-m", "tidelake.spark.pod"]
    assert "command" not in driver()


def test_settings_lead_to_what_is_mounted_and_known() -> None:
    settings = spark_settings(driver())
    mounts = {mount["name"]: mount["mountPath"] for mount in driver()["volumeMounts"]}
    assert settings["spark.kubernetes.executor.podTemplateFile"] == f"{mounts['executor']}/executor.yaml"
    assert mounts["feed"] == f"{variables()['TIDELAKE_SCHEMAS']}/shop"
    used = set(re.findall(r"\$\((\w+)\)", "".join(settings.values())))
    names = list(variables())
    assert used
    assert {name for name in used if name not in names or names.index(name) > names.index("TIDELAKE_SPARK_CONF")} == set()


def test_the_hour_is_the_one_before() -> None:
    shell, option, text = driver()["args"]
    assert (shell, option) == ("sh", "-ec")
    before = datetime.now(UTC)
    said = subprocess.run([shell, option, text.replace("exec tidelake", "echo")], capture_output=True, text=True, check=True).stdout
    hours = {(moment - timedelta(hours=1)).strftime("%Y-%m-%dT%H") for moment in (before, datetime.now(UTC))}
    assert said.strip() in {f"run --feed shop --hour {hour}" for hour in hours}


def test_a_python_worker_of_each_core_fits_into_an_executor() -> None:
    settings = spark_settings(driver())
    assert int(settings["spark.executor.memoryOverhead"].removesuffix("g")) >= int(settings["spark.executor.cores"]) + 1


def test_the_docs_name_every_file() -> None:
    page = (CHECKOUT / "docs" / "kubernetes.md").read_text()
    assert {path.name for path in FOLDER.iterdir() if f"docker/kubernetes/{path.name}" not in page} == set()
