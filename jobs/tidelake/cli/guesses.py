"""What sniffing guesses, for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelake.sniff import Guess, Misread


def guess_document(guess: Guess) -> dict[str, Any]:
    """A guess for programs."""
    plain = {name: getattr(guess, name) for name in ("protocol", "confidence", "framing", "compression")}
    plain |= {"options": dict(guess.options), "decoded": guess.decoded, "waiting_for_schema": guess.waiting, "seen": guess.seen}
    plain["schema_ids"] = list(guess.schema_ids)
    plain["evidence"] = [{"text": e.text, "messages": e.messages, "first": asdict(e.first)} for e in guess.evidence]
    return plain | {"misfits": misfit_documents(guess.misfits), "misfit_count": guess.misfit_count}


def misfit_documents(misfits: Iterable[Misread]) -> list[dict[str, Any]]:
    """Messages that fit no guess."""
    return [{"at": asdict(misfit.at), "says": misfit.says} for misfit in misfits]
