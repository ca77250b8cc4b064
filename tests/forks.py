"""Imports before a process forks, so that every fork has them."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress


def import_before(run: Callable[[], object]) -> None:
    """Import here what a run imports as it goes: a fork runs, and tells. This process stays without the threads of a run."""
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run()
            with os.fdopen(target, "w") as told:
                json.dump([name for name, module in list(sys.modules.items()) if getattr(module, "__spec__", None)], told)
            code = 0
        finally:
            os._exit(code)
    os.close(target)
    with os.fdopen(source) as told:
        content = told.read()
    assert os.waitpid(child, 0)[1] == 0, "the run that goes before the others did not end by itself"
    for name in json.loads(content):
        with suppress(ImportError):  # names that packages make up
            importlib.import_module(name)
