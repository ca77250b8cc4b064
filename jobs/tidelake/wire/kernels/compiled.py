"""numba, by the decorators that kernels wear. The only user of it.

Nothing compiled here creates arrays, so it runs without reference counts: counting took most of the time of the kernels.
Compiled code is kept on disk in a folder named by a hash of all sources in the folders that hold kernels: numba itself notices
changes of a function's own file only, and would run it with stale helpers after an upgrade.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit, types
from numba.core import cgutils, config
from numba.extending import intrinsic

FOLDERS = ("archives/scan", "seed/exports/scan", "wire")  # where kernels may stand: a test holds others to it
F = TypeVar("F", bound=Callable[..., Any])

int64 = cast(Callable[[object], int], np.int64)  # what compiled code's integers are to mypy

_STEP = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_numba: Any = config


def compiled(function: F) -> F:
    """For Python and for kernels to call, without the GIL."""
    return _cached(function)


def inlined(function: F) -> F:
    """Compile a small helper that LLVM inlines into every caller. A call would cost, because arrays are passed by value."""
    return _cached(function, forceinline=True)


def merged(function: F) -> F:
    """Compile a step of one caller: numba merges it before it compiles, which takes half the time of `inlined`."""
    return _cached(function, inline="always")


def step(function: F) -> F:
    """For kernels only to call."""
    return _cached(function, **_STEP)


def inlined_step(function: F) -> F:
    """For kernels only, and a part of every caller."""
    return _cached(function, **_STEP, forceinline=True)


def _memcpy(typing: Any, out: Any, at: Any, buf: Any, pos: Any, size: Any) -> Any:
    """memcpy, which no loop that numba compiles becomes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, origin = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2))
        copy: Callable[..., None] = cgutils.raw_memcpy
        copy(builder, builder.gep(to, [args[1]]), builder.gep(origin, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    return types.void(out, types.intp, buf, types.intp, types.intp), generate


copy_bytes: Callable[..., None] = intrinsic(_memcpy)


def _cached(function: F, **options: Any) -> F:
    before, _numba.CACHE_DIR = _numba.CACHE_DIR, _CACHE
    try:
        return cast(F, cast(Any, njit)(cache=True, nogil=True, _nrt=False, **options)(function))
    finally:
        _numba.CACHE_DIR = before


def _cache() -> str:
    here, package = Path(__file__).parent, Path(__file__).parents[2]
    sources = sorted(path for folder in FOLDERS for path in (package / folder).rglob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    temporary = Path(tempfile.gettempdir()) / f"tidelake-{os.getuid()}"
    homes = (_numba.CACHE_DIR, here / "__pycache__", Path.home() / ".cache" / "tidelake", temporary)
    return str(next(Path(home) for home in homes if home and _writable(Path(home))) / f"kernels-{digest[:16]}")


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


_CACHE = _cache()
