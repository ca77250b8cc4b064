"""Guesses the protocol, framing, compression and sink options of unknown messages, with evidence.

There is one module per family of protocols, all with the same function: look(view) -> Hint | None, for one message, without exceptions.
`judge` counts the results over many messages and accepts only what decodes. `containers` handles archive objects.
"""

from __future__ import annotations

from tidelake.sniff.verdict import CERTAIN, LIKELY, POSSIBLE, Evidence, Guess, Misread, SniffVerdict, judge

__all__ = ["CERTAIN", "LIKELY", "POSSIBLE", "Evidence", "Guess", "Misread", "SniffVerdict", "judge"]
