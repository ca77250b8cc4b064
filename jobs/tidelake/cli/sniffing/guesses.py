"""JSON documents for the results of `tidelake sniff`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelake.sniff import Guess, Misread


def guess_document(guess: Guess) -> dict[str, Any]:
    """Return a guess as a JSON object."""
    plain = {name: getattr(guess, name) for name in ("protocol", "confidence", "framing", "compression")}
    plain |= {"options": dict(guess.options), "decoded": guess.decoded, "waiting_for_schema": guess.waiting, "seen": guess.seen}
    plain["schema_ids"] = list(guess.schema_ids)
    plain["evidence"] = [{"text": e.text, "messages": e.messages, "first": asdict(e.first)} for e in guess.evidence]
    return plain | {"mismatches": misread_documents(guess.mismatches), "misread_count": guess.misread_count}


def misread_documents(mismatches: Iterable[Misread]) -> list[dict[str, Any]]:
    """Return messages that fit no guess as JSON objects."""
    return [{"at": asdict(mismatch.at), "says": mismatch.says} for mismatch in mismatches]
