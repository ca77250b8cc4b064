"""Compiled: HMAC-SHA-256 of many short values under one key, 32 bytes each (FIPS 180-4, RFC 2104).

The two padded keys are compressed once; a value of up to 55 bytes then costs two compressions. LANES values are compressed at a time, one
in each lane of the processor's vectors: word i of lane n stands at [i * LANES + n] of the arrays here. Values of equal length in blocks
come together.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from tidelake.wire.kernels.arrays import Bytes, Longs
from tidelake.wire.kernels.compiled import compiled, inlined_step, step

DIGEST = 32  # bytes
LANES = 32
_BLOCK, _LENGTH = 64, 8  # bytes
_STATE, _MESSAGE, _ROUNDS = 8, 16, 64  # words
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
_ONE_BIT = 0x80  # ends a message
_HASH_BITS = _U((_BLOCK + DIGEST) * 8)  # what the outer key's hash takes


def hmac_sha256(key: bytes, data: Bytes, offsets: Longs) -> Bytes:
    """The HMAC of each value, a row of DIGEST bytes. offsets: of the values in data, one more than there are values."""
    short = hashlib.sha256(key).digest() if len(key) > _BLOCK else key
    padded = np.frombuffer(short.ljust(_BLOCK, b"\0"), np.uint8)
    w, v = np.empty(_ROUNDS * LANES, np.uint32), np.empty(_STATE * LANES, np.uint32)
    states = np.repeat(_START, LANES)[None].repeat(3, 0)  # after the inner and the outer key, and the values' own
    for state, pad in zip(states, (0x36, 0x5C), strict=False):
        w[: _MESSAGE * LANES] = np.bitwise_xor(padded, np.uint8(pad)).view(">u4").repeat(LANES)
        compress(state, w, v)
    blocks = (np.diff(offsets) + _LENGTH) // _BLOCK + 1
    out = np.empty((len(blocks), _STATE), np.uint32)
    _all(data, offsets, blocks, np.argsort(blocks, kind="stable"), states, w, v, out)
    return out.byteswap(inplace=True).view(np.uint8)


@compiled
def compress(state: _WORDS, w: _WORDS, v: _WORDS) -> None:
    """Take a block into the state of each lane. w: 64 words, the first 16 the block's; v: room for 8 words."""
    for i in range(_MESSAGE, _ROUNDS):
        for n in range(LANES):
            x, y = w[(i - 15) * LANES + n], w[(i - 2) * LANES + n]
            s0 = _turned(x, 7) ^ _turned(x, 18) ^ _U(x >> _U(3))
            s1 = _turned(y, 17) ^ _turned(y, 19) ^ _U(y >> _U(10))
            w[i * LANES + n] = _U(w[(i - 16) * LANES + n] + s0 + w[(i - 7) * LANES + n] + s1)
    for n in range(_STATE * LANES):
        v[n] = state[n]
    for i in range(0, _ROUNDS, _STATE):  # each round takes the eight words one place further
        _round(v, 0, 1, 2, 3, 4, 5, 6, 7, w, i)
        _round(v, 7, 0, 1, 2, 3, 4, 5, 6, w, i + 1)
        _round(v, 6, 7, 0, 1, 2, 3, 4, 5, w, i + 2)
        _round(v, 5, 6, 7, 0, 1, 2, 3, 4, w, i + 3)
        _round(v, 4, 5, 6, 7, 0, 1, 2, 3, w, i + 4)
        _round(v, 3, 4, 5, 6, 7, 0, 1, 2, w, i + 5)
        _round(v, 2, 3, 4, 5, 6, 7, 0, 1, w, i + 6)
        _round(v, 1, 2, 3, 4, 5, 6, 7, 0, w, i + 7)
    for n in range(_STATE * LANES):
        state[n] = _U(state[n] + v[n])


@inlined_step
def _round(v: _WORDS, a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int, w: _WORDS, i: int) -> None:
    """One round of all lanes. a to h: which of the words of v is which of the standard's."""
    for n in range(LANES):
        ve, va = v[e * LANES + n], v[a * LANES + n]
        vb, vc = v[b * LANES + n], v[c * LANES + n]
        chosen, most = (ve & v[f * LANES + n]) ^ (~ve & v[g * LANES + n]), (va & vb) ^ (va & vc) ^ (vb & vc)
        t1 = _U(v[h * LANES + n] + (_turned(ve, 6) ^ _turned(ve, 11) ^ _turned(ve, 25)) + chosen + _K[i] + w[i * LANES + n])
        t2 = _U((_turned(va, 2) ^ _turned(va, 13) ^ _turned(va, 22)) + most)
        v[d * LANES + n] = _U(v[d * LANES + n] + t1)
        v[h * LANES + n] = _U(t1 + t2)


@inlined_step
def _turned(x: np.uint32, bits: int) -> np.uint32:
    return _U(_U(x >> _U(bits)) | _U(x << _U(32 - bits)))


@step
def _take(w: _WORDS, n: int, data: Bytes, begin: int, end: int, block: int, last: bool) -> None:
    """Set lane n's words to a block of data[begin:end] and its padding; the key's block was taken before."""
    at = begin + block * _BLOCK
    for i in range(_MESSAGE):
        p, word = at + 4 * i, _U(0)
        if p + 4 <= end:
            word = _U(_U(data[p]) << _U(24)) | _U(_U(data[p + 1]) << _U(16)) | _U(_U(data[p + 2]) << _U(8)) | _U(data[p + 3])
        elif p <= end:
            for k in range(4):
                byte = data[p + k] if p + k < end else _ONE_BIT if p + k == end else 0
                word |= _U(_U(byte) << _U(24 - 8 * k))
        w[i * LANES + n] = word
    if last:
        bits = (_BLOCK + end - begin) * 8
        w[14 * LANES + n] = _U(bits >> 32)
        w[15 * LANES + n] = _U(bits & 0xFFFFFFFF)


@compiled
def _all(
    data: Bytes,
    offsets: Longs,
    blocks: Longs,
    order: Longs,
    states: npt.NDArray[np.uint32],
    w: _WORDS,
    v: _WORDS,
    out: npt.NDArray[np.uint32],
) -> None:
    state = states[2]
    for first in range(0, len(order), LANES):
        lanes = min(LANES, len(order) - first)
        for i in range(_STATE * LANES):
            state[i] = states[0, i]
        for block in range(blocks[order[first + lanes - 1]]):
            for n in range(lanes):
                at = order[first + n]
                _take(w, n, data, offsets[at], offsets[at + 1], block, block == blocks[at] - 1)
            compress(state, w, v)
            for n in range(lanes):  # whose value ends here
                if block == blocks[order[first + n]] - 1:
                    for i in range(_STATE):
                        out[order[first + n], i] = state[i * LANES + n]
        _outer(state, states[1], order, first, lanes, w, v, out)


@step
def _outer(state: _WORDS, start: _WORDS, order: Longs, first: int, lanes: int, w: _WORDS, v: _WORDS, out: npt.NDArray[np.uint32]) -> None:
    """Replace the inner hashes by the outer ones."""
    for i in range(_MESSAGE * LANES):
        w[i] = 0
    for n in range(LANES):
        w[_STATE * LANES + n], w[15 * LANES + n] = _U(_ONE_BIT << 24), _HASH_BITS
    for n in range(lanes):
        for i in range(_STATE):
            w[i * LANES + n] = out[order[first + n], i]
    for i in range(_STATE * LANES):
        state[i] = start[i]
    compress(state, w, v)
    for n in range(lanes):
        for i in range(_STATE):
            out[order[first + n], i] = state[i * LANES + n]
