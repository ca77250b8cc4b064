"""`python -m tidelake.query.reach SCHEMAS`: ask the archive, the lake and the catalog of every feed whether they answer, and print
{"feeds": n, "places": n, "problems": [text], "empty": [uri]}. It writes nothing. A place that several feeds share is asked once.

Airflow's "Test connection" calls it, because Airflow's server has no client of the object store.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tidelake.config.feed import Feed, existing_feeds, load_feed
from tidelake.errors import TidelakeError
from tidelake.io.object_store import Store
from tidelake.io.printable import printable_lines
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.causes import named_causes
from tidelake.spark.lake_settings import LakeSettings, lake_settings


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
        feed = load_feed(schemas, name)
        places = list(_places(feed))
    except TidelakeError as e:
        yield f"{name}: {printable_lines(str(e))}"
        return
    for place, ask in places:
        if place in holds:
            continue
        holds[place] = True  # also if it does not answer: another feed does not ask again
        try:
            holds[place] = ask()
        except TidelakeError as e:
            yield f"{name}: {printable_lines(str(e))}"


def _places(feed: Feed) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each place of a feed, without secrets, and what asks it: whether something is there. It raises TidelakeError."""
    uris = [feed.lake.uri] if feed.source.kind == "kafka" else [str(feed.source.uri), feed.lake.uri]
    for store in map(open_store, uris):
        yield store.uri, partial(_has_objects, store)
    settings = lake_settings(feed)
    yield settings.place, partial(_has_namespaces, settings)


def _has_objects(store: Store) -> bool:
    return bool(store.some("", 1))


def _has_namespaces(settings: LakeSettings) -> bool:
    """A new catalog on SQLite is a file that does not exist yet, and stays so."""
    catalog = LakeCatalog(settings)
    with named_causes(settings.place, settings.warehouse):
        return not catalog.is_new and bool(catalog.namespaces())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
