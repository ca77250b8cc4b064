"""The hour of `scale_hour`, whose driver waits for each request to catalog and tables' files as for remote ones.

Neither workers wait nor the hour that fills the tables. An opened file counts as two requests (HEAD and GET), a file that is written,
looked for or deleted as one, each load and commit of a table as one.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from tidelake.lake.catalogs.sql import SharedSqlCatalog
from tidelake.spark import spread

_REQUESTS = (
    (PyArrowFile, "open", 2),
    (PyArrowFile, "create", 1),
    (PyArrowFile, "exists", 1),
    (PyArrowFileIO, "delete", 1),
    (SharedSqlCatalog, "load_table", 1),
    (SharedSqlCatalog, "commit_table", 1),
)


def main(folder: Path, wait: float, threads: int) -> None:
    """Print what `scale_hour` prints, and of each stage the driver's CPU seconds and number of requests. wait: seconds of a request."""
    spread.THREADS = threads  # before other modules import it

    from tests.benchmarks import scale_hour
    from tests.benchmarks.line import STAGES

    remote, driver = _Remote(wait), dict[str, dict[str, float]]()
    for of, name, requests in _REQUESTS:
        setattr(of, name, remote.waiting(getattr(of, name), requests))
    for name, stage in STAGES.items():
        STAGES[name] = remote.watched(stage, driver.setdefault(name, {}))
    printed = StringIO()
    with redirect_stdout(printed):
        scale_hour.main(folder)
    sys.stdout.write(json.dumps(json.loads(printed.getvalue()) | {"driver": driver}))


class _Remote:
    """Counts requests. wait: seconds of each, while a stage is watched."""

    def __init__(self, wait: float) -> None:
        self._wait, self._made, self._watches = wait, count(), False

    def waiting(self, plain: Callable[..., Any], requests: int) -> Callable[..., Any]:
        """Return the function, which waits for so many requests first."""

        def slow(*given: Any, **named: Any) -> Any:
            if self._watches:
                for _ in range(requests):
                    next(self._made)  # atomic, unlike +=
                time.sleep(requests * self._wait)
            return plain(*given, **named)

        return slow

    def watched(self, stage: Callable[..., Any], used: dict[str, float]) -> Callable[..., Any]:
        """Return the stage, which waits for its requests and says what it used."""

        def watched(*given: Any) -> Any:
            cpu, before, self._watches = time.process_time(), next(self._made), True
            result = stage(*given)
            self._watches = False
            used.update(cpu=time.process_time() - cpu, requests=next(self._made) - before - 1)
            return result

        return watched


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
