"""Compiled: HMAC-SHA-256 of many short values under one key, 32 bytes each (FIPS 180-4, RFC 2104).

The two padded keys are compressed once; a value of up to 55 bytes then costs two compressions.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.compiled import compiled, inlined_step, step

DIGEST = 32  # bytes
_BLOCK, _LENGTH = 64, 8  # bytes
_WORDS = npt.NDArray[np.uint32]
_U = np.uint32
_START = np.array([0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19], np.uint32)
_K = np.array(
    """428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5 d807aa98 12835b01 243185be 550c7dc3 72be5d74 80deb1fe
    9bdc06a7 c19bf174 e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da 983e5152 a831c66d b00327c8 bf597fc7
    c6e00bf3 d5a79147 06ca6351 14292967 27b70a85 2e1b2138 4d2c6dfc 53380d13 650a7354 766a0abb 81c2c92e 92722c85 a2bfe8a1 a81a664b
    c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070 19a4c116 1e376c08 2748774c 34b0bcb5 391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3
    748f82ee 78a5636f 84c87814 8cc70208 90befffa a4506ceb bef9a3f7 c67178f2""".split(),
    dtype=object,
)
_K = np.array([int(word, 16) for word in _K], np.uint32)


def hmac_sha256(key: bytes, data: Bytes, offsets: npt.NDArray[np.int64]) -> Bytes:
    """The HMAC of each value, one behind another. offsets: of the values in data, one more than there are values."""
    short = hashlib.sha256(key).digest() if len(key) > _BLOCK else key
    padded = np.frombuffer(short.ljust(_BLOCK, b"\0"), np.uint8)
    states = np.empty((3, 8), np.uint32)  # after the inner and the outer key, and the value's own
    words, block = np.empty(_BLOCK, np.uint32), np.empty(2 * _BLOCK, np.uint8)
    for state, pad in zip(states, (0x36, 0x5C), strict=False):
        state[:] = _START
        compress(state, np.bitwise_xor(padded, np.uint8(pad)), 0, words)
    out = np.empty(DIGEST * (len(offsets) - 1), np.uint8)
    _all(data, offsets, states, words, block, out)
    return out


@compiled
def compress(state: _WORDS, data: Bytes, at: int, w: _WORDS) -> None:
    """Take 64 bytes into the state. w: room for 64 words."""
    for i in range(16):
        p = at + 4 * i
        w[i] = _U(_U(data[p]) << _U(24)) | _U(_U(data[p + 1]) << _U(16)) | _U(_U(data[p + 2]) << _U(8)) | _U(data[p + 3])
    for i in range(16, 64):
        x, y = w[i - 15], w[i - 2]
        s0 = _turned(x, 7) ^ _turned(x, 18) ^ _U(x >> _U(3))
        s1 = _turned(y, 17) ^ _turned(y, 19) ^ _U(y >> _U(10))
        w[i] = _U(w[i - 16] + s0 + w[i - 7] + s1)
    a, b, c, d, e, f, g, h = state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
    for i in range(64):
        t1 = _U(h + (_turned(e, 6) ^ _turned(e, 11) ^ _turned(e, 25)) + ((e & f) ^ (~e & g)) + _K[i] + w[i])
        t2 = _U((_turned(a, 2) ^ _turned(a, 13) ^ _turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c)))
        h, g, f, e, d, c, b, a = g, f, e, _U(d + t1), c, b, a, _U(t1 + t2)
    state[0] = _U(state[0] + a)
    state[1] = _U(state[1] + b)
    state[2] = _U(state[2] + c)
    state[3] = _U(state[3] + d)
    state[4] = _U(state[4] + e)
    state[5] = _U(state[5] + f)
    state[6] = _U(state[6] + g)
    state[7] = _U(state[7] + h)


@inlined_step
def _turned(x: np.uint32, bits: int) -> np.uint32:
    return _U(_U(x >> _U(bits)) | _U(x << _U(32 - bits)))


@step
def _finish(state: _WORDS, data: Bytes, begin: int, end: int, w: _WORDS, block: Bytes) -> None:
    """Take data[begin:end] and the padding; one block, the key's, was taken before."""
    at = begin
    while end - at >= _BLOCK:
        compress(state, data, at, w)
        at += _BLOCK
    left = end - at
    size = _BLOCK if left < _BLOCK - _LENGTH else 2 * _BLOCK
    for i in range(size):
        block[i] = data[at + i] if i < left else 0
    block[left] = 0x80
    bits = (_BLOCK + end - begin) * 8
    for i in range(_LENGTH):
        block[size - 1 - i] = (bits >> (8 * i)) & 0xFF
    compress(state, block, 0, w)
    if size > _BLOCK:
        compress(state, block, _BLOCK, w)


@step
def _write(state: _WORDS, out: Bytes, at: int) -> None:
    for i in range(DIGEST):
        out[at + i] = (state[i >> 2] >> _U(24 - 8 * (i & 3))) & _U(0xFF)


@compiled
def _all(data: Bytes, offsets: npt.NDArray[np.int64], states: npt.NDArray[np.uint32], w: _WORDS, block: Bytes, out: Bytes) -> None:
    state = states[2]
    for n in range(len(offsets) - 1):
        for i in range(8):
            state[i] = states[0, i]
        _finish(state, data, offsets[n], offsets[n + 1], w, block)
        at = n * DIGEST
        _write(state, out, at)  # what the outer key's hash takes
        for i in range(8):
            state[i] = states[1, i]
        _finish(state, out, at, at + DIGEST, w, block)
        _write(state, out, at)
