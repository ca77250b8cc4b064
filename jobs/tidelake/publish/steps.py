"""Steps of a publication: the intent and how it is carried out. Recovery (publish/recovery.py) carries it out again.

Every step first reads the present state. A completed step is skipped, so a run that was killed between any two steps can continue.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tidelake.config.lake_paths import MAIN, certificate_key, intent_key, signature_key
from tidelake.errors import StorageError
from tidelake.io.signing import signing_key
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, Cut, Intent, Move, Return, TableCut
from tidelake.lake.cut_documents import abandoned, certificate, find_abandoned, find_outcome, read_cut
from tidelake.lake.cuts import record
from tidelake.lake.names import is_parking, parking_name
from tidelake.lake.namespaces import occupied
from tidelake.lake.owner import OWNER
from tidelake.lake.tables import finish
from tidelake.spark.spread import THREADS

log = logging.getLogger(__name__)


def declare(store: Store, intent: Intent) -> None:
    """Write the intent: the point of no return. Raises StorageError (TAKEN) if another run published this cut's number first."""
    data = intent.model_dump_json(indent=1).encode()
    key = intent_key(intent.cut.feed, intent.cut.seq)
    if not store.put_if_absent(key, data) and store.read(key) != data:
        raise StorageError(f"cut {intent.cut.seq} of feed {intent.cut.feed} was published by another run", code="TAKEN")


def carry_out(catalog: LakeCatalog, store: Store, intent: Intent) -> Cut:
    """Carry out all steps after the intent: main of every table, names, the published record, the signature, the certificate last.

    Raises:
        StorageError: TABLE_MOVED, NOT_FOUND; ABANDONED: the publication was abandoned meanwhile.
    """
    feed, seq = intent.cut.feed, intent.cut.seq
    done = find_outcome(store, feed, seq) is not None or store.head(certificate_key(feed, seq)) is not None
    cut = read_cut(store, feed, seq) if done else _final(catalog, store, intent)
    record(catalog, store, cut)
    content, key = certificate(intent, cut), signing_key()
    if key is not None:
        store.put_if_absent(signature_key(feed, seq), key.signed(content))
    store.put_if_absent(certificate_key(feed, seq), content)
    return cut


def refuse_abandoned(store: Store, intent: Intent) -> None:
    """Raise StorageError (ABANDONED) if another process gave this publication up."""
    if find_abandoned(store, intent.cut.feed, intent.cut.seq) is not None:
        raise abandoned(intent.cut.feed, intent.cut.seq)


def _final(catalog: LakeCatalog, store: Store, intent: Intent) -> Cut:
    places = {m.uuid: m for m in intent.moves}
    cut = intent.cut.copied()
    finals: dict[str, int] = {}
    for r in intent.returns:
        cut.metadata[r.uuid] = _return(catalog, r, places.get(r.uuid), intent.cut.seq)
        log.info(f"set back {r.identifier}")

    def advance(a: Advance) -> tuple[int, str]:
        return _advance(catalog, a, places.get(a.uuid), intent.cut.seq)

    with ThreadPoolExecutor(THREADS) as pool:
        for a, (at, metadata) in zip(intent.advances, pool.map(advance, intent.advances), strict=True):
            finals[a.uuid], cut.metadata[a.uuid] = at, metadata
            log.info(f"published {a.identifier}")
    if intent.moves:
        refuse_abandoned(store, intent)  # renames are not conditional, unlike moves of main
    for m in intent.moves:
        _park(catalog, m)
    for m in intent.moves:
        _settle(catalog, m)
    cut.metadata = {u: location for u, location in cut.metadata.items() if u in cut.files}
    cut.published_at_ms = int(time.time() * 1000)
    for tables in (cut.snapshots, cut.changelogs):
        for i, t in tables.items():
            tables[i] = t.model_copy(update={"snapshot_id": finals.get(t.uuid, t.snapshot_id)})
    return cut


def _advance(catalog: LakeCatalog, a: Advance, move: Move | None, seq: int) -> tuple[int, str]:
    """Move main to the staged snapshot, then the columns to their final names; return the final snapshot id and the metadata's location.

    An empty commit stamps the result, so that the cut's snapshot has its own schema.
    """
    table = _find(catalog, a.uuid, places_of(a.identifier, move))
    stamp = str(seq)
    if table.summary(table.main).get("tidelake.cut") == stamp:
        return table.main, table.metadata
    metadata = table.metadata
    if table.main == a.base and a.base != a.to:
        metadata = catalog.advance(table, a.base, a.to, a.branch)
    elif table.main != a.to:
        raise _moved(table, a.base, seq)
    if a.reshape is None:
        return a.to, metadata
    finish(catalog, table.identifier, a.reshape)
    empty = catalog.load(table.identifier).table.schema().as_arrow().empty_table()
    stamped = catalog.append(table.identifier, empty, {"tidelake.cut": stamp})
    return stamped, catalog.load(table.identifier).metadata


def _return(catalog: LakeCatalog, r: Return, move: Move | None, seq: int) -> str:
    """Move main and the columns back in one commit; return the metadata's location."""
    table = _find(catalog, r.uuid, places_of(r.identifier, move))
    if table.stands_at(r.to):
        return table.metadata
    if table.main not in (r.base, r.to):
        raise _moved(table, r.base, seq)
    return catalog.restore(table, table.main, r.to)


def _moved(table: LakeTable, base: int, seq: int) -> StorageError:
    return StorageError(
        f"{table.identifier}: {MAIN} is at snapshot {table.main}, which no run of Tidelake created; cut {seq} waits",
        code="TABLE_MOVED",
        remedy=f"set {MAIN} back to snapshot {base}, then run again; `tidelake abandon` abandons the cut",
    )


def _park(catalog: LakeCatalog, m: Move) -> None:
    """Move a table out of the way, so that names can be swapped."""
    if is_at(catalog, m.source, m.uuid) and m.source != m.parking:
        _rename(catalog, m.source, m.parking)


def _settle(catalog: LakeCatalog, m: Move) -> None:
    if m.target != m.parking and is_at(catalog, m.parking, m.uuid):
        _rename(catalog, m.parking, m.target)


def _rename(catalog: LakeCatalog, source: str, to: str) -> None:
    """Rename a table. Raises OwnershipError: NOT_OURS if another owner took the name meanwhile, NAME_COLLISION for the feed's own table."""
    table = catalog.load(source)
    feed = table.properties[OWNER]
    if (there := catalog.find(to)) is not None:
        if there.uuid == table.uuid:  # Glue renames in two steps, and a run ended between them
            catalog.drop(source, feed)
            return
        raise occupied(there, source, feed)
    catalog.claim_namespace(to.rpartition(".")[0], feed)
    catalog.rename(source, to)


def is_at(catalog: LakeCatalog, identifier: str, uuid: str) -> bool:
    """Whether the table with this name has the UUID."""
    found = catalog.find(identifier)
    return found is not None and found.uuid == uuid


def find_at(catalog: LakeCatalog, uuid: str, places: Sequence[str]) -> LakeTable | None:
    """Return the table with this UUID that has one of these names."""
    for identifier in places:
        found = catalog.find(identifier)
        if found is not None and found.uuid == uuid:
            return found
    return None


def places_of(identifier: str, move: Move | None) -> list[str]:
    """Return the names that a table can have while it is published."""
    return [identifier, *([move.parking, move.target] if move else [])]


def _find(catalog: LakeCatalog, uuid: str, places: list[str]) -> LakeTable:
    found = find_at(catalog, uuid, places)
    if found is not None:
        return found
    raise StorageError(
        f"table {places[0]} ({uuid}) no longer exists", code="NOT_FOUND", remedy="it was dropped or renamed outside Tidelake"
    )


def plan_moves(now: Mapping[str, str], wanted: Mapping[str, str]) -> list[Move]:
    """Return the moves that give tables their wanted names. now, wanted: UUID → identifier."""
    return [
        Move(uuid=u, source=now[u], parking=now[u] if is_parking(now[u]) else parking_name(now[u], u), target=to)
        for u, to in wanted.items()
        if now[u] != to
    ]


def placed(t: TableCut, moves: list[Move]) -> TableCut:
    """Return a table with its name after the moves."""
    target = next((m.target for m in moves if m.uuid == t.uuid), t.identifier)
    return t.model_copy(update={"identifier": target})
