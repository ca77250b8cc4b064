"""The demo starts from scratch, in folders of its own alone."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo.test_embedded_s3 import runs
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


def test_sigterm_ends_the_server_that_a_demo_keeps(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from tidelake.demo.play import demo_lake\n"
    code += "with demo_lake(Path(sys.argv[1]), fresh=True):\n    print('serves', flush=True)\n    sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as demo:
        assert demo.stdout is not None
        assert demo.stdout.readline() == b"serves\n"
        weed = int((tmp_path / "s3" / "weed.pid").read_text())
        assert runs(weed)
        demo.send_signal(signal.SIGTERM)
        demo.wait(60)
    assert not runs(weed)
