"""Maintenance of one feed, for spark-submit or python: --feed F [--schemas DIR] [--dry-run]. Exit codes as of the command line."""

import sys

from tidelake.cli import run

if __name__ == "__main__":
    sys.exit(run(["maintain", *sys.argv[1:]]))
