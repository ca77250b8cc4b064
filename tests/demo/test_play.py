"""The demo starts from scratch, in folders of its own alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelake.demo.play import demo_lake, refuse_foreign_folder
from tidelake.errors import ConfigError


def test_a_folder_that_no_demo_made_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    said = "is not empty and was not made by a demo; the demo would remove it; give a new folder"
    with pytest.raises(ConfigError, match=said), demo_lake(tmp_path, fresh=True):
        pass
    assert (tmp_path / "thesis.txt").read_text() == "years"


def test_a_demos_own_folder_an_empty_one_and_none_may_go(tmp_path: Path) -> None:
    refuse_foreign_folder(tmp_path)
    refuse_foreign_folder(tmp_path / "absent")
    (tmp_path / ".tidelake-demo").touch()
    refuse_foreign_folder(tmp_path)
    earlier = tmp_path / ".tidelake" / "demo"  # of versions that left no mark
    earlier.mkdir(parents=True)
    (earlier / "catalog.db").touch()
    refuse_foreign_folder(earlier)
