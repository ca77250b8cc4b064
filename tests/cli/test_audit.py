"""`tidelake audit`: what it prints and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.audit.certified import CUTS, add_cuts, changed, flipped, landed_at
from tests.lake import lakes
from tidelake.cli import run
from tidelake.lake.opened import Lake

FEED = """protocol = "open"
topics = ["t"]
partitions = 1
[source]
uri = "{0}/archive"
layout = "aiven-jsonl"
[lake]
uri = "{0}/lake"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    (folder / "schemas" / "shop").mkdir(parents=True)
    (folder / "schemas" / "shop" / "feed.toml").write_text(FEED.format(folder))
    with Lake.of(lakes.feed(folder)) as lake:
        add_cuts(lake)
    (folder / "lake" / "catalog.db").unlink()  # an audit needs none
    return folder


def audit(folder: Path, *more: str) -> int:
    return run(["audit", "--feed", "shop", "--schemas", str(folder / "schemas"), *more])


def test_a_whole_lake_ends_with_0_and_the_numbers_of_what_was_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(folder) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"shop, cuts 1 to {CUTS}: as certified"
    assert [line.split() for line in lines if line.split()[:2] == ["landed", "objects"]] == [["landed", "objects", str(CUTS)]]
    assert "  not compared: data files (2): they are older than the first list of their table, which has no sum of them" in lines
    assert not (folder / "lake" / "catalog.db").exists()


def test_a_changed_lake_ends_with_3_and_the_first_place_that_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with changed(folder / "lake" / landed_at(2), flipped):
        assert audit(folder) == 3
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"shop, cuts 1 to {CUTS}: 1 thing not as certified"
        assert lines[1].startswith(f"  cut 2: {landed_at(2)}: its sha256 is ")
        assert audit(folder, "--from", "3") == 0
        capsys.readouterr()
        assert audit(folder, "--json") == 3
    said = json.loads(capsys.readouterr().out)
    assert [(w["cut"], w["key"]) for w in said["wrong"]] == [(2, landed_at(2))]
    assert (said["feed"], said["first"], said["last"], said["checked"]["certificates"]) == ("shop", 1, CUTS, CUTS)


def test_a_lake_alone_is_enough(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = ["audit", "--feed", "shop", "--lake", str(folder / "lake"), "--schemas", "/nowhere"]
    assert run(alone) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"shop, cuts 1 to {CUTS}: as certified"
    with changed(folder / "lake" / landed_at(2), flipped):
        assert run(alone) == 3
    assert run([*alone, "--deep"]) == 2
    assert "leave out --lake, and give the folder of the feeds with --schemas" in capsys.readouterr().err
    assert run([*alone[:-3], str(folder / "nothing")]) == 2
    assert "NOT_PUBLISHED: feed shop has no certificate in " in capsys.readouterr().err


def test_a_feed_without_certificates_and_a_cut_that_is_not_there_are_wrong_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(folder, "--from", "9") == 2
    assert "NOT_A_CUT: feed shop has no cut 9; its newest certificate is of cut 4" in capsys.readouterr().err
    (folder / "schemas" / "new").mkdir()
    (folder / "schemas" / "new" / "feed.toml").write_text(FEED.format(folder))
    assert run(["audit", "--feed", "new", "--schemas", str(folder / "schemas")]) == 2
    assert "NOT_PUBLISHED: feed new has no certificate in " in capsys.readouterr().err
