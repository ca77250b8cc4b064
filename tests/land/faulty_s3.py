"""A proxy in front of an S3 server that spoils requests, by a seeded die or always; what it lets pass it does not change.

No request is spoiled more than IN_A_ROW times in a row, so whoever tries as often as Tidelake does gets through whatever the die says.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from urllib.parse import urlsplit

IN_A_ROW = 3  # botocore tries five times

LOST = "done, and the answer lost"
HALF = "half a body"
STALL = "half a body, then silence"
CUT = "no answer"
ANSWERS = {"InternalError": 500, "SlowDown": 503, "ExpiredToken": 400}
_OF_BODIES = (HALF, STALL)

Wanted = Callable[[str, str], bool]


class FaultyS3:
    """faults: those to choose from. share: of the requests that are spoiled. wanted: which may be, by method and path.

    spoiled: how often each fault came.
    """

    def __init__(self, endpoint: str, seed: int, faults: Sequence[str], share: float, wanted: Wanted) -> None:
        self.upstream = urlsplit(endpoint).netloc
        self.spoiled = Counter[str]()
        self.healed = Event()
        self._die = random.Random(seed)
        self._faults, self._share, self._wanted = faults, share, wanted
        self._in_a_row = Counter[tuple[str, str]]()
        self._lock = Lock()

    def fault(self, method: str, path: str) -> str | None:
        """What to do to this request."""
        with self._lock:
            request = method, path
            if not self._wanted(method, path):  # no throw of the die: faults of the others do not depend on when these come
                return None
            chosen = self._die.choice(self._faults) if self._die.random() < self._share else None
            always = self._share >= 1
            if (
                chosen is None
                or self.healed.is_set()
                or (chosen in _OF_BODIES and method != "GET")
                or (self._in_a_row[request] == IN_A_ROW and not always)
            ):
                self._in_a_row[request] = 0
                return None
            self._in_a_row[request] += 1
            self.spoiled[chosen] += 1
            return chosen


def anything(method: str, path: str) -> bool:
    """Every request."""
    return True


@contextmanager
def faulty_s3(
    endpoint: str, seed: int, faults: Sequence[str], share: float = 0.3, wanted: Wanted = anything
) -> Iterator[tuple[FaultyS3, str]]:
    """A proxy in front of the endpoint, and its own endpoint."""
    proxy = FaultyS3(endpoint, seed, faults, share, wanted)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.proxy = proxy
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield proxy, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        proxy.healed.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    proxy: FaultyS3


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.proxy.fault(self.command, self.path)
        if fault in ANSWERS:
            self._refuse(fault)
        elif fault == CUT:
            self.close_connection = True
        else:
            self._forward(body, fault)

    do_PUT = do_POST = do_HEAD = do_DELETE = do_GET

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _refuse(self, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>spoiled by the test</Message></Error>".encode()
        self.send_response(ANSWERS[code])
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _forward(self, body: bytes, fault: str | None) -> None:
        upstream = HTTPConnection(self.server.proxy.upstream)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "expect":
                upstream.putheader(name, value)
        upstream.endheaders(body)
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        if fault == LOST:
            self._refuse("InternalError")
        else:
            self._answer(answer, content, fault)

    def _answer(self, answer: HTTPResponse, content: bytes, fault: str | None) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        if fault is None:
            self.wfile.write(content)
            return
        self.wfile.write(content[: len(content) // 2])
        self.wfile.flush()
        if fault == STALL:
            self.rfile.read(1)  # until the client has had enough
        self.close_connection = True
