"""`python -m tidelake.notices look SCHEMAS FEED…`: look at feeds and print the notices that wait, as JSON.
`python -m tidelake.notices delivered SCHEMAS FEED NUMBER…`: remove the notices of a feed that were delivered.

Airflow's task `notify` calls it, because Airflow's processes do not open the lake. A feed that cannot be read does not keep the others from
being looked at: its error stands in place of its notices.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tidelake.config.feed import load_feed
from tidelake.errors import TidelakeError
from tidelake.io.printable import printable_lines
from tidelake.lake.opened import Lake
from tidelake.notices.look import forget, look


def main(arguments: Sequence[str]) -> int:
    """Run a command and return an exit code of the command line."""
    what, schemas, *names = arguments
    if what == "look":
        json.dump({name: _looked(Path(schemas), name) for name in names}, sys.stdout)
        return 0
    feed, *numbers = names
    try:
        with Lake.of(load_feed(Path(schemas), feed)) as lake:
            forget(lake, [int(n) for n in numbers])
    except TidelakeError as e:
        sys.stderr.write(f"error: {printable_lines(str(e))}\n")
        return e.exit_code
    return 0


def _looked(schemas: Path, name: str) -> dict[str, Any]:
    """Return the notices of a feed that wait, by notifier, or the error."""
    try:
        feed = load_feed(schemas, name)
        with Lake.of(feed) as lake:
            waiting = look(lake, datetime.now(UTC))
    except TidelakeError as e:
        return {"error": str(e), "notices": {}}
    return {"error": "", "notices": {key: [n.model_dump() for n in several] for key, several in waiting.items()}}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
