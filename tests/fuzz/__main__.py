"""Hostile messages over all protocols, and a table of what became of them. Exits with 1 if a promise of tests/fuzz/judge.py is broken.

Every cut of every vector and every flipped bit of 50 where the number of messages allows, evenly chosen ones else; then random damage.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path

from rich.console import Console

from tests.fuzz import plan, tally
from tests.fuzz.corpus import names
from tests.fuzz.plan import Task
from tests.fuzz.tally import Tally

_MOST_FAULTS = 20  # shown


def main() -> int:
    """0 if every promise held."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="about so many in all (default 1,000,000)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="repeats a run; default: of the clock")
    parser.add_argument("--protocol", action="append", metavar="P", help="only this one; may be repeated")
    parser.add_argument("--minutes", type=float, help="go on until so many minutes are over, instead of --messages")
    parser.add_argument("--batch", type=int, default=250, help="messages decoded together (default 250)")
    parser.add_argument(
        "--giants", type=int, default=12, metavar="MB", help="size of the largest messages below the cap (default 12); 0: none"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one per core")
    parser.add_argument("--task", help="nothing but this one, as a failure names it")
    flags = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    protocols = names(flags.protocol)
    console.print(f"seed {flags.seed}", highlight=False)
    found = {p: Tally() for p in protocols}
    start = time.monotonic()
    until = start + 60 * flags.minutes if flags.minutes else None
    planned = plan.tasks(protocols, 0 if until else flags.messages, flags.seed, flags.batch, flags.giants)
    if flags.task:
        planned, flags.processes = iter([Task.of(flags.task)]), 1
    crashed = _spread(planned, flags.processes, until, found)
    tally.show(console, found, time.monotonic() - start)
    faults = [fault for t in found.values() for fault in t.faults]
    folder = Path(tempfile.gettempdir()) / f"tidelake-fuzz-{os.getpid()}"
    for number, fault in enumerate(faults[:_MOST_FAULTS]):
        fault.show(console, folder, number)
    for task in crashed:
        console.print(f"a process died, at one of: python -m tests.fuzz --task {task}", style="bold", highlight=False)
    return 1 if faults or crashed else 0


def _spread(planned: Iterator[Task], processes: int, until: float | None, found: dict[str, Tally]) -> list[Task]:
    """Do all tasks, adding up what they find; the tasks that were under way when a process died."""
    if processes == 1:
        for task in planned:
            found.setdefault(task.protocol, Tally()).add(plan.run(task))
            if until and time.monotonic() > until:
                break
        return []
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=faulthandler.enable)
    with pool:
        running: dict[Future[Tally], Task] = {pool.submit(plan.run, task): task for task in islice(planned, processes)}
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            try:
                for future in done:
                    found[running[future].protocol].add(future.result())
                    del running[future]
            except BrokenProcessPool:
                return list(running.values())
            more = islice(planned, 0 if until and time.monotonic() > until else processes - len(running))
            running |= {pool.submit(plan.run, task): task for task in more}
    return []


if __name__ == "__main__":
    sys.exit(main())
