"""One object of 2 GB, which no reader may hold: it is streamed, inside the budget."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.conftest import FreshUri
from tests.land.archive import archive, lake, manifest
from tests.land.huge import feed_of
from tidelake.land.pipeline import READERS

OBJECT = 2 << 30
VALUE = 1 << 20
BUDGET_MB = 64
ALLOWANCE = 300 << 20


@pytest.mark.long
def test_an_object_of_2_gb_is_streamed_inside_the_budget(s3: FreshUri, tmp_path: Path) -> None:
    root = s3("huge")
    feed = feed_of(root, BUDGET_MB)
    text = b64encode(bytes(range(256)) * (VALUE // 256))
    count = OBJECT // len(text) + 1
    with (tmp_path / "object").open("wb") as out:
        for offset in range(count):
            out.write(b'{"offset":%d,"value":"%b"}\n' % (offset, text))
    archive(feed).upload(f"shop/dt=2026-01-05/hr=10/shop+0+{0:020d}.jsonl", tmp_path / "object")
    (tmp_path / "object").unlink()
    command = [sys.executable, "-m", "tests.land.huge", root, str(BUDGET_MB)]
    done = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, text=True, timeout=600)
    messages, peak = map(int, done.stdout.split())
    found = manifest(feed)
    assert messages == count
    assert found.sources[0].size > OBJECT
    assert [(item.first, item.last) for item in found.objects][::100] == [(0, 63)]
    assert sum(item.count for item in found.objects) == count
    assert peak <= (BUDGET_MB << 20) + READERS * VALUE + ALLOWANCE, f"{peak >> 20} MiB"
    assert {info.key for info in lake(feed).objects("landed/")} == {item.key for item in found.objects}
