from __future__ import annotations

from typing import get_args

import pytest

from tidelake.archives import layout_names, layout_of
from tidelake.errors import ConfigError
from tidelake.feed import Layout


def test_the_registry_and_the_feed_know_the_same_layouts() -> None:
    assert layout_names() == list(get_args(Layout))


@pytest.mark.parametrize("name", layout_names())
def test_every_layout_declares_its_extensions_and_a_reader(name: str) -> None:
    layout = layout_of(name)
    assert layout.extensions
    assert callable(layout.read)


def test_only_the_confluent_layout_counts_offsets_from_the_name_and_has_no_keys() -> None:
    assert [name for name in layout_names() if layout_of(name).number_is_first_offset] == ["confluent-json"]
    assert [name for name in layout_names() if not layout_of(name).has_keys] == ["confluent-json"]


def test_an_unknown_layout_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown layout 'secor'; known: aiven-jsonl, aiven-csv"):
        layout_of("secor")
