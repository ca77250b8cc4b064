"""`tidelake status` shows the failed checks of the newest cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import call
from tests.cli.lakes import lake_of
from tests.cli.test_expectations import CHECK, certificate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lake_of(tmp_path, [("shop", "orders")])
    return tmp_path


def status(folder: Path, *more: str) -> str:
    return call("status", "--feed", "shop", "--schemas", folder / "schemas", *more).out


def test_the_first_failed_checks_of_the_newest_cut_are_shown_and_all_are_counted(folder: Path) -> None:
    certificate(folder, *[CHECK] * 7, CHECK | {"table": "", "column": None})
    lines = [line for line in status(folder).splitlines() if "checks" in line or line.startswith("              warning")]
    said = "              warning  shop.orders.id: column values to be between: 1 bad value among 9 (11.1 %)"
    assert lines == ["  checks      8 of 8 of the cut failed", *[said] * 5]
    found = json.loads(status(folder, "--json"))["checks"]
    assert (found["checked"], found["failed"], len(found["first"])) == (8, 8, 8)
    assert found["first"][7] == {k: CHECK[k] for k in ("rule", "severity", "expected", "observed")} | {"table": "", "column": None}


def test_a_cut_whose_checks_passed_has_no_line_and_one_without_certificate_none_to_show(folder: Path) -> None:
    assert json.loads(status(folder, "--json"))["checks"] is None
    assert "checks" not in status(folder)
    certificate(folder)
    assert json.loads(status(folder, "--json"))["checks"] == {"checked": 0, "failed": 0, "first": []}
    assert "checks" not in status(folder)
