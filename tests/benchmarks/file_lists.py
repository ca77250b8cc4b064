"""What an hour that adds a file to a table writes of its list of files: python -m tests.benchmarks.file_lists [--hours 20]"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from tidelake.config.lake_paths import file_lists
from tidelake.io.storage import Store, open_store
from tidelake.lake.cut import ProvenFile
from tidelake.lake.proof.stored_lists import StoredLists

SIZES = (24, 256, 8_760, 100_000, 1_000_000)  # files; 8,760: a year of hours without maintenance
FOLDER = "s3://lake/warehouse/shopdb_changelog/orders-1f0c9a3e/data/bucket=0/day=2026-01-05"


def main() -> None:
    """Write lists of several sizes, add files one by one, and print what each added file wrote."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--hours", type=int, default=20, help="files to add, one an hour (default: 20)")
    hours, chance = options.parse_args().hours, random.Random(1)
    print(f"{'':>10}  {'list, bytes':>12}  an hour: {'objects':>7}  {'bytes':>7}  {'at most':>7}  {'ms':>5}")  # noqa: T201
    for files in SIZES:
        with TemporaryDirectory(prefix="tidelake-lists-") as folder:
            store = open_store(str(Path(folder)))
            lists = StoredLists(store, "shop", "u")
            digest, there = lists.keep([_file(chance) for _ in range(files)]), _sizes(store)
            whole, objects, written, spent = sum(there.values()), list[int](), list[int](), 0.0
            for _ in range(hours):
                before, file, began = there, _file(chance), time.perf_counter()
                digest = lists.change(digest, [file], [])
                spent, there = spent + time.perf_counter() - began, _sizes(store)
                new = [size for key, size in there.items() if key not in before]
                objects.append(len(new))
                written.append(sum(new))
            mean, most = sum(written) // hours, max(written)
            print(f"{files:>10,}  {whole:>12,}           {max(objects):>7}  {mean:>7,}  {most:>7,}  {1000 * spent / hours:>5.1f}")  # noqa: T201


def _file(chance: random.Random) -> ProvenFile:
    path = f"{FOLDER}/{UUID(int=chance.getrandbits(128))}.parquet"
    return ProvenFile(path=path, sha256=f"{chance.getrandbits(256):064x}", size=123_456, rows=1_000)


def _sizes(store: Store) -> dict[str, int]:
    return {o.key: o.size for o in store.objects(file_lists("shop"))}


if __name__ == "__main__":
    main()
