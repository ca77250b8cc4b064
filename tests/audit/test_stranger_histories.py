"""Both audits agree over what operators do between the hours: a publication given up, a rollback, and going on from there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.audit import certified, stranger
from tests.audit.certified import add_cut, add_cuts, changed, flipped
from tests.audit.tampers import path
from tests.lake import lakes
from tests.lake.cheap import newest
from tests.lake.killed import Killed, kill_at
from tidelake.config.lake_paths import certificate_key
from tidelake.lake.opened import Lake
from tidelake.publish.abandon import abandon
from tidelake.publish.rollback import rollback


def given_up(lake: Lake) -> None:
    """Publish cuts 1, 2 and 4. The publication of 3 ends half-way and is abandoned."""
    two = add_cuts(lake, 2)
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, "record", 0)
        with pytest.raises(Killed):
            add_cut(lake, two)
    assert abandon(lake) is not None
    add_cut(lake, two.model_copy(update={"seq": 3}))


def undone(lake: Lake) -> None:
    """Publish cuts 1 and 2, go back to 1 with cut 3, and forward to 2 with cut 4."""
    add_cuts(lake, 2)
    rollback(lake, "cut 1")
    rollback(lake, "cut 2")


def went_on(lake: Lake) -> None:
    """Publish cuts 1 and 2, go back to 1 with cut 3, and publish another hour as cut 4."""
    add_cuts(lake, 2)
    rollback(lake, "cut 1")
    add_cut(lake, newest(lake))


HISTORIES = {given_up: [1, 2, 4], undone: [1, 2, 3, 4], went_on: [1, 2, 3, 4]}


@pytest.fixture(params=HISTORIES, ids=lambda made: made.__name__)
def history(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Lake, list[int]]:
    """A lake after such a history, and the numbers of its cuts."""
    make: Callable[[Lake], None] = request.param
    with Lake.of(lakes.feed(tmp_path)) as lake:
        make(lake)
    return lake, HISTORIES[make]


def test_both_audits_call_it_as_certified(history: tuple[Lake, list[int]]) -> None:
    lake, cuts = history
    found = certified.audited(lake)
    assert (found.wrong, found.checked["certificates"]) == ([], len(cuts))
    code, lines = stranger.audited(lake)
    assert (code, lines[0]) == (0, "shop: as certified")
    assert f"  checked: {len(cuts)} certificates" in lines


def test_both_audits_name_the_same_changed_certificate(history: tuple[Lake, list[int]]) -> None:
    lake, cuts = history
    for cut in cuts:
        with changed(path(lake, certificate_key("shop", cut)), flipped):
            assert certified.first_wrong(lake)[:2] == stranger.first_wrong(lake)[:2] == (cut, certificate_key("shop", cut))
