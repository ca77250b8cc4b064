"""Spark's jars (Iceberg, catalogs), fetched once through Ivy. `python -m tidelake.lake.jars` fills the cache; later sessions find them."""

from __future__ import annotations

import sys

from tidelake.lake.application import cached_jars, ivy_folder
from tidelake.lake.session import fetch_jars


def main() -> int:
    """Fetch the jars unless all are cached."""
    if not cached_jars(ivy_folder()):
        fetch_jars()
    missing = not cached_jars(ivy_folder())
    sys.stderr.write(f"Spark's jars are {'not all ' if missing else ''}in {ivy_folder()}\n")
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())
