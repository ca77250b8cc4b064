"""Links from a page to the pages around it, where there are any: the stored report of an hour has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link. href: relative to the page, or a path of the server."""

    text: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigation:
    """Where a page is.

    Attributes:
        above: Pages that lead to this one, from the first page on.
        here: The page's own name.
        previous: The page before this one.
        next: The page after this one.
        dag: The feed's DAG in Airflow.
        tables: Addresses of the pages of tables, by name.
    """

    above: Sequence[Link]
    here: str
    previous: Link | None = None
    next: Link | None = None
    dag: Link | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
