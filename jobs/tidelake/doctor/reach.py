"""`python -m tidelake.doctor.reach SCHEMAS`: ask every place that a feed names whether it answers, and print
{"feeds": n, "places": n, "problems": [text], "empty": [uri]}. It writes nothing. A place that several feeds share is asked once.

Airflow's "Test connection" calls it, because Airflow's server has no client of the object store.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tidelake.config.feed import existing_feeds, load_feed
from tidelake.doctor.places import Place, places
from tidelake.errors import TidelakeError
from tidelake.io.printable import printable_lines


def main(arguments: Sequence[str]) -> int:
    """Print what was found and return an exit code of the command line. Errors go to stderr."""
    (schemas,) = arguments
    try:
        feeds = existing_feeds(Path(schemas))
    except TidelakeError as e:
        sys.stderr.write(f"error: {printable_lines(str(e))}\n")
        return e.exit_code
    holds, problems = dict[str, bool](), list[str]()
    for name in feeds:
        problems += _problems(Path(schemas), name, holds)
    empty = [place for place, something in holds.items() if not something]
    sys.stdout.write(json.dumps({"feeds": len(feeds), "places": len(holds), "problems": problems, "empty": empty}))
    return 0


def _problems(schemas: Path, name: str, holds: dict[str, bool]) -> Iterator[str]:
    """Yield why a feed cannot be used. holds: places that were asked and whether something is there; the feed's are added."""
    try:
        for place in places(load_feed(schemas, name)):
            if place.uri not in holds:
                holds[place.uri] = True  # also if it does not answer: another feed does not ask again
                yield from _asked(name, place, holds)
    except TidelakeError as e:  # of the feed's settings
        yield f"{name}: {printable_lines(str(e))}"


def _asked(name: str, place: Place, holds: dict[str, bool]) -> Iterator[str]:
    try:
        holds[place.uri] = place.ask()
    except TidelakeError as e:
        yield f"{name}: {printable_lines(str(e))}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
