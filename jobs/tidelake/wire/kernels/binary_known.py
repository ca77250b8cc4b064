"""What a scan has met before: schemas, names, row schemas, found again by the bytes that describe them.

A kernel writes the description into a scratch array and asks `find`; what it does not find, Python learns once and the kernel
carries on. Entries are compared byte by byte: the hash only gives where to look, so colliding input costs time, never truth.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tidelake.wire.kernels.arrays import Bytes, Flags, Ints, Words
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import compiled, int64

T = TypeVar("T")

_SLOTS = 1 << 15  # power of two
_MAX_ENTRIES = 1 << 13
_MAX_KEY_BYTES = 1 << 22
_MAX_STEPS = 1 << 18


class KeyTable(NamedTuple):
    """The arrays a kernel sees. Entry i has the key keys[ends[i]:ends[i+1]] and the steps steps[step_ends[i]:step_ends[i+1]]."""

    slots: Ints
    hashes: Words
    ends: Ints
    keys: Bytes
    valid: Flags
    step_ends: Ints
    steps: Ints


class KnownKeys(Generic[T]):
    """Entries in order of learning. An entry that Python refused stays known as invalid, its messages are for the general reader."""

    def __init__(self, width: int = 1) -> None:
        """width: numbers per step of an entry's program."""
        self.width = width
        self.values: list[T] = []
        self.table = KeyTable(
            slots=np.full(_SLOTS, NONE, np.int32),
            hashes=np.zeros(_MAX_ENTRIES, np.uint64),
            ends=np.zeros(_MAX_ENTRIES + 1, np.int32),
            keys=np.empty(_MAX_KEY_BYTES, np.uint8),
            valid=np.zeros(_MAX_ENTRIES, np.bool_),
            step_ends=np.zeros(_MAX_ENTRIES + 1, np.int32),
            steps=np.empty((_MAX_STEPS, width), np.int32),
        )
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[KnownKeys[T]], tuple[int]]:
        """Workers start with an empty memory."""
        return KnownKeys, (self.width,)

    @property
    def crowded(self) -> bool:
        """Whether it should make room for a new one before the next batch."""
        t, n = self.table, len(self.values)
        return n > _MAX_ENTRIES // 2 or t.ends[n] > _MAX_KEY_BYTES // 2 or t.step_ends[n] > _MAX_STEPS // 2

    def learn(self, key: bytes, value: T, steps: Sequence[Sequence[int]] = (), *, valid: bool = True) -> bool:
        """Add an entry; False if there is no room. Other threads may be looking things up meanwhile."""
        with self._lock:
            t, n = self.table, len(self.values)
            key_end, step_end = t.ends[n] + len(key), t.step_ends[n] + len(steps)
            if n == _MAX_ENTRIES or key_end > _MAX_KEY_BYTES or step_end > _MAX_STEPS:
                return False
            t.keys[t.ends[n] : key_end] = np.frombuffer(key, np.uint8)
            if steps:
                t.steps[t.step_ends[n] : step_end] = steps
            t.ends[n + 1], t.step_ends[n + 1], t.valid[n] = key_end, step_end, valid
            t.hashes[n] = _hash(t.keys, int(t.ends[n]), int(key_end))
            self.values.append(value)
            slot = int(t.hashes[n]) % _SLOTS
            while t.slots[slot] != NONE:
                slot = (slot + 1) % _SLOTS
            t.slots[slot] = n
            return True


@compiled
def find(table: KeyTable, key: Bytes, size: int) -> int:
    """The entry with the key key[:size], NONE if there is none."""
    wanted = _hash(key, 0, size)
    slot = int64(wanted & np.uint64(_SLOTS - 1))
    while table.slots[slot] != NONE:
        entry = table.slots[slot]
        if table.hashes[entry] == wanted and _is_key(table, entry, key, size):
            return int64(entry)
        slot = (slot + 1) & (_SLOTS - 1)
    return NONE


@compiled
def _is_key(table: KeyTable, entry: int, key: Bytes, size: int) -> bool:
    begin = int64(table.ends[entry])
    if table.ends[entry + 1] - begin != size:
        return False
    for i in range(size):  # noqa: SIM110  numba has no all()
        if table.keys[begin + i] != key[i]:
            return False
    return True


@compiled
def _hash(data: Bytes, begin: int, end: int) -> np.uint64:
    """FNV-1a of 64 bits, its upper half folded into the lower."""
    value = np.uint64(0xCBF29CE484222325)
    for i in range(begin, end):
        value = (value ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
    return value ^ value >> np.uint64(32)
