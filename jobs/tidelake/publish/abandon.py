"""Gives up a publication that was begun and cannot be finished: what it moved goes back, and its number is never used again.

A note in place of the cut's document records it. Note and document are both written with put-if-absent. So a run that publishes at the same
time either has written the document, and then nothing is abandoned, or finds the note and stops. Such a run cannot change a table any more:
main moves only together with the staged branch, and the branch is dropped before main goes back.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from typing import Literal

from pydantic import BaseModel

from tidelake.config.lake_paths import MAIN, cut_key, intent_key
from tidelake.errors import ConfigError
from tidelake.io.documents import read_document
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Abandoned, Advance, Cut, Intent, Move, Return
from tidelake.lake.cut_documents import find_outcome, newest_intent
from tidelake.lake.cuts import is_published, newest_cut
from tidelake.lake.cuts import places as where
from tidelake.lake.opened import Lake
from tidelake.lake.owner import OWNER
from tidelake.order.late.ledger import forget
from tidelake.publish.steps import find_at, is_at, places_of

log = logging.getLogger(__name__)


class UndoStep(BaseModel):
    """What is undone for one table.

    Attributes:
        table: The table.
        what: back (main goes back to the snapshot), branch (staged rows are dropped), name (the previous name is restored), left (the table
            is gone, or another client moved its main).
        detail: Text for people.
    """

    table: str
    what: Literal["back", "branch", "name", "left"]
    detail: str


class GivenUp(BaseModel):
    """A publication that is abandoned, or would be. seq: its number, which no other cut gets."""

    feed: str
    seq: int
    hour: str
    run: str
    steps: list[UndoStep]

    def lines(self, *, dry_run: bool) -> list[str]:
        """Return the result as lines for people."""
        verb = "would be abandoned" if dry_run else "is abandoned"
        head = f"{self.feed}: cut {self.seq} (hour {self.hour}) {verb}; readers keep the previous cut"
        tail = f"  the number {self.seq} is not used again; landed and decoded hours stay: run the hour again to stage it again"
        return [head, *(f"  {s.table}: {s.detail}" for s in self.steps), tail]


def abandon(lake: Lake, *, dry_run: bool = False) -> GivenUp | None:
    """Give up the feed's unfinished publication; return None if there is none. Holds the lease.

    Raises:
        ConfigError: COMPLETE.
        LeaseError: Another run holds the lease.
        StorageError: DAMAGED.
    """
    if dry_run:
        intent = _pending(lake)
        return _given_up(lake, intent) if intent else None
    with lake.hold("abandon", anyhow=True):
        intent = _pending(lake)
        if intent is None:
            return None
        found = _given_up(lake, intent)
        give_up(lake.catalog, lake.store, intent)
        return found


def _pending(lake: Lake) -> Intent | None:
    """The intent that is neither carried out nor completely abandoned."""
    store, feed = lake.store, lake.feed.name
    seq = newest_intent(store, feed)
    if not seq or is_published(lake.catalog, feed, seq):
        return None
    outcome = find_outcome(store, feed, seq)
    refuse_complete(outcome)
    return None if isinstance(outcome, Abandoned) and outcome.undone else read_document(store, intent_key(feed, seq), Intent)


def _given_up(lake: Lake, intent: Intent) -> GivenUp:
    cut = intent.cut
    return GivenUp(feed=cut.feed, seq=cut.seq, hour=cut.hour, run=cut.run, steps=plan(lake.catalog, intent))


def plan(catalog: LakeCatalog, intent: Intent) -> list[UndoStep]:
    """Return what abandoning an intent would undo now. Only reads."""
    places = {m.uuid: m for m in intent.moves}
    found = [_of_advance(catalog, a, places.get(a.uuid), intent.cut.seq) for a in intent.advances]
    found += [_of_return(catalog, r, places.get(r.uuid)) for r in intent.returns]
    found += [[UndoStep(table=at, what="name", detail=f"gets its name {m.source} back")] for m in intent.moves if (at := _away(catalog, m))]
    return [step for steps in found for step in steps]


def give_up(catalog: LakeCatalog, store: Store, intent: Intent) -> None:
    """Record that an intent is abandoned, then undo what it did. Repeatable.

    Raises:
        ConfigError: COMPLETE: all its tables are moved and its cut's document is written, so it will be published.
    """
    cut, key = intent.cut, cut_key(intent.cut.feed, intent.cut.seq)
    by = f"{socket.gethostname()} (process {os.getpid()})"
    note = Abandoned(feed=cut.feed, seq=cut.seq, hour=cut.hour, run=cut.run, abandoned_at_ms=int(time.time() * 1000), by=by)
    if not store.put_if_absent(key, note.model_dump_json(indent=1).encode()):
        outcome = find_outcome(store, cut.feed, cut.seq)
        refuse_complete(outcome)
        assert isinstance(outcome, Abandoned), "no other outcome is stored"
        note = outcome
    finish(catalog, store, intent, note)


def refuse_complete(outcome: Cut | Abandoned | None) -> None:
    """Raise ConfigError (COMPLETE) for a cut whose document is written."""
    if isinstance(outcome, Cut):
        raise ConfigError(
            f"cut {outcome.seq} of feed {outcome.feed} cannot be abandoned: all its tables are published, only its record is incomplete",
            code="COMPLETE",
            remedy=f"run any stage, which completes the record; `tidelake rollback --feed {outcome.feed} --to …` goes back from there",
        )


def finish(catalog: LakeCatalog, store: Store, intent: Intent, note: Abandoned) -> None:
    """Undo what an abandoned intent had moved, then record that this is done. Repeatable."""
    places = {m.uuid: m for m in intent.moves}
    for a in intent.advances:
        _undo_advance(catalog, a, places.get(a.uuid), intent.cut.seq)
        log.info(f"set back {a.identifier}")
    for r in intent.returns:
        table = find_at(catalog, r.uuid, places_of(r.identifier, places.get(r.uuid)))
        if table is not None and table.main == r.to != r.base:
            catalog.restore(table, r.to, r.base)
            log.info(f"set back {r.identifier}")
    for m in intent.moves:
        if m.target not in (m.parking, m.source) and is_at(catalog, m.target, m.uuid):
            catalog.rename(m.target, m.parking)
    for m in intent.moves:
        if m.source != m.parking and is_at(catalog, m.parking, m.uuid):
            _name_again(catalog, m)
    _drop_new(catalog, store, intent)
    forget(catalog, note.feed, note.seq)
    done = note.model_copy(update={"undone": True})
    store.write(cut_key(note.feed, note.seq), done.model_dump_json(indent=1).encode())


def _name_again(catalog: LakeCatalog, m: Move) -> None:
    if catalog.find(m.source) is not None:
        log.info(f"{m.source} is taken by another table: this one stays {m.parking}")
        return
    catalog.rename(m.parking, m.source)
    log.info(f"{m.source} has its name again")


def _drop_new(catalog: LakeCatalog, store: Store, intent: Intent) -> None:
    """Drop the feed's tables that were created for this cut and are empty, and namespaces that are empty then."""
    newest, feed = newest_cut(catalog, store, intent.cut.feed), intent.cut.feed
    known = where(newest) if newest else {}
    places = {m.uuid: m for m in intent.moves}
    for a in intent.advances:
        table = find_at(catalog, a.uuid, places_of(a.identifier, places.get(a.uuid)))
        if table is not None and a.uuid not in known and _is_empty(table, a) and table.properties.get(OWNER) == feed:
            catalog.drop(table.identifier, feed)
    names = [a.identifier for a in intent.advances] + [n for m in intent.moves for n in (m.parking, m.target)]
    for namespace in sorted({n.rpartition(".")[0] for n in names}):
        catalog.release_namespace(namespace, feed)


def _is_empty(table: LakeTable, a: Advance) -> bool:
    return table.main == a.base and table.summary(a.base).get("total-records") == "0"


def _undo_advance(catalog: LakeCatalog, a: Advance, move: Move | None, seq: int) -> None:
    table = find_at(catalog, a.uuid, places_of(a.identifier, move))
    if table is None:
        return
    if a.branch in table.branches:
        catalog.drop_branches(table, [a.branch])
        table = catalog.load(table.identifier)
    if _moved(table, a, seq):
        catalog.restore(table, table.main, a.base)


def _moved(table: LakeTable, a: Advance, seq: int) -> bool:
    """Whether main or the columns are in the state that this publication left."""
    if table.main == a.base:
        return a.reshape is not None and not table.stands_at(a.base)
    return table.main == a.to or table.summary(table.main).get("tidelake.cut") == str(seq)


def _of_advance(catalog: LakeCatalog, a: Advance, move: Move | None, seq: int) -> list[UndoStep]:
    table = find_at(catalog, a.uuid, places_of(a.identifier, move))
    if table is None:
        return [UndoStep(table=a.identifier, what="left", detail="does not exist; nothing to undo")]
    steps = []
    if _moved(table, a, seq):
        steps.append(UndoStep(table=table.identifier, what="back", detail=f"{MAIN} goes back to snapshot {a.base}, with its columns"))
    elif table.main != a.base:
        steps.append(
            UndoStep(table=table.identifier, what="left", detail=f"{MAIN} is at snapshot {table.main}, which no run created: left as it is")
        )
    if a.branch in table.branches:
        steps.append(UndoStep(table=table.identifier, what="branch", detail=f"the staged branch {a.branch} is dropped"))
    return steps


def _of_return(catalog: LakeCatalog, r: Return, move: Move | None) -> list[UndoStep]:
    table = find_at(catalog, r.uuid, places_of(r.identifier, move))
    if table is None or not table.main == r.to != r.base:
        return []
    return [UndoStep(table=table.identifier, what="back", detail=f"{MAIN} goes to snapshot {r.base} again, with its columns")]


def _away(catalog: LakeCatalog, m: Move) -> str | None:
    """The present name of a table that has left its name."""
    if is_at(catalog, m.source, m.uuid):
        return None
    found = find_at(catalog, m.uuid, [m.parking, m.target])
    return found.identifier if found else None
