"""What a run found: counts, the slowest and the fattest message, and every broken promise with what repeats it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fuzz.corpus import Group
from tests.protocols.both_paths import Message

MB = 1_000_000
_SHOWN = 4_000  # characters of a message on the terminal; a longer one goes to a file


@dataclass(frozen=True, slots=True)
class Cost:
    """What one message cost. rate: seconds per MB, or bytes of memory per byte."""

    rate: float = 0.0
    size: int = 0
    what: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken promise. line: the message as `tidelake inspect` reads it. schemas: Avro's, as `--avro-schemas` reads them."""

    protocol: str
    what: str
    options: dict[str, object]
    line: str
    schemas: dict[str, str]
    task: str = ""

    @classmethod
    def of(cls, group: Group, message: Message, what: str) -> Fault:
        """With all that repeats it."""
        line = {side: None if data is None else data.hex() for side, data in zip(("key", "value"), message, strict=True)}
        return cls(group.protocol, what, group.options, json.dumps(line), {str(i): s for i, s in group.schemas.items()})

    def show(self, console: Console, folder: Path, number: int) -> None:
        """Print it, ready to paste."""
        flags = "".join(f" --set {name}={json.dumps(value)}" for name, value in self.options.items())
        console.print(f"{self.protocol}: {self.what}", style="bold", markup=False)
        if self.schemas:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{number}.schemas.json"
            path.write_text(json.dumps(self.schemas))
            flags += f" --avro-schemas {path}"
        line = self.line
        if len(line) > _SHOWN:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.jsonl").write_text(line + "\n")
            line = f"(in {folder / f'{number}.jsonl'}, {len(line):,} characters)"
        console.print(line, markup=False, soft_wrap=True)
        console.print(f"  tidelake inspect --protocol {self.protocol}{flags} -      {self.task}", markup=False, soft_wrap=True)


@dataclass(slots=True)
class Tally:
    """Of one protocol."""

    messages: int = 0
    events: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    slowest: Cost = Cost()  # of messages from 10 kB on: of a smaller one the call itself is measured
    longest: Cost = Cost()  # of the smaller ones; rate: seconds
    fattest: Cost = Cost()  # of messages from 1 MB on
    faults: list[Fault] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Everything of the other one too."""
        self.messages += other.messages
        self.events += other.events
        self.rejected += other.rejected
        self.faults += other.faults
        for name in ("slowest", "longest", "fattest"):
            self.note(name, getattr(other, name))

    def note(self, name: str, cost: Cost) -> None:
        """Keep the larger one."""
        if cost.rate > getattr(self, name).rate:
            setattr(self, name, cost)

    def timed(self, seconds: float, size: int, what: str) -> None:
        """A message took so long."""
        if size >= 10_000:
            self.note("slowest", Cost(seconds / (size / MB), size, what))
        else:
            self.note("longest", Cost(seconds, size, what))


def show(console: Console, tallies: dict[str, Tally], seconds: float) -> None:
    """The table of a run."""
    whole = Tally()
    for tally in tallies.values():
        whole.add(tally)
    grid = Table("", "messages", "events", "rejected", "slowest", "fattest", "rejected by code", box=None, pad_edge=False)
    for column in grid.columns[1:6]:
        column.justify = "right"
    for name, tally in (*tallies.items(), ("all", whole)):
        rejected = sum(tally.rejected.values())
        codes = "  ".join(f"{code} {count:,}" for code, count in tally.rejected.most_common())
        slow, fat = f"{tally.slowest.rate:.2f} s/MB", f"{tally.fattest.rate:.1f}×"
        style = "bold" if name == "all" else None
        grid.add_row(name, f"{tally.messages:,}", f"{tally.events:,}", f"{rejected:,}", slow, fat, codes, style=style)
    console.print(grid)
    console.print(f"slowest message: {_words(whole.slowest)}, {whole.slowest.rate:.3f} s per MB", highlight=False)
    console.print(f"slowest below 10 kB: {_words(whole.longest)}, {1000 * whole.longest.rate:.1f} ms", highlight=False)
    console.print(f"fattest message: {_words(whole.fattest)}, {whole.fattest.rate:.2f} bytes per byte", highlight=False)
    console.print(f"{whole.messages:,} messages in {seconds:.0f} s; broken promises: {len(whole.faults)}", highlight=False)


def _words(cost: Cost) -> str:
    return f"{cost.what or 'none'}, {cost.size:,} bytes"
