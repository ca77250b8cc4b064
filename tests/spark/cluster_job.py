"""Command lines in one Spark application: `python -m tests.spark.cluster_job '[["run", "--feed", …], …]'`. Ends at the first that fails."""

from __future__ import annotations

import json
import sys
import time

from tidelake import cli
from tidelake.run import kept_session


def main(commands: list[list[str]]) -> int:
    """The exit code of the last one."""
    with kept_session("tidelake cluster test", brief=True):
        for command in commands:
            started = time.monotonic()
            code = cli.run(command)
            sys.stderr.write(f"{time.monotonic() - started:6.1f} s: {' '.join(command)}: {code}\n")
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
