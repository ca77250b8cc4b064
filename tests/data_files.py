"""The data that tests and benchmarks read: the files of tests/data, whose README says where each came from."""

from __future__ import annotations

import lzma
from pathlib import Path

_FOLDER = Path(__file__).with_name("data")


def data_path(name: str) -> Path:
    """The file or folder of this name below tests/data. Raises FileNotFoundError where there is none: a clone has them all."""
    found = _FOLDER / name
    if not found.exists():
        raise FileNotFoundError(f"{found}: not among the test data; tests/data/README.md lists it")
    return found


def data_bytes(name: str) -> bytes:
    """What the file holds; of one that is packed (`.xz`) what is inside."""
    data = data_path(name).read_bytes()
    return lzma.decompress(data) if name.endswith(".xz") else data
