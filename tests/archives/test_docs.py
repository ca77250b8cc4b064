from __future__ import annotations

import re
from typing import get_args

import pytest

from tests.checkout import CHECKOUT
from tidelake.archives import layout_of
from tidelake.config.source import LayoutName

DOCS = CHECKOUT / "docs" / "layouts.md"
ROWS = {found[1]: found[0] for found in re.finditer(r"^\| `(?!layout`)([\w-]+)` \|.*$", DOCS.read_text(), re.MULTILINE)}


def test_the_table_names_every_layout_once_in_the_order_of_the_registry() -> None:
    assert tuple(ROWS) == get_args(LayoutName)


@pytest.mark.parametrize("name", get_args(LayoutName))
def test_the_table_says_what_a_layout_loses(name: str) -> None:
    layout = layout_of(name)
    inherited = ROWS["confluent-json"] if "as confluent-json" in ROWS[name] else ""
    for code in [*layout.losses, *(["NO_OFFSETS"] if layout.number_is_first_offset else [])]:
        assert f"`{code}`" in ROWS[name] + inherited


@pytest.mark.parametrize("name", get_args(LayoutName))
def test_lost_headers_are_a_finding(name: str) -> None:
    loses = ROWS[name].rstrip(" |").rpartition("|")[2]
    assert "headers" not in loses or "`LOSSY_LAYOUT`" in loses
