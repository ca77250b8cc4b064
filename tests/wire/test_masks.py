"""Masks of event batches: the cells that they change, those that they leave, and what they may not be put on."""

from __future__ import annotations

import hmac
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.histories import Message, cells, ddl, resolved, row, row_schema
from tests.wire.event_batches import batch, images
from tidelake.decode.masker import Masker, MaskNames, masker
from tidelake.errors import ConfigError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import RowSchema
from tidelake.wire.hashes import Hashes
from tidelake.wire.masks import documented, mark, masked_cells, masked_text, read_documented

KEY, OTHER_KEY = b"the key of these tests, 32 bytes", b"another key of these tests, 32 b"
HASH = mark("hash", KEY)
PERSON = row_schema("id bigint", "mail varchar", "note text", "photo blob", "n int")


def digest(text: str) -> bytes:
    return hmac.digest(KEY, text.encode(), "sha256")


def person(op: str, ts: int, *sides: tuple[str | None, ...] | None, table: str = "people", s: RowSchema = PERSON) -> Message:
    return row(0, op, ts, s, *sides, table=table)


MARKS = [("d.people", "Mail", HASH), ("d.people", "note", "truncate(2)"), ("d.people", "photo", "truncate(2)"), ("d.people", "n", "null")]
A = ("1", "a@x", "中文字", "\x01\x02\x03", "5")
B = ("1", "b@x", "ab", None, None)


def test_both_images_are_masked_and_say_so_in_their_schema() -> None:
    plain = batch(
        person("insert", 1, A), person("update", 2, B, A), person("delete", 3, None, B), *resolved(4), ddl(5, "DROP TABLE d.x")[0]
    )
    out = masker(MaskNames(marks=MARKS), KEY)(plain)
    a = [b"1", digest("a@x"), "中文".encode(), b"\x01\x02", None]
    b = [b"1", digest("b@x"), b"ab", None, None]
    assert images(out) == [(a, None), (b, a), (None, b)]
    row_schemas = [r for r in out.to_pylist() if r["kind"] == "row_schema"]
    assert [c.mask for c in RowSchema.from_json(row_schemas[0]["columns"]).columns] == [None, HASH, "truncate(2)", "truncate(2)", "null"]
    ids = {i for r in out.to_pylist() if r["kind"] == "row" for i in (r["row_schema"], r["before_schema"]) if i is not None}
    assert ids == {s["row_schema"] for s in row_schemas} == {RowSchema.from_json(row_schemas[0]["columns"]).id}
    untouched = [n for n in out.schema.names if n not in ("after", "before", "row_schema", "before_schema")]
    rows = [r for r in plain.to_pylist() if r["kind"] != "row_schema"]
    assert [r | {"kind": r["kind"]} for r in out.select(untouched).to_pylist()[: len(rows)]] == [{n: r[n] for n in untouched} for r in rows]


def test_other_tables_of_the_same_schema_are_left_alone() -> None:
    out = masker(MaskNames(marks=MARKS), KEY)(batch(person("insert", 1, A, table="cats"), person("insert", 1, A)))
    assert images(out)[0] == (cells(*A), None)
    assert images(out)[1][0][1] == digest("a@x")
    row_schemas = [r["row_schema"] for r in out.to_pylist() if r["kind"] == "row_schema"]
    assert PERSON.id in row_schemas
    assert len(row_schemas) == 2


def test_a_batch_without_masked_tables_is_the_same_batch() -> None:
    events = batch(person("insert", 1, A, table="cats"), *resolved(2))
    assert masker(MaskNames(marks=MARKS), KEY)(events) is events
    assert masker(MaskNames(marks=[]), b"")(events) is events


def test_an_image_that_lacks_the_column_stays_as_it_is() -> None:
    keys = row_schema("id bigint")
    out = masker(MaskNames(marks=MARKS), KEY)(batch(person("insert", 1, A), person("delete", 2, None, ("1",), s=keys)))
    assert images(out)[1] == (None, [b"1"])


def test_sanitised_names_are_the_same_column() -> None:
    out = masker(MaskNames(marks=[("my-db.t-1", "e-mail", "null")]), KEY)(
        batch(row(0, "insert", 1, row_schema("e_mail text"), ("x",), table="t_1", database="my_db"))
    )
    assert images(out) == [([None], None)]


@pytest.mark.parametrize("mask", ["null", "drop", "truncate(3)"])
def test_a_key_column_can_only_be_hashed(mask: str) -> None:
    s = row_schema("id varchar")
    with pytest.raises(ConfigError, match=r'columns\."d\.people"\.id\.mask: id is in the key of d\.people: .*; allowed: "hash"'):
        masker(MaskNames(marks=[("d.people", "id", mask)]), KEY)(batch(person("insert", 1, ("1",), s=s)))
    assert images(masker(MaskNames(marks=[("d.people", "id", HASH)]), KEY)(batch(person("insert", 1, ("1",), s=s)))) == [
        ([digest("1")], None)
    ]


@pytest.mark.parametrize("kind", ["int", "date", "decimal(5,2)", "time", "enum", "bit"])
def test_only_text_and_bytes_are_truncated(kind: str) -> None:
    s = row_schema("id bigint", f"x {kind}")
    with pytest.raises(ConfigError, match="has no characters to truncate"):
        masker(MaskNames(marks=[("d.people", "x", "truncate(1)")]), KEY)(batch(person("insert", 1, ("1", "1"), s=s)))


@pytest.mark.parametrize("key", [b"", OTHER_KEY])
def test_a_worker_without_the_key_masks_nothing_with_another(key: bytes) -> None:
    with pytest.raises(ConfigError, match="the worker does not have the key") as error:
        masker(MaskNames(marks=MARKS), key)
    assert error.value.code == "MASK_KEY"


def test_neither_the_key_nor_what_it_hashes_stands_in_marks_and_representations() -> None:
    assert HASH.startswith("hash:")
    assert mark("hash", OTHER_KEY) != HASH
    assert KEY.decode() not in repr(Masker(MaskNames(marks=MARKS), Hashes(KEY)))


VALUES = st.binary(max_size=200) | st.text(max_size=80).map(str.encode)
IMAGES = st.lists(VALUES | st.none(), max_size=4)


@settings(max_examples=40)
@given(
    st.lists(st.lists(VALUES | st.none(), max_size=4) | st.none(), max_size=12), st.integers(0, 5), st.binary(max_size=100), st.randoms()
)
def test_cells_are_masked_as_python_would(images: list[list[bytes | None] | None], size: int, key: bytes, rng: random.Random) -> None:
    masks = {f"truncate({size})": cut, f"truncate({size}) of bytes": lambda v, n: v[:n], "null": lambda *_: None}
    masks["hash"] = lambda v, _: hmac.digest(key, v, "sha256")
    chosen = {i: rng.choice(list(masks)) for i in range(3)}
    rows = sorted(rng.sample(range(len(images)), rng.randint(0, len(images))))
    places: dict[str, list[Any]] = {}
    for i, kind in chosen.items():
        places.setdefault(kind, []).append((pa.array(rows, pa.int64()).to_numpy(), i))
    wanted = [None if image is None else list(image) for image in images]
    for r in rows:
        for i, kind in chosen.items():
            image = wanted[r]
            if image is not None and i < len(image) and image[i] is not None:
                image[i] = masks[kind](image[i], size)
    for whole in (pa.array(images, pa.list_(pa.binary())), pa.array([[b"x"], *images], pa.list_(pa.binary()))[1:]):
        assert [c.to_pylist() for c in masked_cells([(whole, places), (whole, {}), (whole, places)], Hashes(key))] == [
            wanted,
            images,
            wanted,
        ]


def cut(value: bytes, size: int) -> bytes:
    """The first characters, told by their first bytes."""
    starts = [i for i, b in enumerate(value) if b & 0xC0 != 0x80]
    return value[: starts[size]] if size < len(starts) else value


@pytest.mark.parametrize(
    ("text", "mask", "kind", "wanted"),
    [
        ("中文字", "truncate(2)", "text", "中文"),
        ("010203", "truncate(2)", "blob", "0102"),
        ("a", HASH, "text", digest("a").hex()),
        ("61", HASH, "blob", digest("a").hex()),
        ("a", "null", "text", None),
    ],
)
def test_a_default_is_masked_as_its_column_s_values_are(text: str, mask: str, kind: str, wanted: str | None) -> None:
    assert masked_text(text, mask, MysqlType.parse(kind), KEY) == wanted


@pytest.mark.parametrize("mask", [None, HASH, "truncate(9)"])
def test_a_column_s_documentation_says_its_mask(mask: str | None) -> None:
    assert read_documented(documented("3: enum('a /* mask b */','c')", mask)) == ("3: enum('a /* mask b */','c')", mask)
