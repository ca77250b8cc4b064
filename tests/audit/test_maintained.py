"""An audit of a lake that maintenance worked on: rewritten tables are certified, and cuts that were let go are not called wrong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.audit import stranger
from tests.audit.certified import add_cut, add_cuts, audited, changed, gone, hour_of
from tests.audit.tampers import path
from tests.lake import lakes
from tests.lake.cheap import newest
from tidelake.config.lake_paths import manifest_key
from tidelake.config.retention import Maintenance
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.opened import Lake
from tidelake.maintenance.maintain import maintain

pytestmark = pytest.mark.usefixtures("small_hours")
SETTINGS = {"keep_cuts": "1d", "keep_daily": "60d", "small_files": 3}


def test_the_chain_goes_over_rewrites_and_cuts_that_were_let_go(tmp_path: Path) -> None:
    with Lake.of(lakes.feed(tmp_path, maintenance=Maintenance.model_validate(SETTINGS))) as lake:
        add_cuts(lake, 6, apart=12)
        done = maintain(lake, young=timedelta(days=-1))
        assert (done.cut, done.rewritten) == (7, ["d.k"])
        found = audited(lake)
        assert found.wrong == []
        expired = [u.many for u in found.unchecked if "maintenance let go of them" in u.why]
        assert expired == [len(done.plan.lets_go) if done.plan else 0] == [2]
        assert (found.checked["certificates"], found.checked["cuts"]) == (7, 5)
        said = read_certificate(lake.store, "shop", 7)
        assert (said["kind"], said["previous"]["cut"]) == ("rewrite", 6)
        k = newest(lake).files[lake.catalog.load("d.k").uuid]
        assert (k.unproven, k.rows) == (0, 7), "its files were written anew, and read once for their sums"
        with changed(path(lake, manifest_key("shop", hour_of(6), 1)), gone):
            assert [(w.cut, w.what) for w in audited(lake).wrong] == [(6, "it is missing")], "the rewrite names it, too"
        add_cut(lake, newest(lake), apart=12)
        assert audited(lake).wrong == []
        assert stranger.audited(lake)[0] == 0
