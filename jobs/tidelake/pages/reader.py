"""`python -P -m tidelake.pages.reader FD`: the process that reads pages for Airflow's web server, which has neither a client nor
credentials of the object store.

It imports what pages need, then forks a process for each page. A fork starts without clients and threads, gets the environment of its page
with the request, and ends with it. FD is a Unix socket that brings one byte and a socket for each page; the process ends when the other
end of FD is closed.

A page's socket brings the request, a JSON object: schemas, path, feeds, home and dag (pages/layout.py, AirflowLinks), environment, seconds.
It takes the answer: status, policy, content; or error. A fork that has no answer after so many seconds ends without one.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from tidelake.errors import StorageError, TidelakeError
from tidelake.io.printable import printable, printable_lines
from tidelake.pages.layout import AirflowLinks, compile_templates, page_policy
from tidelake.pages.page import page_at

_LATER = ("tidelake.lake.catalogs.glue", "sqlalchemy.dialects.sqlite")  # what clients import; the first loads boto3


def main(door: socket.socket) -> None:
    """Fork a process for each socket that the door brings, until its other end is closed."""
    for name in _LATER:
        importlib.import_module(name)
    compile_templates()
    gc.collect()
    gc.freeze()  # forks share what was imported
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a fork
    while (found := socket.recv_fds(door, 1, 1))[1]:
        with socket.socket(fileno=found[1][0]) as page:
            if os.fork() == 0:
                _fork(door, page)


def _fork(door: socket.socket, page: socket.socket) -> None:
    """Answer the request of a page and end this process."""
    try:
        door.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with page.makefile("rb") as request:
            asked = json.load(request)
        signal.setitimer(signal.ITIMER_REAL, asked.pop("seconds"))  # the signal ends the process, whatever it does
        page.sendall(json.dumps(answer(**asked)).encode())
    finally:
        os._exit(0)


def answer(schemas: str, path: str, feeds: list[str], home: str, dag: str, environment: dict[str, str]) -> dict[str, Any]:
    """Return a page with its status and Content-Security-Policy, or the error in one line or more. Replaces this process's environment."""
    os.environ.clear()
    os.environ.update(environment)
    try:
        found = page_at(Path(schemas), path, feeds, AirflowLinks(home=home, dag=dag))
    except TidelakeError as e:
        return {"error": printable_lines(str(e))}
    except Exception as e:  # noqa: BLE001  # the web server shows it
        traceback.print_exc()
        return {"error": str(StorageError(printable(f"the reader broke: {type(e).__name__}: {e}"), remedy="see the web server's log"))}
    return {"status": found.status, "policy": page_policy(), "content": found.html}


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
