"""The benchmarks: the decoders in the yardstick Y, landing of archives and live topics beside plain loops, decode through Spark beside its
own writer, the whole line beside a plain pipeline, and a large window of a large table beside MERGE INTO.

The machine may be busy: trust ratios within one run. The exit code is 1 if a figure that must keep to a limit does not; the figures go
to tests/benchmarks/results, where `make bench-compare` finds them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console

from tests.benchmarks import decoders, landing, landing_live, scale, spark, whole_line
from tests.benchmarks.figures import Figure, missed
from tests.benchmarks.results import save

_Section = Callable[[Console, argparse.Namespace], tuple[dict[str, Figure], dict[str, Any]]]

SECTIONS: dict[str, _Section] = {
    "decoders": lambda console, flags: decoders.measure(console, flags.passes),
    "land": lambda console, flags: landing.measure(console, flags.land_mb),
    "kafka": lambda console, flags: landing_live.measure(console, flags.kafka_messages),
    "spark": lambda console, flags: spark.measure(console, flags.spark_rows),
    "line": lambda console, flags: whole_line.measure(console, flags.rows, baseline=not flags.no_baseline),
    "scale": lambda console, flags: scale.measure(console, baseline=not flags.no_baseline),
}


def main() -> int:
    """0 if every figure keeps to its must."""
    flags = _flags()
    console, figures, details = Console(width=130), dict[str, Figure](), dict[str, Any]()
    for name in [flags.only] if flags.only else SECTIONS:
        console.print(f"\n{name}", style="bold")
        found, details[name] = SECTIONS[name](console, flags)
        figures |= {f"{name}: {figure}": value for figure, value in found.items()}
    console.print(f"\n{save(figures, details)}")
    failures = missed(figures)
    for sentence in failures:
        console.print(sentence, style="bold red")
    return 1 if failures else 0


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", choices=list(SECTIONS), help="one section; all by default")
    parser.add_argument("--passes", type=int, default=9, help="decoders: over each file, the median is judged (default %(default)s)")
    parser.add_argument("--land-mb", type=int, default=512, help="land: MB of messages for each format (default %(default)s)")
    parser.add_argument("--kafka-messages", type=int, default=1_000_000, help="kafka: of about 500 bytes (default %(default)s)")
    parser.add_argument("--spark-rows", type=int, default=1_000_000, help="spark: row events of the hour, about (default %(default)s)")
    parser.add_argument("--rows", type=int, default=200_000, help="line: row events of the hour, about (default %(default)s)")
    parser.add_argument("--no-baseline", action="store_true", help="line, scale: leave the plain pipeline out")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
