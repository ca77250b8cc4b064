"""What an audit finds: what it checked, what it could not check, and what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import BaseModel

OnRead = Callable[[int, int], None]  # (bytes of files read, bytes in all)


class Wrong(BaseModel):
    """Something that is not as a certificate says.

    Attributes:
        cut: Number of the cut.
        key: The object that is wrong, below the lake or as a URI.
        what: What was expected, and what was found.
    """

    cut: int
    key: str
    what: str


class Unchecked(BaseModel):
    """Something that the audit could not check. many: of how many things."""

    what: str
    why: str
    many: int = 1


@dataclass(slots=True)
class Findings:
    """Collects what an audit finds.

    Attributes:
        checked: Number of things that were compared, by what they are.
        unchecked: What could not be compared.
        wrong: What differs, in the order of the checks.
    """

    checked: Counter[str] = field(default_factory=Counter)
    unchecked: list[Unchecked] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)

    def expect(self, right: bool, cut: int, key: str, what: str) -> bool:  # reads as an assertion
        """Record what is wrong unless it is right. Return whether it is right."""
        if not right:
            self.wrong.append(Wrong(cut=cut, key=key, what=what))
        return right

    def add(self, other: Findings) -> None:
        """Add what another collection has."""
        self.checked.update(other.checked)
        self.unchecked += other.unchecked
        self.wrong += other.wrong

    def skip(self, what: str, why: str, many: int = 1) -> None:
        """Record what cannot be checked."""
        if many:
            self.unchecked.append(Unchecked(what=what, why=why, many=many))
