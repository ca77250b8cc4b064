"""Guesses what unknown messages are: protocol, framing, compression, sink options, each with the evidence for it.

One module a family of protocols, all of one shape: look(view) -> Sighting | None, for one message and never an exception. `judge` counts
what they see over many messages and believes nothing that does not decode. Archive objects are `containers`' matter.
"""

from __future__ import annotations

from tidelake.sniff.verdict import CERTAIN, LIKELY, POSSIBLE, Evidence, Guess, Misread, SniffVerdict, judge

__all__ = ["CERTAIN", "LIKELY", "POSSIBLE", "Evidence", "Guess", "Misread", "SniffVerdict", "judge"]
