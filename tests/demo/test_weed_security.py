"""Who has no credentials gets nothing from the embedded S3 server: every socket that its processes listen on is tried."""

from __future__ import annotations

import http.client
import socket
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pytest

from tests.conftest import FreshUri
from tidelake.demo.embedded_s3 import EmbeddedS3
from tidelake.demo.weed_security import NAMES
from tidelake.io.storage import open_store

pytestmark = pytest.mark.s3
REFUSED = (0, 400, 401, 403, 404, 405)
SECRET = b"the object's content"
PATHS = [  # of any of the servers: what reads, lists, or gives a ticket to do so
    *(
        "/",
        "/buckets/",
        "/buckets/lake/?limit=9",
        "/buckets/lake/open/secret",
        "/lake",
        "/lake/open/secret",
        "/?Action=ListUsers",
    ),
    *(
        "/dir/assign",
        "/dir/lookup?volumeId=1&fileId=1,01637037d6&read=yes",
        "/dir/status",
        "/vol/grow?count=1",
        "/ui/index.html",
    ),
    *(f"/{volume},01637037d6" for volume in range(1, 8)),
]
CALLS = [
    *((f"/filer_pb.SeaweedFiler/{name}", b"\x0a\x0d/buckets/lake") for name in ("ListEntries", "LookupDirectoryEntry", "CreateEntry")),
    ("/filer_pb.SeaweedFiler/KvGet", b""),
    *((f"/master_pb.Seaweed/{name}", b"") for name in ("Assign", "LookupVolume", "Statistics", "VolumeList")),
    *((f"/volume_server_pb.VolumeServer/{name}", b"") for name in ("VolumeServerStatus", "ReadAllNeedles", "BatchDelete")),
    ("/messaging_pb.SeaweedS3IamCache/PutIdentity", b"\x0a\x06\x0a\x04evil"),
    ("/iam_pb.SeaweedIdentityAccessManagement/GetConfiguration", b""),
]


class ByPath(http.client.HTTPConnection):
    """HTTP over a socket in the file system."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)


@pytest.fixture
def server(s3_server: EmbeddedS3, s3: FreshUri) -> EmbeddedS3:
    """With an object in it that the tries look for."""
    open_store(f"s3://{s3_server.bucket}/open").write("secret", SECRET)
    return s3_server


def processes(server: EmbeddedS3) -> list[psutil.Process]:
    first = psutil.Process(int((server.folder / "weed.pid").read_text()))
    return [first, *first.children(recursive=True)]


def listening(server: EmbeddedS3) -> list[tuple[str, int]]:
    return [tuple(c.laddr) for p in processes(server) for c in p.net_connections("tcp") if c.status == psutil.CONN_LISTEN]


def sockets(server: EmbeddedS3) -> list[str]:
    return sorted({str(c.laddr) for p in processes(server) for c in p.net_connections("unix") if c.laddr})


def connections(server: EmbeddedS3) -> Iterator[http.client.HTTPConnection]:
    """To every socket, plain and with TLS but no certificate of ours."""
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    for host, port in listening(server):
        yield http.client.HTTPConnection(host, port, timeout=5)
        yield http.client.HTTPSConnection(host, port, timeout=5, context=anyone)
    for path in sockets(server):
        yield ByPath(path, timeout=5)


def answer(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
    """(status, what is said and under which heading); 0 where nothing that is HTTP answers."""
    try:
        connection.request(method, path, body)
        found = connection.getresponse()
        return found.status, f"{found.headers} {found.read(1 << 20)!r}"
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


def test_it_listens_on_loopback_only(server: EmbeddedS3) -> None:
    assert len(listening(server)) >= 8
    assert {host for host, _ in listening(server)} == {"127.0.0.1"}


def test_nobody_reads_without_credentials(server: EmbeddedS3) -> None:
    for connection in connections(server):
        for path in PATHS:
            status, said = answer(connection, "GET", path)
            if not status:  # it does not speak so
                break
            assert status in REFUSED, (connection.host, connection.port, path, status, said[:200])
            assert SECRET.decode() not in said
            assert "bearer" not in said.lower(), "no ticket either"


def test_nobody_writes_without_credentials(server: EmbeddedS3) -> None:
    for connection in connections(server):
        for path in ("/buckets/lake/evil", "/lake/evil", "/1,01637037d6", "/evil"):
            for method in ("PUT", "POST", "DELETE"):
                status, said = answer(connection, method, path, b"evil")
                assert status in REFUSED, (connection.host, connection.port, method, path, status, said[:200])
    assert open_store(f"s3://{server.bucket}").head("evil") is None
    assert open_store(f"s3://{server.bucket}/open").read("secret") == SECRET


def test_nobody_calls_its_inner_servers_without_the_certificate(server: EmbeddedS3) -> None:
    targets = [f"{host}:{port}" for host, port in listening(server)] + [f"unix:{path}" for path in sockets(server)]
    for target in targets:
        with grpc.insecure_channel(target, [("grpc.enable_http_proxy", 0)]) as channel:
            for method, request in CALLS:
                with pytest.raises(grpc.RpcError) as refused:
                    list(channel.unary_stream(method)(request, timeout=5))
                assert refused.value.code() is grpc.StatusCode.UNAVAILABLE, (target, method)


def test_what_lets_in_is_the_owner_s_alone(server: EmbeddedS3) -> None:
    for name in NAMES:
        assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600


def test_keys_and_certificate_are_others_at_the_next_start(tmp_path: Path) -> None:
    from tidelake.demo.weed_security import write_security

    contents = []
    for _ in range(2):
        write_security(tmp_path, "127.0.0.1")
        contents.append([(tmp_path / name).read_bytes() for name in NAMES])
    assert all(a != b for a, b in zip(*contents, strict=True))
