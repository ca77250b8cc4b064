from __future__ import annotations

import re

import pytest

from tests.checkout import CHECKOUT
from tidelake.archives import layout_names, layout_of

DOCS = CHECKOUT / "docs" / "layouts.md"
ROWS = {found[1]: found[0] for found in re.finditer(r"^\| `(?!layout`)([\w-]+)` \|.*$", DOCS.read_text(), re.MULTILINE)}


def test_the_table_names_every_layout_once_in_the_order_of_the_registry() -> None:
    assert list(ROWS) == layout_names()


@pytest.mark.parametrize("name", layout_names())
def test_the_table_says_what_a_layout_loses(name: str) -> None:
    layout = layout_of(name)
    inherited = ROWS["confluent-json"] if "as confluent-json" in ROWS[name] else ""
    for code in [*layout.losses, *(["NO_OFFSETS"] if layout.number_is_first_offset else [])]:
        assert f"`{code}`" in ROWS[name] + inherited


@pytest.mark.parametrize("name", layout_names())
def test_lost_headers_are_a_finding(name: str) -> None:
    loses = ROWS[name].rstrip(" |").rpartition("|")[2]
    assert "headers" not in loses or "`LOSSY_LAYOUT`" in loses
