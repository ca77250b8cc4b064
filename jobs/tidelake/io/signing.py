"""DSSE envelopes with Ed25519 signatures. The only user of securesystemslib, which is an extra: `tidelake[sign]`.

Source: https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidelake.errors import ConfigError

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner, SSlibKey

KEY_VARIABLE = "TIDELAKE_SIGNING_KEY"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
_PEM = "-----BEGIN"
_MAKE = "`openssl genpkey -algorithm ed25519 -out key.pem` makes one, `openssl pkey -in key.pem -pubout -out public.pem` its public key"
_INSTALL = "pip install 'tidelake[sign]'"


class SigningKey:
    """A private key."""

    def __init__(self, signer: CryptoSigner) -> None:
        self._signer = signer

    def signed(self, payload: bytes) -> bytes:
        """Return the envelope of a payload, as JSON. The same payload gives the same bytes."""
        from securesystemslib.dsse import Envelope

        envelope = Envelope(payload, PAYLOAD_TYPE, {})
        envelope.sign(self._signer)
        return json.dumps(envelope.to_dict(), indent=1).encode()


class PublicKeys:
    """Public keys of people whose signatures count."""

    def __init__(self, keys: Sequence[SSlibKey]) -> None:
        self._keys = list(keys)

    def wrong(self, envelope: bytes, payload: bytes) -> str | None:
        """Return what is wrong with the envelope of a payload; None if one of these keys signed it."""
        from securesystemslib.dsse import Envelope
        from securesystemslib.exceptions import VerificationError

        try:
            found = Envelope.from_dict(json.loads(envelope))
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            return f"it is no DSSE envelope: {type(e).__name__}: {e}"
        if found.payload_type != PAYLOAD_TYPE:
            return f"its payload is {found.payload_type}, expected {PAYLOAD_TYPE}"
        if found.payload != payload:
            return "it is the signature of other bytes than the certificate's"
        for signature in found.signatures.values():
            signature.keyid = ""  # a hint, which is not signed
        for key in self._keys:
            try:
                key.keyid = ""
                found.verify([key], 1)
            except VerificationError:
                continue
            return None
        return "none of the given public keys signed it"


def signing_key(environment: Mapping[str, str] = os.environ) -> SigningKey | None:
    """Return the key in TIDELAKE_SIGNING_KEY: PEM, or the path of a file; None if it is not set.

    Raises:
        ConfigError: The library is missing, or this is no private Ed25519 key. The message does not show it.
    """
    text = environment.get(KEY_VARIABLE, "")
    if not text:
        return None
    pem = text.encode() if text.startswith(_PEM) else _content(Path(text), KEY_VARIABLE)
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from securesystemslib.signer import CryptoSigner
    except ImportError as e:
        raise _missing(KEY_VARIABLE) from e
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        raise ConfigError(f"{KEY_VARIABLE} holds no private key in PEM without a password", remedy=_MAKE) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{KEY_VARIABLE} holds a private key of another kind than Ed25519", remedy=_MAKE)
    return SigningKey(CryptoSigner(key))


def public_keys(files: Sequence[Path]) -> PublicKeys | None:
    """Return the public keys of PEM files; None without files.

    Raises:
        ConfigError: The library is missing, or a file holds no public Ed25519 key.
    """
    if not files:
        return None
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
        from securesystemslib.signer import SSlibKey
    except ImportError as e:
        raise _missing("--public-key") from e
    found = []
    for path in files:
        try:
            key = load_pem_public_key(_content(path, "--public-key"))
        except ValueError:
            raise ConfigError(f"{path} holds no public key in PEM", remedy=_MAKE) from None
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigError(f"{path} holds a public key of another kind than Ed25519", remedy=_MAKE)
        found.append(SSlibKey.from_crypto(key))
    return PublicKeys(found)


def _content(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise ConfigError(f"{what}: {path}: {e.strerror}", remedy=_MAKE) from None


def _missing(what: str) -> ConfigError:
    return ConfigError(f"{what} needs securesystemslib and cryptography, which are not installed", remedy=_INSTALL)
