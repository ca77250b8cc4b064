"""Whether the places of all feeds answer, as Airflow's "Test connection" asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tidelake.doctor.reach import main

DEMO = CHECKOUT / "schemas"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELAKE_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDELAKE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("TIDELAKE_CATALOG", f"jdbc:sqlite:{tmp_path / 'catalog.db'}")


def found(capsys: pytest.CaptureFixture[str], schemas: Path = DEMO) -> dict[str, object]:
    assert main([str(schemas)]) == 0
    said: dict[str, object] = json.loads(capsys.readouterr().out)
    return said


def test_places_that_feeds_share_are_asked_once_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "archive" / "open").mkdir(parents=True)
    (tmp_path / "archive" / "open" / "object").write_bytes(b"x")
    before = sorted(tmp_path.rglob("*"))
    archives = [str(tmp_path / "archive" / name) for name in ("avro", "canal-json", "craft")]
    catalog = f"jdbc:sqlite:{tmp_path / 'catalog.db'}"
    empty = [archives[0], str(tmp_path / "lake"), catalog, str(tmp_path / "archive" / "checkpoints.json"), *archives[1:]]
    # four archives, a lake, a catalog, checkpoints, schemas
    assert found(capsys) == {"feeds": 4, "places": 8, "problems": [], "empty": empty}
    assert sorted(tmp_path.rglob("*")) == before


def test_a_catalog_that_does_not_answer_is_a_problem_of_the_first_feed_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDELAKE_CATALOG", "jdbc:postgresql://127.0.0.1:9/catalog?user=keeper&password=harbour-pass")
    said = found(capsys)
    [problem] = said["problems"]  # type: ignore[misc]
    assert str(problem).startswith("bazaar-avro: CATALOG: the catalog jdbc:postgresql://127.0.0.1:9/catalog: ")
    assert "Connection refused" in str(problem)
    assert "harbour-pass" not in json.dumps(said)


def test_a_broken_catalog_file_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "catalog.db").write_text("no database, but as long as the head of one: " + "x" * 200)
    [problem] = found(capsys)["problems"]  # type: ignore[misc]
    assert str(problem).startswith(f"bazaar-avro: CATALOG: the catalog jdbc:sqlite:{tmp_path / 'catalog.db'}: file is not a database")


def test_a_feed_that_cannot_be_read_is_a_problem_and_the_others_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TIDELAKE_ARCHIVE")
    said = found(capsys)
    assert (said["feeds"], said["places"], len(said["problems"])) == (4, 0, 4)  # type: ignore[arg-type]
    assert "the environment has no TIDELAKE_ARCHIVE" in said["problems"][0]  # type: ignore[index]


def test_a_folder_without_feeds_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: CONFIG: {tmp_path} has no */feed.toml; set TIDELAKE_SCHEMAS to the folder of the feeds\n"
