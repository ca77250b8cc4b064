"""What the compiled scans of the JSON protocols remember, and which messages of a batch they look at."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tests.protocols.both_paths import batch
from tests.protocols.json_messages import COMPANY, both, column, compact, decoded, open_key, open_message, open_raw, scanned
from tidelake.protocols import Context, decoder

ROW = {"id": column(3, 1, 11, key=True), "v": column(15, "a", 64)}
KEY, VALUE = open_message((open_key(), {"u": ROW}))


def test_the_scan_tells_tables_and_schemas_of_one_batch_apart() -> None:
    wide = ROW | {"w": column(8, 5)}
    other = {"id": column(8, 1, 11, key=True), "v": column(15, "a", 64)}  # the same names, another type
    messages = [
        open_message(
            *((open_key(table=t), {"u": r, "p": p}) for t in ("a", "b") for r in (ROW, wide, other) for p in (r, {"v": r["v"]}, {}))
        )
    ]
    assert scanned("open", messages * 3) == dict.fromkeys(range(3), both("open", messages[0]))


def test_nothing_but_a_row_teaches_the_scan_what_a_row_looks_like() -> None:
    """A member that is no row, and one that is overruled by its double, stand where rows stand."""
    row, other = compact({"id": column(3, 1)}), compact({"v": column(3, 2)})
    stranger = open_raw((compact(open_key()), b'{"u":%s,"x":%s}' % (row, other)))
    doubled = open_raw((compact(open_key()), b'{"u":%s,"u":%s}' % (compact({"id": column(8, 1)}), row)))
    later = [open_message((open_key(), {"u": {"v": column(3, 2)}})), open_message((open_key(), {"u": {"id": column(8, 1)}}))]
    taken = scanned("open", [stranger, doubled, *later])
    assert {i: taken[i] for i in (2, 3)} == {i + 2: both("open", m) for i, m in enumerate(later)}


def test_more_tables_than_one_scan_learns_are_read_all_the_same() -> None:
    context = Context()
    messages = [open_message((open_key(table=f"t{i}"), {"u": ROW | {f"c{i % 40}": column(3, i)}})) for i in range(600)]
    want = [both("open", m, Context()) if i % 50 == 0 else None for i, m in enumerate(messages)]
    assert len(scanned("open", messages, context)) < 600
    got = decoded("open", messages, context)
    assert [g if w is not None else None for g, w in zip(got, want, strict=True)] == want
    assert len(scanned("open", messages, context)) == 600  # the next batches know them


def test_what_is_remembered_is_bounded() -> None:
    context = Context()
    for start in range(0, 4600, 200):
        scanned("open", [open_message((open_key(table=f"t{i}"), {"u": ROW})) for i in range(start, start + 200)], context)
    known: Any = context.memory["open tables"]
    assert 0 < len(known.names) < 4096 + 256
    assert scanned("open", [(KEY, VALUE)], context) == {0: both("open", (KEY, VALUE))}


def test_a_table_of_more_layouts_than_are_searched_is_learned_anew() -> None:
    context = Context()
    messages = [open_message((open_key(), {"u": {f"c{i}": column(3, i)}})) for i in range(40)]
    assert 16 <= len(scanned("open", messages, context)) < 40
    assert scanned("open", messages[30:], context) == dict(enumerate(both("open", m) for m in messages[30:]))


@pytest.mark.parametrize("protocol", list(COMPANY))
def test_a_slice_is_scanned_like_a_batch_of_its_own(protocol: str) -> None:
    messages = [(None, None), *COMPANY[protocol], (b"x", b"y"), *COMPANY[protocol]]
    whole, scan = batch(messages), decoder(protocol).scan
    for start, length in ((1, 3), (2, len(messages) - 3), (0, 0), (len(messages), 0)):
        part = whole.slice(start, length)
        got, want = (scan(b, np.arange(length, dtype=np.int32), Context()) for b in (part, batch(messages[start : start + length])))
        assert got.batch(part).drop_columns("offset") == want.batch(part).drop_columns("offset")
        assert got.left.tolist() == want.left.tolist()


@pytest.mark.parametrize("protocol", list(COMPANY))
def test_messages_that_are_not_wanted_are_neither_taken_nor_left(protocol: str) -> None:
    messages = [*COMPANY[protocol], (None, None)]
    wanted = np.array([1, len(messages) - 1], np.int32)
    found = decoder(protocol).scan(batch(messages), wanted, Context())
    assert (found.message.tolist(), found.left.tolist()) == ([1], [len(messages) - 1])


def test_what_is_known_does_not_travel_to_other_processes() -> None:
    context = Context()
    scanned("open", [(KEY, VALUE)], context)
    known: Any = context.memory["open tables"]
    assert known.names == (("db", "t"),)
    assert pickle.loads(pickle.dumps(known)).names == ()
