"""`python -m tidelake.validate.quality.stored SCHEMAS FEED HOUR`: print the stored report page of an hour, or nothing if there is none.

Airflow's page calls it, because Airflow's server should have neither the object store's credentials nor its client.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tidelake.config.feed import load_feed
from tidelake.config.lake_paths import report_key
from tidelake.errors import TidelakeError
from tidelake.io.printable import printable_lines
from tidelake.io.storage import open_store
from tidelake.tso import format_hour, parse_hour


def main(arguments: Sequence[str]) -> int:
    """Print the page and return an exit code of the command line. Errors go to stderr."""
    schemas, feed, hour = arguments
    try:
        store = open_store(load_feed(Path(schemas), feed).lake.uri)
        page = store.read_if_present(report_key(feed, format_hour(parse_hour(hour))))
    except TidelakeError as e:
        sys.stderr.write(f"error: {printable_lines(str(e))}\n")
        return e.exit_code
    sys.stdout.buffer.write(page or b"")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
