"""What row events say, as hashes: a late event is compared with published ones by them. Pure.

AFTER: a row is so after the event. GONE: no row has a key after it. BARE: an event of a table without a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.order.arrow.event_groups import HOUR, numbers
from tidelake.order.arrow.keyless_rows import HASH
from tidelake.wire.kernels.arrays import Flags, Longs, Words
from tidelake.wire.row_hashes import nulls_of, offsets_of, row_hashes

AFTER, GONE, BARE = range(3)
ROW = ("r0", "r1")  # columns with the two words of the hash of table, commit ts and key; of BARE those of HASH
AT = (HOUR, "topic", "partition", "offset", "ordinal", "commit_ts", "database", "table", "op")
READ = (*AT, "row_schema", "before_schema", "after", "before")
KeyPositions = Mapping[int, Sequence[int]]  # schema → positions of the key's cells, for schemas with a key


def facts(events: pa.Table, keys: KeyPositions, hash_key: tuple[int, int], late: bool) -> pa.Table:
    """Return what events say: AT, HASH (table, commit ts and content), ROW, `fact` and `late`.

    A published event with an old image says that the row before it is gone. Of late ones only deletes must be found so: the halves of an
    update come as two events, or the other way round.

    Args:
        events: Row events with the columns READ, strings as dictionaries.
        keys: Where keys are.
        hash_key: Key of the hashes.
        late: Whether these are late events.
    """
    after, before = (events.column(c).combine_chunks().cast(pa.list_(pa.binary())) for c in ("after", "before"))
    schema, old_schema = (numbers(events.column(c).combine_chunks(), 0) for c in ("row_schema", "before_schema"))
    of_table = [events.column("commit_ts").combine_chunks(), *(_texts(events, c) for c in ("database", "table"))]
    (row, named), (old_row, old_named) = (_rows(i, s, keys, of_table, hash_key) for i, s in ((after, schema), (before, old_schema)))
    keyed, gone = named | old_named, pc.equal(events.column("op"), "delete") if late else before.is_valid()
    gone_row = np.where(old_named[:, None], old_row, row)
    at, bare = events.select(AT), pa.array(~keyed)
    says = row_hashes([*of_table, pa.array(schema), after], hash_key)
    alone = row_hashes([c.filter(bare) for c in (*of_table, _texts(events, "op"), after, before)], hash_key)
    found = (
        _facts(at, AFTER, keyed & ~nulls_of(after), says, row, late),
        _facts(at, GONE, keyed & np.asarray(gone), gone_row, gone_row, late),
        _facts(at.filter(bare), BARE, np.ones(len(alone), np.bool_), alone, alone, late),
    )
    return pa.concat_tables(found)


def _facts(at: pa.Table, fact: int, chosen: Flags, content: Words, row: Words, late: bool) -> pa.Table:
    found = at.filter(pa.array(chosen))
    for names, words in ((HASH, content), (ROW, row)):
        for n, name in enumerate(names):
            found = found.append_column(name, pa.array(words[chosen, n].view(np.int64)))
    found = found.append_column("fact", pa.array(np.full(found.num_rows, fact, np.int8)))
    return found.append_column("late", pa.array(np.full(found.num_rows, late)))


def _texts(events: pa.Table, name: str) -> pa.Array:
    return events.column(name).combine_chunks().cast(pa.string())


def _rows(
    images: pa.Array, schema: Longs, keys: KeyPositions, of_table: Sequence[pa.Array], hash_key: tuple[int, int]
) -> tuple[Words, Flags]:
    """Return the hash of each row's table, commit ts and key, and which rows have a key."""
    known, which = np.unique(schema, return_inverse=True)
    many = np.array([len(keys.get(s, ())) for s in known.tolist()], np.int64)
    places = np.zeros((len(known), max(int(many.max(initial=0)), 1)), np.int64)
    for n, s in enumerate(known.tolist()):
        places[n, : many[n]] = keys.get(s, ())
    count = many[which]
    ends = np.append(0, np.cumsum(count))
    of, nth = np.repeat(np.arange(len(schema)), count), np.arange(ends[-1]) - np.repeat(ends[:-1], count)
    cells = offsets_of(images)
    at = cells[of] + places[which[of], nth]
    there = (at < cells[of + 1]) & ~nulls_of(images)[of]  # an update's old image may lack unchanged cells
    found = images.values.take(pa.array(np.where(there, at, 0), mask=~there))
    key = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), found)
    return row_hashes([*of_table, key], hash_key), count > 0
