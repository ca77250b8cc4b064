"""The finding of one check, and how an error becomes one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from tidelake.errors import TidelakeError
from tidelake.io.printable import printable_lines

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The finding of one check. subject: what was checked; found: what was found; remedy: what to do, empty if all is well."""

    subject: str
    found: str
    state: State = "ok"
    remedy: str = ""


Check = Callable[[], Finding]


def carried_out(subject: str, check: Check) -> Finding:
    """Return the finding of a check; an error of Tidelake is a problem."""
    try:
        return check()
    except TidelakeError as e:
        return problem(subject, e)


def problem(subject: str, error: TidelakeError) -> Finding:
    """Return the finding of an error."""
    return Finding(subject=subject, state="problem", found=printable_lines(error.message), remedy=printable_lines(error.remedy))


def all_findings(checks: Iterator[tuple[str, Check]]) -> Iterator[Finding]:
    """Yield the finding of each check, one after another."""
    return (carried_out(subject, check) for subject, check in checks)
