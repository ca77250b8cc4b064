"""The decoders: one process a file, each measured in the yardstick Y of its own run (decode_file), and what a bad message costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.figures import Figure

MIB = 1 << 20
BAD_MUST = 3.0  # times the clean batch


@dataclass(frozen=True, slots=True)
class File:
    """A file of tests/data/bench. must, aim: in Y, from MESSAGE batch to EVENT batch. go: what TiCDC's own decoder takes, in Y."""

    name: str
    protocol: str
    must: float
    aim: float
    go: float | None
    spoil: bool = False  # whether a bad message in a batch is measured on it: one file a protocol


FILES = (
    File("open_16", "open", 0.30, 0.15, 3.0, spoil=True),
    File("open_64", "open", 0.30, 0.15, 3.0),
    File("craft_16", "craft", 0.09, 0.045, 0.91, spoil=True),
    File("craft_64", "craft", 0.09, 0.045, 0.91),
    File("canal-json_1", "canal-json", 0.19, 0.10, 1.96, spoil=True),
    File("avro_1", "avro", 0.42, 0.10, 4.2, spoil=True),
    File("simple-json_1", "simple-json", 0.20, 0.10, 1.02, spoil=True),
    File("simple-avro_1", "simple-avro", 0.20, 0.10, 1.10, spoil=True),
    File("canal_16", "canal", 0.20, 0.08, None, spoil=True),
)


def measure(console: Console, passes: int) -> tuple[dict[str, Figure], dict[str, Any]]:
    """Measure every file and print the tables; the figures, and all that was measured."""
    details: dict[str, Any] = {}
    for file in FILES:
        console.print(f"  {file.name}", style="dim")
        details[file.name] = child.run("decode_file", file.name, file.protocol, str(passes), environment=child.ONE_THREAD)
    found = {file: details[file.name] for file in FILES}
    _show(console, found)
    return figures(found), details


def figures(found: Mapping[File, Mapping[str, Any]]) -> dict[str, Figure]:
    """What is judged and compared."""
    out: dict[str, Figure] = {}
    for file, one in found.items():
        out[f"{file.name}: CPU"] = Figure(value=median(in_y(one)), unit="Y", must=file.must, aim=file.aim, ratio=True)
        out[f"{file.name}: CPU per row"] = Figure(value=median(one["ns"]), unit="ns")
        out[f"{file.name}: peak memory"] = Figure(value=one["peak"] / MIB, unit="MiB")
        out[f"{file.name}: first batch"] = Figure(value=one["first"]["seconds"], unit="s")
        if file.spoil:
            worst = max(one["bad"].values())
            out[f"{file.name}: a bad message"] = Figure(value=worst, unit="× clean batch", must=BAD_MUST, ratio=True)
    return out


def in_y(one: Mapping[str, Iterable[float]]) -> list[float]:
    """A file's CPU time per row in the Y around it, pass by pass."""
    return [ns / y for ns, y in zip(one["ns"], one["y_ns"], strict=True)]


def _show(console: Console, found: Mapping[File, Mapping[str, Any]]) -> None:
    names = ("", "rows", "bytes/row", "CPU ns/row", "× Y", "best", "must", "aim", "", "× Go", "MB/s", "peak MiB", "first batch s")
    grid = Table(*names, box=None, pad_edge=False)
    judged = figures(found)
    for column in grid.columns[1:]:
        column.justify = "right"
    for file, one in found.items():
        f, ns = judged[f"{file.name}: CPU"], median(one["ns"])
        size = one["bytes_per_row"]
        grid.add_row(
            file.name,
            f"{one['rows']:,}",
            f"{size:.0f}",
            f"{ns:,.0f}",
            f"{f.value:.3f}",
            f"{min(in_y(one)):.3f}",
            "" if f.must is None else f"{f.must:g}",
            "" if f.aim is None else f"{f.aim:g}",
            f.verdict,
            "" if file.go is None else f"{f.value / file.go:.3f}",
            f"{size / ns * 1e3:,.0f}",
            f"{one['peak'] / MIB:,.0f}",
            f"{one['first']['seconds']:.2f}",
            style="bold red" if f.verdict == "MISSED" else None,
        )
    y = median(y for one in found.values() for y in one["y_ns"])
    console.print(f"\nMESSAGE batch to EVENT batch, one thread, medians of the passes; Y = json.loads of a canal-json value = {y:,.0f} ns")
    console.print(grid)
    _show_bad(console, found)


def _show_bad(console: Console, found: Mapping[File, Mapping[str, Any]]) -> None:
    spoilt = {file: one["bad"] for file, one in found.items() if file.spoil}
    kinds = list(dict.fromkeys(what for bad in spoilt.values() for what in bad))
    grid = Table("", *kinds, box=None, pad_edge=False)
    for file, bad in spoilt.items():
        cells = [f"{bad[what]:.2f}" for what in kinds]
        grid.add_row(file.name, *cells, style="bold red" if max(bad.values()) > BAD_MUST else None)
    console.print(f"\none bad message in a batch of 10,000: CPU time in that of the clean batch (must be at most {BAD_MUST:g})")
    console.print(grid)
