"""The scripts that run by hand on a real Airflow: nothing that they need was renamed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

MARK = '__name__ == "__main__"'
SCRIPTS = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("test_") and MARK in p.read_text())


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_finds_what_it_needs(script: str) -> None:
    assert callable(import_module(f"tests.airflow.{script}").main)


def test_no_script_is_left_out() -> None:
    assert SCRIPTS == ["backfill", "decide", "pools", "versions"]
