"""Hours to report on, and what a page says."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from tidelake.tso import from_ms, parse_hour
from tidelake.validate.quality.evidence import PLACE, unexpected_rows
from tidelake.validate.quality.facts import (
    DdlFacts,
    DecisionFacts,
    FindingFacts,
    HourFacts,
    RedoFacts,
    RedoneTable,
    RejectedFacts,
    TableFacts,
)
from tidelake.validate.quality.report import render
from tidelake.validate.quality.verdict import Check

HOUR = "2026-01-05T10"
RESOLVED = from_ms(int(parse_hour("2026-01-05T11").timestamp() * 1000) - 3407)  # 10:59:56.593
APPLIED = from_ms(int(parse_hour(HOUR).timestamp() * 1000) - 1000)
HOSTILE = "<script>alert('x')</script>"
_VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})


def check(success: bool = True, **more: Any) -> Check:
    """A check of shop.orders."""
    return Check(**({"table": "shop.orders", "rule": "key not null", "severity": "critical", "success": success} | more))


def published(**more: Any) -> HourFacts:
    """An hour as it should be."""
    orders = TableFacts(
        events=1300,
        duplicates=17,
        inserts=1000,
        updates=250,
        deletes=33,
        changes=1533,
        rows_before=50_000,
        rows_after=50_967,
        written="all",
    )
    lines = TableFacts(events=20, inserts=20, changes=20, rows_before=0, rows_after=20, written="2 of 8 buckets")
    facts = {
        "feed": "shop-open",
        "hour": HOUR,
        "status": "published",
        "cut": 12,
        "applied_ts": APPLIED,
        "resolved_ts": RESOLVED,
        "lag_seconds": 3.407,
        "messages": 7000,
        "message_bytes": 3 * 1024 * 1024,
        "events": {"row": 1320, "ddl": 1, "resolved": 3600},
        "late_events": 5,
        "waiting_events": 44,
        "tables": {"shop.orders": orders, "shop.lines": lines, "shop.zones": TableFacts(rows_before=9, rows_after=9)},
        "checks": [check(), check(table="shop.lines")],
        "seconds": {"order": 3.25, "validate": 6.0, "compact": 70.0},
        "version": "0.1.0",
        "run": "run_12_3",
    }
    return HourFacts(**(facts | more))


def hostile() -> HourFacts:
    """A published hour with HOSTILE in every text that comes from data or from whoever writes it."""
    x = HOSTILE
    return published(
        feed=x,
        error=x,
        events={x: 1},
        tables={
            x: TableFacts(
                events=1,
                written=x,
                nulled_zero_dates={x: 1},
                repaired={x: 1},
                invalid_values={x: 1},
                untrusted=[x],
                checksums={"mismatch": 1},
            )
        },
        redo=RedoFacts(replaces=11, parent=10, tables={x: RedoneTable(added=1)}),
        ddl=[DdlFacts(commit_ts=RESOLVED, query=x, effect=x)],
        findings=[FindingFacts(code=x, severity=x, where=x, detail=x, remedy=f"`{x}`")],
        rejected=[RejectedFacts(code=x, messages=2, accepted=1, decisions=[DecisionFacts(by=x, reason=x, decided_at_ms=0)], examples=[x])],
        checks=[
            check(False, table=x, rule=x, column=x, observed=x, expected=x, examples=[x], origin=x, remedy=x),
            check(False, table=x, rule=x, result=unexpected_rows([x, *PLACE], [x], [{x: x, **dict.fromkeys(PLACE), "_topic": x}])),
            check(table=x, rule=x, column=x, observed=x),
        ],
        seconds={x: 1.0},
        version=x,
        run=x,
    )


@dataclass
class Page(HTMLParser):
    """A page taken apart. words: what a reader sees, white space folded; parents of every element are closed in order."""

    source: str
    text: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.source)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember it, and that it must be closed."""
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element of SVG without content."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Elements close in the order in which they were opened."""
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Styles are not read."""
        if "style" not in self.open:
            self.text.append(data)

    @property
    def words(self) -> str:
        """The text of the page."""
        return " ".join(" ".join(self.text).split())

    def elements(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]


def page(current: HourFacts, *history: HourFacts) -> Page:
    """The report of an hour, taken apart."""
    return Page(render(current, history))
