"""The shared folder of vectors, archives and workloads beside a developer's checkout; users do not have it."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(path: str) -> Path:
    """A file or folder of the shared folder; skips the test where it is absent."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"needs ../shared/{path}, which is only beside a developer's checkout")
    return found
