"""docs/findings.md shows the findings as they are."""

from __future__ import annotations

from tests.checkout import CHECKOUT
from tidelake.config.finding_kinds import KINDS, REFUSALS, Kind
from tidelake.land.findings import CODES

TABLE = CHECKOUT / "docs" / "findings.md"


def row(code: str, kind: Kind) -> str:
    default = "; ".join(filter(None, (kind.severity, kind.but)))
    allowed = ": ".join(filter(None, (", ".join(f"`{action}`" for action in kind.allowed), kind.because)))
    return f"| `{code}` | {default} | {kind.meaning} | {kind.remedy} | {allowed} |"


def test_the_documented_table_has_every_finding_once_and_says_what_the_code_says() -> None:
    shown = [line for line in TABLE.read_text().splitlines() if line.startswith("| `")]
    refusals = [f"| `{code}` | {refusal.meaning} | {refusal.remedy} |" for code, refusal in REFUSALS.items()]
    assert shown == [*(row(code, kind) for code, kind in KINDS.items()), *refusals]
    assert tuple(KINDS) == CODES


def test_whatever_may_not_be_said_of_a_finding_has_its_reason() -> None:
    assert {code: kind.allowed for code, kind in KINDS.items() if kind.because} == {
        "OVERLAP_CONFLICT": ("block", "warn"),
        "UNEXPECTED_PARTITION": ("block",),
        "OVERLAP_HOURS": ("block", "warn"),
        "HOUR_NOT_CLOSED": ("block", "warn"),
    }
    assert all(kind.because or kind.allowed == ("block", "warn", "ignore") for kind in KINDS.values())
