from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tidelake.demo import embedded_s3
from tidelake.demo.embedded_s3 import EmbeddedS3
from tidelake.errors import StorageError
from tidelake.io import storage
from tidelake.io.storage import open_store

pytestmark = pytest.mark.s3


def connects(server: EmbeddedS3) -> bool:
    address = urlsplit(server.environment["AWS_ENDPOINT_URL_S3"])
    with socket.socket() as probe:
        return probe.connect_ex((address.hostname or "", address.port or 0)) == 0


def runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_server_that_is_started_again_still_has_its_objects_and_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = EmbeddedS3(tmp_path, bucket="pond")
    keys = set()
    for turn in range(2):
        with server:
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            storage.reset()
            keys.add(server.environment["AWS_SECRET_ACCESS_KEY"])
            store = open_store("s3://pond/a")
            assert store.put_if_absent("k", b"v") is (turn == 0)
            assert connects(server)
        assert not connects(server)
    assert len(keys) == 1
    assert (tmp_path / "identities.json").stat().st_mode & 0o077 == 0


def test_a_server_that_does_not_come_up_is_an_error_with_the_end_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "weed"
    fake.write_text("#!/bin/sh\necho 'volume is full of eels' >&2\nexit 7\n")
    fake.chmod(0o755)
    monkeypatch.setattr(embedded_s3, "_binary", lambda: fake)
    server = EmbeddedS3(tmp_path)
    with pytest.raises(StorageError, match=r"(?s)ended with status 7.*volume is full of eels"):
        server.start()


def test_the_server_of_a_process_that_was_killed_is_replaced(tmp_path: Path) -> None:
    code = "import sys, os, signal; from pathlib import Path; from tidelake.demo.embedded_s3 import EmbeddedS3\n"
    code += "EmbeddedS3(Path(sys.argv[1])).start(); os.kill(os.getpid(), signal.SIGKILL)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -signal.SIGKILL
    orphan = int((tmp_path / "weed.pid").read_text())
    sockets = set(Path("/tmp").glob("seaweedfs-*.sock"))
    assert runs(orphan)
    command = Path(f"/proc/{orphan}/cmdline").read_bytes().split(b"\0")
    with EmbeddedS3(tmp_path) as server:
        assert connects(server)
        assert int((tmp_path / "weed.pid").read_text()) != orphan
    left = [word.rpartition(b"=")[2].decode() for word in command if b".port=" in word]
    assert not runs(orphan)
    assert not [path for path in sockets if path.exists() and any(port in path.name for port in left)]


def test_another_process_that_has_the_number_of_a_former_server_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", f"-dir={tmp_path / 'elsewhere'}"], stdin=subprocess.PIPE) as other:
        (tmp_path / "weed.pid").write_text(str(other.pid))
        EmbeddedS3(tmp_path)._stop_former()
        assert runs(other.pid)
        other.communicate(b"\n")
    assert other.returncode == 0


def test_the_server_ends_with_the_interpreter_that_started_it(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from tidelake.demo.embedded_s3 import EmbeddedS3\n"
    code += "EmbeddedS3(Path(sys.argv[1])).start(); print((Path(sys.argv[1]) / 'weed.pid').read_text())"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True)
    assert not runs(int(done.stdout))
