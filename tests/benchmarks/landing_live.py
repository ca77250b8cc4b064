"""From a real Kafka broker to durable canonical Parquet on an S3 server: MB/s of messages, peak memory, and where the time goes.

Broker, S3 server and landing share the machine. `take` is the client alone, messages as columns of Python objects; `cut` writes objects of
them to local disk; both by one thread. `archive` is `tidelake archive --once`, `land` landing from the topic, `plain` the loop that one
would write first.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.archives.objects import Message
from tests.benchmarks import child
from tests.benchmarks.figures import Figure
from tests.benchmarks.landing_memory import ALLOWANCE
from tests.io.kafka_broker import KafkaBroker
from tests.land.live import FIRST_MS, produce
from tidelake.demo.embedded_s3 import EmbeddedS3

MIB = 1 << 20
MUST = 100  # MB/s
TOPIC = "shop"
PARTITIONS = 4
BUDGET_MB = 64
TURNS = 3
WAYS = ("take", "cut", "archive", "land", "plain")


def measure(console: Console, messages: int, turns: int = TURNS) -> tuple[dict[str, Figure], dict[str, Any]]:
    """Measure everything and print it; the figures, and all that was measured. messages: of about 500 bytes."""
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as root:
        folders = [Path(root) / name for name in ("kafka", "s3")]
        for folder in folders:
            folder.mkdir()
        with KafkaBroker(folders[0]) as broker, EmbeddedS3(folders[1]) as s3:
            console.print(f"  {messages:,} messages in {PARTITIONS} partitions, {turns} turns", style="dim")
            broker.create(TOPIC, PARTITIONS)
            for partition in range(PARTITIONS):
                produce(broker, TOPIC, partition, content(messages // PARTITIONS))
            details: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
            for turn in range(turns):
                for way, found in details.items():
                    lake = f"s3://{s3.bucket}/{way}-{turn}"
                    found.append(child.run("land_live", way, broker.servers, lake, str(BUDGET_MB), environment=s3.environment))
    _show(console, details)
    return figures(details), details


def content(count: int) -> Iterator[Message]:
    """Rows as Canal-JSON has them, about 500 bytes each."""
    for i in range(count):
        noise, ms = hashlib.md5(b"%d" % i, usedforsecurity=False), FIRST_MS + i
        row = f'"id":"{i}","buyer":"{noise.digest()[0]}","state":"paid","total":"{i % 9973}.{i % 89 + 10}","note":"{noise.hexdigest()}"'
        types = '"id":"bigint","buyer":"bigint","state":"varchar(16)","total":"decimal(12,2)","note":"varchar(64)"'
        codes = '"id":-5,"buyer":-5,"state":12,"total":3,"note":12'
        head = (
            f'"id":0,"database":"shopdb","table":"orders","pkNames":["id"],"isDdl":false,"type":"INSERT","es":{ms},"ts":{ms + 250},"sql":""'
        )
        tail = f'"old":null,"data":[{{{row}}}],"_tidb":{{"commitTs":{ms << 18}}}'
        yield Message(i, f'{{{head},"sqlType":{{{codes}}},"mysqlType":{{{types}}},{tail}}}'.encode(), b"%010d" % i, ms)


def figures(details: Mapping[str, Any]) -> dict[str, Figure]:
    """What is judged and compared. Peaks are of the whole process: in_flight + 300 MB, beside which a message weighs nothing."""
    must = BUDGET_MB + ALLOWANCE / MIB
    out = {"land": Figure(value=speed(details["land"]), unit="MB/s", must=MUST, more_is_better=True)}
    pairs = zip(details["plain"], details["land"], strict=True)
    times = median(plain["seconds"] / land["seconds"] for plain, land in pairs)
    out["land, times plain"] = Figure(value=times, unit="× the plain loop", more_is_better=True, ratio=True)
    for way in ("land", "archive"):
        out[f"{way}, peak memory"] = Figure(value=max(turn["peak"] for turn in details[way]) / MIB, unit="MiB", must=must)
    return out


def speed(turns: list[dict[str, Any]]) -> float:
    """MB/s of keys and values, the median of the turns."""
    return median(turn["bytes"] / 1e6 / turn["seconds"] for turn in turns)


def _show(console: Console, details: Mapping[str, Any]) -> None:
    grid = Table("", "MB/s", "CPU s/GB", "peak MiB", box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    for way, turns in details.items():
        cpu = median(turn["cpu"] / turn["bytes"] * 1e9 for turn in turns)
        grid.add_row(way, f"{speed(turns):,.0f}", f"{cpu:.1f}", f"{max(turn['peak'] for turn in turns) / MIB:,.0f}")
    console.print("\nlive topic → durable Parquet on an S3 server; medians of the turns; CPU time without broker and server")
    console.print(grid)
    for name, f in figures(details).items():
        limit = "" if f.must is None else f" (must: at {'least' if f.more_is_better else 'most'} {f.must:,.0f}) {f.verdict}"
        console.print(f"{name}: {f.value:,.4g} {f.unit}{limit}")
