"""Children that find their imports made: a process that imported the package forks for `python -P -m tidelake…`, and the child ends as the
fork does. Arguments, environment, output, exit code and process of a child are its own, as ever.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_KEPT = """
import atexit, gc, importlib, json, os, runpy, socket, sys, threading

stages = "land decode.stage order.stage validate.stage compact.stage publish.stage"
for name in f"cli.stages {stages} query.status query.lineage notices.look doctor.reach".split():
    importlib.import_module(f"tidelake.{name}")
gc.freeze()

def called(door):
    # Return the call in a fork of its own. The process that waits for it tells the caller how it ended.
    while True:
        caller, _ = door.accept()
        if os.fork():
            caller.close()
            os.waitpid(-1, os.WNOHANG)
            continue
        _, streams, _, _ = socket.recv_fds(caller, 1, 3)
        with caller.makefile("rb") as given:
            call = json.load(given)
        child = os.fork()
        if child:
            for stream in streams:
                os.close(stream)
            caller.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
            os._exit(0)
        door.close()
        caller.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return call

call = called(socket.socket(fileno=int(sys.argv[1])))
os.chdir(call["folder"])
os.environ.clear()
os.environ.update(call["environment"])
sys.argv[:] = call["arguments"]
code = 1
try:
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    code = 0
except SystemExit as e:
    code = e.code or 0
except BaseException:
    sys.excepthook(*sys.exc_info())
finally:  # as an interpreter ends, but without taking all modules apart
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)
"""
_CALL = """
import json, os, signal, socket, sys

kept = socket.socket(socket.AF_UNIX)
kept.connect(sys.argv[1])
socket.send_fds(kept, [b"c"], [0, 1, 2])
call = {"arguments": sys.argv[2:], "environment": dict(os.environ), "folder": os.getcwd()}
kept.sendall(json.dumps(call).encode())
kept.shutdown(socket.SHUT_WR)
code = int(kept.makefile().read())
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@contextmanager
def kept(folder: Path) -> Iterator[str]:
    """The process that forks. folder: for its socket, whose path this gives."""
    path = str(folder / "warm")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        command = [sys.executable, "-P", "-c", _KEPT, str(door.fileno())]
        with subprocess.Popen(command, pass_fds=[door.fileno()]) as process:
            yield path
            process.kill()


@contextmanager
def warm_children(path: str) -> Iterator[None]:
    """Children of the package are warm. path: of the socket."""
    start = subprocess.Popen.__init__

    def started(self: Any, args: Any, *more: Any, **options: Any) -> None:
        if list(args[:3]) == [sys.executable, "-P", "-m"] and args[3].partition(".")[0] == "tidelake":
            args = [sys.executable, "-I", "-S", "-c", _CALL, path, *args[3:]]
        start(self, args, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", started)
        yield
