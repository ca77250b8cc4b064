"""Pods as processes of this machine: what a kubelet does with a pod, as far as ours and Spark's need it.

A pod has an address of its own on loopback, the variables, Secrets and ConfigMaps that it names, its volumes as folders, and nothing else
of this process's environment but Python, Java and Spark's jars, which the image would have.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.checkout import CHECKOUT
from tests.docker_files import DOCKER
from tests.kubernetes.api import Api, Object
from tidelake.spark.application import ivy_folder
from tidelake.spark.java import ensure_java

STOP_SECONDS = 20
_SERVER = "https://kubernetes.default.svc:443"


class Cluster:
    """An API server and a node. `logs` has what each pod said, `pods` every pod as it was asked for, both by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pods: dict[str, Object] = {}
        self.ended: dict[str, int] = {}
        self.api = Api(self._start, self._stop)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[threading.Thread] = []
        self._addresses = count(2)

    def __enter__(self) -> Self:
        ensure_java()
        conf = self.folder / "spark-conf"
        conf.mkdir(parents=True)
        image = {"/opt/venv/bin/python": sys.executable, "/opt/ivy": str(ivy_folder())}
        text = (DOCKER / "spark-defaults.conf").read_text()
        (conf / "spark-defaults.conf").write_text(re.sub("|".join(image), lambda found: image[found[0]], text))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for name in list(self._processes):
            self._end(name)
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        self.api.close()

    def wait(self, name: str, seconds: float) -> int:
        """The exit code of a pod's container."""
        end = time.monotonic() + seconds
        while name not in self.ended and time.monotonic() < end:
            time.sleep(0.05)
        return self.ended[name]

    def log(self, name: str) -> str:
        """What a pod said."""
        log = self.folder / name / "log"
        return log.read_text() if log.exists() else ""

    def kill(self, name: str, number: int) -> None:
        """Send a signal to a pod's processes."""
        with suppress(ProcessLookupError, KeyError):
            os.killpg(self._processes[name].pid, number)

    def _start(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        self.pods[name] = pod
        self._threads.append(threading.Thread(target=self._run, args=(pod, f"127.0.0.{next(self._addresses)}")))
        self._threads[-1].start()

    def _run(self, pod: Object, address: str) -> None:
        """Start the container, and follow it to its end."""
        name = pod["metadata"]["name"]
        [container] = pod["spec"]["containers"]
        home = self.folder / name
        home.mkdir()
        mounts = self._mounts(pod, container, home)
        environment = self._image() | self._identity(pod) | self._environment(pod, container, address)
        environment = {key: _moved(value, mounts).replace(_SERVER, self.api.url) for key, value in environment.items()}
        line = [*container.get("command", ["tini", "--"]), *container.get("args", [])]
        assert line[:2] == ["tini", "--"], "the image's first program"
        line = [sys.executable if word == "python" else _moved(word, mounts) for word in line[2:]]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(line, env=environment, cwd=home, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        self._processes[name] = process
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "podIP": address}
        self.api.update(pod, phase="Running", containerStatuses=[_container(container, {"running": {}})], **ready)
        code = process.wait()
        code = self.ended[name] = code if code >= 0 else 128 - code
        ended = _container(container, {"terminated": {"exitCode": code}})
        self.api.update(pod, phase="Failed" if code else "Succeeded", containerStatuses=[ended])

    def _stop(self, pod: Object) -> None:
        self.kill(pod["metadata"]["name"], signal.SIGTERM)

    def _end(self, name: str) -> None:
        self.kill(name, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._processes[name].wait(STOP_SECONDS)
        self.kill(name, signal.SIGKILL)
        self._processes[name].wait()

    def _image(self) -> dict[str, str]:
        """What the image's own environment has: docker/Dockerfile."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
        own = {
            "PATH": path,
            "PYTHONPATH": f"{CHECKOUT / 'jobs'}:{CHECKOUT}",
            "TIDELAKE_IVY": str(ivy_folder()),
            "SPARK_CONF_DIR": str(self.folder / "spark-conf"),
        }
        return kept | own | {"KUBERNETES_AUTH_TRYKUBECONFIG": "false", "TZ": "UTC"}

    def _identity(self, pod: Object) -> dict[str, str]:
        """A token, where a kubelet would mount one."""
        spec = pod["spec"]
        account = self.api.get("serviceaccounts", pod["metadata"]["namespace"], spec["serviceAccountName"])
        assert account is not None, f"no service account {spec['serviceAccountName']}"
        mounted = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
        return {"KUBERNETES_AUTH_TOKEN": f"{pod['metadata']['namespace']}:{spec['serviceAccountName']}"} if mounted else {}

    def _environment(self, pod: Object, container: Object, address: str) -> dict[str, str]:
        fields = {"metadata.name": pod["metadata"]["name"], "metadata.namespace": pod["metadata"]["namespace"], "status.podIP": address}
        found: dict[str, str] = {}
        for source in container.get("envFrom", []):
            secret = self.api.get("secrets", pod["metadata"]["namespace"], source["secretRef"]["name"])
            assert secret is not None, f"no secret {source['secretRef']['name']}"
            found |= secret["stringData"]
        for variable in container.get("env", []):
            known = fields | found
            value = known[variable["valueFrom"]["fieldRef"]["fieldPath"]] if "valueFrom" in variable else variable.get("value", "")
            found[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda name, known=known: known.get(name[1], name[0]), value)  # type: ignore[misc]
        return found

    def _mounts(self, pod: Object, container: Object, home: Path) -> dict[str, str]:
        """Make the volumes; where their upper folders are, by the path that the container knows."""
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        roots: set[str] = set()
        for mount in container.get("volumeMounts", []):
            folder = home / mount["mountPath"].lstrip("/")
            folder.mkdir(parents=True)
            volume = volumes[mount["name"]]
            if "configMap" in volume:
                self._fill(folder, pod["metadata"]["namespace"], volume["configMap"])
            else:
                assert "emptyDir" in volume, volume
            roots.add("/".join(mount["mountPath"].split("/")[:3]))
        return {root: f"{home}{root}" for root in roots}

    def _fill(self, folder: Path, namespace: str, source: dict[str, Any]) -> None:
        """Files behind a link `..data`, as a kubelet lays them."""
        end = time.monotonic() + STOP_SECONDS
        while (found := self.api.get("configmaps", namespace, source["name"])) is None:
            assert time.monotonic() < end, f"no ConfigMap {source['name']}"
            time.sleep(0.05)
        paths = {item["key"]: item["path"] for item in source.get("items", [])} or {key: key for key in found["data"]}
        for key, path in paths.items():
            (folder / "..first" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "..first" / path).write_text(found["data"][key])
        (folder / "..data").symlink_to("..first")
        for top in {Path(path).parts[0] for path in paths.values()}:
            (folder / top).symlink_to(f"..data/{top}")


def executors(cluster: Cluster) -> Iterator[Object]:
    """The pods that Spark asked for."""
    return (pod for pod in cluster.pods.values() if pod["metadata"].get("labels", {}).get("spark-role") == "executor")


def _container(container: Object, state: dict[str, Any]) -> Object:
    return {"name": container["name"], "image": container["image"], "imageID": "", "ready": True, "restartCount": 0, "state": state}


def _moved(text: str, mounts: dict[str, str]) -> str:
    for path, folder in mounts.items():
        text = text.replace(path, folder)
    return text
