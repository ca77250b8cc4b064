"""The decode stage of one hour, for spark-submit or python: --feed F --hour H [--schemas DIR]. Exit codes as of the command line."""

import sys

from tidelake.cli import run

if __name__ == "__main__":
    sys.exit(run(["decode", *sys.argv[1:]]))
