"""A decision on a real Airflow: an hour with a message that cannot be decoded is blocked, a person accepts the loss, the hour is published.

`python -m tests.airflow.decide`: exit code 0 if the task `decide` asks, the answer is given by REST, the run succeeds, and the certificate
has who decided and why. `--pictures DIR` answers by the form in a browser instead, and takes pictures of Airflow's pages, forms and the
quality pages before and after. `--stay` keeps Airflow running with the open question until Ctrl-C.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.airflow.pictures import Pictures, pictures
from tests.airflow.running import DAG, DAG_SECONDS, FEED, RUN_SECONDS, Failed, airflow, api, last_words, say, timed, trigger, until
from tests.checkout import CHECKOUT
from tests.pages.browser import MISSING, find_chromium
from tests.quick_spark import QUICK_SPARK
from tidelake.config.feed import load_feed
from tidelake.demo.airflow import Airflow
from tidelake.demo.play import demo_lake, make_archives
from tidelake.errors import TidelakeError
from tidelake.io.storage import open_store
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.tso import format_hour

ACCEPT, REASON = "Accept the loss", "a message of the test"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.airflow.decide", description=__doc__)
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="answer in Chromium, and take pictures into this folder")
    parser.add_argument("--stay", action="store_true", help="do not answer; keep Airflow running")
    flags = parser.parse_args(arguments)
    if flags.pictures and find_chromium() is None:
        parser.error(f"--pictures {MISSING}")
    with tempfile.TemporaryDirectory(prefix="tidelake-decide-") as folder, demo_lake(Path(folder) / "demo", fresh=True):
        try:
            with timed("everything"):
                everything(Path(folder), flags.pictures, stay=flags.stay)
        except (Failed, TidelakeError) as e:
            say(f"FAILED: {e}")
            return 1
        except KeyboardInterrupt:
            return 130
    return 0


def everything(folder: Path, into: Path | None, *, stay: bool) -> None:
    hour = make_archives(1, 200).hours[0]
    message = spoil(hour)
    say(f"spoilt {message}")
    with airflow(folder, QUICK_SPARK) as running:
        run = trigger(running, hour)
        until(running, lambda: reached(running, "awaiting_input"), RUN_SECONDS, "question")
        (asked,) = api(running, "GET", f"/dags/{DAG}/dagRuns/~/hitlDetails")["hitl_details"]
        say(f"asked: {asked['subject']}; options: {asked['options']}\n{asked['body']}")
        if message not in asked["body"]:
            raise Failed(f"the question does not name {message}")
        if stay:
            say(f"{running.url}/required_actions; Ctrl-C ends it")
            until(running, lambda: False, 12 * 3600, "answer")
        with pictures(running.url, into) if into else nullcontext() as seen:
            if seen:
                seen.take_all("before", format_hour(hour), run)
            until(running, lambda: answered(running, seen), RUN_SECONDS, "decision")
            until(running, lambda: state(running) == "success", DAG_SECONDS, "successful run")
            if seen:
                seen.take_all("after", format_hour(hour), run)
        say(f"tasks: {states(running)}")
        if states(running)["complete"] != "skipped":
            raise Failed("complete does not show that the cut is incomplete")
    check(message)


def spoil(hour: datetime) -> str:
    """Replace the value of an archived message that has rows by other bytes. Returns its coordinates."""
    feed = load_feed(CHECKOUT / "schemas", FEED)
    store = open_store(str(feed.source.uri))
    for info in store.objects():
        if format_hour(hour)[-2:] not in info.key or not info.key.endswith(".gz"):
            continue
        lines = gzip.decompress(store.read(info.key)).splitlines()
        for n, line in enumerate(lines):
            said = json.loads(line)
            if len(said["value"] or "") > 200:
                lines[n] = json.dumps(said | {"value": "AAAA"}).encode()
                store.write(info.key, gzip.compress(b"\n".join(lines) + b"\n"))
                topic, partition, _ = info.key.rpartition("/")[2].split("+", 2)
                return f"{topic}[{int(partition)}]@{said['offset']}"
    raise Failed("the archive has no message with rows")


def states(running: Airflow) -> dict[str, Any]:
    """State of every task of the run."""
    tasks = api(running, "GET", f"/dags/{DAG}/dagRuns/~/taskInstances")["task_instances"]
    return {t["task_id"]: t["state"] for t in tasks}


def reached(running: Airflow, wanted: str) -> bool:
    """Whether `decide` is in this state. Raises Failed if it failed."""
    found = states(running)
    if found.get("decide") == "failed":
        raise Failed(f"decide failed: {last_words(running.home)}")
    return found.get("decide") == wanted


def state(running: Airflow) -> str:
    """State of the run."""
    (run,) = api(running, "GET", f"/dags/{DAG}/dagRuns")["dag_runs"]
    return str(run["state"])


def answered(running: Airflow, seen: Pictures | None) -> bool:
    """Whether `decide` has succeeded. While it asks, accept the loss: by the form in a browser, else as docs/airflow.md says for REST.

    Airflow forgets an answer that comes before its scheduler has seen the task wait; the task then asks again.
    """
    if reached(running, "awaiting_input"):
        asked = api(running, "GET", f"/dags/{DAG}/dagRuns/~/hitlDetails?response_received=false")["hitl_details"]
        for question in asked:
            run = question["task_instance"]["dag_run_id"]
            if seen:
                seen.answer(run, ACCEPT, REASON)
                continue
            path = f"/dags/{DAG}/dagRuns/{run}/taskInstances/decide/-1/hitlDetails"
            api(running, "PATCH", path, {"chosen_options": [ACCEPT], "params_input": {"reason": REASON}})
    return reached(running, "success")


def check(message: str) -> None:
    """Raise Failed unless the newest certificate names the message, the person and the reason."""
    with Lake.of(load_feed(CHECKOUT / "schemas", FEED)) as lake:
        cut = newest_cut(lake.catalog, lake.store, FEED)
        if cut is None or not cut.incomplete:
            raise Failed(f"expected an incomplete cut, found {cut}")
        said = read_certificate(lake.store, FEED, cut.seq).get("decisions", [])
    say(f"certificate: {json.dumps(said)}")
    if [(d["reason"], d["messages"], bool(d["by"])) for d in said] != [(REASON, [message], True)]:
        raise Failed("the certificate does not have the decision")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
