"""Which messages say enough of a table's types, per protocol, and that the document says the same."""

from __future__ import annotations

import pytest

from tests.checkout import CHECKOUT
from tests.vectors import cases
from tidelake.history.definitions import UNSAID, unsaid, unsaid_of
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.protocols import protocol_names
from tidelake.wire.simple.simple_schema import column

DOCUMENT = CHECKOUT / "docs" / "types.md"
KINDS = {"decimal without precision and scale": "DECIMAL", "enum without its elements": "ENUM", "set without its elements": "SET"}


@pytest.mark.parametrize(
    ("of", "missing"),
    [
        (SchemaColumn("c", "bigint unsigned"), None),
        (SchemaColumn("c", "bit"), None),
        (SchemaColumn("c", "decimal"), "decimal without precision and scale"),
        (SchemaColumn("c", "decimal", full_type="decimal(10,2)"), None),
        (SchemaColumn("c", "enum"), "enum without its elements"),
        (SchemaColumn("c", "enum", elements=("a",)), None),
        (SchemaColumn("c", "set", full_type="set('a')"), None),
        (SchemaColumn("c"), "its type"),
    ],
)
def test_a_word_is_a_type_but_for_decimal_enum_and_set(of: SchemaColumn, missing: str | None) -> None:
    assert unsaid(of) == missing


def test_one_schema_of_a_table_that_says_it_is_enough() -> None:
    bare, full = SchemaColumn("c", "decimal"), SchemaColumn("c", "decimal", full_type="decimal(10,2)")
    assert unsaid_of([RowSchema((bare, SchemaColumn("n"))), RowSchema((full,))]) == {"n": "its type"}


def test_every_protocol_says_what_it_leaves_unsaid_and_so_does_the_document() -> None:
    assert set(UNSAID) == set(protocol_names())
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [p for p, what in UNSAID.items() if f"| `{p}` | {what or 'nothing'} |" not in text] == []


@pytest.mark.parametrize("protocol", ["open", "craft", "avro", "canal-json", "canal"])
def test_messages_of_ticdc_s_own_encoders_leave_that_unsaid(protocol: str) -> None:
    events = (e for vectors in cases.cases().values() for v in vectors if v["protocol"] == protocol for e in cases._decoded(v))
    columns = {c for e in events for s in (e.row_schema, e.before_schema) if s is not None for c in s.columns}
    found = {KINDS[what] for c in columns if (what := unsaid(c)) is not None}
    assert found == {kind for kind in KINDS.values() if kind in UNSAID[protocol]}


def test_the_schemas_that_simple_sends_say_all() -> None:
    said = [("decimal", 10, 2, ()), ("enum", None, None, ("a", "b")), ("set", None, None, ("a",))]
    assert [unsaid(column("c", word, unsigned=False, length=n, decimal=s, elements=e)) for word, n, s, e in said] == [None] * 3
