from __future__ import annotations

from typing import get_args

import pytest

from tidelake.archives import layout_of
from tidelake.config.feed import Protocol
from tidelake.config.source import LayoutName
from tidelake.errors import ConfigError
from tidelake.land.findings import REMEDIES

LAYOUTS: tuple[str, ...] = get_args(LayoutName)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_declares_its_extensions_and_a_reader(name: str) -> None:
    layout = layout_of(name)
    assert layout.extensions
    assert callable(layout.read)


CONFLUENT = [name for name in LAYOUTS if name.startswith("confluent-") and name != "confluent-parquet"]


def test_only_confluents_layouts_count_offsets_from_the_name_and_have_their_keys_beside() -> None:
    for found in ("number_is_first_offset", "has_siblings"):
        assert [name for name in LAYOUTS if getattr(layout_of(name), found)] == CONFLUENT
    assert {name for name in LAYOUTS if not layout_of(name).has_keys} == {*CONFLUENT, "confluent-parquet", "secor", "storage-sink"}


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_a_layout_says_of_itself_has_a_remedy_and_names_protocols_that_exist(name: str) -> None:
    layout = layout_of(name)
    assert set(layout.losses) <= set(REMEDIES)
    assert (layout.protocols or set()) <= set(get_args(Protocol))


def test_an_unknown_layout_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown layout 'flume'; known: aiven-jsonl, aiven-jsonl-string"):
        layout_of("flume")
