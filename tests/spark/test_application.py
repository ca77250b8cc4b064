"""What an application starts with: on this machine, and on a cluster, whose executors have their own address, jars, cores and Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tidelake.spark.application import PACKAGES, cached_jars, is_local, prepare_environment, static_settings

CLUSTER = "spark://master:7077"
JAVA = "spark.executor.extraJavaOptions"
JAVA_OPTIONS = "-XX:-DontCompileHugeMethods -XX:MaxInlineLevel=5 -XX:FreqInlineSize=100 -XX:InlineSmallCode=1000 -Duser.timezone=UTC"


@pytest.fixture(autouse=True)
def ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that has all jars, and an environment that says nothing else."""
    for name in ("TIDELAKE_SPARK_MASTER", "TIDELAKE_SPARK_CONF", "SPARK_LOCAL_IP", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, "to be restored")
        monkeypatch.delenv(name)
    monkeypatch.setenv("TIDELAKE_IVY", str(tmp_path))
    (tmp_path / "jars").mkdir()
    for group, name, version in (p.split(":") for p in PACKAGES):
        (tmp_path / "jars" / f"{group}_{name}-{version}.jar").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local[2,1]", True), ("local-cluster[2,1,1024]", False), (CLUSTER, False), ("yarn", False)],
)
def test_a_master_is_local_if_driver_and_executors_are_one_process(master: str, local: bool) -> None:
    assert is_local(master) is local


def test_executors_of_a_cluster_fetch_the_jars_from_the_driver(ivy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = cached_jars(ivy)
    assert len(jars) == len(PACKAGES)
    here = static_settings()
    assert (here["spark.master"], here["spark.driver.extraClassPath"], "spark.jars" in here) == ("local[*]", ":".join(jars), False)
    monkeypatch.setenv("TIDELAKE_SPARK_MASTER", CLUSTER)
    there = static_settings()
    assert (there["spark.master"], there["spark.jars"], "spark.driver.extraClassPath" in there) == (CLUSTER, ",".join(jars), False)
    assert {s[JAVA] for s in (here, there)} == {JAVA_OPTIONS}
    Path(jars[0]).unlink()
    assert "spark.jars" not in static_settings()
    assert static_settings()["spark.jars.packages"] == ",".join(PACKAGES)


def test_what_is_given_wins_and_the_cores_of_this_machine_count_for_nothing_on_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert static_settings()["spark.sql.shuffle.partitions"] == str(2 * (os.cpu_count() or 2))
    monkeypatch.setenv("TIDELAKE_SPARK_CONF", f"spark.master={CLUSTER}\nspark.executor.memory = 4g\n{JAVA} = -Xss2m\n")
    there = static_settings()
    assert "spark.sql.shuffle.partitions" not in there
    assert (there["spark.master"], there["spark.executor.memory"]) == (CLUSTER, "4g")
    assert there[JAVA] == f"{JAVA_OPTIONS} -Xss2m"


def test_a_driver_of_a_cluster_is_not_bound_to_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELAKE_SPARK_MASTER", CLUSTER)
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/venv/bin/python")  # where the executors have it
    prepare_environment()
    assert ("SPARK_LOCAL_IP" in os.environ, os.environ["PYSPARK_PYTHON"]) == (False, "/opt/venv/bin/python")
    monkeypatch.delenv("PYSPARK_PYTHON")
    prepare_environment()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.setenv("TIDELAKE_SPARK_MASTER", "")
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/venv/bin/python")
    prepare_environment()
    assert (os.environ["SPARK_LOCAL_IP"], os.environ["PYSPARK_PYTHON"]) == ("127.0.0.1", sys.executable)
