"""An hour by the CronJob of docker/kubernetes, on an API server and a node of our own: driver and executors are pods as the manifests say.

The API server checks every object by Kubernetes' schemas and every request by the Role. Executors are what Spark makes of the template.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.checkout import CHECKOUT
from tests.conftest import FreshUri
from tests.e2e import bazaar
from tests.kubernetes.manifests import applied, objects, template
from tests.kubernetes.nodes import Cluster, executors
from tidelake.config.feed import load_feed
from tidelake.demo.generate import generate
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.tso import format_hour

FEED, PROTOCOL = "shop", "open"
SMALL = {"spark.executor.cores": "1", "spark.executor.memory": "640m", "spark.executor.memoryOverhead": "1g"}
SECONDS = 600
EMPTY = {"feed.toml": "", "tables.sql": ""}


def driver_pod(cron_job: dict[str, Any], hour: str) -> dict[str, Any]:
    """What the CronJob's controller makes, for an hour, with small executors, and with Spark, which a small hour does not start."""
    pod = copy.deepcopy(template(cron_job))
    [container] = pod["spec"]["containers"]
    line = re.fullmatch(r'exec tidelake (.+) "\$\(date .+\)"', container["args"][-1])
    assert line
    container["args"] = ["python", "-m", "tests.spark.cluster_job", json.dumps([[*line[1].split(), hour]])]
    for variable in container["env"]:
        if variable["name"] == "TIDELAKE_SPARK_CONF":
            lines = [line for line in variable["value"].splitlines() if line.partition("=")[0] not in SMALL]
            variable["value"] = "\n".join([*lines, *(f"{key}={value}" for key, value in SMALL.items())])
    place = {"name": f"{cron_job['metadata']['name']}-1", "namespace": cron_job["metadata"]["namespace"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"] | place, "spec": pod["spec"]}


def kill_the_first(cluster: Cluster, driver: str) -> str:
    """Kill the first executor that works, as a node that ends would. Its name."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and driver not in cluster.ended:
        for pod in list(executors(cluster)):
            name = pod["metadata"]["name"]
            if "Successfully registered with driver" in cluster.log(name):
                cluster.kill(name, signal.SIGKILL)
                return str(name)
        time.sleep(0.1)
    raise TimeoutError(f"no executor; the driver said {cluster.log(driver)[-5000:]}")


@pytest.mark.long
@pytest.mark.spark
def test_an_hour_in_pods_is_the_truth(s3: FreshUri, tmp_path: Path) -> None:
    uri = s3("kubernetes")
    workload = generate(open_store(f"{uri}/archive"), [PROTOCOL], hours=1, rows_per_hour=200, ddl_span_hours=1.0)
    keys = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    places = {"TIDELAKE_ARCHIVE": f"{uri}/archive", "TIDELAKE_LAKE": f"{uri}/lake", "TIDELAKE_CATALOG": f"jdbc:sqlite:{tmp_path / 'c.db'}"}
    schemas = tmp_path / "schemas"
    shutil.copytree(CHECKOUT / "schemas" / "bazaar-open", schemas / FEED, ignore=shutil.ignore_patterns("expectations"))
    made = applied({name: (schemas / FEED / name).read_text() for name in ("feed.toml", "tables.sql")})
    [cron_job] = [found for found in made if found["kind"] == "CronJob"]
    pod = driver_pod(cron_job, format_hour(workload.hours[0]))
    for variable in pod["spec"]["containers"][0]["env"]:
        if variable["name"] in places:
            variable["value"] = places[variable["name"]]
    name = pod["metadata"]["name"]
    with Cluster(tmp_path / "cluster") as cluster:
        for one in made:
            cluster.api.create(one)
        secret = {"name": "tidelake", "namespace": cron_job["metadata"]["namespace"]}
        values = keys | {"TIDELAKE_CATALOG": places["TIDELAKE_CATALOG"]}
        cluster.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": secret, "stringData": values})
        cluster.api.create(pod)
        killed = kill_the_first(cluster, name)
        assert cluster.wait(name, SECONDS) == 0, cluster.log(name)[-5000:]
    asked = {(verb, resource) for caller, verb, resource in cluster.api.asked if caller == f"{secret['namespace']}:tidelake-driver"}
    assert cluster.api.refused == []
    assert {caller for caller, _, _ in cluster.api.asked} == {f"{secret['namespace']}:tidelake-driver"}, "executors ask for nothing"
    assert asked == allowed(), "the Role allows what Spark asked for, and no more"
    found = {pod["metadata"]["name"]: pod for pod in executors(cluster)}
    assert len(found) == 3, "two, and one for the one that was killed"
    assert cluster.ended[killed] == 137
    for one in found.values():
        spec_follows_the_template(one, name)
        assert [value for value in values.values() if len(value) > 8 and value in json.dumps(one)] == [], "a secret in a pod"
    with Lake.of(load_feed(schemas, FEED, places)) as lake:
        bazaar.check(lake, workload, PROTOCOL, workload.hours[0])


def allowed() -> set[tuple[str, str]]:
    """Verbs and resources of the one Role."""
    [role] = [found for found in objects("access.yaml") if found["kind"] == "Role"]
    return {(verb, resource) for rule in role["rules"] for verb in rule["verbs"] for resource in rule["resources"]}


def spec_follows_the_template(pod: dict[str, Any], driver: str) -> None:
    """What Spark made of executor.yaml."""
    [wanted] = objects("executor.yaml")
    assert pod["metadata"]["labels"].items() >= wanted["metadata"]["labels"].items()
    assert [owner["name"] for owner in pod["metadata"]["ownerReferences"]] == [driver]
    kept = {key: value for key, value in wanted["spec"].items() if key != "containers"}
    assert {key: pod["spec"][key] for key in kept} == kept
    [container], [of_template] = pod["spec"]["containers"], wanted["spec"]["containers"]
    assert {key: container[key] for key in of_template} == of_template
    assert container["args"] == ["executor"]
    assert container["image"] == template_image()
    assert container["resources"] == {"limits": {"memory": "1664Mi"}, "requests": {"cpu": "1", "memory": "1664Mi"}}


def template_image() -> str:
    """The image of the executors, which is the driver's."""
    [cron_job] = [found for found in applied(EMPTY) if found["kind"] == "CronJob"]
    return str(template(cron_job)["spec"]["containers"][0]["image"])
