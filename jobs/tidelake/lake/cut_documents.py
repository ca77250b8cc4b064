"""The documents of one cut: cuts/, certificates/ and publish/. A cut and its certificate can each be rebuilt from the other and the intent.

A number is one attempt to publish. Instead of the cut's document there may be a note that the attempt was abandoned
(publish/abandon.py). The one written first by put-if-absent decides. The number of an abandoned attempt is never used again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidelake.config.lake_paths import certificate_key, cut_key, cuts, intent_key, intents, seq_of
from tidelake.errors import DamageError, StorageError
from tidelake.io.documents import damaged, find_document, members, newer, parsed
from tidelake.io.storage import Store
from tidelake.lake.cut import Abandoned, Cut, Intent, TableCut
from tidelake.lake.proof.statement import PREDICATE, certificate_of, metadata_of, newer_form, predicate_of

_MARK = b'"abandoned_at_ms"'  # inside a JSON string its quotes would be escaped


def find_outcome(store: Store, feed: str, seq: int) -> Cut | Abandoned | None:
    """Return the outcome of a number: its cut's document, or the note that it was abandoned; None if neither exists."""
    key = cut_key(feed, seq)
    data = store.read_if_present(key)
    if data is None:
        return None
    return parsed(store, key, data, Abandoned.model_validate_json) if _MARK in data else parsed(store, key, data, Cut.model_validate_json)


def find_abandoned(store: Store, feed: str, seq: int) -> Abandoned | None:
    """Return the note that a publication was abandoned, None if it was not."""
    found = find_outcome(store, feed, seq)
    return found if isinstance(found, Abandoned) else None


def newest_intent(store: Store, feed: str) -> int:
    """Return the number of the newest intent, 0 if there is none."""
    return max((seq_of(o.key) for o in store.objects(intents(feed))), default=0)


def next_seq(store: Store, feed: str, newest: int) -> int:
    """Return the number of the next cut: the first after the newest published one that was not abandoned. newest: 0 for none."""
    seq = newest + 1
    while store.head(cut_key(feed, seq)) is not None and find_abandoned(store, feed, seq) is not None:
        seq += 1
    return seq


def read_cut(store: Store, feed: str, seq: int) -> Cut:
    """Return a published cut's document; rebuild a lost one. Raises DamageError, StorageError (ABANDONED)."""
    found = find_outcome(store, feed, seq)
    if isinstance(found, Abandoned):
        raise abandoned(feed, seq)
    return found or _rebuilt_cut(store, feed, seq)


def keep(store: Store, cut: Cut) -> bool:
    """Write a cut's document unless it exists. Returns False if the number was abandoned before."""
    key = cut_key(cut.feed, cut.seq)
    return store.put_if_absent(key, cut.model_dump_json(indent=1).encode()) or find_abandoned(store, cut.feed, cut.seq) is None


def write_lost(store: Store, feed: str, seqs: Iterable[int]) -> list[int]:
    """Rewrite the lost documents of these published cuts and return their numbers."""
    there = {o.key for o in store.objects(cuts(feed))}
    lost = [seq for seq in seqs if cut_key(feed, seq) not in there]
    for seq in lost:
        keep(store, read_cut(store, feed, seq))
    return lost


def find_certificate(store: Store, feed: str, seq: int) -> dict[str, Any] | None:
    """Return the members of a published cut's certificate; None if it is lost and cannot be rebuilt. Raises DamageError."""
    data = find_certificate_bytes(store, feed, seq)
    return None if data is None else _predicate(store, certificate_key(feed, seq), data)


def find_certificate_bytes(store: Store, feed: str, seq: int) -> bytes | None:
    """Return a published cut's certificate. A lost one is rebuilt from its cut and intent; None if one of these is missing."""
    data = store.read_if_present(certificate_key(feed, seq))
    if data is not None:
        return data
    intent, cut = find_document(store, intent_key(feed, seq), Intent), find_outcome(store, feed, seq)
    return certificate(intent, cut) if intent is not None and isinstance(cut, Cut) else None


def read_certificate(store: Store, feed: str, seq: int) -> dict[str, Any]:
    """Return the members of a published cut's certificate. Raises DamageError (NOT_FOUND) if it is lost and cannot be rebuilt."""
    found = find_certificate(store, feed, seq)
    if found is None:
        raise _lost(store, certificate_key(feed, seq), cut_key(feed, seq), feed, seq)
    return found


def certificate(intent: Intent, cut: Cut) -> bytes:
    """Return the certificate of a published cut, as it is stored."""
    return certificate_of(intent.certificate, cut)


def _predicate(store: Store, key: str, data: bytes) -> dict[str, Any]:
    document = members(store, key, data)
    if (form := newer_form(document)) is not None:
        raise newer(store, key, form, PREDICATE)
    try:
        return predicate_of(document)
    except ValueError as e:
        raise damaged(store, key, data, "_type", str(e)) from None


def _rebuilt_cut(store: Store, feed: str, seq: int) -> Cut:
    """Rebuild a cut from its intent and certificate. The certificate holds the snapshot ids that publishing gave the tables."""
    key = certificate_key(feed, seq)
    intent, proof = find_document(store, intent_key(feed, seq), Intent), store.read_if_present(key)
    if intent is None or proof is None:
        raise _lost(store, cut_key(feed, seq), key, feed, seq)
    said = _predicate(store, key, proof)
    snapshots, changelogs = ({i: TableCut.model_validate(t) for i, t in said[part].items()} for part in ("tables", "changelogs"))
    metadata = intent.cut.metadata | metadata_of(members(store, key, proof))
    own = {"published_at_ms": said["published_at_ms"], "snapshots": snapshots, "changelogs": changelogs, "metadata": metadata}
    return intent.cut.model_copy(update=own)


def abandoned(feed: str, seq: int) -> StorageError:
    """Return the error for a number whose publication was abandoned."""
    return StorageError(f"cut {seq} of feed {feed} was abandoned with `tidelake abandon`", code="ABANDONED", remedy="run the hour again")


def _lost(store: Store, key: str, other: str, feed: str, seq: int) -> DamageError:
    return DamageError(
        f"{store.uri_of(key)} is missing and cannot be rebuilt, because {other} or {intent_key(feed, seq)} is missing too",
        code="NOT_FOUND",
        remedy="restore an earlier version of one of them",
    )
