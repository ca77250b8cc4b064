"""What Spark writes down and shows holds no secret: event log, UI and logs, in an application of its own and through Spark Connect."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import psutil
import pytest

from tests.conftest import FreshUri
from tests.e2e import bazaar
from tidelake.demo.generate import generate
from tidelake.io.storage import open_store
from tidelake.spark.connect_keeper import _free_port
from tidelake.tso import format_hour

FEED = "bazaar-open"
KEY = 'a/mask+key & "only" of=these tests?'
MASKS = """
[policy]
mask_key = "${BAZAAR_MASK_KEY}"
mask_at = "%s"
[columns."bazaar.sellers".handle]
mask = "hash"
[columns."bazaar.visits".page]
mask = "hash"
"""


def spellings(secret: str) -> dict[str, str]:
    """A secret as texts may hold it; base64 without the characters at its ends, which depend on what stands beside it."""
    found = {"plain": secret, "percent": quote(secret, safe=""), "plus": quote_plus(secret), "hex": secret.encode().hex()}
    found |= {"json": json.dumps(secret)[1:-1], "html": secret.replace("&", "&amp;").replace('"', "&quot;")}
    for skip in range(3):
        inside = base64.b64encode(b"\0" * skip + secret.encode()).decode()[4 if skip else 0 : -4]
        found |= {f"base64 at {skip}": inside, f"url-safe base64 at {skip}": inside.replace("+", "-").replace("/", "_")}
    return found


def held(texts: dict[str, str], secrets: dict[str, str]) -> list[str]:
    """Which text holds which secret how."""
    wanted = [(name, how, s) for name, secret in secrets.items() for how, s in spellings(secret).items()]
    return sorted(f"{where}: {name} ({how})" for where, text in texts.items() for name, how, s in wanted if s in text)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(("mode", "mask_at"), [("classic", "decode"), ("classic", "order"), ("connect", "decode"), ("connect", "order")])
def test_an_hour_leaves_no_secret_where_spark_writes_and_shows(s3: FreshUri, tmp_path: Path, mode: str, mask_at: str) -> None:
    uri = s3("secrets")
    workload = generate(open_store(f"{uri}/archive"), ["open"], hours=1, rows_per_hour=200, ddl_span_hours=1.0)
    schemas = bazaar.schemas_for(workload, tmp_path)
    with (schemas / FEED / "feed.toml").open("a") as file:
        file.write(MASKS % mask_at)
    for name in ("events", "spark", "work"):
        (tmp_path / name).mkdir()
    port = _free_port()
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
    conf |= {"spark.eventLog.dir": (tmp_path / "events").as_uri(), "spark.ui.enabled": "true", "spark.ui.port": str(port)}
    environment = os.environ | {
        "TIDELAKE_ARCHIVE": f"{uri}/archive",
        "TIDELAKE_LAKE": f"{uri}/lake",
        "TIDELAKE_CATALOG": f"jdbc:sqlite:{tmp_path / 'catalog.db'}",
        "TIDELAKE_SCHEMAS": str(schemas),
        "TIDELAKE_SPARK_CONF": "\n".join(f"{k}={v}" for k, v in conf.items()),
        "TIDELAKE_DRIVER_MEMORY": "1g",
        "BAZAAR_MASK_KEY": KEY,
        "PYTHONPATH": f"{bazaar.CHECKOUT / 'jobs'}{os.pathsep}{bazaar.CHECKOUT}",
    }
    if mode == "connect":
        environment["TIDELAKE_SPARK_SERVER"] = str(tmp_path / "spark")
    commands = [["run", "--feed", FEED, "--hour", format_hour(workload.hours[0])]]
    command = [sys.executable, "-m", "tests.lake.watched", str(port), str(tmp_path / "ui"), json.dumps(commands)]
    try:
        done = subprocess.run(command, env=environment, cwd=tmp_path / "work", capture_output=True, text=True, timeout=850, check=False)
    finally:
        secrets = {"the mask's key": KEY, "the S3 secret": os.environ["AWS_SECRET_ACCESS_KEY"]} | ended(tmp_path / "spark")
    assert done.returncode == 0, done.stderr[-5000:]
    texts = {"printed": done.stdout + done.stderr, "UI": (tmp_path / "ui").read_text()}
    logs = [*(tmp_path / "events").iterdir(), *(tmp_path / "spark").glob("log*")]
    texts |= {path.name if path.parent.name == "spark" else "event log": path.read_text() for path in logs}
    assert "SparkListenerSQLExecutionStart" in texts["event log"]
    assert ("SparkListenerConnectOperationStarted" in texts["event log"]) == (mode == "connect")
    assert texts["UI"].count("== /SQL/execution/") > 5
    assert held(texts, secrets) == []
    assert [p for p in (tmp_path / "spark").rglob("*") if p.is_file() and KEY in p.read_text(errors="replace")] == []


def ended(folder: Path) -> dict[str, str]:
    """The server's token, once its keeper has ended; nothing where none was."""
    try:
        known = json.loads((folder / "server.json").read_text())
    except OSError:
        return {}
    keeper = psutil.Process(known["pid"])
    processes = [keeper, *keeper.children(recursive=True)]
    os.kill(known["pid"], signal.SIGTERM)
    psutil.wait_procs(processes, timeout=60)
    return {"the server's token": known["remote"].partition("token=")[2]}
