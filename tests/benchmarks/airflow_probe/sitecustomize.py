"""Every Python that finds this folder in PYTHONPATH loads this file when it starts. Children of tasks write where their time went.

A child is `python -m tidelake STAGE …`. It writes a JSON object to the folder that TIDELAKE_PROBE names: its stage, when it started and
ended, and its seconds by kind of work. A moment counts as one kind only, the innermost:

start      the interpreter, before this file
imports    import statements, and what they run
open       the catalog and the identity of the lake
spark      getting a Spark session, and closing it
work       everything else

Nothing of the package is imported here, so that older versions of it can be measured.
"""

from __future__ import annotations

import atexit
import builtins
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

SPARK, LAKE = "tidelake.spark.session", "tidelake.lake.opened"


class Watch:
    """Sums the seconds of this process's main thread by kind of work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.kinds = ["work"]
        self._since = time.monotonic()

    def enter(self, kind: str) -> None:
        """Begin work of a kind."""
        self._count()
        self.kinds.append(kind)

    def leave(self) -> None:
        """End it, and go on with what was done before."""
        self._count()
        self.kinds.pop()

    def _count(self) -> None:
        now = time.monotonic()
        self.seconds[self.kinds[-1]] = self.seconds.get(self.kinds[-1], 0.0) + now - self._since
        self._since = now


class Timed:
    """A context manager whose beginning and end count as a kind of work."""

    def __init__(self, watch: Watch, kind: str, inner: Any) -> None:
        self._watch, self._kind, self._inner = watch, kind, inner

    def __enter__(self) -> Any:
        self._watch.enter(self._kind)
        try:
            return self._inner.__enter__()
        finally:
            self._watch.leave()

    def __exit__(self, *error: Any) -> Any:
        self._watch.enter(self._kind)
        try:
            return self._inner.__exit__(*error)
        finally:
            self._watch.leave()


def watch_imports(watch: Watch) -> None:
    """Count import statements of the main thread, and follow what they bring."""
    before, main, followed = builtins.__import__, threading.get_ident(), set[str]()

    def timed(name: str, *arguments: Any, **named: Any) -> Any:
        if watch.kinds[-1] == "imports" or threading.get_ident() != main:
            return before(name, *arguments, **named)
        watch.enter("imports")
        try:
            return before(name, *arguments, **named)
        finally:
            watch.leave()
            for module in {SPARK, LAKE} & sys.modules.keys() - followed:
                followed.add(module)
                follow(watch, sys.modules[module])

    builtins.__import__ = timed


def follow(watch: Watch, module: Any) -> None:
    """Count the beginning and end of sessions and of opened lakes."""
    if module.__name__ == SPARK:
        session = module.spark_session
        module.spark_session = lambda *a, **n: Timed(watch, "spark", session(*a, **n))
    else:
        opened = module.Lake.of
        module.Lake.of = lambda *a, **n: Timed(watch, "open", opened(*a, **n))


def probe(folder: str, stage: str) -> None:
    """Watch this process and write what was found when it ends."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    started, watch = time.time() - age, Watch()
    watch.seconds["start"] = age
    watch_imports(watch)

    def write() -> None:
        watch.leave()
        found = {"stage": stage, "started": started, "ended": time.time(), "cpu": time.process_time(), "seconds": watch.seconds}
        (Path(folder) / f"{stage}-{os.getpid()}.json").write_text(json.dumps(found))

    atexit.register(write)


if os.environ.get("TIDELAKE_PROBE") and "tidelake" in sys.orig_argv[:-1] and sys.orig_argv[sys.orig_argv.index("tidelake") - 1] == "-m":
    probe(os.environ["TIDELAKE_PROBE"], sys.orig_argv[sys.orig_argv.index("tidelake") + 1])
