"""The stages of a redo out of their order: each says which command comes first, with all its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.histories import feeder, resolved, row
from tests.lake.windows import KV
from tidelake.errors import OrderError
from tidelake.lake.opened import Lake
from tidelake.run import compact, order, validate
from tidelake.tso import parse_hour

pytestmark = pytest.mark.usefixtures("small_hours")


def test_each_stage_names_the_command_that_comes_first(tmp_path: Path) -> None:
    feed = feeder(tmp_path, "CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20));")
    with Lake.of(feed.feed) as lake:
        name = feed.add(lake, [row(0, "insert", 10, KV, ("1", "7")), *resolved(20)])
        hour, options = parse_hour(name), f"--feed {feed.feed.name} --hour {name}"
        for redo_from, given in ((None, options), (name, f"{options} --redo-from {name}")):
            with pytest.raises(OrderError) as found:
                validate(lake, hour, redo_from)
            assert (found.value.code, found.value.remedy) == ("NOT_ORDERED", f"run `tidelake order {given}` first")
            assert order(lake, hour, redo_from).staged is not None
            with pytest.raises(OrderError) as found:
                compact(lake, hour, redo_from)
            assert (found.value.code, found.value.remedy) == ("NOT_VALIDATED", f"run `tidelake validate {given}` first")
            validate(lake, hour, redo_from)
            cut = compact(lake, hour, redo_from).cut
            assert cut is not None
        assert cut.seq == 2
