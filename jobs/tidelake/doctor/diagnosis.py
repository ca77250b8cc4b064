"""The diagnosis of one check, and how an error becomes one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from tidelake.errors import TidelakeError
from tidelake.io.printable import printable_lines

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What one check found. subject: what was checked; found: what was found; remedy: what to do, empty if all is well."""

    subject: str
    found: str
    state: State = "ok"
    remedy: str = ""


Check = Callable[[], Diagnosis]


def carried_out(subject: str, check: Check) -> Diagnosis:
    """Return the diagnosis of a check; an error of Tidelake is a problem."""
    try:
        return check()
    except TidelakeError as e:
        return problem(subject, e)


def problem(subject: str, error: TidelakeError) -> Diagnosis:
    """Return the diagnosis of an error."""
    return Diagnosis(subject=subject, state="problem", found=printable_lines(error.message), remedy=printable_lines(error.remedy))


def all_diagnoses(checks: Iterator[tuple[str, Check]]) -> Iterator[Diagnosis]:
    """Yield the diagnosis of each check, one after another."""
    return (carried_out(subject, check) for subject, check in checks)
