"""What importing costs: DAG parsing takes the light part only, and the command line starts without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.checkout import CHECKOUT

HEAVY = {"pyspark", "great_expectations", "pyarrow", "boto3", "botocore", "pandas", "numpy", "numba", "duckdb", "pyiceberg", "airflow"}
HEAVY |= {"confluent_kafka", "pymysql", "sqlalchemy"}
LIGHT = (
    "errors",
    "tso",
    "config.options",
    "config.lake_paths",
    "config.feed",
    "history.contract",
    "history.ddl.statement",
    "history.incarnations",
)
LIGHT += ("history.ordering", "io.storage", "io.lease", "io.avro_schemas", "demo.embedded_s3", "validate.quality.verdict")
LIGHT += ("validate.quality.facts", "validate.quality.report", "spark.lake_settings", "spark.java")

IMPORTS = """
import json, sys
from importlib import import_module
heavy, found = set(json.loads(sys.argv[1])), {}
for name in json.loads(sys.argv[2]):
    before = set(sys.modules)
    import_module(f"tidelake.{name}" if name else "tidelake")
    found[name] = sorted(heavy & (sys.modules.keys() - before))
print(json.dumps(found))
"""
WITHOUT = """
import json, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in json.loads(sys.argv[1]):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refused())
from tidelake.cli import run
sys.exit(run(sys.argv[2:]))
"""


def imported(*names: str) -> dict[str, list[str]]:
    """What each module of the package brings in after those before it, in a fresh interpreter."""
    command = [sys.executable, "-c", IMPORTS, json.dumps(sorted(HEAVY)), json.dumps(names)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def started(refused: set[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line where these packages are not installed."""
    command = [sys.executable, "-c", WITHOUT, json.dumps(sorted(refused)), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_light_modules_import_nothing_heavy() -> None:
    assert imported("", *LIGHT) == {name: [] for name in ("", *LIGHT)}


def test_landing_imports_no_compiler_and_no_pandas() -> None:
    assert imported("land.live", "land.archiver.follow") == {
        "land.live": ["confluent_kafka", "numpy", "pyarrow"],
        "land.archiver.follow": [],
    }


def test_workers_import_no_catalog() -> None:
    """A worker reads and writes files. A catalog's client would take 0.3 seconds of each worker's first task, and 60 MB."""
    sources = {p: p.read_text() for p in (CHECKOUT / "jobs" / "tidelake").rglob("*.py")}
    run_there = [p for p, text in sources.items() if "(PartReader[" in text or "import worker\n" in text]
    names = [".".join(p.relative_to(CHECKOUT / "jobs" / "tidelake").with_suffix("").parts) for p in run_there]
    assert {"compact.fold_source", "order.arrow.changelog_writer", "decode.landed_source"} < set(names)
    assert {name: {"pyiceberg", "sqlalchemy"} & set(found) for name, found in imported(*names).items()} == {name: set() for name in names}


def test_help_starts_without_spark() -> None:
    done = started(HEAVY - {"pyarrow", "numpy", "duckdb"}, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "inspect" in done.stdout


def test_inspect_starts_without_spark_pandas_and_boto3(tmp_path: Path) -> None:
    messages = tmp_path / "messages.jsonl"
    messages.write_text('{"key": null, "value": null}\n')
    done = started(HEAVY - {"pyarrow", "numpy", "duckdb", "numba"}, "inspect", "--protocol", "canal-json", str(messages))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["kind"] == "rejected"


def test_check_starts_without_spark() -> None:
    schemas = CHECKOUT / "schemas"
    done = started({"pyspark", "boto3", "botocore", "pyiceberg", "airflow"}, "check", "--schemas", str(schemas))
    assert (done.returncode, done.stderr) == (0, "")


def test_no_module_of_the_package_reads_files_or_prints_when_imported() -> None:
    done = subprocess.run([sys.executable, "-c", "import tidelake.cli"], check=True, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")
