"""Maxwell's own messages are told from those of TiCDC, and show which settings Maxwell has."""

from __future__ import annotations

import pytest

from tests.protocols.json_messages import Message, compact
from tests.protocols.test_maxwell_upstream import recorded
from tests.protocols.untyped_messages import daemon, daemon_ddl, maxwell, maxwell_ddl, maxwell_rows
from tests.sniff.messages import verdict
from tidelake.sniff import CERTAIN


def test_what_the_real_program_wrote_is_certain() -> None:
    (guess,) = verdict(recorded()).guesses
    assert (guess.protocol, guess.confidence, guess.decoded, dict(guess.options)) == ("maxwell", CERTAIN, 43, {"output_xoffset": True})
    said = [e.text for e in guess.evidence]
    assert any("`position` is present" in text for text in said)
    assert any("a statement of Maxwell" in text for text in said)


def test_without_xoffset_no_option_is_set() -> None:
    messages: list[Message] = [
        (b'{"database":"db","table":"t","pk.id":1}', compact(daemon("insert", data={"id": 1}))),
        (None, compact(daemon_ddl())),
    ]
    (guess,) = verdict(messages).guesses
    assert (guess.protocol, guess.confidence, dict(guess.options)) == ("maxwell", CERTAIN, {})


@pytest.mark.parametrize("message", [maxwell_rows(maxwell("insert", data={"id": 1})), maxwell_ddl()])
def test_ticdc_s_messages_are_known_by_their_keys(message: Message) -> None:
    (guess,) = verdict([message]).guesses
    assert (guess.protocol, guess.framing) == ("maxwell", "JSON objects back to back")


def test_a_row_without_key_and_without_maxwell_s_own_members_is_no_proof() -> None:
    bare = {name: value for name, value in daemon("insert", data={"id": 1}).items() if name not in ("xid", "commit", "position")}
    found = verdict([(None, compact(bare))])
    assert not found.decided
