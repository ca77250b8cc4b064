"""Compiled: which of a protocol's short constant texts stands somewhere, by two words of eight bytes each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidelake.wire.kernels.arrays import Bytes, Ints
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import inlined_step
from tidelake.wire.kernels.json_kernels import word


class Texts(NamedTuple):
    """Texts of at most sixteen bytes, by number."""

    words: npt.NDArray[np.uint64]  # two for each
    masks: npt.NDArray[np.uint64]  # which of their bits count
    lengths: Ints


def texts(*every: bytes) -> Texts:
    """Numbered in this order."""
    words = [np.frombuffer(t.ljust(16, b"\0"), "<u8") for t in every]
    masks = [np.frombuffer((b"\xff" * len(t)).ljust(16, b"\0"), "<u8") for t in every]
    return Texts(np.array(words, np.uint64), np.array(masks, np.uint64), np.array([len(t) for t in every], np.int32))


@inlined_step
def text_at(text: Bytes, p: int, known: Texts, guess: int) -> int:
    """The number of the text at p, the guess tried first; NONE if there is none."""
    low, high = word(text, p), word(text, p + 8)
    if guess < len(known.words) and _equal(low, high, known, guess):
        return guess
    for i in range(len(known.words)):
        if _equal(low, high, known, i):
            return i
    return NONE


@inlined_step
def _equal(low: np.uint64, high: np.uint64, known: Texts, i: int) -> bool:
    w, m, k = known.words, known.masks, np.uint64(i)
    return bool(low & m[k, 0] == w[k, 0] and high & m[k, 1] == w[k, 1])
