"""docker/compose.yaml: services, what they wait for, mounts, ports and memory. Compose itself is not there to start it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.checkout import CHECKOUT
from tests.docker_files import COMPOSE, DOCKER, compose, default, image_tag, instructions, services
from tidelake.spark.application import static_settings

LONG_RUNNING = [
    *("airflow-api-server", "airflow-dag-processor", "airflow-scheduler", "airflow-triggerer"),
    *("kafka", "postgres", "s3", "spark-master", "spark-worker"),
]
GIB = 1 << 30


def mounts(kind: type) -> dict[str, list[Any]]:
    """Return by service the volumes that are written in one form: str for named volumes, dict for folders of the host."""
    found = {name: [v for v in service.get("volumes", []) if isinstance(v, kind)] for name, service in services().items()}
    return {name: volumes for name, volumes in found.items() if volumes}


def size(text: str) -> int:
    """Return a memory size in bytes; of a variable its default."""
    number, unit = re.fullmatch(r"(\d+)([mg])", default(text)).groups()  # type: ignore[union-attr]
    return int(number) << {"m": 20, "g": 30}[unit]


def test_the_services_are_those_of_the_design() -> None:
    assert sorted(services()) == sorted([*LONG_RUNNING, "airflow-migrate"])
    assert {name: s["profiles"] for name, s in services().items() if "profiles" in s} == {
        "kafka": ["kafka"],
        "spark-master": ["spark"],
        "spark-worker": ["spark"],
    }


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_a_service_has_a_pinned_image_and_says_whether_it_is_well(name: str) -> None:
    service = services()[name]
    assert re.match(r"\d+\.\d+", image_tag(name)), f"{service['image']} names no version"
    how, command, *arguments = service["healthcheck"]["test"]
    assert how == "CMD"
    assert command
    assert arguments
    assert {"interval", "timeout", "retries"} <= set(service["healthcheck"])
    assert service["restart"] == "unless-stopped"


def test_a_service_waits_for_services_that_are_there_and_can_become_what_it_waits_for() -> None:
    for name, service in services().items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in services(), f"{name} waits for {needed}"
            wanted = {"service_healthy": "healthcheck" in services()[needed], "service_completed_successfully": needed == "airflow-migrate"}
            assert wanted.get(how["condition"]), f"{name} waits for {needed} to be {how['condition']}"
            assert set(services()[needed].get("profiles", [])) <= set(service.get("profiles", [])), f"{name} waits for {needed}"


def test_postgres_is_asked_over_tcp_because_its_first_server_makes_the_databases_and_listens_on_the_socket_only() -> None:
    _, command, *arguments = services()["postgres"]["healthcheck"]["test"]
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert command == "pg_isready"
    assert options == {"--host": "127.0.0.1", "--username": "tidelake", "--dbname": "catalog"}


def test_a_failed_migration_is_tried_again_and_airflow_waits_for_one_that_succeeds() -> None:
    """Compose sees `restarting` between two attempts, and waits; `exited` after the last, which ends `up` if its exit code is not 0."""
    migrate = services()["airflow-migrate"]
    assert migrate["restart"] == "on-failure:5"
    assert migrate["depends_on"] == {"postgres": {"condition": "service_healthy"}, "s3": {"condition": "service_healthy"}}
    waiting = {n for n, s in services().items() if "airflow-migrate" in s.get("depends_on", {})}
    assert waiting == {"airflow-api-server", "airflow-dag-processor", "airflow-scheduler", "airflow-triggerer"}
    shell, options, script = migrate["command"]
    assert (shell, options) == ("sh", "-ec"), "without -e the bucket's failure is not the step's"
    assert "; airflow db migrate; " in script


def test_the_pool_that_the_dags_name_is_made_after_the_migration_and_its_slots_are_a_variable() -> None:
    script = services()["airflow-migrate"]["command"][2]
    pool, slots = re.fullmatch(r".*; airflow db migrate; airflow pools set (\w+) (\S+) '[\w ]+'", script).groups()  # type: ignore[union-attr]
    dag_processor = services()["airflow-dag-processor"]["environment"]
    assert (pool, slots) == (dag_processor["TIDELAKE_POOL"], "${TIDELAKE_POOL_SLOTS:-2}")
    assert "#TIDELAKE_POOL_SLOTS=2\n" in (DOCKER / ".env.example").read_text()


def test_what_makes_the_bucket_can_run_twice(tmp_path: Path) -> None:
    made = re.search(r'python -c "(.+?)";', services()["airflow-migrate"]["command"][2])
    assert made
    for _ in range(2):
        subprocess.run([sys.executable, "-c", made[1].replace("s3://lake", str(tmp_path))], check=True)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(".made", b"")]


def test_what_is_mounted_is_declared_and_nothing_is_declared_in_vain() -> None:
    assert {v.partition(":")[0] for volumes in mounts(str).values() for v in volumes} == set(compose()["volumes"])
    assert {c["source"] for s in services().values() for c in s.get("configs", [])} == set(compose()["configs"])


def test_feeds_are_a_folder_of_the_host_beside_dags_and_are_not_in_the_image() -> None:
    """Who reads feeds: the DAG processor, the stages in the scheduler, the page in the API server."""
    dags = next(word.partition("=")[2] for name, *words in instructions() if name == "ENV" for word in words if "DAGS_FOLDER" in word)
    target = str(Path(dags).parent / "schemas")
    feeds = {
        "type": "bind",
        "source": "${TIDELAKE_SCHEMAS:-../schemas}",
        "target": target,
        "read_only": True,
        "bind": {"create_host_path": False},
    }
    assert mounts(dict) == {name: [feeds] for name in ["airflow-api-server", "airflow-scheduler", "airflow-dag-processor"]}
    assert (DOCKER / default(feeds["source"])).resolve() == CHECKOUT / "schemas", "the demo's feeds"
    image = instructions()[[words[-1] for words in instructions()].index("image") :]
    assert [words for words in image if "schemas" in " ".join(words)] == []


def test_every_service_has_a_limit_of_memory() -> None:
    assert {name: size(service["mem_limit"]) / GIB for name, service in services().items()} == {
        "airflow-api-server": 2,
        "airflow-dag-processor": 1,
        "airflow-migrate": 1,
        "airflow-scheduler": 10,
        "airflow-triggerer": 1,
        "kafka": 2,
        "postgres": 1,
        "s3": 2,
        "spark-master": 1,
        "spark-worker": 10,
    }


def test_stages_fit_into_the_scheduler_s_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heap, 1 GiB more for the JVM, 1 GiB a CPU for Python workers, 0.75 GiB a stage, 2 GiB for Airflow: as the file says."""
    scheduler = services()["airflow-scheduler"]
    heap = default(scheduler["environment"]["TIDELAKE_DRIVER_MEMORY"])
    monkeypatch.delenv("TIDELAKE_DRIVER_MEMORY", raising=False)
    assert heap == static_settings(java="")["spark.driver.memory"]
    stages = int(scheduler["environment"]["AIRFLOW__CORE__PARALLELISM"])
    needed = size(heap) + GIB + int(default(scheduler["cpus"])) * GIB + stages * 3 * GIB // 4 + 2 * GIB
    assert needed <= size(scheduler["mem_limit"])


def test_executors_fit_into_the_spark_worker_s_memory() -> None:
    worker = services()["spark-worker"]
    heaps = re.search(r"--memory (\w+)", worker["command"])
    assert heaps
    assert size(worker["environment"]["SPARK_DAEMON_MEMORY"]) < GIB
    assert size(heaps[1]) + GIB + int(default(worker["cpus"])) * GIB + GIB <= size(worker["mem_limit"])
    assert worker["mem_limit"] == services()["airflow-scheduler"]["mem_limit"], "one variable for both"


def test_ports_are_open_on_loopback_only() -> None:
    ports = [port for service in services().values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8080:8080"]
    assert "network_mode" not in COMPOSE.read_text()


def test_the_s3_server_knows_the_flags_it_is_started_with() -> None:
    from tidelake.demo.embedded_s3 import _binary

    known = subprocess.run([_binary(), "help", "server"], capture_output=True, text=True, timeout=30, check=False)
    flags = set(re.findall(r"^\s+-([\w.]+)", known.stdout + known.stderr, re.MULTILINE))
    assert len(flags) > 20
    service = services()["s3"]
    program, *words = service["command"].split()
    assert (service["entrypoint"], program) == (["weed"], "server")
    bound = {name: value for name, _, value in (word.lstrip("-").partition("=") for word in words) if "bind" in name or name == "ip"}
    assert bound == {"ip": "127.0.0.1", "ip.bind": "127.0.0.1", "s3.ip.bind": "0.0.0.0"}, "S3 alone is reached from outside"
    keys = {name for name in service["environment"] if name.startswith("WEED_JWT_")}
    assert keys == {f"WEED_JWT_{of}SIGNING_{kind}KEY" for of in ("", "FILER_") for kind in ("", "READ_")}
    assert {word.lstrip("-").partition("=")[0] for word in words} <= flags
    assert "-master.telemetry=false" in words
