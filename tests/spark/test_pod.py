"""What a container of Spark on Kubernetes becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelake.spark.pod import command, spark_home

ENVIRONMENT = {
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_ID": "11",
    "SPARK_EXECUTOR_MEMORY": "4096m",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
    "SPARK_EXECUTOR_POD_NAME": "tidelake-exec-11",
    "SPARK_JAVA_OPT_0": "-Duser.timezone=UTC",
    "SPARK_JAVA_OPT_10": "-Dlast=a b",
    "SPARK_JAVA_OPT_2": "-Dsecond",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


def test_an_executor_is_a_jvm_with_what_spark_says() -> None:
    line = command(["executor"], ENVIRONMENT)
    assert line[:6] == ["java", "-Duser.timezone=UTC", "-Dsecond", "-Dlast=a b", "-Xms4096m", "-Xmx4096m"]
    assert line[6:8] == ["-cp", f"/opt/spark/conf:{spark_home()}/jars/*"]
    assert line[8] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    said = dict(zip(line[9::2], line[10::2], strict=True))
    assert said == {
        "--driver-url": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
        "--executor-id": "11",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.8",
        "--resourceProfileId": "0",
        "--podName": "tidelake-exec-11",
    }


def test_more_jars_come_before_spark_s_and_java_home_is_used() -> None:
    line = command(["executor"], ENVIRONMENT | {"SPARK_CLASSPATH": "/opt/ivy/jars/*", "JAVA_HOME": "/opt/java"})
    assert line[0] == "/opt/java/bin/java"
    assert line[line.index("-cp") + 1] == f"/opt/spark/conf:/opt/ivy/jars/*:{spark_home()}/jars/*"


def test_a_driver_is_spark_submit_with_what_follows() -> None:
    what = ["--class", "org.apache.spark.deploy.PythonRunner", "land.py"]
    program, *rest = command(["driver", *what], {"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.7"})
    assert Path(program).is_file()
    assert rest == ["--conf", "spark.driver.bindAddress=10.0.0.7", "--deploy-mode", "client", *what]


@pytest.mark.parametrize("arguments", [[], ["executor", "more"], ["worker"]])
def test_other_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(ValueError, match="Spark on Kubernetes says `executor`, or `driver` and more"):
        command(arguments, ENVIRONMENT)
    with pytest.raises(KeyError, match="SPARK_DRIVER_URL"):
        command(["executor"], {name: value for name, value in ENVIRONMENT.items() if name != "SPARK_DRIVER_URL"})
