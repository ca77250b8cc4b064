"""Names in messages are found as a loop over all names would find them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from tidelake.history.ddl.changes import TableDef
from tidelake.history.incarnations import Catalog, create
from tidelake.history.names import KnownNames, SentNames, same_name, unmeant

NAME = st.text("aA-_1", min_size=1, max_size=2)
NAMES = st.lists(st.tuples(NAME, NAME), max_size=12)


@given(NAMES, st.tuples(NAME, NAME))
def test_known_names_are_those_that_a_message_can_mean(names: list[tuple[str, str]], sent: tuple[str, str]) -> None:
    found = KnownNames((d, t, n) for n, (d, t) in enumerate(names)).meant(*sent)
    assert found == [n for n, (d, t) in enumerate(names) if same_name(sent[0], d) and same_name(sent[1], t)]


@given(NAMES, st.tuples(NAME, NAME))
def test_sent_names_are_those_that_can_mean_a_table(names: list[tuple[str, str]], known: tuple[str, str]) -> None:
    found = SentNames((d, t, n) for n, (d, t) in enumerate(names)).of(*known)
    assert sorted(found) == [n for n, (d, t) in enumerate(names) if same_name(d, known[0]) and same_name(t, known[1])]


@given(st.lists(NAME, max_size=8), st.lists(NAME, max_size=8))
def test_names_without_a_meaning_are_those_that_are_no_known_name(sent: list[str], names: list[str]) -> None:
    assert unmeant(sent, names) == [s for s in sent if not any(same_name(s, n) for n in names)]


@example([("a", "a", "change"), ("a", "a_", "change"), ("a", "a", "rename")])
@example([("a", "a-", "change"), ("a", "a_", "change"), ("a", "a-", "drop"), ("a", "a-", "recover")])
@given(st.lists(st.tuples(NAME, NAME, st.sampled_from(["change", "drop", "rename", "recover"])), max_size=16))
def test_present_tables_stay_known_from_change_to_change(steps: list[tuple[str, str, str]]) -> None:
    catalog = Catalog()
    for ts, (database, table, step) in enumerate(steps, 1):
        found = catalog.find(database, table)
        lost = next((i for i in catalog.incarnations.values() if i.dropped_ts and i.names[-1].is_(database, table)), None)
        if found is None and lost is not None and step == "recover":
            catalog = catalog.with_(replace(lost, dropped_ts=None))
        elif found is None:
            catalog = create(catalog, database, table, TableDef(columns=()), ts)
        elif step == "drop":
            catalog = catalog.with_(replace(found, dropped_ts=ts))
        elif step == "rename":
            name = replace(found.names[-1], table=f"{table}-")
            catalog = catalog.with_(replace(found, names=(*found.names, name)))
        else:
            catalog = catalog.with_(replace(found, guessed=not found.guessed))
        fresh = Catalog(dict(catalog.incarnations)).present
        for d in ("a", "A", "1", "_1", "-", "a_"):
            for t in ("a", "_", "-", "a-", "a_", "1", "_1"):
                assert catalog.present.meant(d, t) == fresh.meant(d, t)
