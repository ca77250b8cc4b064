"""Random statements give the lives that replaying them on dicts gives."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.incarnations.lives import after
from tests.history.incarnations.model import DATABASES, STEPS, TABLES, Model
from tests.searches import examples
from tidelake.history.incarnations import Catalog, Incarnation


@settings(max_examples=examples(150))
@given(st.data())
def test_random_statements_give_the_lives_that_replaying_them_gives(data: st.DataObject) -> None:
    model, catalog, ts = Model(), Catalog(), 10
    for _ in range(data.draw(st.integers(1, 25))):
        ts += data.draw(st.integers(0, 2))
        at = (data.draw(st.sampled_from(DATABASES)), data.draw(st.sampled_from(TABLES)))
        query = data.draw(st.sampled_from(STEPS))(data.draw, model, at)
        model.record(ts)
        catalog = after((ts, query), catalog=catalog)
    lives: dict[int, str] = {}
    for moment in range(8, ts + 3):
        for database in DATABASES:
            for table in TABLES:
                found = catalog.at(database, table, moment)
                check(lives, found, model.of_row(moment).get((database, table)), lambda i, m=moment: row_ids(i, m))
                found = catalog.asof(database, table, moment)
                wanted = model.asof(moment).get((database, table))
                check(lives, found, wanted, lambda i, m=moment: [(c.id, c.name) for c in i.columns_at(m)])
    assert len(set(lives.values())) == len(lives)
    assert {(i.names[-1].database.lower(), i.names[-1].table.lower()) for i in catalog.alive()} == set(model.tables)
    assert all(catalog.opened().at(*place, ts + 1).id == lives[t.life] for place, t in model.tables.items())


def row_ids(i: Incarnation, ts: int) -> list[tuple[int, str]]:
    (segment,) = [s for s in i.segments if s.after_ts < ts and (s.until_ts is None or ts <= s.until_ts)]
    return [(c.id, c.name) for c in segment.columns]


def check(
    lives: dict[int, str],
    found: Incarnation | None,
    wanted: tuple[int, list[tuple[int, str]]] | None,
    columns: Callable[[Incarnation], list[tuple[int, str]]],
) -> None:
    """The same life, with the same columns in the same order."""
    if wanted is None:
        assert found is None
        return
    assert found is not None
    life, of_model = wanted
    assert lives.setdefault(life, found.id) == found.id
    assert columns(found) == of_model
