"""Keys, and envelopes that are not the signature of a certificate."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from tests.audit.certified import CUTS, add_cut, add_cuts, gone
from tests.lake import lakes
from tidelake.io.signing import KEY_VARIABLE, signing_key
from tidelake.lake.opened import Lake


def private(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> str:
    """A private key as PEM."""
    return key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption()).decode()


def public(folder: Path, name: str, key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> Path:
    """Write the public key as PEM and return the file."""
    path = folder / name
    path.write_bytes(key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo))
    return path


OURS, THEIRS = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()


@contextmanager
def signed_lake(folder: Path) -> Iterator[Lake]:
    """A lake of certified cuts that our key signed, but for the first one."""
    with Lake.of(lakes.feed(folder)) as lake, pytest.MonkeyPatch.context() as patch:
        cut = add_cuts(lake, 1)
        patch.setenv(KEY_VARIABLE, private(OURS))
        for _ in range(CUTS - 1):
            cut = add_cut(lake, cut)
        yield lake


def other(content: bytes) -> bytes:
    """An envelope that another key signed."""
    key = signing_key({KEY_VARIABLE: private(THEIRS)})
    assert key is not None
    return key.signed(base64.b64decode(json.loads(content)["payload"]))


def empty(content: bytes) -> bytes:
    """An envelope without signatures."""
    return json.dumps(json.loads(content) | {"signatures": []}).encode()


def retyped(content: bytes) -> bytes:
    """An envelope of another type."""
    return json.dumps(json.loads(content) | {"payloadType": "text/plain"}).encode()


FOREIGN = [  # change of an envelope, and what the audit says
    (other, "none of the given public keys signed it"),
    (empty, "none of the given public keys signed it"),
    (retyped, "its payload is text/plain, expected application/vnd.in-toto\\+json"),
    (gone, "it is missing"),
    (lambda _: b"[]", "it is no DSSE envelope: TypeError"),
]
