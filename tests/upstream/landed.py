"""A feed that lands the hours of a producer's topic, from Kafka or by way of `tidelake archive`, and what its lake says of the source."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.cli.calls import Called, call
from tests.io.sql_server import SqlServer
from tests.land.archive import at
from tests.upstream.topic import Hours
from tests.upstream.workload import DATABASE, Table, Workload
from tidelake.query.verify.cell_texts import quoted
from tidelake.tso import format_hour

WAYS = ("kafka", "archive")
_FEED = """protocol = "{protocol}"
topics = ["{topic}"]
partitions = 1
[watermark]
from = "offsets"
{options}
[source]
{source}
[lake]
uri = "{folder}/lake"
"""
_SOURCES = {
    "kafka": 'kind = "kafka"\nuri = "{servers}"',
    "archive": """kind = "archive"
layout = "canonical"
uri = "{folder}/archive"
closed_by = "quiet"
quiet_minutes = 0
[source.archiver]
servers = "{servers}"
""",
}
_JSON_OF_MYSQL = "MySQL writes the members of JSON in its own order"  # why `verify` leaves a column out


@dataclass
class LandedFeed:
    """Feed `shop` in a folder. protocol, options: of feed.toml; way: one of WAYS."""

    hours: Hours
    folder: Path
    way: str
    protocol: str
    tables_sql: str
    options: str = ""

    def __post_init__(self) -> None:
        made = self.folder / "schemas" / "shop"
        made.mkdir(parents=True)
        source = _SOURCES[self.way].format(servers=self.hours.broker.servers, folder=self.folder)
        settings = {"protocol": self.protocol, "topic": self.hours.topic, "options": self.options, "source": source, "folder": self.folder}
        (made / "feed.toml").write_text(_FEED.format(**settings))
        (made / "tables.sql").write_text(self.tables_sql)

    def call(self, command: str, *arguments: object) -> Called:
        """`tidelake COMMAND --feed shop …` in this process."""
        return call(command, "--feed", "shop", "--schemas", self.folder / "schemas", *arguments)

    def run(self, hour: int, *, killed: Random | None = None) -> None:
        """Land an hour and bring it through all stages. killed: kill landing before that, at random times until it ends by itself."""
        if self.way == "archive":
            archived = self.call("archive", "--once")
            assert archived.code == 0, archived.err
        name = format_hour(at(hour))
        if killed is not None:
            self._land_and_kill(name, killed)
        ran = self.call("run", "--hour", name)
        assert ran.code == 0, ran.out + ran.err

    def equal(self, work: Workload, *, keyed: bool = False) -> None:
        """Compare all tables with the source, or those with a key. Fails if they differ, or if a column was not compared."""
        tables = [t for t in work.tables if t.key or not keyed]
        for name in [f"{DATABASE}.{t.name}" for t in tables] if keyed else ["all"]:
            said = self.call("verify", "--connect", work.server.url, "--table", name)
            assert said.code == 0, said.out + said.err
            assert not [line for line in said.out.splitlines() if "not compared" in line and _JSON_OF_MYSQL not in line], said.out
        for table in tables if work.server.kind == "mysql" else []:
            self._equal_documents(work.server, table)

    def _equal_documents(self, server: SqlServer, table: Table) -> None:
        """Compare the values of JSON columns. MySQL's texts of them are not those of its binlog."""
        names = [n for n, sql in table.columns.items() if sql == "JSON"]
        if not names:
            return
        keys = list(table.columns)[: table.key]
        shown = self.call("asof", "--table", f"{DATABASE}.{table.name}", "--format", "jsonl")
        assert shown.code == 0, shown.err
        here = [json.loads(line) for line in shown.out.splitlines()]
        there = server.execute(f"SELECT {', '.join(quoted(n) for n in (*keys, *names))} FROM {table.sql}")
        found = Counter((*(str(row[k]) for k in keys), *(self._document(row[n]) for n in names)) for row in here)
        wanted = Counter((*map(str, row[: table.key]), *map(self._document, row[table.key :])) for row in there)
        assert found == wanted, f"{table.name}: {found - wanted} here, {wanted - found} upstream"

    def _document(self, text: str | None) -> str | None:
        """A document's value as a text: its members in one order, 1 and 1.0 told apart. Maxwell sends JSON's null as NULL."""
        if text is None or (text == "null" and self.protocol == "maxwell"):
            return None
        return json.dumps(json.loads(text), sort_keys=True)

    def _land_and_kill(self, hour: str, random: Random) -> None:
        command = [sys.executable, "-m", "tidelake", "land", "--feed", "shop", "--schemas", str(self.folder / "schemas"), "--hour", hour]
        for seconds in (random.uniform(0.3, 0.8), random.uniform(0.8, 1.6), random.uniform(1.6, 3)):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as landing:
                try:
                    landing.wait(seconds)
                except subprocess.TimeoutExpired:
                    landing.kill()
