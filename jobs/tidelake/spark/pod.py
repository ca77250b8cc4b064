"""`python -m tidelake.spark.pod executor`: what a container of Spark on Kubernetes runs, in any image that has Tidelake and Java.

Spark starts a container with the argument `executor`, or `driver` and more, and the rest in variables. Its own images have a script that
understands this; the PyPI package pyspark has none. docker/kubernetes/executor.yaml uses it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tidelake.spark.java import ensure_java

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTION = "SPARK_JAVA_OPT_"  # and a number, from 0
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command(arguments: list[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command line that the container becomes. Raises ValueError for other arguments than Spark's, KeyError for a variable."""
    match arguments:
        case ["executor"]:
            return _executor(environment)
        case ["driver", *rest]:
            bound = f"spark.driver.bindAddress={environment['SPARK_DRIVER_BIND_ADDRESS']}"
            return [str(spark_home() / "bin" / "spark-submit"), "--conf", bound, "--deploy-mode", "client", *rest]
    raise ValueError(f"{arguments}: Spark on Kubernetes says `executor`, or `driver` and more")


def spark_home() -> Path:
    """Return the folder of pyspark, which has Spark's jars and scripts."""
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("pyspark")
    return Path(package.origin).parent


def _executor(environment: Mapping[str, str]) -> list[str]:
    home = environment.get("JAVA_HOME")
    numbered = sorted((int(name.removeprefix(_OPTION)), value) for name, value in environment.items() if name.startswith(_OPTION))
    folders = (environment.get("SPARK_CONF_DIR"), environment.get("SPARK_CLASSPATH"), f"{spark_home()}/jars/*")
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    java = [str(Path(home) / "bin" / "java") if home else "java", *(value for _, value in numbered), f"-Xms{memory}", f"-Xmx{memory}"]
    return [*java, "-cp", ":".join(f for f in folders if f), _BACKEND, *(w for o, v in _ARGUMENTS.items() for w in (o, environment[v]))]


def main() -> None:
    """Become what Spark asks for."""
    ensure_java()
    os.environ.setdefault("SPARK_HOME", str(spark_home()))
    line = command(sys.argv[1:], os.environ)
    os.execvp(line[0], line)


if __name__ == "__main__":
    main()
