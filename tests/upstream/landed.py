"""A feed that lands the hours of a producer's topic, from Kafka or by way of `tidelake archive`, and what its lake says of the source."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.cli.calls import Called, call
from tests.land.archive import at
from tests.upstream.topic import Hours
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

    def equal(self, url: str, *tables: str) -> str:
        """Compare tables with the source, all if none is named. Returns what `verify` printed; fails if they differ."""
        out = ""
        for table in tables or ("all",):
            said = self.call("verify", "--connect", url, "--table", table)
            assert said.code == 0, said.out + said.err
            out += said.out
        return out

    def _land_and_kill(self, hour: str, random: Random) -> None:
        command = [sys.executable, "-m", "tidelake", "land", "--feed", "shop", "--schemas", str(self.folder / "schemas"), "--hour", hour]
        for seconds in (random.uniform(0.3, 0.8), random.uniform(0.8, 1.6), random.uniform(1.6, 3)):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as landing:
                try:
                    landing.wait(seconds)
                except subprocess.TimeoutExpired:
                    landing.kill()
