"""Verdict on a window: stored, published in the certificate and shown in the report."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tidelake.errors import QualityError
from tidelake.io.documents import Document
from tidelake.validate.quality.evidence import UnexpectedRows, first_row


class Seen(BaseModel):
    """Numbers of Great Expectations' result. element_count: rows or values; missing_count: NULLs of them; observed_value: if a number."""

    model_config = ConfigDict(extra="forbid")

    element_count: int = 0
    missing_count: int = 0
    observed_value: int | float | None = None


def _is_none(value: object) -> bool:
    return value is None


class Check(BaseModel):
    """Result of one expectation. rule: its name for people; unexpected: number of rows (or cells) that break it, if known."""

    model_config = ConfigDict(extra="forbid")

    table: str  # db.table; "" for the whole window
    rule: str
    severity: Literal["critical", "warning"]
    success: bool
    column: str | None = None
    observed: str = ""
    expected: str = ""
    unexpected: int = 0
    examples: list[str] = []
    origin: str = "every table"  # or the expectation's file and number
    remedy: str = ""  # what to do, with the setting that lets it pass if there is one; only of a failed check
    seen: Seen | None = Field(default=None, exclude_if=_is_none)  # only of a rule of the users' files
    result: UnexpectedRows | None = None  # some of the rows that break it


class Verdict(Document, BaseModel):
    """All checks of one run's window."""

    model_config = ConfigDict(extra="forbid")

    feed: str
    hour: str
    seq: int
    run: str
    checks: list[Check]
    seconds: dict[str, float] = {}

    @property
    def failed(self) -> list[Check]:
        """Failed checks, critical ones first."""
        return sorted((c for c in self.checks if not c.success), key=lambda c: (c.severity, c.table, c.rule))

    def refuse(self) -> None:
        """Raise QualityError if a critical check failed."""
        critical = [c for c in self.failed if c.severity == "critical"]
        if not critical:
            return
        first = critical[0]
        more = f" (and {len(critical) - 1} more)" if len(critical) > 1 else ""
        what = f"{first.table or 'the window'}{'.' + first.column if first.column else ''}: {first.rule}"
        example = first_row(first.result) if first.result else next(iter(first.examples), "")
        such_as = f", such as {example}" if example else ""
        remedy = first.remedy or f"correct the source or the rule ({first.origin})"
        raise QualityError(
            f"{what}: expected {first.expected}, found {first.observed}{such_as}{more}; nothing of the window is published",
            code="EXPECTATION_FAILED",
            remedy=f"see `tidelake report --feed {self.feed} --hour {self.hour}`; {remedy}, then run the hour again",
        )

    def summary(self) -> dict[str, object]:
        """Return the summary for the certificate."""
        return {
            "checked": len(self.checks),
            "failed": len(self.failed),
            "checks": [c.model_dump(exclude_defaults=True) for c in self.checks],
        }
