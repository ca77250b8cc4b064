"""All vectors of a case are the same event, up to what tests/vectors/carries.py says that a protocol cannot carry."""

from __future__ import annotations

import pytest

from tests.checkout import CHECKOUT
from tests.protocols import vectors
from tests.vectors import carries, cases
from tests.vectors.carries import RULES, Rule, Vector


def test_there_are_163_cases_of_all_764_vectors() -> None:
    assert (len(cases.cases()), sum(map(len, cases.cases().values()))) == (163, 764)


@pytest.mark.parametrize("case", cases.cases())
def test_every_protocol_gives_the_same_event(case: str) -> None:
    assert cases.differences(case) == []


@pytest.mark.parametrize("rule", [r for r in RULES if r.cases], ids=lambda r: f"{'+'.join(r.protocols)}: {r.lost} {r.when}".rstrip())
def test_every_rule_of_the_table_is_needed(rule: Rule) -> None:
    """A loss that no case shows would hide what a protocol does carry."""

    def others(vector: Vector, op: str | None) -> list[Rule]:
        return [r for r in carries.rules(vector, op) if r is not rule]

    touched = [case for case, found in cases.cases().items() if {v["protocol"] for v in found} & set(rule.protocols)]
    assert any(cases.differences(case, others) for case in touched)


def test_the_table_names_every_protocol() -> None:
    table = carries.markdown()
    assert table.startswith("| protocol | does not carry | when | why |\n|---|---|---|---|\n| open | ")
    assert {line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]} == set(vectors.PROTOCOLS)
    assert "| avro | the commit ts | of deletes | a delete has no value, and the extension is part of the value |\n" in table


def test_the_document_shows_the_table() -> None:
    document = CHECKOUT / "docs" / "protocols.md"
    assert carries.markdown() in document.read_text(encoding="utf-8")
