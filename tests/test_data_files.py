"""The test data are in the repository, small enough to stay there, and what is missing is an error."""

from __future__ import annotations

import json

import pytest

from tests.data_files import data_bytes, data_path

MOST_BYTES = 25_000_000


def test_a_packed_file_is_read_as_what_it_holds() -> None:
    assert data_path("vectors/ticdc.json.xz").read_bytes().startswith(b"\xfd7zXZ")
    assert len(json.loads(data_bytes("vectors/ticdc.json.xz"))) == 200
    assert json.loads(data_bytes("bench/avro_schemas.json")).keys() == {"1", "2"}


def test_what_is_not_there_is_an_error_and_no_skip() -> None:
    with pytest.raises(FileNotFoundError, match="not among the test data"):
        data_path("vectors/none.json")


def test_a_clone_stays_small() -> None:
    assert sum(path.stat().st_size for path in data_path("").rglob("*") if path.is_file()) < MOST_BYTES
