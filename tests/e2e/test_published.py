"""A stage of an hour that is published already finds out without Spark, Great Expectations and compiled decoders."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.checkout import CHECKOUT
from tests.e2e.bazaar import FEED, Bazaar

# pandas is not among them: pyarrow imports it with its first array
COMPILED = ["numba", "scipy"]  # scipy comes with numba
HEAVY = ("pyspark", "numba", "scipy", "great_expectations", "pyiceberg_core", "duckdb", "boto3")
CHILD = """
import json, sys
from tidelake.cli import run
code = run(sys.argv[2:])
print("IMPORTED" + json.dumps([name for name in json.loads(sys.argv[1]) if name in sys.modules]))
sys.exit(code)
"""


def stage(shop: Bazaar, name: str, *options: str) -> tuple[str, list[str]]:
    """What a stage of the first hour prints in a process of its own, and which of HEAVY it imports."""
    command = [sys.executable, "-c", CHILD, json.dumps(HEAVY), name, "--feed", FEED, "--hour", shop.hours[0], *options]
    environment = os.environ | shop.variables | {"TIDELAKE_SPARK_SERVER": str(shop.folder / "spark")}
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=120, check=True)
    said, _, imported = done.stdout.rpartition("IMPORTED")
    assert not (shop.folder / "spark").exists(), "a Spark server was started"
    return said, json.loads(imported)


@pytest.mark.parametrize(
    ("name", "said", "needs"),
    [
        ("land", "unchanged", COMPILED),  # the reader of the archive's layout
        ("decode", "(unchanged)", []),
        ("order", "nothing to order: hour 2026-01-05T10 is published", []),
        ("validate", "nothing to validate: hour 2026-01-05T10 is published", []),
        ("compact", "nothing to compact: hour 2026-01-05T10 is published", []),
    ],
)
def test_a_stage_of_a_published_hour_imports_nothing_heavy(name: str, said: str, needs: list[str], later_shop: Bazaar) -> None:
    status = later_shop.folder / "status.json"
    found, imported = stage(later_shop, name, *(["--status", str(status)] if name == "compact" else []))
    assert said in found
    assert imported == needs
    assert name != "compact" or json.loads(status.read_text())["published_hour"] == later_shop.hours[0]
