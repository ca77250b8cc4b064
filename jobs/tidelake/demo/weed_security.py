"""Protects the embedded S3 server's inner servers (master, volume, filer, admin) from other processes: SeaweedFS' security.toml.

Without it each of them answers anybody who reaches its port: the filer reads and writes every object, the master issues tickets for the
volumes, and one call adds an administrator to S3. With it HTTP of filer and volumes needs a token signed with a key; the master's HTTP and
everything with gRPC needs a certificate. Keys and certificate are new at each start, and only the folder's owner can read them.
"""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

NAMES = ("security.toml", "tls.crt", "tls.key")

_SIGNED = ("jwt.signing", "jwt.signing.read", "jwt.filer_signing", "jwt.filer_signing.read")  # volumes and filer, for writing and reading
_CERTIFIED = ("admin", "client", "filer", "master", "mq", "msg_agent", "msg_broker", "s3", "volume", "worker")
_DAYS = 3650


def write_security(folder: Path, host: str) -> None:
    """Write security.toml and its files into the folder in which `weed` is started. host: address that it serves on."""
    settings, certificate, key = (folder / name for name in NAMES)
    made = _certificate(host)
    for path, content in zip((certificate, key), made, strict=True):
        _write(path, content)
    pair = f'cert = "{certificate}"\nkey = "{key}"\n'
    sections = [f'[{name}]\nkey = "{secrets.token_hex(32)}"\n' for name in _SIGNED]
    sections += [f'[grpc]\nca = "{certificate}"\n', *(f"[grpc.{name}]\n{pair}" for name in _CERTIFIED)]
    _write(settings, "".join([*sections, f'[https.master]\nca = "{certificate}"\n{pair}']).encode())


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # its mode could be different
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)


def _certificate(host: str) -> tuple[bytes, bytes]:
    """A self-signed certificate and its key as PEM. Whoever has the key can read the folder."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tidelake embedded S3")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - timedelta(days=1), now + timedelta(_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return made.public_bytes(serialization.Encoding.PEM), private
