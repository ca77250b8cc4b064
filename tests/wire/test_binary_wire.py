"""What the binary protocols are made of: varints, regions, numbers as text, and the memory of things met."""

from __future__ import annotations

import hashlib
import pickle
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidelake
from tests.protocols import vectors
from tests.protocols.craft_messages import uvarint, varint
from tidelake import tso
from tidelake.errors import DecodeError
from tidelake.wire.binary import avro_scan, canal_scan, craft_scan
from tidelake.wire.kernels import binary_floats, binary_kernels, binary_known, compiled
from tidelake.wire.kernels.binary_known import KnownKeys, find
from tidelake.wire.kernels.varint import Region, reversed_uvarint

NUMBERS = [0, 1, 127, 128, 300, 16383, 16384, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
BAD = binary_kernels.BAD


def region(data: bytes) -> Region:
    return Region(data, 0, len(data), "the test")


def array(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)


def both_readers(data: bytes) -> int | None:
    """A uvarint by the plain and the compiled reader, None if it is none."""
    value, end = binary_kernels.uvarint(array(data), 0, len(data))
    try:
        plain = region(data)
        number = plain.uvarint("a number")
    except DecodeError:
        assert end == BAD
        return None
    assert (number, plain.at) == (int(value), end)
    return number


@pytest.mark.parametrize("number", NUMBERS)
def test_a_uvarint_is_read_and_every_part_of_it_is_not(number: int) -> None:
    data = uvarint(number)
    assert both_readers(data + b"\xff") == number
    assert [both_readers(data[:n]) for n in range(len(data))] == [None] * len(data)


@pytest.mark.parametrize("data", [b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x00", b"\xff" * 10, b"\xff" * 20, b"\x80" * 9 + b"\x02"])
def test_a_uvarint_of_more_than_64_bits_is_refused(data: bytes) -> None:
    assert both_readers(data) is None
    with pytest.raises(DecodeError, match="more than 64 bits"):
        region(data).uvarint("a number")


def test_a_uvarint_may_be_longer_than_need_be() -> None:
    assert both_readers(b"\x81\x00") == 1
    assert both_readers(b"\x80" * 9 + b"\x01") == 1 << 63


@given(st.binary(max_size=12))
def test_both_readers_of_uvarints_agree_on_any_bytes(data: bytes) -> None:
    both_readers(data)
    value, start = binary_kernels.reversed_uvarint(array(data), 0, len(data))
    try:
        assert reversed_uvarint(data) == (int(value), start)
    except DecodeError:
        assert start == BAD


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_zigzag_goes_there_and_back(number: int) -> None:
    data = varint(number)
    assert region(data).varint("a number") == number
    assert binary_kernels.varint(array(data), 0, len(data)) == (number, len(data))


@given(st.integers(0, (1 << 64) - 1))
def test_a_reversed_uvarint_is_the_uvarint_from_behind(number: int) -> None:
    data = b"\xff" + uvarint(number)[::-1]
    assert reversed_uvarint(data) == (number, 1)


def test_a_bad_position_stays_bad() -> None:
    data = array(b"\x01\x02")
    assert binary_kernels.uvarint(data, BAD, 2)[1] == BAD
    assert binary_kernels.varint(data, BAD, 2)[1] == BAD
    assert binary_kernels.skip_varints(data, BAD, 2, 1) == BAD


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in vectors.load("craft-primitive")])
def test_primitives_of_craft(vector: dict[str, Any]) -> None:
    data, want = bytes.fromhex(vector["value_hex"]), vector["expected"]
    r = region(data)
    if want["type"] == "uvarint":
        assert r.uvarint("n") == want["value"]
    elif want["type"] == "varint":
        assert r.varint("n") == want["value"]
    elif want["type"] == "reversed-uvarint":
        assert reversed_uvarint(data) == (want["value"], 0)
        return
    elif want["type"] == "size-table":
        assert r.deltas(r.count("n"), "n") == want["value"]
    elif want["type"] == "nullable-bytes-chunk":
        lengths = [r.varint("n") for _ in range(want["count"])]
        assert [None if n == -1 else r.take(n, "v").hex() for n in lengths] == want["value_hex"]
    else:
        assert r.deltas(want["count"], "n", signed=want["type"] == "delta-varint-chunk") == want["value"]
    r.finish()


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in vectors.load("tso")])
def test_the_time_of_a_tso(vector: dict[str, Any]) -> None:
    want = vector["expected"]
    assert tso.physical_ms(want["ts"]) == want["physical_ms"]
    assert tso.from_ms(want["physical_ms"], want["logical"]) == want["ts"]


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda r: r.take(5, "x"), "BAD_LENGTH: x at byte 0 has length 5, the message has 4 bytes"),
        (lambda r: r.take(-1, "x"), "BAD_LENGTH: x at byte 0 has length -1, the message has 4 bytes"),
        (lambda r: r.take(3, "x"), "TRUNCATED: x ends at byte 3, the region at byte 2"),
        (lambda r: r.fixed(9, "x"), "TRUNCATED: x ends at byte 9, the region at byte 2"),
        (lambda r: r.region(3, "x"), "BAD_LENGTH: x has 3 bytes, of the region 2 are left at byte 0"),
        (lambda r: r.count("x"), "BAD_LENGTH: x at byte 0 is 2, but only 1 bytes of the region follow"),
        (lambda r: r.finish(), "TRAILING_BYTES: the region should end at byte 0, but ends at byte 2"),
    ],
)
def test_a_region_is_never_left(act: Any, says: str) -> None:
    with pytest.raises(DecodeError) as error:
        act(Region(b"\2\2\2\2", 0, 2, "the region"))
    assert str(error.value) == says


@pytest.mark.parametrize("number", [*NUMBERS, *(10**n for n in range(20)), *(10**n - 1 for n in range(1, 20))])
def test_numbers_become_digits(number: int) -> None:
    out = np.zeros(30, np.uint8)
    assert bytes(out[: binary_kernels.put_unsigned(out, 0, np.uint64(number))]) == b"%d" % number
    for signed in (number, -number):
        if -(1 << 63) <= signed < 1 << 63:
            assert bytes(out[: binary_kernels.put_signed(out, 0, signed)]) == b"%d" % signed
    assert bytes(out[: binary_kernels.put_padded(out, 0, np.uint64(number), 9)]) == (b"%09d" % number)[-9:]


def texts(bits: int) -> tuple[bytes, bytes, float]:
    """The compiled texts of a float64 given by its bits, as DOUBLE and as FLOAT."""
    out = np.zeros(binary_floats.TEXT_BYTES, np.uint8)
    double = bytes(out[: binary_floats.put_double(out, 0, np.uint64(bits))])
    single = bytes(out[: binary_floats.put_single(out, 0, np.uint64(bits))])
    return double, single, struct.unpack("<d", bits.to_bytes(8, "little"))[0]


def check_float(bits: int) -> None:
    double, single, x = texts(bits)
    assert (double, single) == (binary_floats.double(x), binary_floats.single(x))
    assert double == (b"NaN" if x != x else repr(x).encode())


@pytest.mark.parametrize("exponent", [0, 1, 2, 896, 897, 898, 1022, 1023, 1075, 1076, 1150, 1151, 2045, 2046, 2047])
def test_floats_at_the_edges_have_the_text_of_repr(exponent: int) -> None:
    for fraction in (0, 1, 2, (1 << 52) - 1, 1 << 51, 1 << 29, (1 << 29) - 1, ((1 << 23) - 1) << 29, 0xAAAAAAAAAAAAA):
        check_float(exponent << 52 | fraction)
        check_float(1 << 63 | exponent << 52 | fraction)


def test_powers_of_two_and_ten_have_the_text_of_repr() -> None:
    for x in (*(2.0**n for n in range(-1074, 1024)), *(float(f"1e{n}") for n in range(-323, 309)), *(n / 8 for n in range(500))):
        check_float(int.from_bytes(struct.pack("<d", x), "little"))


def test_random_floats_have_the_text_of_repr() -> None:
    chance = random.Random(3)
    for _ in range(5_000):
        check_float(chance.getrandbits(64))
        check_float(int.from_bytes(struct.pack("<d", chance.uniform(-1e6, 1e6)), "little"))
        check_float(int.from_bytes(struct.pack("<d", chance.randrange(10**7) / 100), "little"))


def test_random_floats_of_32_bits_have_their_own_shortest_text() -> None:
    chance, out = random.Random(4), np.zeros(binary_floats.TEXT_BYTES, np.uint8)
    edges = [
        sign << 31 | exponent << 23 | fraction for sign in (0, 1) for exponent in (0, 1, 254, 255) for fraction in (0, 1, (1 << 23) - 1)
    ]
    for bits in (*edges, *(chance.getrandbits(32) for _ in range(5_000))):
        text = bytes(out[: binary_floats.put_float(out, 0, np.uint64(bits))])
        (x,) = struct.unpack("<f", bits.to_bytes(4, "little"))
        assert text == binary_floats.single(x)
        assert np.float32(float(text)) == np.float32(x) or x != x


def test_compiled_code_is_kept_in_a_folder_named_by_all_sources() -> None:
    """numba looks at a kernel's own file only: it would go on using helpers as they were."""
    package = Path(tidelake.__file__).parent
    sources = sorted(path for folder in compiled.FOLDERS for path in (package / folder).rglob("*.py"))
    kernels_in = {path for path in package.rglob("*.py") if "from tidelake.wire.kernels.compiled import" in path.read_text()}
    assert len(kernels_in) > 25
    assert kernels_in <= set(sources)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    kernels: list[Any] = [
        binary_kernels.uvarint,
        binary_known.find,
        craft_scan.scan_messages,
        avro_scan.scan_messages,
        canal_scan.scan_messages,
    ]
    assert all(f"kernels-{digest[:16]}" in kernel.stats.cache_path for kernel in kernels)


def found(known: KnownKeys[str], key: bytes) -> int:
    return int(find(known.table, np.frombuffer(key, np.uint8), len(key)))


def test_what_was_learned_is_found_and_nothing_else() -> None:
    known = KnownKeys[str]()
    keys = [b"%d" % n for n in range(5_000)]  # many share a slot
    assert all(known.learn(key, key.decode()) for key in keys)
    assert [known.values[found(known, key)] for key in keys] == [key.decode() for key in keys]
    assert {found(known, b"x%d" % n) for n in range(5_000)} == {-1}


def test_keys_of_one_hash_are_told_apart_by_their_bytes() -> None:
    known = KnownKeys[str]()
    known.learn(b"one", "one")
    known.learn(b"two", "two")
    table = known.table
    slot = int(np.flatnonzero(table.slots == 1)[0])
    table.slots[slot], table.hashes[0] = 0, table.hashes[1]  # as if both keys had the hash of the second
    assert found(known, b"two") == -1


def test_a_full_memory_says_so_and_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_known, "_MAX_ENTRIES", 2)
    known = KnownKeys[str]()
    assert [known.learn(key, "") for key in (b"a", b"b", b"c")] == [True, True, False]
    assert [found(known, key) for key in (b"a", b"b", b"c")] == [0, 1, -1]
    assert known.crowded


def test_a_key_or_program_that_has_no_room_is_not_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_known, "_MAX_KEY_BYTES", 4)
    monkeypatch.setattr(binary_known, "_MAX_STEPS", 1)
    known = KnownKeys[str]()
    assert not known.learn(b"12345", "")
    assert not known.learn(b"1", "", [[1], [2]])
    assert known.learn(b"1234", "", [[7]])
    assert (found(known, b"1234"), int(known.table.steps[0, 0])) == (0, 7)


def test_a_memory_is_empty_after_pickling() -> None:
    known = KnownKeys[str](3)
    known.learn(b"a", "a", [[1, 2, 3]])
    copy = pickle.loads(pickle.dumps(known))
    assert (copy.values, found(copy, b"a"), copy.table.steps.shape[1]) == ([], -1, 3)
