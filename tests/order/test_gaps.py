"""Recorded checkpoints pass over holes in the offsets only if the feed says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.land.archive import make_feed
from tidelake.errors import Coordinates, OrderError
from tidelake.land.store.coverage import Coverage
from tidelake.order.progress import resolved_now

WHOLE = Coverage(prefixes={}, holes={})
HOLE = Coverage(prefixes={}, holes={Coordinates("shop", 0): (5, 7)})


@pytest.mark.parametrize(
    ("policy", "passes"),
    [
        ({}, False),
        ({"on_gap": "warn"}, True),
        ({"on_finding": {"GAP": "warn"}}, True),
        ({"on_gap": "warn", "on_finding": {"GAP": "block"}}, False),
        ({"on_finding": {"OVERLAP_CONFLICT": "warn", "MISSING_PARTITION": "ignore"}}, False),
    ],
)
def test_a_hole_blocks_a_feed_of_checkpoints_unless_gaps_only_warn(policy: dict[str, Any], passes: bool, tmp_path: Path) -> None:
    (tmp_path / "checkpoints.json").write_text(json.dumps([{"at_ms": 1_767_607_200_000, "checkpoint_ts": 77}]))
    feed = make_feed(tmp_path, watermark={"from": "checkpoints", "uri": f"{tmp_path}/checkpoints.json"}, policy=policy)
    assert resolved_now(feed, {}, WHOLE, "2026-01-05T10") == (77, 1_767_607_200_000)
    if passes:
        assert resolved_now(feed, {}, HOLE, "2026-01-05T10") == (77, 1_767_607_200_000)
        return
    with pytest.raises(OrderError, match=r"GAP shop\[0\]: offsets 5 to 7 are not landed"):
        resolved_now(feed, {}, HOLE, "2026-01-05T10")
