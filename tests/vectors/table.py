"""How many vectors there are of each protocol, and what became of them: printed at the end of a test run.

A vector counts as understood if both its tests passed, by the general reader and by the columnar path (tests/protocols/test_vectors.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from tests.protocols import vectors

PATHS = 2  # tests of one vector
# What the files hold beside messages: (protocol, type of the expected) → why no protocol decodes it, and what tests it.
LISTED = {
    ("craft-primitive", ""): "numbers and chunks inside Craft messages: tests/wire/test_binary_wire.py",
    ("tso", ""): "timestamps: tests/wire/test_binary_wire.py",
    ("avro", "avro-record"): "a framed record without its schema, of a message nobody wrote: tests/vectors/test_table.py reads its frame",
    ("avro-name", ""): "how a name is spelled in a schema: tests/vectors/test_table.py, by the tests' own spelling",
    ("storage-schema-file", ""): "what the columns of CSV lines are: tests/vectors/test_table.py",
    ("storage-metadata", ""): "the storage sink's checkpoint: tests/land/test_sink_hours.py reads such",
    ("storage-index", ""): "the storage sink's newest file: tests/archives/test_storage_sink.py reads such",
    ("partition-hash", ""): "how TiCDC chooses the partition: Tidelake finds messages where they are",
}
_TEST = re.compile(
    r"test_vectors\.py::test_(?:the_general_reader|the_columnar_path)_gives_what_the_vector_says\[([a-z-]+):(.*)\]$", re.DOTALL
)


class Report(Protocol):
    """What pytest says of a test that ran; from another process too."""

    nodeid: str


def reason(vector: dict[str, Any]) -> str | None:
    """Why it is no message to decode; None for one that is."""
    protocol = vector["protocol"]
    return LISTED.get((protocol, "")) or LISTED.get((protocol, vector["expected"]["type"]))


def lines(stats: Mapping[str, Iterable[Report]]) -> Iterator[str]:
    """The table, of a run's reports by outcome; nothing if the run tried no vector."""
    passed, failed = (_tests(stats, *outcomes) for outcomes in (("passed",), ("failed", "error", "skipped", "xfailed", "xpassed")))
    if not passed and not failed:
        return
    of_files, understood = Counter(v["protocol"] for v in vectors.every() if not reason(v)), Counter[str]()
    yield f"{'vectors of':<20}{'in the files':>14}{'understood':>12}{'not':>6}"
    for protocol in vectors.PROTOCOLS:
        understood[protocol] = passed[protocol] // PATHS
        yield _row(protocol, of_files[protocol], understood[protocol], -(-failed[protocol] // PATHS))
    yield _row("all protocols", of_files.total(), understood.total(), -(-failed.total() // PATHS))
    for (protocol, kind), why in LISTED.items():
        count = sum(v["protocol"] == protocol and kind in ("", v["expected"]["type"]) for v in vectors.every())
        yield f"{kind or protocol:<20}{count:>14}  listed: {why}"


def _tests(stats: Mapping[str, Iterable[Report]], *outcomes: str) -> Counter[str]:
    """How many tests of vectors ended so, by protocol."""
    matches = (_TEST.search(getattr(report, "nodeid", "")) for outcome in outcomes for report in stats.get(outcome, ()))
    return Counter(match[1] for match in matches if match)


def _row(name: str, in_files: int, understood: int, failed: int) -> str:
    return f"{name:<20}{in_files:>14}{understood:>12}{failed:>6}"
